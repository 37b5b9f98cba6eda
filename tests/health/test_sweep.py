"""A sweep asks everybody once, keeps what arrived, and goes on where it was killed."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.health import fleets
from tests.health.fleets import NOW, Answers, df, moment
from tests.health.looking import healthy
from wholestack.claim import status_of
from wholestack.errors import InputError, RecordError, RunDirectoryError
from wholestack.health import catalog, sweep
from wholestack.health.check import Check, Counter, Expectation
from wholestack.health.connection import cause_of
from wholestack.health.earlier import EarlierSweep
from wholestack.health.growth import Levels, Memory
from wholestack.health.probe import Format, Probe
from wholestack.health.records import RESULTS, SUMMARY
from wholestack.health.result import HostResult
from wholestack.health.sending import commands_for
from wholestack.health.settlement import settle, standing
from wholestack.health.verdicts import VALID_S, read_sweep
from wholestack.remote.batch import Command, Output, Trouble
from wholestack.remote.host import Host
from wholestack.remote.simulated import SimulatedRemote
from wholestack.runs import RunDirectory, RunManifest, RunReader

NAMES = [f"gpu{n:03d}" for n in range(6)]
MIXED = {
    "gpu001": {"df": Output(name="df", stdout=df(99))},
    "gpu002": {"df": Output(name="df", exit_status=None, ending="hung")},
    "gpu003": "unreachable",
    "gpu004": {"df": Output(name="df", stdout=df(92))},
}
HUNG = {"df": Output(name="df", exit_status=None, ending="hung")}
STATUSES = {
    "gpu000": "ok",
    "gpu001": "fail",
    "gpu002": "unknown",
    "gpu003": "unknown",
    "gpu004": "warn",
    "gpu005": "ok",
}


def statuses(found):
    return {verdict.host: verdict.status for verdict in found.verdicts}


def test_hosts_may_train_or_not_or_cannot_be_told(tmp_path):
    found = fleets.run(tmp_path / "s", NAMES, Answers(MIXED))
    assert statuses(found) == STATUSES
    summary = found.summary
    counts = (summary.may_train, summary.may_not, summary.unknown, summary.warnings, summary.status)
    assert counts == (3, 1, 2, 1, "fail")


def test_a_hung_probe_costs_its_own_checks_only_and_is_named(tmp_path):
    (verdict,) = fleets.run(tmp_path / "s", ["gpu002"], Answers(MIXED)).verdicts
    assert verdict.passed == ("filesystem.inodes",)
    assert verdict.unjudged == ("filesystem.bytes",)
    (only,) = verdict.findings
    assert (only.part, only.status) == ("probe df", "unknown")


STUCK = {
    "hung": Output(name="", exit_status=None, ending="hung"),
    "streaming": Output(name="", stdout=b"x 1\n" * 1_000_000, seconds=1e9),
    "endless and quick": Output(name="", stdout=b"x 1\n" * 1_000_000, exit_status=None, ending="timed_out"),
}


@pytest.mark.parametrize("names", [("nvidia_smi", "smart", "df"), ("kernel_log", "infiniband", "sensors")])
def test_of_a_host_with_three_stuck_probes_all_else_is_judged_and_the_three_are_named(tmp_path, names):
    stuck = dict(zip(names, STUCK.values(), strict=True))
    checks = catalog.chosen()

    def answer(host, command):
        broken = stuck.get(command.name) if host.name == "ill" else None
        return replace(broken or healthy()[command.name], name=command.name)

    found = fleets.run(tmp_path / "s", ["well", "ill"], answer, checks=checks)
    well, ill = sorted(found.verdicts, key=lambda verdict: verdict.host != "well")
    named = {each.part for each in ill.findings if each.status == "unknown"}
    assert named >= {f"probe {name}" for name in names}
    touched = {check.name for check in checks if {probe.name for probe in check.probes} & set(names)}
    assert set(well.passed) - touched <= set(ill.passed)
    assert ill.unjudged
    assert set(ill.unjudged) <= touched
    assert ill.status == "unknown"
    told = " ".join(line for each in ill.findings for line in each.evidence)
    assert all(name in told for name in ill.unjudged)


@pytest.mark.parametrize("trouble", Trouble.__args__)
def test_a_silent_host_is_one_finding_that_says_how(tmp_path, trouble):
    (verdict,) = fleets.run(tmp_path / "s", ["a"], Answers({"a": trouble})).verdicts
    (only,) = verdict.findings
    assert (only.status, only.cause) == ("unknown", cause_of(trouble).says)
    assert only.evidence[0].startswith(trouble)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("host_key", ("host key", "--accept-new", "ssh-keygen -R", "verify")),
        ("auth", ("refuses the login", "authorized_keys")),
        ("key_file", ("private key on this machine", "--identity")),
        ("name", ("does not resolve", "address")),
    ],
)
def test_a_host_that_refuses_us_is_not_called_off(tmp_path, trouble, words):
    (verdict,) = fleets.run(tmp_path / "s", ["a"], Answers({"a": trouble})).verdicts
    (only,) = verdict.findings
    said = f"{only.cause} {only.remedy}"
    assert all(word in said for word in words)
    assert "did not answer" not in said
    assert "power" not in said


def test_of_a_connection_that_broke_half_way_what_arrived_counts(tmp_path):
    answers = Answers({"a": {"df": Output(name="df", stdout=df(99)), "df_inodes": "lost"}})
    (verdict,) = fleets.run(tmp_path / "s", ["a"], answers).verdicts
    assert [each.status for each in verdict.findings] == ["fail", "unknown"]
    assert any("df_inodes" in line for line in verdict.findings[1].evidence)


def test_every_host_is_asked_once_and_no_more_than_allowed_at_a_time(tmp_path):
    now, most = 0, 0

    class Counting(SimulatedRemote):
        async def run(self, host, commands, *, deadline_s):
            nonlocal now, most
            now, most = now + 1, max(most, now + 1)
            reply = await super().run(host, commands, deadline_s=deadline_s)
            now -= 1
            return reply

    answers = Answers()
    plan = sweep.plan_for([Host(name=name) for name in NAMES], fleets.CHECKS, {}, concurrency=2)
    with sweep.create(tmp_path / "s", plan, at=NOW) as directory:
        asyncio.run(sweep.sweep(directory, Counting(answers), clock=lambda: NOW))
    assert most == 2
    assert sorted(set(answers.asked)) == NAMES
    assert len(answers.asked) == len(NAMES) * len(
        set(commands_for(sweep.catalog.probes_of(fleets.CHECKS), Expectation()))
    )


def test_the_same_answers_give_the_same_findings_whoever_is_first(tmp_path):
    one = fleets.run(tmp_path / "a", NAMES, Answers(MIXED), concurrency=1)
    other = fleets.run(tmp_path / "b", NAMES, Answers(MIXED), concurrency=6)
    assert one.verdicts == other.verdicts
    read = read_sweep(tmp_path / "b")
    assert (read.verdicts, read.summary) == (other.verdicts, other.summary)


def test_a_sweep_that_was_killed_asks_only_the_rest_and_ends_the_same(tmp_path):
    whole = fleets.run(tmp_path / "whole", NAMES, Answers(MIXED))
    lines = (tmp_path / "whole" / RESULTS).read_bytes()
    for cut in (0, 1, lines.index(b"\n"), lines.index(b"\n") + 1, len(lines) // 2, len(lines) - 1, len(lines)):
        folder = tmp_path / f"cut{cut}"
        with sweep.create(folder, whole.plan, at=NOW):
            (folder / RESULTS).write_bytes(lines[:cut])
        done = {json.loads(line)["host"] for line in lines[:cut].splitlines(keepends=True) if line.endswith(b"\n")}
        answers, seen = Answers(MIXED), list[str]()
        with sweep.resume(folder) as directory:
            found = asyncio.run(sweep.sweep(
                directory, SimulatedRemote(answers), watch=lambda each, seen=seen: seen.append(each.host),
                clock=lambda: NOW,
            ))  # fmt: skip
        assert not done & set(answers.asked)
        assert sorted(seen) == NAMES
        assert found.verdicts == whole.verdicts
        assert RunReader(folder).claims() == RunReader(whole.folder).claims()


def test_a_sweep_that_has_ended_asks_nobody(tmp_path):
    whole = fleets.run(tmp_path / "s", NAMES, Answers(MIXED))
    answers = Answers()
    with sweep.resume(tmp_path / "s") as directory:
        found = asyncio.run(sweep.sweep(directory, SimulatedRemote(answers)))
    assert (found.verdicts, answers.asked) == (whole.verdicts, [])


def test_an_error_of_ours_ends_the_sweep_and_keeps_what_was_done(tmp_path, monkeypatch):
    monkeypatch.setattr(RunDirectory, "extend", _full_after(2))
    with pytest.raises(RunDirectoryError, match="disk full"):
        fleets.run(tmp_path / "s", NAMES, concurrency=1)
    assert len(RunReader(tmp_path / "s").journal(RESULTS, HostResult)) == 2


def _full_after(count):
    real, left = RunDirectory.extend, [count]

    def extend(run, name, records):
        for each in records:
            if not left[0]:
                raise RunDirectoryError("disk full")
            left[0] -= 1
            real(run, name, [each])

    return extend


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hosts": ["a", "b", "a"]}, "'a' is named twice"),
        ({"hosts": []}, "no host"),
        ({"checks": ()}, "no check"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"retries": -1}, "retries is -1"),
    ],
)
def test_what_makes_no_sweep_is_refused(changes, says):
    asked = {"hosts": ["a"], "checks": fleets.CHECKS, "concurrency": 1} | changes
    hosts = [Host(name=name) for name in asked.pop("hosts")]
    with pytest.raises(InputError, match=says):
        sweep.plan_for(hosts, asked.pop("checks"), {}, **asked)


def test_only_the_folder_of_a_sweep_can_be_resumed(tmp_path):
    RunDirectory.create(
        tmp_path / "r", RunManifest(kind="rehearsal", created_at=1.0, seed=0, config={}, versions={})
    ).close()
    with pytest.raises(RunDirectoryError, match="rehearsal"):
        sweep.resume(tmp_path / "r")
    with pytest.raises(InputError, match="rehearsal"):
        read_sweep(tmp_path / "r")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("findings.jsonl", lambda lines: []),
        ("findings.jsonl", lambda lines: [line for line in lines if b"gpu001" not in line]),
        (RESULTS, lambda lines: lines[:-1]),
        (RESULTS, lambda lines: [*lines, lines[0].replace(b"gpu000", b"other")]),
    ],
)
def test_a_folder_that_lost_findings_or_results_is_damaged_and_nobody_in_it_is_fit(tmp_path, name, damage):
    fleets.run(tmp_path / "s", NAMES, Answers(MIXED))
    file = tmp_path / "s" / name
    file.write_bytes(b"".join(damage(file.read_bytes().splitlines(keepends=True))))
    with pytest.raises(RecordError, match="is damaged"):
        read_sweep(tmp_path / "s")


def test_a_sweep_that_has_not_ended_says_how_to_go_on(tmp_path):
    fleets.run(tmp_path / "s", ["a"])
    (tmp_path / "s" / SUMMARY).unlink()
    with pytest.raises(InputError, match="--resume"):
        read_sweep(tmp_path / "s")


def test_an_option_of_the_profile_reaches_the_command_quoted_and_only_where_it_is_given():
    probe = Probe(command=Command(name="c", shell='run "$CONTAINER_IMAGE"'), formats=(), option="container_image")
    (command,) = commands_for([probe], Expectation(options={"container_image": "x; rm -rf /"}))
    assert command.shell == "CONTAINER_IMAGE='x; rm -rf /'; run \"$CONTAINER_IMAGE\""
    assert commands_for([probe], Expectation()) == []


# Claims


@pytest.fixture
def in_full(monkeypatch):
    """These checks are the whole catalogue, so that putting them is a sweep in full."""
    monkeypatch.setattr(sweep.catalog, "CHECKS", fleets.CHECKS)


@pytest.mark.usefixtures("in_full")
def test_every_host_has_a_claim_that_its_own_findings_settle(tmp_path):
    fleets.run(tmp_path / "s", NAMES, Answers(MIXED))
    run = RunReader(tmp_path / "s")
    found = {claim.subject: status_of(claim, run.findings(), now=NOW) for claim in run.claims()}
    wanted = {"ok": "held", "warn": "held", "fail": "broken", "unknown": "unknown"}
    assert found == {host: wanted[status] for host, status in STATUSES.items()}
    settling = [each for each in run.findings() if each.settles and each.subject == "gpu001"]
    assert [each.check for each in settling] == ["filesystem.bytes"]


def test_where_checks_were_left_out_nothing_is_claimed_on_training(tmp_path):
    found = fleets.run(tmp_path / "s", NAMES, Answers(MIXED))
    run = RunReader(tmp_path / "s")
    stand = {claim.subject: status_of(claim, run.findings(), now=NOW) for claim in run.claims()}
    assert stand == {host: "broken" if status == "fail" else "unknown" for host, status in STATUSES.items()}
    assert not any("may train" in claim.statement for claim in run.claims())
    (claim,) = (claim for claim in run.claims() if claim.subject == "gpu000")
    assert claim.statement.startswith("gpu000 passed filesystem.bytes, filesystem.inodes; 2 of ")
    (settling,) = (each for each in run.findings() if each.settles == claim.id)
    assert settling.cause == "the host was not looked at in full"
    assert statuses(found) == statuses(read_sweep(tmp_path / "s")) == STATUSES


@pytest.mark.usefixtures("in_full")
def test_a_claim_says_on_how_many_checks_it_rests(tmp_path):
    fleets.run(tmp_path / "s", ["a"], Answers({"a": {"df_inodes": Output(name="df_inodes", exit_status=127)}}))
    assert (
        "a may train; 1 of 2 checks judged, none of them of a GPU; until its boot"
        in RunReader(tmp_path / "s").claims()[0].statement
    )


@pytest.mark.usefixtures("in_full")
def test_a_claim_lapses_although_it_held(tmp_path):
    fleets.run(tmp_path / "s", ["a"])
    run = RunReader(tmp_path / "s")
    (claim,) = run.claims()
    assert standing(claim, run.findings(), now=NOW + VALID_S - 1) == "held"
    assert standing(claim, run.findings(), now=NOW + VALID_S + 1) == "expired"


def test_another_boot_is_another_claim(tmp_path):
    def predicted(folder, boot_id):
        told = {"a": {"moment": Output(name="moment", stdout=moment(boot_id=boot_id))}}
        fleets.run(folder, ["a"], Answers(told))
        return RunReader(folder).claims()[0].predicted

    assert predicted(tmp_path / "1", "x") == predicted(tmp_path / "2", "x") != predicted(tmp_path / "3", "y")


@pytest.mark.usefixtures("in_full")
@pytest.mark.usefixtures("in_full")
def test_a_newer_claim_names_the_one_that_it_replaces_and_whether_the_host_is_another(tmp_path):
    def statement(name, boot_id, since=None, **more):
        told = {"moment": Output(name="moment", stdout=moment(boot_id=boot_id))} | more
        fleets.run(tmp_path / name, ["a"], Answers({"a": told}), since=since)
        (claim,) = RunReader(tmp_path / name).claims()
        assert [each.status for each in settle(RunReader(tmp_path / name), at=NOW)] == ["unknown" if more else "ok"]
        return claim

    first = statement("1", "x")
    assert "replaces" not in first.statement
    assert statement("2", "x", tmp_path / "1").statement.endswith(f"; replaces {first.id[:8]}")
    assert f"replaces {first.id[:8]}, no longer valid: its boot" in statement("3", "y", tmp_path / "1").statement
    assert "no longer" not in statement("4", "y", tmp_path / "1", **HUNG).statement


@pytest.mark.usefixtures("in_full")
def test_settling_again_says_the_same_until_somebody_changed_claims_or_results(tmp_path):
    fleets.run(tmp_path / "s", NAMES, Answers(MIXED))
    run = RunReader(tmp_path / "s")
    again = settle(run, at=NOW + 1)
    assert {each.subject: each.status for each in again} == {
        host: "ok" if status == "warn" else status for host, status in STATUSES.items()
    }
    path = tmp_path / "s" / RESULTS
    path.write_bytes(path.read_bytes().replace(b'"boot_id":"boot"', b'"boot_id":"root"', 1))
    assert [each.cause for each in settle(run, at=NOW + 1)].count("the sweep was changed after it was sealed") == 1
    claims = tmp_path / "s" / "claims.jsonl"
    claims.write_bytes(claims.read_bytes().replace(b"may train", b"may not train", 1))
    assert [each.status for each in settle(run, at=NOW + 1)].count("fail") == 2


# Rates


def counting(seen):
    text = seen.of(PROBE)
    return [Counter(name="x.errors", value=int(text), part="p")]


def growth(seen):
    from wholestack.health.check import Cause, Symptom

    grown = Memory(seen).growth(counting(seen)[0], Levels(warn=1, quiet_h=0))
    if grown.delta is None or grown.delta:
        cause = Cause(code="x.grew", says="grew", owner="network", remedy="look")
        yield Symptom(cause=cause, evidence=(f"{grown.delta} since {grown.since}",))


PROBE = Probe(
    command=Command(name="count", shell="count"),
    formats=(Format(name="number", matches=lambda _: True, read=lambda text: text.strip()),),
)


def test_the_next_sweep_counts_from_the_last_one_and_the_latest_line_of_a_host_wins(tmp_path, monkeypatch):
    from wholestack.health import catalog
    from wholestack.health.check import Cause

    cause = Cause(code="x.grew", says="grew", owner="network", remedy="look")
    plain = {"name": "x.count", "about": "", "probes": (PROBE,), "parts": ("host",), "causes": (cause,)}
    check = Check(**plain, judge=growth, counters=counting)
    monkeypatch.setattr(catalog, "CHECKS", (check,))

    def look(folder, value, now, since=None):
        told = {"a": {
            "count": Output(name="count", stdout=b"%d" % value), "moment": Output(name="moment", stdout=moment(now)),
        }}  # fmt: skip
        return fleets.run(folder, ["a"], Answers(told), since=since, checks=(check,)).verdicts[0]

    first = look(tmp_path / "1", 40, NOW)
    assert [each.evidence for each in first.findings] == [("40 since boot",)]
    assert look(tmp_path / "2", 40, NOW + 600, tmp_path / "1").status == "ok"
    assert look(tmp_path / "3", 47, NOW + 600, tmp_path / "1").findings[0].evidence == ("7 since earlier looks",)
    silent = fleets.run(tmp_path / "4", ["a"], Answers({"a": "unreachable"}), since=tmp_path / "1", checks=(check,))
    assert silent.verdicts[0].status == "unknown"
    kept = EarlierSweep(tmp_path / "4").before("a")
    assert kept is not None
    assert kept == EarlierSweep(tmp_path / "1").before("a")
    lines = [(tmp_path / name / RESULTS).read_bytes() for name in ("1", "3")]
    (tmp_path / "1" / RESULTS).write_bytes(b"".join(lines) + lines[0][:-1])
    earlier = EarlierSweep(tmp_path / "1")
    assert earlier.before("a").counters[0].value == 47
    assert earlier.before("b") is None


def test_judging_beside_says_the_same_as_judging_here(tmp_path):
    here = fleets.run(tmp_path / "a", NAMES, Answers(MIXED))
    plan = sweep.plan_for([Host(name=name) for name in NAMES], fleets.CHECKS, {}, concurrency=4)
    with sweep.create(tmp_path / "b", plan, at=NOW) as directory:
        remote = SimulatedRemote(Answers(MIXED))
        beside = asyncio.run(sweep.sweep(directory, remote, clock=lambda: NOW, processes=1))
    assert beside.verdicts == here.verdicts
