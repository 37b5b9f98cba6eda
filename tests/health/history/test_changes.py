"""What a change of version did."""

import pytest

from tests.health.history.test_failures import DAY, machine, span, watched
from wholestack.health.history.changes import effects
from wholestack.health.history.failures import courses
from wholestack.health.history.rates import compare_rates
from wholestack.health.history.spans import FactSpan


def fact(host, value, first, gone=None, *, name="gpu.driver", part=""):
    return FactSpan(host=host, name=name, part=part, value=value, first=first * DAY,
                    gone=None if gone is None else gone * DAY)  # fmt: skip


def found(spans, facts, *, hosts=1, days=100):
    all_courses = courses([machine(n) for n in range(1, hosts + 1)], spans, watched(days, hosts=hosts))
    return effects(all_courses, facts, days * DAY)


def test_failures_before_are_compared_with_failures_after_on_the_same_hosts():
    facts = [fact(n, "535", 0, 50) for n in (1, 2)] + [fact(n, "550", 50) for n in (1, 2)]
    spans = [span(10, 11, host=1), *(span(day, day + 1, host=host) for day in (55, 65, 75, 85) for host in (1, 2))]
    (effect,) = found(sorted(spans, key=lambda each: each.first), facts, hosts=2)
    assert (effect.fact, effect.old, effect.new, effect.hosts) == ("gpu.driver", "535", "550", 2)
    assert (effect.before.count, effect.after.count) == (1, 8)
    assert effect.before.time_s == pytest.approx(99 * DAY)
    assert effect.after.time_s == pytest.approx(92 * DAY)
    exact = compare_rates(8, 92.0, 1, 99.0)
    assert (effect.ratio, effect.p) == (pytest.approx(exact.ratio), pytest.approx(exact.p))
    assert effect.low < effect.ratio < effect.high


def test_a_change_that_may_be_the_repair_is_not_credited_with_it():
    """The host failed until the day of the change: that it fails less afterwards says nothing of the version."""
    (effect,) = found([span(48, 50.1), span(70, 71)], [fact(1, "1", 0, 50), fact(1, "2", 50)])
    assert (effect.before.count, effect.after.count) == (0, 1)


def test_the_next_change_of_the_same_fact_ends_what_is_compared():
    facts = [fact(1, "1", 0, 50), fact(1, "2", 50, 60), fact(1, "3", 60)]
    by_new = {each.new: each for each in found([span(20, 21), span(70, 71)], facts)}
    assert by_new["2"].after.count == 0
    assert by_new["2"].after.time_s == pytest.approx(10 * DAY)
    assert by_new["3"].before.time_s == pytest.approx(10 * DAY)


def test_another_rack_is_no_change_of_version_nor_is_a_part_of_its_own():
    facts = [fact(1, "r1", 0, 50, name="host.rack"), fact(1, "r2", 50, name="host.rack"),
             fact(1, "1", 0, 50, part="gpu 1"), fact(1, "2", 50, part="gpu 1")]  # fmt: skip
    assert found([span(20, 21)], facts) == []


def test_of_changes_without_any_failure_nothing_is_said_but_they_count_as_tests():
    facts = [fact(1, "1", 0, 50), fact(1, "2", 50)]
    other = [fact(1, "a", 0, 30, name="host.bios_version"), fact(1, "b", 30, name="host.bios_version")]
    assert found([], facts) == []
    alone = found([span(20, 21)], facts)[0]
    assert alone.q >= alone.p
    assert len(found([span(20, 21)], facts + other)) == 2
