"""``wholestack health replay`` and ``drain --rule``: a rule drains only after it was replayed, as it was replayed."""

import json

import pytest

from tests.health.history.looks import HOUR, host, machine, sight, sweep
from wholestack.cli import health_operations
from wholestack.cli.main import main
from wholestack.health.history.store import History
from wholestack.health.operations.simulated import MemoryCluster


@pytest.fixture
def path(tmp_path):
    """Host a fails in the last two of five sweeps, b is well."""
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as history:
        for hour in range(1, 6):
            sights = [sight()] if hour > 3 else []
            hosts = [host("a", seats=[machine("Saaa9")], sights=sights), host("b", seats=[machine("Sbbb9")])]
            history.add(sweep(hour, *hosts))
    return path


@pytest.fixture
def cluster(monkeypatch):
    found = MemoryCluster(["a", "b"])
    monkeypatch.setattr(health_operations.Scheduler, "open", lambda _: found)
    return found


@pytest.fixture
def run(monkeypatch, capsys, path):
    monkeypatch.setattr("time.time", lambda: 5.5 * HOUR)

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["health", *map(str, arguments), "--history", str(path)])
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return command


def test_a_rule_is_replayed_and_then_drains(run, path, cluster, tmp_path):
    rule = tmp_path / "ecc.toml"
    rule.write_text('name = "ecc"\ncheck = "gpu.ecc"\nseen = 2\nof = 3\n')
    drain = ("drain", "--rule", rule, "--floor", "1", "--by", "ann")
    code, _, err = run(*drain, "--apply")
    assert code == 2
    assert "was not replayed" in err
    assert not cluster.by_name["a"].is_drained

    code, out, _ = run("replay", rule, "--by", "bob")
    assert code == 3  # still there, not yet for long: nothing to judge it by
    assert "1 drains; 0 of 0 wrong" in out
    assert json.loads(run("replay", rule, "--by", "bob", "--json")[1])["drains"][0]["verdict"] == "open"

    code, out, _ = run(*drain)
    assert code == 0
    assert "would    a: broken" in out
    assert not cluster.by_name["a"].is_drained
    assert run(*drain, "--apply")[0] == 0
    assert cluster.by_name["a"].is_drained
    assert not cluster.by_name["b"].is_drained
    with History(path) as history:
        told = [(event.kind, event.by) for event in history.events() if event.kind.startswith(("rule", "drain"))]
    assert told == [("rule_replayed", "bob")] * 2 + [
        (kind, "ann, by rule ecc") for kind in ("drain_begun", "drain_ended")
    ]

    rule.write_text('name = "ecc"\ncheck = "gpu.ecc"\nseen = 1\nof = 3\n')
    code, _, err = run(*drain, "--apply")
    assert code == 2
    assert "was changed since it was replayed" in err


def test_a_rule_names_its_hosts_itself(run, cluster, tmp_path):
    rule = tmp_path / "ecc.toml"
    rule.write_text('name = "ecc"\ncheck = "gpu.ecc"\nseen = 2\nof = 3\n')
    code, _, err = run("drain", "b", "--rule", rule, "--floor", "1")
    assert code == 2
    assert "a rule names its hosts" in err
    assert run("drain", "--floor", "1")[0] == 2
