"""Pace: a slow device is named, a sound one as rarely as is stated, whatever the distributions."""

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.health.active.speed import Level, Pace, Reference, SequentialTest, bound_of, bounds_for, key_of, learn

KEY = key_of("card", "product.per_s")


def reference(levels, serials=None):
    kept = tuple(Level(log_rate=level, serial=serials[place] if serials else "") for place, level in enumerate(levels))
    return Reference(levels={KEY: kept})


def run(bound, share, samples):
    test = SequentialTest(bound, share)
    for number, sample in enumerate(samples, start=1):
        if test.take(sample) != "open":
            return test.verdict, number
    return test.verdict, len(samples)


def test_a_dozen_samples_below_the_bound_are_enough_and_eleven_are_not():
    assert run(0.0, 5e-4, [-1.0] * 11) == ("open", 11)
    assert run(0.0, 5e-4, [-1.0] * 20) == ("slow", 12)
    assert run(0.0, 5e-4, [1.0] * 20) == ("sound", 12)


def test_one_hiccup_decides_nothing():
    assert run(0.0, 5e-4, [1.0] * 5 + [-99.0] + [1.0] * 20)[0] == "sound"
    assert run(0.0, 5e-4, [-1.0] * 5 + [0.5] + [-1.0] * 14)[0] == "slow"


@pytest.mark.parametrize("draw", ["cauchy", "skewed", "constant"])
def test_a_device_at_the_bound_is_called_slow_no_more_often_than_stated(draw):
    rng = np.random.default_rng(7)
    share, devices, slow = 0.02, 4000, 0
    for _ in range(devices):
        if draw == "cauchy":
            samples = rng.standard_cauchy(60)
        elif draw == "skewed":
            samples = np.log(2) - rng.exponential(size=60)
        else:
            samples = np.zeros(60)
        slow += run(0.0, share, samples)[0] == "slow"
    # Five standard deviations of a count at the stated rate.
    assert slow <= devices * share + 5 * (devices * share) ** 0.5


@pytest.mark.parametrize("draw", ["normal", "skewed", "bimodal"])
def test_with_many_devices_the_bound_keeps_its_share_whatever_the_distribution(draw):
    rng = np.random.default_rng(3)

    def levels(count):
        if draw == "normal":
            return rng.normal(0, 0.01, count)
        if draw == "skewed":
            return -rng.gamma(1.0, 0.02, count)
        return np.where(rng.random(count) < 0.3, -0.05, 0.0) + rng.normal(0, 0.002, count)

    share, outside, tried = 0.01, 0, 0
    for _ in range(200):
        bound = bound_of(levels(500), share=share, against="kind")
        fresh = levels(100)
        outside += int((fresh < bound.log_rate).sum())
        tried += len(fresh)
    assert outside <= tried * share + 5 * (tried * share) ** 0.5
    assert outside >= tried * share / 3


def test_with_few_devices_the_bound_is_never_above_the_lowest_of_them():
    bound = bound_of([0.0, 0.001, -0.2, 0.0, 0.001], share=5e-4, against="kind")
    assert bound.log_rate <= -0.2
    assert bound_of([0.0, 0.0], share=5e-4, against="kind") is None


def test_what_a_device_was_before_counts_where_its_kind_is_wide():
    rng = np.random.default_rng(1)
    others, own = rng.normal(0, 0.04, 300), 0.03 + rng.normal(0, 0.001, 6)
    known = reference([*others, *own], [f"S{place}" for place in range(300)] + ["mine"] * 6)
    bound, _ = bounds_for("card", "product.per_s", "mine", reference=known)
    assert "its own 6 earlier probes" in bound.against
    assert 0.01 < bound.log_rate < 0.03
    assert bounds_for("card", "product.per_s", "new", reference=known)[0].log_rate < -0.08


def test_repeated_probes_of_one_device_do_not_make_a_kind():
    known = reference([0.0, 0.001, -0.001, 0.0, 0.001], ["one"] * 5)
    assert bounds_for("card", "product.per_s", "other", reference=known)[0] is None


def test_siblings_are_asked_only_where_nothing_was_learnt():
    level = [0.0, 0.001, -0.001, 0.0005, 0.0, 0.001, 0.0]
    found, _ = bounds_for("card", "product.per_s", "x", reference=None, siblings=level)
    assert found.against == "the 7 others on this host"
    found, _ = bounds_for("card", "product.per_s", "x", reference=reference(level), siblings=level)
    assert found.against == "7 devices of its kind"
    assert bounds_for("card", "copy.per_s", "x", reference=reference(level))[0] is None


def test_learning_leaves_out_what_stands_out_on_the_slow_side_only():
    rng = np.random.default_rng(5)
    rates = np.exp(rng.normal(0, 0.005, 64))
    rates[10], rates[11] = 0.8, 1.3
    paces = [("card", f"S{place}", Pace(measure="product.per_s", rates=(rate,))) for place, rate in enumerate(rates)]
    learnt, left_out = learn(paces)
    assert left_out == [f"{KEY}: S10 stands out"]
    assert {each.serial for each in learnt.levels[KEY]} == {f"S{place}" for place in range(64)} - {"S10"}
    again, _ = learn([("card", "S64", Pace(measure="product.per_s", rates=(1.0,)))], learnt)
    assert len(again.levels[KEY]) == 64
    with pytest.raises(InputError, match="no paces"):
        learn([])
