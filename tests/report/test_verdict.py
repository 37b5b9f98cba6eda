"""The verdict is good only when everything is; every other case says what is missing in one sentence."""

from dataclasses import replace

import pytest

from wholestack.report.verdict import judge, key_numbers, rung, target, which_way


def _without_warnings(evidence):
    return replace(evidence, findings=tuple(each for each in evidence.findings if each.status == "ok"))


def test_inside_with_every_claim_held_and_no_warning_is_ok(drawn):
    verdict = judge(_without_warnings(drawn("inside").evidence))
    assert verdict.tone == "ok"
    assert verdict.sentence.startswith(
        "The large run landed inside its predicted interval: answer_bpb was predicted at"
    )
    assert "All 6 claims held." in verdict.further


def test_a_warning_a_broken_an_open_an_unread_thing_each_take_ok_away(drawn):
    good = _without_warnings(drawn("inside").evidence)
    first, *others = good.claims
    assert judge(drawn("inside").evidence).tone == "warn"
    assert judge(replace(good, claims=(replace(first, status="broken"), *others))).tone == "warn"
    assert judge(replace(good, claims=(replace(first, status="open"), *others))).tone == "unknown"
    for status in ("unknown", "expired"):
        assert judge(replace(good, claims=(replace(first, status=status), *others))).tone == "unknown"
    assert judge(replace(good, claims=())).tone == "unknown"
    assert judge(replace(good, unreadable=("trials.jsonl:3: not JSON",))).tone == "unknown"


@pytest.mark.parametrize(
    ("stage", "tone", "words"),
    [
        ("preflight", "open", "no result yet: it is in the phase “preflight”, 0 trials completed"),
        ("interrupted", "open", "no result yet: it is in the phase “search”"),
        ("refused", "unknown", "No prediction was made: 5 Pareto points"),
        ("stopped", "warn", "Stopped after the rung: the rung came out 9.0 % worse"),
        ("outside", "fail", "The large run missed its prediction"),
    ],
)
def test_each_other_end_has_its_sentence(drawn, stage, tone, words):
    verdict = judge(drawn(stage).evidence)
    assert verdict.tone == tone
    assert words in verdict.sentence


def test_a_large_run_that_was_not_started_is_told_with_its_reason(drawn):
    evidence = drawn("inside").evidence
    reason = "the large run: not trained: it needs 80 s and 20 s are left; the rung landed inside its interval"
    nothing = {"predicted": None, "interval": None, "actual": None, "inside": None, "relative_error": None}
    verdict = judge(replace(evidence, outcome=replace(evidence.outcome, reason=reason, **nothing)))
    assert verdict.tone == "unknown"
    assert verdict.sentence == (
        "The large run was not trained, so no prediction of it was sealed: it needs 80 s and 20 s are left; the rung"
        " landed inside its interval."
    )


def test_a_finding_that_a_later_one_replaced_does_not_lower_the_verdict(drawn):
    good = _without_warnings(drawn("inside").evidence)
    last = next(each for each in good.findings if each.settles)
    replaced = replace(last, status="fail", cause="it was so for a while")
    verdict = judge(replace(good, findings=(replaced, *good.findings)))
    assert verdict == judge(good)
    assert judge(replace(good, findings=(*good.findings, replaced))).tone == "warn"


def _about(view, name, status):
    claim = replace(view.claim, name=name)
    return replace(view, claim=claim, status=status)


@pytest.mark.parametrize("name", ["machine.pace", "large.duration"])
def test_a_slow_machine_leaves_the_landing_its_mark_and_has_a_line_of_its_own(drawn, name):
    good = _without_warnings(drawn("inside").evidence)
    first, *others = good.claims
    slow = replace(good.findings[-1], status="fail", settles=first.claim.id, cause="worker was slow")
    verdict = judge(replace(good, claims=(_about(first, name, "broken"), *others), findings=(*good.findings, slow)))
    assert verdict.tone == "ok"
    assert f"✕ 1 claim broken: {name}." in verdict.further
    assert not any("held" in line for line in verdict.further)


def test_an_outcome_that_says_inside_does_not_outvote_its_broken_claim(drawn):
    good = _without_warnings(drawn("inside").evidence)
    views = [replace(view, status="broken") if view.claim.name == "large.metric" else view for view in good.claims]
    assert judge(replace(good, claims=tuple(views))).tone == "fail"


def test_without_a_prediction_it_says_what_to_do_and_praises_no_claims(drawn):
    evidence = drawn("refused").evidence
    held = replace(evidence, claims=tuple(replace(view, status="held") for view in evidence.claims))
    further = judge(held).further
    assert further[0].startswith("To get a prediction, start afresh in another folder: with a longer --budget, or when")
    assert not any(line.endswith("claims held.") for line in further)
    assert any(line.endswith("held, but none of them predicts where the large run lands.") for line in further)
    assert not any("To get a prediction" in line for line in judge(drawn("outside").evidence).further)


def test_a_large_run_that_failed_is_a_failure_with_its_reason(drawn):
    evidence = drawn("inside").evidence
    large = replace(evidence.last("large"), outcome="diverged", metrics={}, detail="loss is not finite at step 9")
    outcome = replace(evidence.outcome, actual=None, inside=None, relative_error=None)
    trials = (*(each for each in evidence.trials if each.role != "large"), large)
    verdict = judge(replace(evidence, outcome=outcome, trials=trials))
    assert verdict.tone == "fail"
    assert "The large run failed (diverged: loss is not finite at step 9)" in verdict.sentence


def test_broken_and_undecided_claims_are_named(drawn):
    further = " ".join(judge(drawn("outside").evidence).further)
    assert "2 claims broken: large.metric, large.step." in further
    assert "1 claim unknown: evaluation.items." in further
    assert "1 claim expired: machine.clock." in further
    assert "2 fail, 1 unknown, 1 warn" in further


def test_better_and_worse_are_said_of_losses_only():
    assert which_way("answer_bpb", 0.1) == "worse"
    assert which_way("choice_nll_per_byte", -0.1) == "better"
    assert which_way("accuracy_raw", 0.1) == "above"


def test_the_prediction_is_the_outcome_s_and_before_it_that_of_the_laws(drawn):
    evidence = drawn("inside").evidence
    moved = replace(evidence, outcome=replace(evidence.outcome, predicted=2.0, interval=(1.9, 2.1)))
    assert (target(moved).value, target(moved).low, target(moved).high) == (2.0, 1.9, 2.1)
    assert target(replace(evidence, outcome=None)) == evidence.laws_rung.target
    assert rung(replace(evidence, outcome=None)) == evidence.laws_search.rung
    assert target(drawn("refused").evidence) is None


def test_time_over_the_budget_is_said_to_be_over_it(drawn):
    evidence = drawn("inside").evidence
    budget_s = evidence.plan.budget_s
    for seconds, over in ((budget_s - 1, False), (budget_s + 34, True)):
        (used,) = (
            row for row in key_numbers(replace(evidence, outcome=replace(evidence.outcome, seconds=seconds)))
            if row[0] == "time used"
        )  # fmt: skip
        assert used[2].endswith(": over the budget") is over
