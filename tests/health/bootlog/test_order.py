"""Which line comes before which."""

from random import Random

import numpy as np
import pytest

from wholestack.health.bootlog.order import NEAR, broken, learn_precedence


def places_of(orders, units):
    places = np.full((units, len(orders)), np.nan)
    for column, order in enumerate(orders):
        for place, unit in enumerate(order):
            places[unit, column] = place
    return places


def learnt(orders, units, devices=None):
    return learn_precedence(places_of(orders, units), devices or [""] * units)


def judged(precedence, order):
    return [moved.unit for moved in broken(precedence, {unit: place for place, unit in enumerate(order)})]


def test_a_line_that_moved_is_named_and_no_other():
    precedence = learnt([range(100)] * 20, 100)
    for start, end in ((10, 80), (80, 10), (50, 55), (3, 99)):
        order = list(range(100))
        order.insert(end, order.pop(start))
        assert judged(precedence, order) == [start]


def test_two_neighbours_that_changed_places_are_one_move():
    order = [*range(50), 51, 50, *range(52, 100)]
    (moved,) = broken(learnt([range(100)] * 20, 100), {unit: place for place, unit in enumerate(order)})
    assert {moved.unit, moved.other} == {50, 51}


def side_by_side(rng, threads, length):
    """Threads whose lines mix at random, each in its own order."""
    left = [[thread * length + place for place in range(length)] for thread in range(threads)]
    order = []
    while any(left):
        order.append(rng.choice([each for each in left if each]).pop(0))
    return order


def test_what_is_luck_is_not_judged():
    rng = Random(4)
    precedence = learnt([side_by_side(rng, 6, 8) for _ in range(20)], 48)
    alarms = sum(bool(judged(precedence, side_by_side(rng, 6, 8))) for _ in range(300))
    assert alarms <= 3


def test_lines_of_one_device_are_judged_though_others_come_between():
    rng = Random(5)
    devices = [f"adapter {unit // 8}" for unit in range(48)]
    precedence = learnt([side_by_side(rng, 6, 8) for _ in range(20)], 48, devices)
    order = side_by_side(rng, 6, 8)
    one, other = order.index(18), order.index(19)
    order[one], order[other] = 19, 18
    (moved,) = broken(precedence, {unit: place for place, unit in enumerate(order)})
    assert {moved.unit, moved.other} == {18, 19}


def test_a_pair_that_was_once_the_other_way_round_is_not_learnt():
    turned = [1, 0, *range(2, 20)]
    precedence = learnt([range(20)] * 19 + [turned], 20)
    assert judged(precedence, turned) == []
    assert judged(precedence, range(20)) == []


def test_too_few_boots_tell_no_order():
    precedence = learnt([range(20)] * 4, 20)
    assert judged(precedence, list(range(20))[::-1]) == []


@pytest.mark.parametrize("units", [100, 1_000, 10_000])
def test_the_work_grows_with_the_lines_and_not_with_their_square(units):
    assert learnt([range(units)] * 5, units).looked_at <= units * (NEAR + 30)


def test_no_line_at_all_is_no_order():
    assert judged(learnt([], 0), []) == []
