"""``wholestack health ticket`` over real sweeps of simulated hosts."""

import asyncio
import json

import pytest

from wholestack.cli.main import main
from wholestack.health.simulation import simulate
from wholestack.health.simulator.plan import PlannedFault


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """Four hosts, of which one loses a mount."""
    folder = tmp_path_factory.mktemp("simulated")
    planned = [PlannedFault(host="node0001", kind="mount_missing", severity=0.8)]
    asyncio.run(simulate(4, seed=5, folder=folder, planned=planned))
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["health", *map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return command


def test_from_a_finding_to_its_pack(run, sweeps, tmp_path):
    after = sweeps / "after"
    findings = [json.loads(line) for line in (after / "findings.jsonl").read_text().splitlines()]
    id_ = next(each["id"] for each in findings if each["subject"] == "node0001" and each["check"].startswith("mount"))
    code, out, _ = run("ticket", id_[:8], "--in", after)
    assert code == 1
    assert "- history: take the sweep up: wholestack health history add SWEEP" in out
    run("history", "add", sweeps / "before", after)
    code, out, _ = run("ticket", id_, "--in", after)
    assert code == 0
    assert "This ticket is complete." in out
    code, out, _ = run("ticket", id_, "--in", after, "--json")
    assert json.loads(out)["finding"] == id_
    pack = tmp_path / "pack.tar.gz"
    code, out, _ = run("ticket", id_, "--in", after, "--out", pack)
    assert (code, out) == (0, f"{pack}: ticket for the cluster team, complete\n")
    assert pack.read_bytes()[:2] == b"\x1f\x8b"
    code, _, err = run("ticket", "no such id", "--in", after)
    assert (code, err.count("\n")) == (2, 1)
    code, _, err = run("ticket", id_, "--in", after, "--history", tmp_path / "none.sqlite")
    assert (code, err.count("\n")) == (2, 1)
