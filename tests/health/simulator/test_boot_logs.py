"""Boot logs that vary as real ones do, and faults whose lines are known."""

from random import Random

import pytest

from wholestack.health.simulator.boot_logs import boot_log, plant, sometimes_of
from wholestack.health.simulator.kinds import build, kind_named

KIND = kind_named("h100-8-ndr")
SOMETIMES = sometimes_of(Random(1))


def logged(seed, *, host=0):
    machine = build(KIND, f"gpu{host:03d}", Random(host), now=0.0)
    return boot_log(machine, Random(seed), sometimes=SOMETIMES)


def test_the_same_seed_is_the_same_boot_and_another_is_not():
    assert logged(1) == logged(1)
    assert logged(1) != logged(2)


def test_threads_keep_their_order_and_mix():
    one, other = logged(1), logged(2)
    for name in {each.thread for each in one.said if each.thread.startswith("mlx5_core")}:
        lines = [[each.text for each in log.said if each.thread == name] for log in (one, other)]
        assert lines[0] == lines[1]
    assert [each.text for each in one.said] != [each.text for each in other.said]


def test_times_only_go_up():
    times = [each.at_s for each in logged(3).said]
    assert times == sorted(times)


@pytest.mark.parametrize("seed", range(40))
def test_planted_lines_are_there_or_gone_as_the_fault_says(seed):
    whole = logged(seed)
    broken = plant(whole, Random(seed), 1)
    before, after = [each.text for each in whole.said], [each.text for each in broken.said]
    (fault,) = broken.faults
    known = set(fault.lines)
    if fault.kind == "missing":
        assert known & set(before)
        assert set(before) - set(after) == known & set(before)
    elif fault.kind in ("unknown", "value"):
        assert known <= set(after)
        assert not known <= set(before)
    else:
        assert sorted(before) == sorted(after)
        assert [each for each in before if each not in known] == [each for each in after if each not in known]
        assert before != after


@pytest.mark.parametrize("style", ["seconds", "ctime", "short", "short-iso", "short-monotonic", "kern.log"])
def test_every_style_prints_every_line(style):
    log = logged(1)
    text = log.render(style, host="gpu000")
    assert len(text.splitlines()) == len(log.said)
    assert all(each.text in line for each, line in zip(log.said, text.splitlines(), strict=True))
