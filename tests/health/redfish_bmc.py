"""Redfish BMCs on loopback: OpenStack's emulator (sushy-tools), which has power and no event log; and one of our own,
for event logs and for everything that a BMC can do wrong. Both speak TLS with a certificate made for the occasion."""

import contextlib
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wholestack.health.outofband.address import Credentials

ANN = Credentials(user="ann", password="s3cret-word")
SYSTEM = "/redfish/v1/Systems/1"


def certificate(folder: Path) -> Path:
    """A key and a certificate for 127.0.0.1 that nobody signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bmc -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return folder / "cert.pem"


def fingerprint(path: Path) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text())).hexdigest()


class Scripted:
    """A BMC whose answers are what a test says: by path a JSON value, bytes, or a function that gets the handler."""

    def __init__(self, cert: Path) -> None:
        self.cert = cert
        self.power = "On"
        self.asked: list[str] = []
        self.resets: list[str] = []
        self.answers: dict[str, object] = {
            "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
            SYSTEM: lambda _: self.system(),
            f"{SYSTEM}/LogServices": {"Members": [{"@odata.id": f"{SYSTEM}/LogServices/{n}"} for n in ("Log", "SEL")]},
            f"{SYSTEM}/LogServices/Log": {"Id": "Log", "LogEntryType": "OEM"},
            f"{SYSTEM}/LogServices/SEL": {
                "Id": "SEL", "LogEntryType": "SEL", "Entries": {"@odata.id": f"{SYSTEM}/LogServices/SEL/Entries"}
            },
            f"{SYSTEM}/LogServices/SEL/Entries": {"Members": []},
        }  # fmt: skip
        self.port = 0

    def system(self) -> dict[str, object]:
        target = f"{SYSTEM}/Actions/ComputerSystem.Reset"
        allowed = ["On", "ForceOff", "GracefulShutdown"]
        return {
            "PowerState": self.power,
            "LogServices": {"@odata.id": f"{SYSTEM}/LogServices"},
            "Actions": {"#ComputerSystem.Reset": {"target": target, "ResetType@Redfish.AllowableValues": allowed}},
        }

    def log(self, *entries: dict[str, object]) -> None:
        self.answers[f"{SYSTEM}/LogServices/SEL/Entries"] = {"Members": list(entries)}

    def url(self, option: str = "") -> str:
        return f"redfish://127.0.0.1:{self.port}{option or f'?ca={self.cert}'}"


class _Handler(BaseHTTPRequestHandler):
    bmc: Scripted

    def log_message(self, *_: object) -> None:
        return

    def do_GET(self) -> None:
        self.bmc.asked.append(self.path)
        words = self.headers.get("Authorization", "").removeprefix("Basic ")
        if b64decode(words).decode() != f"{ANN.user}:{ANN.password}":
            self.give(401, b"{}")
            return
        answer = self.bmc.answers.get(self.path)
        if callable(answer):
            answer = answer(self)
        if answer is not None:
            self.give(200, answer if isinstance(answer, bytes) else json.dumps(answer).encode())
        elif self.path not in self.bmc.answers:
            self.give(404, b'{"error": {"message": "there is no such resource"}}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bmc.resets.append(body["ResetType"])
        self.bmc.power = {"On": "On", "ForceOff": "Off"}[body["ResetType"]]
        self.give(204, b"")

    def give(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away is no news."""


@contextlib.contextmanager
def scripted_bmc(cert: Path):
    """Serve in a thread, end it."""
    bmc = Scripted(cert)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"bmc": bmc}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, cert.with_name("key.pem"))
    # The handshake is the handler's, so that one client that breaks it off keeps no other waiting.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    bmc.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield bmc
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


@contextlib.contextmanager
def emulated_bmc(folder: Path, cert: Path):
    """OpenStack's emulator with its fake driver: two systems, one of them on. Ended by its own process."""
    bcrypt = pytest.importorskip("bcrypt")
    program = Path(sys.executable).with_name("sushy-emulator")
    if not program.exists():
        pytest.skip("sushy-tools is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hashed = bcrypt.hashpw(ANN.password.encode(), bcrypt.gensalt(4)).decode()
    (folder / "users").write_text(f"{ANN.user}:{hashed}\n")
    systems = [
        {"uuid": f"0000000{n}-0000-4000-8000-000000000000", "name": f"node{n}", "power_state": "On", "nics": [],
         "external_notifier": False}
        for n in (1, 2)
    ]  # fmt: skip
    (folder / "emulator.conf").write_text(
        f"SUSHY_EMULATOR_FAKE_SYSTEMS = {systems!r}\nSUSHY_EMULATOR_AUTH_FILE = {str(folder / 'users')!r}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n"
    )
    arguments = [str(program), "--fake", "--config", "emulator.conf", "-i", "127.0.0.1", "-p", str(port)]
    arguments += ["--ssl-certificate", str(cert), "--ssl-key", str(cert.with_name("key.pem"))]
    with (folder / "emulator.log").open("wb") as log:
        emulator = subprocess.Popen(arguments, cwd=folder, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and emulator.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        else:
            raise RuntimeError((folder / "emulator.log").read_text()[-2000:])
        yield f"redfish://127.0.0.1:{port}", [f"/redfish/v1/Systems/{each['uuid']}" for each in systems]
    finally:
        emulator.terminate()
        emulator.wait(timeout=20)
