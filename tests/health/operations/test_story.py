"""Stories of faults: a pure state machine over recorded events."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.history.silences import Silence
from wholestack.health.history.spans import Event, FindingSpan
from wholestack.health.operations.story import (
    FIX_BUDGET,
    REJOIN_S,
    REPEAT_WINDOW_S,
    TRANSITIONS,
    next_step,
    refusal_to_fix,
    stories,
)

HOUR = 3600.0


def span(
    first=1.0, gone=None, *, part="gpu 0000:01:00", serial="", status="fail", cause="broken", check="gpu.ecc", id="a"
):
    return FindingSpan(id=id * 16, host=1, check=check, part=part, serial=serial, cause=cause, owner="vendor",
                       status=status, evidence=("line",), first=first * HOUR,
                       gone=None if gone is None else gone * HOUR)  # fmt: skip


def told(spans, kinds=(), *, at=2.0, silences=(), now=99.0):
    """Stories where the given kinds of event happened to the first."""
    (first, *_) = stories(spans, (), now=now * HOUR)
    events = [
        Event(at=(at + place) * HOUR, host=1, kind=kind, subject=first.id, says="") for place, kind in enumerate(kinds)
    ]
    return stories(spans, events, silences, now=now * HOUR)


def step(spans, kinds=(), *, fixable=True, **given):
    return next_step(told(spans, kinds, **given)[0], fixable=fixable).action


@pytest.mark.parametrize(
    ("kinds", "action"),
    [
        ((), "drain"),
        (("drain_begun",), "drain"),  # killed: it goes on where it was
        (("drain_begun", "drain_failed"), "drain"),
        (("drain_begun", "drain_ended"), "fix"),
        (("drain_begun", "drain_ended", "fix_begun"), "fix"),
        (("drain_begun", "drain_ended", "fix_begun", "fix_ended"), "prove"),
        (("drain_begun", "drain_ended", "fix_begun", "fix_ended", "proof_broken"), "fix"),
        (("drain_begun", "drain_ended", "fix_begun", "fix_failed", "fix_begun", "fix_failed"), "hand_over"),
        (("drain_begun", "drain_ended", "fix_begun", "fix_ended", "proof_held"), "undrain"),
        (("drain_begun", "drain_ended", "proof_held", "undrain_begun"), "undrain"),
        (("drain_begun", "drain_ended", "proof_held", "undrain_begun", "undrain_ended"), "nothing"),
        (("drain_begun", "drain_ended", "undrained_by_person"), "wait"),
        (("fix_begun", "fix_ended", "proof_held"), "nothing"),
    ],
)
def test_the_next_step_follows_from_what_was_written_down(kinds, action):
    assert step([span()], kinds) == action


def test_a_warning_is_fixed_without_a_drain_and_what_has_no_fix_is_handed_over():
    assert step([span(status="warn")]) == "fix"
    assert step([span(status="warn")], fixable=False) == "hand_over"


def test_what_a_sweep_no_longer_sees_is_proved():
    assert step([span(gone=5)], ("drain_begun", "drain_ended")) == "undrain"
    assert step([span(gone=5)]) == "nothing"


def test_a_silence_is_a_veto_on_every_step_until_it_ends():
    silence = Silence(id=3, host=1, reason="mine", by="ann", since=0.0, until=50 * HOUR)
    for kinds in ((), ("drain_begun", "drain_ended"), ("drain_begun",)):
        assert step([span()], kinds, silences=[silence], now=49.0) == "wait"
        assert step([span()], kinds, silences=[silence], now=50.0) != "wait"
    assert "ann said no" in refusal_to_fix(told([span()], silences=[silence], now=49.0)[0])


def test_one_physical_fault_is_one_story():
    chain = [span(1, 3, id="a"), span(2, 4, cause="worse", id="b"), span(10, None, id="a")]
    (one,) = told(chain)
    assert one.findings == ("a" * 16, "b" * 16)
    assert one.first == HOUR
    assert one.gone is None


def test_other_parts_later_returns_and_another_part_in_the_slot_are_other_stories():
    rejoin = REJOIN_S / HOUR
    assert len(told([span(1, 2), span(1, 2, part="gpu 0000:02:00")])) == 2
    assert len(told([span(1, 2), span(2 + rejoin, 90)])) == 1
    assert len(told([span(1, 2), span(2.1 + rejoin, 90)])) == 2
    assert len(told([span(1, 2, serial="S1"), span(3, 4, serial="S2")])) == 2
    assert len(told([span(1, 2, serial="S1"), span(3, 4, serial="S1", part="gpu 0000:02:00")])) == 1
    assert len(told([span(1, 2, part="host", check="time.sync"), span(1, 2, part="host", check="docker.state")])) == 2


def test_what_comes_after_a_proved_repair_is_a_repeat_and_the_third_is_returned():
    kinds = ("drain_begun", "drain_ended", "fix_begun", "fix_ended", "proof_held", "undrain_begun", "undrain_ended")
    spans = [span(1, 4), span(20, 24), span(40, None)]
    events = []
    for place in range(2):
        open_now = stories(spans, events, now=99 * HOUR)
        story = open_now[place]
        at = story.first / HOUR
        events += [
            Event(at=(at + 0.1 * each) * HOUR, host=1, kind=kind, subject=story.id, says="")
            for each, kind in enumerate(kinds)
        ]
    first, second, third = stories(spans, events, now=99 * HOUR)
    assert [first.repeat, second.repeat, third.repeat] == [1, 2, 3]
    drained = replace(third, done=replace(third.done, is_drained=True))
    assert next_step(drained, fixable=True).action == "hand_over"
    assert "hardware return" in refusal_to_fix(third)
    assert refusal_to_fix(second) == ""
    late = [*spans[:2], span(40 + REPEAT_WINDOW_S / HOUR, None)]
    assert stories(late, events, now=9e9)[-1].repeat == 1


def test_a_fix_that_was_begun_counts_whether_it_ended_or_not():
    (story,) = told([span()], ["fix_begun"] * FIX_BUDGET)
    assert "handed" in refusal_to_fix(story).replace("hand it", "handed")


@given(st.lists(st.sampled_from(sorted(TRANSITIONS)), max_size=12))
def test_any_events_give_one_step_and_reading_them_again_gives_the_same(kinds):
    (story, *_) = told([span()], kinds)
    again = told([span()], kinds)[0]
    assert story == again
    found = next_step(story, fixable=True)
    assert found.why
    if story.done.fixes >= FIX_BUDGET and not story.done.doing:
        assert found.action != "fix"
