"""Counters over time: a rate is judged, a fault stays until a quiet window is over, a total says nothing."""

import pytest

from wholestack.health.check import Before, Counter, Seen
from wholestack.health.growth import Levels, Memory

LEVELS = Levels(warn=10, fail=1000, window_h=1, quiet_h=24, timeless=100)
PART = "hca_port mlx5_0/1"
DAY_H = 24.0
START_H = 10_000


def seen(at_h, *, before=None, boot_id="b", uptime_h=None):
    uptime_s = None if uptime_h is None else uptime_h * 3600
    return Seen({}, now=(START_H + at_h) * 3600, boot_id=boot_id, uptime_s=uptime_s, before=before)


def growth(value, at_h, *, levels=LEVELS, **kwargs):
    return Memory(seen(at_h, **kwargs)).growth(Counter(name="x", value=value, part=PART), levels)


def looks(*values_at_h, levels=LEVELS, boot_id="b", start=None):
    """Statuses of looks that each remember the one before; the host was up 1,000 hours at the first."""
    before, statuses = start, []
    for value, at_h in values_at_h:
        found = growth(value, at_h, levels=levels, before=before, boot_id=boot_id, uptime_h=1000 + at_h)
        before = Before(at=(START_H + at_h) * 3600, boot_id=boot_id, counters=found.keep)
        statuses.append(found.status)
    return statuses


def test_a_large_total_that_does_not_grow_is_no_fault():
    assert looks((5000, 0), (5000, 1), (5000, 2)) == ["ok", "ok", "ok"]


def test_the_mean_since_boot_is_judged_at_the_first_look():
    assert growth(100, 0, uptime_h=2).status == "warn"
    assert growth(100, 0, uptime_h=100).status == "ok"
    assert growth(1500, 0, uptime_h=0.1).status == "fail"


def test_growth_is_seen_within_a_window_even_if_each_look_adds_little():
    minutes = [(index * 2, index / 6) for index in range(8)]
    assert looks(*minutes)[:5] == ["ok"] * 5
    assert looks(*minutes)[5:] == ["warn"] * 3


def test_slow_growth_stays_below_the_limit_for_ever():
    assert set(looks(*((index, index / 6) for index in range(1000)))) == {"ok"}


def test_rare_looks_are_judged_by_their_mean():
    assert looks((0, 0), (200, DAY_H)) == ["ok", "ok"]
    assert looks((0, 0), (480, DAY_H)) == ["ok", "warn"]


def test_a_fault_heals_only_after_a_quiet_window():
    at = [(0, 0.0), (50, 0.5), (50, 1.0), (50, 12.0), (50, 24.4), (50, 24.6)]
    assert looks(*at) == ["ok", "warn", "warn", "warn", "warn", "ok"]


def test_a_burst_that_goes_on_does_not_heal_meanwhile():
    at = [(0, 0.0), (2000, 0.5), (2000, 12.0), (4000, 12.5), (4000, 30.0), (4000, 37.0)]
    assert looks(*at) == ["ok", "fail", "fail", "fail", "fail", "ok"]


def test_what_failed_says_so_until_it_is_healed_even_if_it_only_warns_now():
    assert looks((0, 0), (5000, 0.5), (5020, 3)) == ["ok", "fail", "fail"]


def test_a_counter_that_was_cleared_counts_from_zero():
    found = growth(
        3, 2, before=Before(at=(START_H + 1) * 3600, boot_id="b", counters=(Counter(name="x", value=900, part=PART),))
    )
    assert (found.delta, found.status) == (3, "ok")


def test_another_boot_gives_no_base():
    kept = (Counter(name="x", value=5, part=PART),)
    before = Before(at=START_H * 3600, boot_id="old", counters=kept)
    assert growth(50, 1, before=before, uptime_h=100).since == "boot"
    assert growth(50, 1, before=before, uptime_h=100).status == "ok"


def test_a_counter_that_was_zero_at_the_last_look_need_not_have_been_kept():
    marker = (Counter(name="seen", value=1, part=PART),)
    memory = Memory(seen(1, before=Before(at=START_H * 3600, boot_id="b", counters=marker), uptime_h=1000))
    assert memory.growth(Counter(name="x", value=50, part=PART), LEVELS, marker=("seen", PART)).delta == 50
    other = Memory(seen(1, before=Before(at=START_H * 3600, boot_id="b", counters=()), uptime_h=1000))
    assert other.growth(Counter(name="x", value=50, part=PART), LEVELS, marker=("seen", PART)).since == "boot"


@pytest.mark.parametrize(("value", "status"), [(99, "ok"), (100, "warn")])
def test_without_any_time_only_a_very_large_total_is_a_warning(value, status):
    found = growth(value, 0)
    assert (found.status, found.delta) == (status, None)


def test_small_totals_of_bringing_links_up_do_not_count_at_the_first_look():
    levels = Levels(warn=1, fail=3, window_h=24, quiet_h=24, boot_least=5, boot_total=10)
    assert growth(4, 0, levels=levels, uptime_h=1).status == "ok"
    assert growth(5, 0, levels=levels, uptime_h=1).status == "fail"
    assert growth(5, 0, levels=levels, uptime_h=1000).status == "ok"
    assert growth(10, 0, levels=levels, uptime_h=1000).status == "warn"
    assert looks((4, 0), (5, 1), levels=levels) == ["ok", "warn"]
