"""``wholestack health fix``: the command, over a real SSH server, on a host whose repair is a file that can be seen.

The host is this machine with its own tools put first on the path: a ``systemctl`` that knows one failed unit and
whose ``restart`` does, fails, hangs or breaks the connection as it is told, and a ``nvidia-smi`` that shows jobs.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.health.gpu_host import smi
from wholestack.cli.main import main
from wholestack.testing.sshd import loopback_sshd

SYSTEMCTL = """#!/bin/sh
cd {root}
case "$*" in
--failed*)
  if [ -e blind ]; then echo unreadable
  elif [ -e mended ]; then echo '0 loaded units listed.'
  else
    echo '  UNIT           LOAD   ACTIVE SUB    DESCRIPTION'
    echo '  slurmd.service loaded failed failed Slurm node daemon'
    echo
    echo '1 loaded units listed.'
  fi ;;
"restart slurmd")
  echo restart >>acts
  how=$(cat how)
  case $how in
  fails) echo 'Job for slurmd.service failed.' >&2; exit 1 ;;
  useless) exit 0 ;;
  *_after) touch mended ;;
  *before) ;;
  *) touch mended; exit 0 ;;
  esac
  touch waits
  case $how in
  cut*)
    p=$PPID
    while [ "$(cat /proc/$p/comm)" != sshd ]; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done
    kill -9 "$p" ;;
  esac
  sleep 1000 ;;
*) exit 1 ;;
esac
"""
SMI = "#!/bin/sh\ncat {root}/smi.xml\n"
PROCESS = (
    "<processes>\n<process_info><pid>4711</pid><type>C</type><process_name>python3</process_name>"
    "<used_memory>900 MiB</used_memory></process_info></processes>"
)
STEPS = {
    "before": "deeds.Ledger.note = killing",
    "begun": "fixing._run = killing",
    "done": "fixing._run = after(fixing._run)",
    "proof": "fixing._proved = killing",
}
"""Where the command kills itself, and what is put in the place of what to get there."""
KILLED = """
import os, signal, sys
from wholestack.cli.main import main
from wholestack.health.operations import deeds, fixing

def killing(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(run):
    async def then(*given):
        await run(*given)
        killing()
    return then

{step}
main(sys.argv[1:])
"""
LATER_S = 3_600.0
"""After that whatever was begun is over."""
pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


class Broken:
    """One host with a failed unit, swept and in a history."""

    def __init__(self, folder, server):
        self.folder, self.root, self.server = folder, folder / "root", server
        (folder / "hosts.toml").write_text(
            f'[defaults]\nport = {server.port}\nidentity = "{server.identity}"\nuser = "{server.hosts()[0].user}"\n'
            '[[hosts]]\nname = "gpu001"\naddress = "127.0.0.1"\n'
        )
        self.known = ["--known-hosts", str(server.known_hosts)]
        self.history = ["--history", str(folder / "h.sqlite")]

    def fix(self, *more):
        id_ = next(
            each["id"]
            for each in map(json.loads, (self.folder / "s" / "findings.jsonl").read_text().splitlines())
            if each["check"] == "systemd.failed"
        )
        return ["health", "fix", id_[:8], "--in", str(self.folder / "s"), *self.known, *self.history, *more]

    def how(self, word):
        (self.root / "how").write_text(word)

    @property
    def acts(self):
        path = self.root / "acts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @property
    def is_mended(self):
        return (self.root / "mended").exists()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None:
        pytest.skip("sshd is not installed")
    folder = tmp_path_factory.mktemp("fix")
    root, tools = folder / "root", folder / "root" / "bin"
    tools.mkdir(parents=True)
    for name, text in (("systemctl", SYSTEMCTL), ("nvidia-smi", SMI), ("sudo", '#!/bin/sh\nshift\nexec "$@"\n')):
        (tools / name).write_text(text.format(root=root))
        (tools / name).chmod(0o755)
    home = folder / "sshd" / "home"
    settings = {"SetEnv": f"HOME={home} PATH={tools}:/usr/sbin:/usr/bin:/sbin:/bin"}
    with loopback_sshd(folder / "sshd", settings=settings) as server:
        yield Broken(folder, server)


@pytest.fixture
def host(place, run):
    """The host, broken again, with a new history."""
    for each in [*place.root.iterdir(), *place.folder.glob("h.sqlite*")]:
        if each.is_file():
            each.unlink()
    (place.root / "smi.xml").write_text(smi())
    place.how("mend")
    if not (place.folder / "s").exists():
        hosts = [str(place.folder / "hosts.toml"), "--out", str(place.folder / "s"), "--sudo", "--only", "systemd"]
        assert run("health", "sweep", *hosts, *place.known)[0] == 1
    run("health", "history", "add", str(place.folder / "s"), *place.history)
    return place


@pytest.fixture
def run(capsys):
    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return command


@pytest.fixture
def story(run, host):
    def told():
        return " ".join(run("health", "stories", "gpu001", *host.history)[1].split())

    return told


@pytest.fixture
def later(monkeypatch):
    """The clock of this machine an hour on: what may be at work is over."""
    now = time.time
    return lambda: monkeypatch.setattr("time.time", lambda: now() + LATER_S)


def test_it_is_shown_then_done_then_proved_and_written_down(host, run, story):
    code, said = run(*host.fix())
    assert (code, host.acts) == (0, 0)
    assert "systemctl restart slurmd" in said
    assert "nothing was done; --apply runs this" in said
    assert "begun" not in story()
    code, said = run(*host.fix("--apply", "--by", "ann"))
    assert (code, host.acts, host.is_mended) == (0, 1, True)
    assert "done: systemd.failed no longer sees it" in said
    assert "fix ended by ann systemctl restart slurmd" in story()
    assert "proof held by ann" in story()
    code, said = run(*host.fix("--apply"))
    assert (code, host.acts) == (0, 1)
    assert "is so: the check no longer sees it" in said


def test_where_a_job_runs_it_is_refused_until_the_host_is_named(host, run, story):
    path = host.root / "smi.xml"
    text = path.read_text()
    at = text.index("<processes>")
    path.write_text(text[:at] + PROCESS + text[text.index("</processes>", at) + len("</processes>") :])
    code, said = run(*host.fix("--apply"))
    assert (code, host.acts) == (1, 0)
    assert "process 4711 (python3) uses gpu" in said
    assert "begun" not in story()
    assert run(*host.fix("--apply", "--even-with-job", "gpu001"))[0] == 0
    assert host.is_mended


def test_what_fails_or_does_not_help_is_said_to(host, run, story):
    host.how("fails")
    code, said = run(*host.fix("--apply"))
    assert (code, host.acts) == (3, 1)
    assert "exit status 1: Job for slurmd.service failed." in said
    assert "fix failed" in story()


def test_who_cannot_look_is_told_why_and_does_nothing(host, run):
    (host.root / "blind").touch()
    code, said = run(*host.fix("--apply"))
    assert (code, host.acts) == (3, 0)
    assert "cannot tell whether it is still there: " in said
    assert "nothing was done" in said
    (host.root / "blind").unlink()
    known = host.known[1]
    strange = [str(host.folder / "none") if each == known else each for each in host.fix("--apply")]
    code, said = run(*strange)
    assert (code, host.acts) == (3, 0)
    assert "the host key is not in" in said


@pytest.mark.parametrize("how", ["cut_before", "cut_after"])
def test_a_connection_that_breaks_in_the_middle_leaves_it_unknown(host, run, story, later, how):
    host.how(how)
    code, said = run(*host.fix("--apply"))
    assert (code, host.acts) == (3, 1)  # it was not sent a second time
    assert "unknown: gpu001: systemctl restart slurmd: " in said
    assert "nobody knows whether it was done" in said
    assert "fix unknown" in story()
    assert "next fix: the fix was begun and nobody knows how it ended" in story()
    host.how("mend")
    later()
    assert run(*host.fix("--apply"))[0] == 0
    assert host.is_mended
    assert host.acts == (2 if how == "cut_before" else 1)


def killed(host, step):
    script = KILLED.format(step=STEPS[step])
    return subprocess.run(
        [sys.executable, "-c", script, *host.fix("--apply")], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("step", "acts", "says"),
    [
        ("before", 0, "next drain"),
        ("begun", 0, "nobody knows how it ended"),
        ("done", 1, "nobody knows how it ended"),
        ("proof", 1, "the check was not asked since"),
    ],
)
def test_killed_at_a_step_the_next_call_looks_first_and_does_nothing_twice(host, run, story, later, step, acts, says):
    ended = killed(host, step)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert host.acts == acts
    assert says in story()
    later()
    code, said = run(*host.fix("--apply"))
    assert (code, host.acts, host.is_mended) == (0, 1, True)
    assert ("is so" in said) == (acts == 1)
    assert "proof held" in story()


@pytest.mark.heavy
@pytest.mark.parametrize("how", ["hang_before", "hang_after"])
def test_killed_while_the_command_runs_the_next_call_waits_and_looks(host, run, story, later, monkeypatch, how):
    host.how(how)
    arguments = [sys.executable, "-m", "wholestack", *host.fix("--apply")]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (host.root / "waits").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    assert host.acts == 1
    assert "nobody knows how it ended" in story()
    host.how("mend")
    later()
    code, said = run(*host.fix("--apply"))
    assert (code, host.is_mended) == (0, True)
    assert host.acts == (2 if how == "hang_before" else 1)
    assert ("is so" in said) == (how == "hang_after")


def test_two_at_one_time_do_not_mend_together(host, run):
    from wholestack.health.operations.deeds import acting_alone

    with acting_alone(Path(host.history[1])):
        code, said = run(*host.fix("--apply"))
    assert (code, host.acts) == (2, 0)
    assert "another process acts by it" in said
