"""Failures, their rate, repeat offenders and flapping."""

import random

import pytest

from tests.health.history.looks import HOUR
from wholestack.health.history.failures import (
    SHARE_OF_ONE,
    Course,
    by_chance,
    courses,
    failures_of,
    flapping,
    offenders,
    usual_rate,
)
from wholestack.health.history.spans import FindingSpan, Machine, Sweeps, Timeline

DAY = 24 * HOUR


def span(first, gone=None, *, host=1, status="fail", cause="broken", id_="x"):
    return FindingSpan(
        id=id_,
        host=host,
        check="gpu.ecc",
        part="gpu 1",
        serial="",
        cause=cause,
        owner="vendor",
        status=status,
        evidence=(),
        first=first * DAY,
        gone=None if gone is None else gone * DAY,
    )


def machine(number=1, kind="h100"):
    return Machine(id=number, name=f"n{number}", kind=kind, serial="", first=0.0)


def watched(days, *, hosts=1):
    """Asked every hour."""
    times = [hour * HOUR for hour in range(int(days * 24) + 1)]
    return Sweeps(times={1: times}, plans={number: (1,) for number in range(1, hosts + 1)})


def test_findings_that_overlap_or_follow_within_a_day_are_one_failure():
    spans = [span(1, 3), span(2, 4, cause="more"), span(4.5, 5), span(9, 10), span(12, status="warn")]
    found = failures_of(spans)
    assert [(each.first / DAY, each.until / DAY) for each in found] == [(1, 5), (9, 10)]
    assert found[0].causes == ("broken", "more")


def test_a_failure_that_lasts_takes_all_that_comes_later():
    assert [each.until for each in failures_of([span(1), span(9, 10)])] == [None]


def test_time_that_was_not_watched_or_in_which_it_failed_is_no_time_to_fail():
    times = [*(hour * HOUR for hour in range(241)), *(hour * HOUR for hour in range(480, 721))]  # 10 days, gap, 10 days
    sweeps = Sweeps(times={1: times}, plans={1: (1,)})
    (course,) = courses([machine()], [span(2, 4), span(25, 26)], sweeps)
    stale_s = sweeps.of(1).stale_s
    assert stale_s == 4 * HOUR
    assert course.fit_s(30 * DAY) == pytest.approx(20 * DAY + stale_s - 3 * DAY)
    assert course.rate(30 * DAY).count == 2


def test_a_host_that_is_asked_once_a_day_is_watched_all_day():
    line = Timeline(times=tuple(day * DAY for day in range(11)))
    assert line.observed_s(0, 10 * DAY) == 10 * DAY
    assert not line.is_stale(13 * DAY)
    assert line.is_stale(15 * DAY)


def test_the_usual_rate_is_that_of_the_sound_ones_whatever_the_offenders_do():
    rng = random.Random(7)
    rate, days = 1.2 / 365, 120.0
    failed = [_count(rng, rate * days) for _ in range(4000)]
    assert usual_rate([days] * 4000, failed) == pytest.approx(rate, rel=0.1)
    too = [_count(rng, 15 * rate * days) for _ in range(200)]
    assert usual_rate([days] * 4200, [*failed, *too]) == pytest.approx(rate, rel=0.12)
    assert sum(too) > sum(failed) / 2  # while they make a third of all failures


def test_where_only_one_machine_ever_failed_it_is_compared_with_a_rate_that_is_rather_too_high():
    assert usual_rate([100.0] * 40, [3, *[0] * 39]) == pytest.approx(1 / 3800, rel=1e-6)  # one of 39 in 100 s
    assert usual_rate([100.0] * 40, [0] * 40) == 0.0
    assert usual_rate([100.0] * 40, [1] * 40) == 0.0  # nobody can say how much faster than that
    assert usual_rate([100.0] * 40, [2] * 40) == 0.0


def _count(rng, mean):
    at, count = rng.expovariate(1.0), 0
    while at < mean:
        at, count = at + rng.expovariate(1.0), count + 1
    return count


def fleet(days, failing, *, hosts=40):
    """Failures of a day each; every host that is not named fails never, but three that give the fleet a rate."""
    failing = {38: [10], 39: [50], 40: [90]} | failing
    spans = [span(day, day + 1, host=host) for host, row in failing.items() for day in row]
    return courses([machine(n) for n in range(1, hosts + 1)], sorted(spans, key=lambda each: each.first),
                   watched(days, hosts=hosts))  # fmt: skip


def test_a_host_that_fails_again_soon_is_named_at_its_second_failure():
    """Four failures in 40 x 100 days: again within 10 days has a probability of 1 %."""
    all_courses = fleet(100, {1: [70, 80]})
    (named,) = offenders(all_courses, 100 * DAY)
    assert (named.host, named.failures, named.at_failure, named.named_at) == ("n1", 2, 2, 80 * DAY)
    assert named.gap_s == pytest.approx(9 * DAY, rel=0.01)
    assert named.p == pytest.approx(9 / 1000, rel=0.2)
    assert offenders(all_courses, 79 * DAY) == []


def test_a_host_that_fails_again_late_is_not_named_and_the_false_rate_decides_what_late_is():
    all_courses = fleet(300, {1: [10, 290]} | {host: [10 * host] for host in range(2, 21)})
    assert offenders(all_courses, 300 * DAY) == []
    assert [each.host for each in offenders(all_courses, 300 * DAY, false_rate=0.9)] == ["n1"]
    assert by_chance(all_courses, 300 * DAY, false_rate=0.5) == 0.5  # one failure of the last 90 days


def test_a_host_that_fails_twice_soon_after_it_was_first_watched_is_named_though_the_last_gap_was_long():
    """In this fleet a sound one fails again within 39 days with 17 %, and for the second time within 49 with 2 %."""
    all_courses = fleet(300, {1: [10, 50], 22: [200, 240]} | {host: [10 * host] for host in range(2, 22)})
    (named,) = offenders(all_courses, 130 * DAY)
    assert (named.host, named.at_failure, named.named_at) == ("n1", 2, 50 * DAY)
    assert 0.02 < named.p * (1 - SHARE_OF_ONE) < 0.03
    assert offenders(all_courses, 300 * DAY) == []


def test_a_host_that_was_named_long_ago_is_not_shown():
    assert offenders(fleet(200, {1: [50, 55]}), 200 * DAY) == []


def test_sound_hosts_are_named_at_the_stated_rate():
    """200 sound hosts, two failures a year each: after 15 % of their failures the next one names them."""
    rng = random.Random(11)
    failing = {}
    for host in range(1, 201):
        at, failing[host] = 0.0, []
        while (at := at + rng.expovariate(2 / 365) + 1.0) < 365:
            failing[host].append(at)
    spans = [span(day, day + 1, host=host) for host, row in failing.items() for day in row]
    machines = [machine(number) for number in range(1, 201)]
    all_courses = courses(machines, sorted(spans, key=lambda each: each.first), watched(366, hosts=200))
    named = tests = 0
    for course in all_courses:
        for place, failure in enumerate(course.failures):
            if 90 * DAY < failure.first < 250 * DAY:  # there is a fleet to compare with, and time left to fail again
                tests += 1
                two = course.failures[place : place + 2]
                only = Course(machine=course.machine, failures=two, line=course.line)
                others = [each for each in all_courses if each is not course]
                found = offenders([only, *others], two[-1].first) if len(two) == 2 else []
                named += any(each.host == course.machine.name for each in found)
    assert tests > 100
    assert 0.08 < named / tests < 0.22


def test_a_finding_that_comes_back_flaps_and_one_whose_status_changes_does_not():
    row = [span(day, day + 0.1) for day in (1, 2, 3, 4)]
    steady = [span(1, 2, id_="y", status="warn"), span(2, 3, id_="y"), span(3, 4, id_="y", status="warn")]
    (found,) = flapping({1: machine()}, [*row, *steady], 10 * DAY)
    assert (found.finding, found.returns, found.last) == ("x", 3, 4 * DAY)
    assert flapping({1: machine()}, row, 100 * DAY) == []
