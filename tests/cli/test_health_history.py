"""``wholestack health history``, ``fleet`` and ``silence``, over real sweeps of simulated hosts."""

import asyncio
import json

import pytest

from wholestack.cli.main import main
from wholestack.health.simulation import simulate


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """Two sweeps of twelve simulated hosts, of which one breaks in between."""
    folder = tmp_path_factory.mktemp("simulated")
    asyncio.run(simulate(12, seed=5, folder=folder))
    return folder / "before", folder / "after"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("time.time", lambda: 1_793_577_600.0 + 900)  # a little after the simulated sweeps

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["health", *map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return command


def test_a_retired_host_is_no_longer_among_the_hosts_until_a_sweep_sees_it(run, sweeps):
    before, after = sweeps
    run("history", "add", before)
    name = json.loads((before / "plan.json").read_text())["hosts"][0]["name"]
    code, out, _ = run("history", "retire", name, "--why", "sold", "--by", "ann")
    assert (code, out) == (0, f"{name} is retired; a sweep that sees it brings it back\n")
    assert json.loads(run("fleet", "--json")[1])["hosts"] == 11
    assert "was retired (ann: sold)" in " ".join(run("history", name)[1].split())
    code, _, err = run("history", "retire", name, "--why", "sold", "--by", "ann")
    assert (code, "not among the hosts" in err) == (2, True)
    run("history", "add", after)
    assert json.loads(run("fleet", "--json")[1])["hosts"] == 12
    code, out, _ = run("history", "retire", name, "--why", "sold", "--by", "ann", "--json")
    assert (code, json.loads(out)["retired"]) == (0, name)


def test_from_sweeps_to_a_history_a_silence_and_back(run, sweeps, tmp_path):
    before, after = sweeps
    code, out, _ = run("history", "add", after, before)
    assert code == 0
    assert out.splitlines()[0] == f"{before}: 12 of 12 hosts changed"
    assert (tmp_path / "state" / "wholestack" / "health.sqlite").exists()
    assert run("history", "add", before, "--json")[1] == run("history", "add", before, "--json")[1]
    assert json.loads(run("history", "add", before, "--json")[1])[0]["new"] is False

    code, out, _ = run("fleet", "--json")
    fleet = json.loads(out)
    wrong = fleet["standings"]["fail"] + fleet["standings"]["warn"]
    assert code == 1
    assert wrong >= 1
    assert sum(fleet["standings"].values()) == fleet["hosts"] == 12

    verdicts = json.loads((after / "summary.json").read_text())
    assert fleet["standings"]["fail"] == verdicts["may_not"]
    findings = [json.loads(line) for line in (after / "findings.jsonl").read_text().splitlines()]
    broken = next(each for each in findings if each["status"] in ("fail", "warn"))
    code, out, _ = run("history", broken["subject"])
    assert code == 1
    assert broken["id"][:8] in out
    assert max(map(len, out.splitlines())) <= 80

    all_of_it = ["--host", broken["subject"], "--reason", "vendor knows", "--by", "ann", "--until", "2h"]
    code, out, _ = run("silence", "add", *all_of_it)
    assert (code, out) == (0, "silence 1: everything of the host\n")
    silenced = json.loads(run("fleet", "--json")[1])
    assert silenced["standings"]["silenced"] == 1
    assert silenced["standings"]["ok"] == fleet["standings"]["ok"]
    assert json.loads(run("silence", "list", "--json")[1])[0]["host"] == broken["subject"]
    assert "vendor knows" in run("silence", "list")[1]
    assert run("silence", "lift", 1, "--reason", "mended", "--by", "ann")[0] == 0
    assert json.loads(run("fleet", "--json")[1])["standings"] == fleet["standings"]
    assert run("silence", "list")[1] == "0 silences\n"
    assert len(run("silence", "list", "--all")[1].splitlines()) >= 2
    text = run("fleet")[1]
    assert text.startswith("12 hosts, 2 sweeps")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fleet",), "no history yet"),
        (("history", "add"), "no sweep to add"),
        (("history", "add", "nowhere"), "nowhere"),
        (("fleet", "--false-rate", "2"), "must be between 0 and 1"),
        (("silence", "add", "--check", "x", "--reason", "r", "--by", "b", "--until", "soon"), "is no duration"),
        (("silence", "add", "--check", "x", "--reason", "r", "--by", "b", "--until", "1d"), "no check is called"),
        (("silence", "add", "--check", "x", "--reason", "r", "--by", "b", "--until", "2020-01-01"), "ends after"),
        (("silence", "lift", "4", "--reason", "r", "--by", "b"), "silence 4 is none"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, arguments, says):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_date_without_a_zone_is_utc(run, sweeps):
    run("history", "add", *sweeps)
    silence = ["silence", "add", "--check", "gpu.*", "--reason", "r", "--by", "b", "--json"]
    assert json.loads(run(*silence, "--until", "2026-12-24")[1])["until"] == 1_798_070_400.0
    assert json.loads(run(*silence, "--until", "2026-12-24T18:00+01:00")[1])["until"] == 1_798_131_600.0
