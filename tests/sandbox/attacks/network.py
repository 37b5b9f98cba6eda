"""Out by the network, in from it."""

import socket

from tests.sandbox.attacks.attack import Attack, links, marked
from tests.sandbox.attacks.scene import Scene


def _came(name: str) -> "object":
    def effect(scene: Scene) -> bool:
        listener = scene.listeners[name]
        try:
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                return listener.recv(100) == scene.mark.encode()
        except BlockingIOError:
            return bool(scene.seen.get(name))
        scene.seen[name] = True
        return True

    return effect


def _serves(scene: Scene) -> bool:
    """Somebody of this machine can reach a server that the program made."""
    for process in marked(scene):
        for line in (process / "net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] != "0A" or f"socket:[{words[9]}]" not in links(process):
                continue
            try:
                with socket.create_connection(("127.0.0.1", int(words[1][-4:], 16)), timeout=1) as reached:
                    reached.settimeout(1)
                    if reached.recv(100) == scene.mark.encode():
                        return True
            except OSError:
                continue
    return False


def _sends(name: str, tries: str, program: str) -> Attack:
    return Attack(
        name=name, tries=tries, program="import os, socket\nword = ARGUMENT['mark'].encode()\n" + program,
        effect=_came(name),
    )  # fmt: skip


ATTACKS = [
    _sends("tcp", "a connection", "socket.create_connection(('127.0.0.1', ARGUMENT['ports']['tcp']))"),
    _sends("udp", "a packet", "socket.socket(2, 2).sendto(word, ('127.0.0.1', ARGUMENT['ports']['udp']))"),
    _sends("tcp6", "a connection by IPv6", "socket.create_connection(('::1', ARGUMENT['ports']['tcp6']))"),
    _sends("abstract", "a socket without a path", "socket.socket(1, 2).sendto(word, chr(0) + ARGUMENT['mark'])"),
    _sends("unix", "a socket in a folder", "socket.socket(1, 2).sendto(word, ARGUMENT['folder'] + '/socket')"),
    Attack(
        name="http", tries="a page", effect=_came("tcp"),
        program="import urllib.request\nurllib.request.urlopen(f'http://localhost:{ARGUMENT[\"ports\"][\"tcp\"]}/', "
                "timeout=1)",
    ),
    Attack(
        name="server", tries="to be reached from this machine", effect=_serves,
        program="mark()\nimport socket\nserver = socket.create_server(('127.0.0.1', 0))\nserver.settimeout(2)\n"
                "server.accept()[0].send(ARGUMENT['mark'].encode())",
    ),
]  # fmt: skip
