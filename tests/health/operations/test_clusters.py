"""What every scheduler keeps to: a real Slurm, the documented Kubernetes API, and the one in memory."""

import shlex
import socketserver
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.health.operations.kubernetes_server import TOKEN, FakeApi, serving
from tests.health.operations.slurm_cluster import MISSING, slurm_cluster
from wholestack.errors import EngineError, InputError
from wholestack.health.operations import kubernetes as kubernetes_module
from wholestack.health.operations.cluster import finding_of, reason_for
from wholestack.health.operations.kubernetes import ANNOTATION, TAINT, Kubernetes
from wholestack.health.operations.simulated import MemoryCluster
from wholestack.health.operations.slurm import Slurm, read_jobs, read_nodes

NAMES = ("node0000", "node0001", "node0002")
OURS = reason_for('GPU\'s memory "broke"', "0123456789abcdef")


@contextmanager
def memory(tmp_path):
    cluster = MemoryCluster(NAMES)

    def by_hand(name, reason):
        node = cluster.by_name[name]
        cluster.by_name[name] = replace(node, is_usable=False, is_drained=True, reason=reason)

    yield cluster, by_hand


@contextmanager
def kubernetes(tmp_path):
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    api = FakeApi(NAMES)
    with serving(api) as url:

        def by_hand(name, reason):
            api.nodes[name]["spec"]["unschedulable"] = True
            if reason != "cordoned":
                api.nodes[name]["metadata"]["annotations"] = {ANNOTATION: reason}
            api.touch(name)

        yield Kubernetes(url, token=token), by_hand


@contextmanager
def slurm(tmp_path):
    if MISSING:
        pytest.skip(f"not installed: {MISSING}")
    with (
        tempfile.TemporaryDirectory(dir="/tmp", prefix="ws-slurm-") as folder,
        slurm_cluster(Path(folder), nodes=3, slurmds=3) as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SLURM_CONF", str(started.conf))

        def by_hand(name, reason):
            started.run(["scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}"])

        yield Slurm(), by_hand
        assert "by hand, leave it" in started.reasons()


@pytest.mark.parametrize("kind", [memory, kubernetes, pytest.param(slurm, marks=pytest.mark.xdist_group("slurm"))])
def test_a_node_is_drained_with_our_reason_and_given_back_and_a_person_s_stays(kind, tmp_path):
    with kind(tmp_path) as (cluster, by_hand):
        assert {name: (each.is_usable, each.is_drained) for name, each in cluster.nodes().items()} == dict.fromkeys(
            NAMES, (True, False)
        )
        for _ in range(2):  # the second time nothing changes
            cluster.drain(NAMES[0], OURS)
            node = cluster.nodes()[NAMES[0]]
            assert (node.is_usable, node.is_drained, node.reason) == (False, True, OURS)
        assert cluster.nodes()[NAMES[1]].is_usable
        with pytest.raises(EngineError, match="another by now"):
            cluster.undrain(NAMES[0], reason_for("another", "0" * 16))
        cluster.undrain(NAMES[0], OURS)
        node = cluster.nodes()[NAMES[0]]
        assert (node.is_drained, node.reason) == (False, "")
        by_hand(NAMES[1], "by hand, leave it")
        assert finding_of(cluster.nodes()[NAMES[1]].reason) == ""
        for refused in (cluster.drain, cluster.undrain):
            with pytest.raises(EngineError):
                refused(NAMES[1], OURS)
        assert cluster.nodes()[NAMES[1]].is_drained
        with pytest.raises(EngineError):
            cluster.drain("nobody", OURS)
        assert NAMES[0] in cluster.shown("drain", NAMES[0], OURS)


def test_a_reason_is_ours_only_as_it_was_written():
    assert finding_of(OURS) == "0123456789abcdef"
    assert finding_of(reason_for("x" * 999, "f" * 16)) == "f" * 16
    for theirs in (
        OURS + " - Bob: leave it",
        "Bob: " + OURS,
        OURS.replace("wholestack", "Wholestack"),
        "",
        "wholestack: x",
    ):
        assert finding_of(theirs) == ""


def test_slurm_s_own_job_is_seen_on_its_node(tmp_path):
    if MISSING:
        pytest.skip(f"not installed: {MISSING}")
    with (
        tempfile.TemporaryDirectory(dir="/tmp", prefix="ws-slurm-") as folder,
        slurm_cluster(Path(folder), nodes=2, slurmds=1) as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SLURM_CONF", str(started.conf))
        started.run(["sbatch", "-w", "node0000", "-o", "/dev/null", "--wrap", "sleep 300"])
        try:
            patience = time.monotonic() + 120  # its scheduler starts a job when it comes to it
            while not (nodes := Slurm().nodes())["node0000"].jobs and time.monotonic() < patience:
                time.sleep(0.2)
            assert nodes["node0000"].jobs[0].startswith("job 1 of ")
            assert nodes["node0001"].jobs == ()
            assert not nodes["node0001"].is_usable  # its slurmd never answered
        finally:
            started.run(["scancel", "1"])


def test_what_slurm_prints_is_read_with_marks_and_comments():
    line = (
        "NodeName=a Arch=x86_64 State=IDLE*+DRAIN OS=x Reason=Kill task failed [root@2026-01-02T03:04:05] Comment=a b"
    )
    other = "NodeName=b State=MIXED+CLOUD ThreadsPerCore=1 ExtSensorsTemp=n/s"
    down = "NodeName=c State=DOWN* Reason=Not responding [slurm@2026-01-02T03:04:05]"
    nodes = read_nodes(f"{line}\n{other}\n{down}\n", {"b": ["job 1 of x"]})
    assert (nodes["a"].reason, nodes["a"].by, nodes["a"].is_drained) == ("Kill task failed", "root", True)
    assert (nodes["b"].is_usable, nodes["b"].jobs) == (True, ("job 1 of x",))
    assert (nodes["c"].is_usable, nodes["c"].is_drained, nodes["c"].reason) == (False, False, "Not responding")
    assert read_jobs("7|ann|gpu[001-002]\n8|bob|\n") == {"gpu001": ["job 7 of ann"], "gpu002": ["job 7 of ann"]}
    for bad in ("slurm_load_node error\n", "NodeName=x\n"):
        with pytest.raises(EngineError):
            read_nodes(bad, {})
    with pytest.raises(EngineError):
        read_jobs("garbled\n")


def test_a_node_that_somebody_else_changes_is_read_again(tmp_path):
    with serving(api := FakeApi(NAMES)) as url:
        (tmp_path / "token").write_text(TOKEN)
        cluster = Kubernetes(url, token=tmp_path / "token")
        keep = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
        api.nodes["node0000"]["spec"]["taints"] = [keep]
        api.conflicts = 2
        cluster.drain("node0000", OURS)
        assert api.nodes["node0000"]["spec"]["taints"] == [
            keep,
            {"key": TAINT, "value": "0123456789abcdef", "effect": "NoSchedule"},
        ]
        cluster.undrain("node0000", OURS)
        assert api.nodes["node0000"]["spec"] == {"taints": [keep]}
        api.conflicts = 99
        with pytest.raises(EngineError, match="all the time"):
            cluster.drain("node0000", OURS)


def test_pods_of_users_are_jobs_and_those_of_the_host_are_not(tmp_path):
    def pod(name, phase="Running", kind="Job"):
        metadata = {"namespace": "ml", "name": name, "ownerReferences": [{"kind": kind}]}
        return {"metadata": metadata, "spec": {"nodeName": "node0000"}, "status": {"phase": phase}}

    with serving(api := FakeApi(NAMES)) as url:
        (tmp_path / "token").write_text(TOKEN)
        api.pods = [pod("a"), pod("b", phase="Succeeded"), pod("c", kind="DaemonSet"), pod("d", kind="Node"), pod("e")]
        nodes = Kubernetes(url, token=tmp_path / "token").nodes()
        assert nodes["node0000"].jobs == ("pod ml/a", "pod ml/e")
        assert nodes["node0002"].jobs == ()


def test_a_token_goes_nowhere_else_and_is_in_no_error(tmp_path):
    (tmp_path / "token").write_text("secret-secret")
    with pytest.raises(InputError, match="not https"):
        Kubernetes("http://example.org", token=tmp_path / "token")
    with serving(FakeApi(NAMES)) as url:
        with pytest.raises(EngineError, match="401 Unauthorized") as error:
            Kubernetes(url, token=tmp_path / "token").nodes()
        assert "secret-secret" not in str(error.value)
    with pytest.raises(EngineError, match="GET /api/v1/pods"):
        Kubernetes(url, token=tmp_path / "token").nodes()
    with pytest.raises(InputError, match="no token"):
        Kubernetes(url, token=tmp_path / "none").nodes()


def test_what_is_shown_can_be_typed_into_a_shell():
    """Found by hand: a cause with an apostrophe, "the BMC's clock", broke the line that is shown to be copied."""
    reason = "wholestack: the BMC's clock is wrong; $(reboot) (0123456789abcdef)"
    shown = Slurm(run=lambda _: "").shown("drain", "node0001", reason)
    assert shlex.split(shown) == ["scontrol", "update", "NodeName=node0001", "State=DRAIN", f"Reason={reason}"]


def test_a_scheduler_that_does_not_answer_says_what_to_do(tmp_path, monkeypatch):
    broken = tmp_path / "squeue"
    broken.write_text("#!/bin/sh\necho 'squeue: fatal: no configuration source' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(EngineError, match=r"no configuration source \(run this where Slurm's commands work"):
        Slurm().nodes()


@pytest.mark.parametrize(
    "url", ["https://ann:word@host", "http://[::1", "https://host:port", "https://", "https://h:999999"]
)
def test_a_url_that_is_none_or_holds_a_password_is_refused_without_repeating_it(tmp_path, url):
    with pytest.raises(InputError, match="--kubernetes") as error:
        Kubernetes(url, token=tmp_path / "token")
    assert "word" not in str(error.value)


@pytest.mark.parametrize("token", ["se\ncret", "apiVersion: v1\nsecret: x", "se\u20accret", ""])
def test_a_file_that_is_no_token_is_not_repeated_by_what_refuses_it(tmp_path, token):
    """Found by hand: the library says "Invalid header value" and the token."""
    (tmp_path / "token").write_text(token, "utf-8")
    with serving(FakeApi(NAMES)) as url, pytest.raises(InputError, match="is no bearer token") as error:
        Kubernetes(url, token=tmp_path / "token").nodes()
    assert "cret" not in str(error.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"no HTTP at all\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n\r\n[]",
        b'HTTP/1.1 200 OK\r\n\r\n{"items": 7}',
        b'HTTP/1.1 200 OK\r\n\r\n{"items": [7]}',
        b'HTTP/1.1 200 OK\r\n\r\n{"items": [{"spec": {"nodeName": "n"}, "metadata": 1}]}',
        b'HTTP/1.1 200 OK\r\n\r\n{"items": [], "metadata": 7}',
        b'HTTP/1.1 200 OK\r\n\r\n{"items": [], "metadata": {"continue": "again"}}',
        b'HTTP/1.1 200 OK\r\n\r\n{"items": [], "metadata": {"continue": 7}}',
    ],
)
def test_a_server_that_is_no_kubernetes_is_one_line(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(kubernetes_module, "MOST_PAGES", 3)
    (tmp_path / "token").write_text(TOKEN)

    class Odd(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65_536)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Odd) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            with pytest.raises(EngineError, match="see whether --kubernetes is the URL") as error:
                Kubernetes(f"http://127.0.0.1:{server.server_address[1]}", token=tmp_path / "token").nodes()
        finally:
            server.shutdown()
    assert "\n" not in str(error.value)
