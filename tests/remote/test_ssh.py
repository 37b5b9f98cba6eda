"""SSH against a real OpenSSH server: what may go wrong with a login, a session, a connection."""

import asyncio
import contextlib
import getpass
import os
import shutil
import subprocess
from dataclasses import replace

import pytest

from tests.remote.processes import left_of, marked
from wholestack.errors import InputError
from wholestack.remote.batch import Command
from wholestack.remote.host import Host
from wholestack.remote.ssh import SshRemote

FINE = [Command(name="fine", shell="echo fine")]
ADDRESSES = [f"127.0.0.{number}" for number in range(1, 17)]
pytestmark = pytest.mark.allow_hosts([*ADDRESSES, "::1"])


@pytest.fixture
def mark():
    return f"TEST_MARK={os.urandom(8).hex()}"


@pytest.fixture
def profile(sshd):
    """Writes the .bashrc of the sessions."""
    path = sshd.home / ".bashrc"
    yield path.write_text
    path.unlink(missing_ok=True)


def remote_to(sshd, **options):
    settings = {"config": [], "known_hosts": [sshd.known_hosts], "retries": 0}
    return SshRemote(**settings | options)


async def all_of(remote, hosts, commands, deadline_s=60.0):
    try:
        return await asyncio.gather(*(remote.run(host, commands, deadline_s=deadline_s) for host in hosts))
    finally:
        await remote.close()


def run(remote, host, commands=FINE, deadline_s=60.0):
    return asyncio.run(all_of(remote, [host], commands, deadline_s))[0]


def make_key(path, *, passphrase=""):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return path


def failed(reply):
    """The trouble of a reply that must have no output and one line for a person."""
    assert {output.ending for output in reply.outputs.values()} == {"not_run"}
    assert reply.detail
    assert "\n" not in reply.detail
    return reply.trouble


# -- who answers


def test_many_hosts_answer_side_by_side(sshd):
    replies = asyncio.run(all_of(remote_to(sshd), sshd.hosts(), [Command(name="who", shell="echo $SSH_CONNECTION")]))
    assert [reply.trouble for reply in replies] == [None] * 4
    assert [reply.outputs["who"].text.split()[2] for reply in replies] == list(sshd.addresses)


def test_a_changed_host_key_is_refused(sshd, tmp_path):
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    known = tmp_path / "known"
    known.write_text(f"[{sshd.addresses[0]}]:{sshd.port} {other}")
    before = known.read_text()
    for accept_new in (False, True):
        reply = run(remote_to(sshd, known_hosts=[known], accept_new=accept_new), sshd.hosts()[0])
        assert failed(reply) == "host_key"
        assert "ssh-keygen -R" in reply.detail
    assert known.read_text() == before


def test_an_unknown_host_key_is_refused_unless_new_ones_are_allowed(sshd, tmp_path):
    known = tmp_path / "folder" / "known"
    host = sshd.hosts()[1]
    reply = run(remote_to(sshd, known_hosts=[known]), host)
    assert failed(reply) == "host_key"
    assert str(known) in reply.detail
    assert not known.exists()
    known.parent.mkdir()
    known.write_text("# no newline at the end")
    assert run(remote_to(sshd, known_hosts=[known], accept_new=True), host).trouble is None
    assert known.read_text().splitlines() == [
        "# no newline at the end",
        next(line for line in sshd.known_hosts.read_text().splitlines() if host.address in line),
    ]
    assert run(remote_to(sshd, known_hosts=[known]), host).trouble is None
    assert failed(run(remote_to(sshd, known_hosts=[known]), sshd.hosts()[2])) == "host_key"


def test_a_revoked_host_key_is_refused(sshd, tmp_path):
    line = sshd.known_hosts.read_text().splitlines()[0]
    known = tmp_path / "known"
    known.write_text(f"{line}\n@revoked {line}\n")
    assert failed(run(remote_to(sshd, known_hosts=[known]), sshd.hosts()[0])) == "host_key"


def test_a_host_that_has_no_key_of_the_known_kind_is_refused(sshd, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "key")], check=True)
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{sshd.port} {(tmp_path / 'key.pub').read_text()}")
    assert failed(run(remote_to(sshd, known_hosts=[known]), sshd.hosts()[0])) == "host_key"


def test_a_broken_file_of_host_keys_is_the_users_mistake(sshd, tmp_path):
    known = tmp_path / "known"
    known.write_text("onlyonename\n")
    with pytest.raises(InputError, match="known"):
        run(remote_to(sshd, known_hosts=[known]), sshd.hosts()[0])


# -- who asks


def test_a_wrong_key_is_told_once(sshd, tmp_path):
    host = replace(sshd.hosts()[0], identity=str(make_key(tmp_path / "other")))
    reply = run(remote_to(sshd, retries=3), host)
    assert failed(reply) == "auth"
    assert reply.attempts == 1
    assert "authorized_keys" in reply.detail


@pytest.mark.parametrize("kind", ["missing", "encrypted", "garbage"])
def test_a_key_that_cannot_be_used_is_named(sshd, tmp_path, kind):
    path = tmp_path / "key"
    if kind == "encrypted":
        make_key(path, passphrase="secret")
    elif kind == "garbage":
        path.write_text("no key")
    reply = run(remote_to(sshd), replace(sshd.hosts()[0], identity=str(path)))
    assert failed(reply) == "key_file"
    assert str(path) in reply.detail
    assert ("agent" in reply.detail) == (kind == "encrypted")


def test_a_key_in_the_agent_is_found(sshd, monkeypatch, tmp_path):
    if shutil.which("ssh-agent") is None:
        pytest.skip("ssh-agent is not installed")
    address = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(address)], stdout=subprocess.PIPE) as agent:
        agent.stdout.readline()
        environment = os.environ | {"SSH_AUTH_SOCK": str(address)}
        subprocess.run(["ssh-add", "-q", str(sshd.identity)], env=environment, check=True)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
        monkeypatch.setenv("HOME", str(tmp_path))
        reply = run(remote_to(sshd), replace(sshd.hosts()[0], identity=None))
        agent.terminate()
    assert reply.trouble is None


# -- the user's configuration


def test_the_configuration_of_the_user_counts(sshd, tmp_path):
    config = tmp_path / "config"
    config.write_text(
        f"""Host node-3
  HostName 127.0.0.3
  UserKnownHostsFile /dev/null
Host node-*
  Port {sshd.port}
  User {getpass.getuser()}
  IdentityFile {sshd.identity}
  UserKnownHostsFile {sshd.known_hosts}
  StrictHostKeyChecking no
Host node-1
  HostName 127.0.0.1
Host node-2
  HostName 127.0.0.2
  ProxyJump {getpass.getuser()}@127.0.0.3:{sshd.port}
"""
    )
    remote = SshRemote(config=[config], retries=0)
    who = [Command(name="who", shell="echo $SSH_CONNECTION")]
    hosts = [Host(name=f"node-{n}") for n in (1, 2, 3)]
    direct, jumped, unknown = asyncio.run(all_of(remote, hosts, who))
    assert direct.detail == ""
    assert direct.outputs["who"].text.split()[2] == "127.0.0.1"
    assert failed(unknown) == "host_key"  # StrictHostKeyChecking no turns nothing off
    # The jump host matches no block, so it has neither key nor known hosts.
    assert failed(jumped) == "host_key"
    assert "jump host" in jumped.detail


def test_a_host_of_the_inventory_overrides_the_configuration(sshd, tmp_path):
    config = tmp_path / "config"
    config.write_text("Host *\n  Port 1\n  User nobody\n  IdentityFile /nowhere\n")
    assert run(remote_to(sshd, config=[config]), sshd.hosts()[0]).trouble is None


def test_a_broken_configuration_is_the_users_mistake(sshd, tmp_path):
    config = tmp_path / "config"
    config.write_text("Port many\n")
    with pytest.raises(InputError, match="config"):
        run(remote_to(sshd, config=[config]), sshd.hosts()[0])


# -- jump hosts


def test_a_jump_host_is_logged_in_to_once(sshd):
    jump = f"{getpass.getuser()}@{sshd.addresses[3]}:{sshd.port}"
    hosts = [replace(host, jump=jump) for host in sshd.hosts()[:3]]
    who = [Command(name="who", shell="echo $SSH_CONNECTION")]
    before = sshd.log.read_text().count(f"on {sshd.addresses[3]} port")
    replies = asyncio.run(all_of(remote_to(sshd), hosts, who))
    assert [reply.detail for reply in replies] == [""] * 3
    assert [reply.outputs["who"].text.split()[2] for reply in replies] == list(sshd.addresses[:3])
    assert sshd.log.read_text().count(f"on {sshd.addresses[3]} port") == before + 1


def test_troubles_of_a_jump_host_are_told_as_its_own(sshd):
    user = getpass.getuser()
    host = sshd.hosts()[0]
    nobody_there = run(remote_to(sshd), replace(host, jump=f"{user}@127.0.0.1:1"))
    assert failed(nobody_there) == "jump"
    assert "jump host" in nobody_there.detail
    behind = run(remote_to(sshd), replace(host, port=1, jump=f"{user}@127.0.0.1:{sshd.port}"))
    assert failed(behind) == "unreachable"
    assert "jump host cannot reach it" in behind.detail


# -- nobody, or somebody else


def test_where_nobody_listens_is_tried_again_with_growing_pauses(sshd):
    pauses = []

    async def sleep(pause_s):
        pauses.append(pause_s)

    reply = run(remote_to(sshd, retries=3, sleep=sleep), replace(sshd.hosts()[0], port=1))
    assert failed(reply) == "closed"
    assert reply.attempts == 4
    assert [low <= pause <= 3 * low for pause, low in zip(pauses, [0.25, 0.5, 1.0], strict=True)] == [True] * 3
    assert "sshd" in reply.detail


def test_a_pause_beyond_the_deadline_is_not_made(sshd):
    reply = run(remote_to(sshd, retries=3), replace(sshd.hosts()[0], port=1), deadline_s=0.2)
    assert (failed(reply), reply.attempts) == ("closed", 1)


def test_a_name_that_does_not_resolve(sshd):
    reply = run(remote_to(sshd), replace(sshd.hosts()[0], address="no-such-host.invalid"))
    assert failed(reply) == "name"


async def talk_to(serve, remote_of, **options):
    """The reply of a server of our own."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        host = Host(name="odd", address="127.0.0.1", port=port, user="nobody")
        return (await all_of(remote_of, [host], FINE, **options))[0]


async def say_nothing(reader, writer):
    await reader.read()
    writer.close()


async def hang_up(reader, writer):
    writer.close()


async def speak_old(reader, writer):
    writer.write(b"SSH-1.5-ancient\r\n")
    await reader.read()
    writer.close()


@pytest.mark.parametrize(("serve", "trouble"), [(say_nothing, "timed_out"), (hang_up, "lost"), (speak_old, "protocol")])
def test_a_server_that_is_none_is_told(sshd, serve, trouble):
    remote = remote_to(sshd, connect_timeout_s=1.0 if serve is say_nothing else 30.0)
    assert failed(asyncio.run(talk_to(serve, remote))) == trouble


def test_a_jump_host_that_does_not_answer_is_named(sshd):
    async def through():
        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
            jump = f"nobody@127.0.0.1:{server.sockets[0].getsockname()[1]}"
            return await all_of(remote_to(sshd), [replace(sshd.hosts()[0], jump=jump)], FINE, 1.0)

    (reply,) = asyncio.run(through())
    assert failed(reply) == "jump"
    assert reply.detail.startswith("jump host nobody@127.0.0.1:")


def test_the_deadline_counts_for_the_login_too(sshd):
    reply = asyncio.run(talk_to(say_nothing, remote_to(sshd), deadline_s=0.5))
    assert failed(reply) == "timed_out"
    assert "the login took more than 0.5 s" in reply.detail


@contextlib.asynccontextmanager
async def counted(sshd):
    """A way to the server that counts the connections at one time."""
    now, most = 0, []

    async def pump(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async def serve(reader, writer):
        nonlocal now
        now += 1
        most.append(now)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", sshd.port)
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        now -= 1

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], most


def test_no_more_hosts_than_allowed_are_talked_to_at_one_time(sshd, tmp_path):
    async def counts():
        async with counted(sshd) as (port, most):
            known = tmp_path / "known"
            known.write_text(sshd.known_hosts.read_text().replace(str(sshd.port), str(port)))
            remote = remote_to(sshd, known_hosts=[known], max_connections=2)
            replies = await all_of(remote, [replace(sshd.hosts()[0], port=port)] * 7, FINE)
            return replies, most

    replies, most = asyncio.run(counts())
    assert [reply.trouble for reply in replies] == [None] * 7
    assert len(most) == 7
    assert max(most) <= 3  # the old one may still be closing


def test_fewer_than_one_connection_is_refused():
    with pytest.raises(InputError, match="max_connections is 0"):
        SshRemote(max_connections=0)


# -- sessions


@pytest.mark.parametrize(
    "text",
    [
        "echo Welcome to gpu1; echo warning >&2",
        "printf 'no newline'",
        "seq 20000",
        "printf '\\000\\377\\r\\n'",
        "alias ls=rm",
    ],
)
def test_noise_of_a_profile_does_not_matter(sshd, profile, text):
    profile(f"{text}\n")
    reply = run(remote_to(sshd), sshd.hosts()[0])
    assert (reply.detail, reply.outputs["fine"].stdout) == ("", b"fine\n")


@pytest.mark.parametrize(
    ("text", "trouble", "says"),
    [
        ("echo go away; exit 1", "protocol", "go away"),
        ("echo go away >&2; exit 1", "protocol", "go away"),
        ("exec yes", "protocol", "without end"),
        ("sleep 1000", "timed_out", "home directory"),
    ],
)
def test_a_profile_that_does_not_let_us_in_is_told(sshd, profile, text, trouble, says):
    user = getpass.getuser()
    if os.path.basename(os.path.realpath(_login_shell(user))) != "bash":
        pytest.skip("only bash reads .bashrc here")
    profile(f"{text}\n")
    reply = run(remote_to(sshd), sshd.hosts()[0], deadline_s=4.0 if trouble == "timed_out" else 60.0)
    assert failed(reply) == trouble
    assert says in reply.detail


def _login_shell(user):
    import pwd

    return pwd.getpwnam(user).pw_shell


CUT = """
me=${WHOLESTACK_BATCH%.*.}
while
  readers=$(grep -lsF "$me-0-" /proc/[0-9]*/environ | sed s/environ/comm/)
  grep -qsE "head|base64" $readers /dev/null
do :; done
sleep 1
{then}
p=$PPID
while [ "$(cat /proc/$p/comm)" != sshd ]; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done
kill -9 "$p"
sleep 1000
"""


def test_what_came_before_the_connection_broke_is_kept_and_nothing_is_left(sshd, mark):
    commands = [
        Command(name="fine", shell="echo fine"),
        Command(name="cut", shell=f"export {mark}; {CUT.replace('{then}', '')}", limit_s=900.0),
        Command(name="long", shell=f"export {mark}; echo early; sleep 1000", limit_s=900.0),
    ]
    reply = run(remote_to(sshd), sshd.hosts()[0], commands)
    assert reply.trouble == "lost"
    assert "2 of 3" in reply.detail
    assert reply.outputs["fine"].stdout == b"fine\n"
    assert {reply.outputs[name].ending for name in ("cut", "long")} == {"not_run"}
    assert left_of(mark) == []


def test_a_lost_connection_is_tried_again_and_the_better_outputs_are_kept(sshd, tmp_path, mark):
    """Cut at the first try only; then the command that came the first time hangs beyond the deadline."""
    flag = tmp_path / "flag"
    commands = [
        Command(name="fine", shell=f"export {mark}; [ ! -e {flag} ] || sleep 1000; echo fine", limit_s=900.0),
        Command(
            name="cut",
            shell=f"[ -e {flag} ] || {{ {CUT.replace('{then}', f'touch {flag}')} }}; echo late",
            limit_s=900.0,
        ),
    ]
    reply = run(remote_to(sshd, retries=1), sshd.hosts()[0], commands, deadline_s=10.0)
    assert (reply.trouble, reply.attempts) == ("timed_out", 2)
    assert (reply.outputs["fine"].stdout, reply.outputs["cut"].stdout) == (b"fine\n", b"late\n")
    assert left_of(mark) == []


def test_after_the_deadline_nothing_is_left(sshd, mark):
    commands = [
        *FINE,
        Command(name="long", shell=f"export {mark}; trap '' TERM; sleep 1000; sleep 1000", limit_s=900.0),
    ]
    reply = run(remote_to(sshd), sshd.hosts()[0], commands, deadline_s=6.0)
    assert (reply.trouble, reply.outputs["fine"].stdout) == ("timed_out", b"fine\n")
    assert left_of(mark) == []


def test_after_cancelling_nothing_is_left(sshd, mark):
    async def cancelled():
        remote = remote_to(sshd)
        commands = [Command(name="long", shell=f"export {mark}; sleep 1000", limit_s=900.0)]
        task = asyncio.create_task(remote.run(sshd.hosts()[0], commands, deadline_s=900.0))
        while not marked(mark):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await remote.close()

    asyncio.run(cancelled())
    assert left_of(mark) == []


def test_nothing_of_a_batch_is_on_a_command_line_but_the_commands(sshd):
    """The process list of a host shows each command to its users, but not the nonce that makes outputs believable."""
    commands = [
        Command(name="list", shell="cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'")
    ]
    text = run(remote_to(sshd), sshd.hosts()[0], commands).outputs["list"].text
    assert "sh\n-s\n" in text
    assert "nonce=" not in text


def test_what_must_run_once_is_not_sent_again_over_a_second_connection(sshd, tmp_path, mark):
    count = tmp_path / "count"
    shell = f"export {mark}; echo run >>{count}; {CUT.partition('{then}')[2]}"
    command = Command(name="cut", shell=shell, limit_s=900.0, once=True)
    reply = run(remote_to(sshd, retries=2), sshd.hosts()[0], [command])
    assert (reply.trouble, reply.attempts) == ("lost", 1)
    assert count.read_text() == "run\n"
    beyond = run(
        remote_to(sshd, retries=1, sleep=lambda _: asyncio.sleep(0)), replace(sshd.hosts()[0], port=1), [command]
    )
    assert (beyond.trouble, beyond.attempts) == ("closed", 2)
