"""Reading a run: damage is named and what stands before it is kept."""

import json
from dataclasses import replace

import pytest

from wholestack.errors import RunDirectoryError
from wholestack.finding import finding
from wholestack.record import to_json
from wholestack.report.evidence import read_curves, read_evidence, read_foreign, read_text

from .synthetic_run import END, START, write_run


def test_a_run_before_its_first_phase_is_evidence_too(tmp_path):
    folder = write_run(tmp_path / "run", "preflight")
    for name in ("phases.jsonl", "claims.jsonl", "findings.jsonl", "skipped.jsonl"):
        (folder / name).unlink()
    evidence = read_evidence(folder, now=END)
    assert (evidence.phases, evidence.trials, evidence.claims, evidence.outcome) == ((), (), (), None)
    assert evidence.unreadable == ()
    assert evidence.phase == ""


def test_what_stands_before_the_damage_is_kept_and_the_line_is_named(tmp_path):
    folder = write_run(tmp_path / "run", "interrupted", trials=6)
    lines = (folder / "trials.jsonl").read_text().splitlines()
    lines[4] = lines[4][:40]
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "plan.json").write_text("{")
    evidence = read_evidence(folder, now=END)
    assert len(evidence.trials) == 4
    assert evidence.plan is None
    assert [line.partition(": ")[0] for line in evidence.unreadable] == ["plan.json", "trials.jsonl:5"]


def test_an_unfinished_last_line_is_not_damage(tmp_path):
    folder = write_run(tmp_path / "run", "interrupted", trials=6)
    count = len(read_evidence(folder, now=END).trials)
    with (folder / "trials.jsonl").open("a") as file:
        file.write('{"schema": "trial/1", "na')
    evidence = read_evidence(folder, now=END)
    assert (len(evidence.trials), evidence.unreadable) == (count, ())


def test_a_claim_that_was_changed_after_sealing_is_unknown(tmp_path):
    folder = write_run(tmp_path / "run", "inside", trials=6)
    lines = [json.loads(line) for line in (folder / "claims.jsonl").read_text().splitlines()]
    assert lines[1]["interval"] == [1.5e10, 2.5e10]
    lines[1]["interval"] = [1.0e10, 9.0e10]
    (folder / "claims.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = read_evidence(folder, now=END).claims[1]
    assert (view.status, view.genuine) == ("unknown", False)


def test_an_unsettled_claim_expires_with_time(tmp_path):
    folder = write_run(tmp_path / "run", "outside", trials=6)
    status = {
        now: {view.claim.name: view.status for view in read_evidence(folder, now=now).claims}["machine.clock"]
        for now in (START + 5, START + 10)
    }
    assert status == {START + 5: "open", START + 10: "expired"}


def test_curves_are_thinned_with_both_ends_kept(drawn):
    folder = drawn("inside").folder
    curves = read_curves(folder, ["large", "nothing"])
    points = curves.measured["large"]
    whole = [json.loads(line) for line in (folder / "jobs/large/curve.jsonl").read_text().splitlines()]
    assert len(whole) == 240
    assert 100 < len(points) <= 201
    assert (points[0].step, points[-1].step) == (whole[0]["step"], whole[-1]["step"])
    assert set(curves.predicted) == {"large"}
    assert curves.unreadable == ()


def test_a_name_cannot_lead_out_of_the_run(tmp_path, drawn):
    outside = tmp_path / "curve.jsonl"
    outside.write_bytes((drawn("inside").folder / "jobs/large/curve.jsonl").read_bytes())
    folder = write_run(tmp_path / "run", "preflight")
    curves = read_curves(folder, ["../..", "..", str(tmp_path), "", "a\0b"])
    assert not curves.measured
    assert len(curves.unreadable) == 5


def test_the_metric_is_the_bare_name_of_the_outcome_s(drawn):
    evidence = drawn("inside").evidence
    assert evidence.outcome.metric == "answer_bpb@3f9a0c1d2e4b5a69"
    assert evidence.metric == "answer_bpb"
    assert replace(evidence, outcome=None).metric == "answer_bpb"
    named = replace(evidence.outcome, metric="choice_nll@1")
    assert replace(evidence, outcome=named).metric == "choice_nll"


def test_of_findings_on_one_claim_the_last_stands_and_all_others_stand_beside_it(drawn):
    def about(claim, status, check="c"):
        return finding("run", check, status, evidence=["1"], settles=claim)

    found = (about("a", "fail"), about("", "warn"), about("b", "ok"), about("a", "ok"), about("", "warn", "d"))
    evidence = replace(drawn("preflight").evidence, findings=found)
    assert evidence.standing == [found[1], found[2], found[3], found[4]]
    assert evidence.findings == found


def test_foreign_documents_are_read_or_the_reason_is_given(tmp_path):
    assert read_foreign(tmp_path, "none.json") == (None, "")
    (tmp_path / "bad.json").write_text("{")
    raw, why = read_foreign(tmp_path, "bad.json")
    assert raw is None
    assert why.startswith("bad.json: not JSON")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    assert read_text(tmp_path, "latin.txt") == ("caf\ufffd", "")
    (tmp_path / "folder").mkdir()
    assert read_text(tmp_path, "folder")[1] == "folder: cannot be read: Is a directory"


def test_no_run_is_an_error_and_records_are_as_written(tmp_path, drawn):
    with pytest.raises(RunDirectoryError):
        read_evidence(tmp_path, now=END)
    run = drawn("inside")
    assert to_json(run.evidence.outcome, indent=2) == (run.folder / "outcome.json").read_bytes()
