"""What a picture holds is what it was given; a few hopeless trials do not hide the rest."""

import re

from wholestack.experiments.records import ForecastPoint
from wholestack.report import plots

from .reading import read

FORECAST = ForecastPoint(cost_flops=1e12, value=2.0, low=1.9, high=2.1)


def _front(trials, **more):
    given = dict(
        metric="m",
        trials=trials,
        random=[],
        ladder=[],
        front=[],
        law=[FORECAST],
        level=0.9,
        runs=[],
        scaled=None,
        failures=[],
    )
    return read(plots.front(plots.Front(**{**given, **more})))


def _y_ticks(page):
    numbers = [node.words() for node in page.all("text") if re.fullmatch(r"[\d.]+", node.words())]
    return [float(each) for each in numbers]


def test_a_hopeless_trial_does_not_stretch_the_axis():
    trials = [(1e10 * (1 + place), 3.0 - 0.05 * place) for place in range(12)]
    assert max(_y_ticks(_front(trials))) < 4
    assert max(_y_ticks(_front([*trials, (1e10, 80.0)]))) < 4
    assert "trial (13)" in _front([*trials, (1e10, 80.0)]).words()


def test_the_large_run_stays_on_the_picture_however_far_off_it_landed():
    trials = [(1e10 * (1 + place), 3.0 - 0.05 * place) for place in range(12)]
    run = plots.Run(label="large run", marker="*", forecast=FORECAST, actual=(1e12, 9.0))
    assert max(_y_ticks(_front(trials, runs=[run]))) >= 8


def test_failures_and_the_scaled_run_are_named_in_the_key_only_when_there_are_any():
    trials = [(1e10, 3.0), (1e11, 2.5)]
    assert "failed" not in _front(trials).words()
    words = _front(trials, failures=[1e10, 2e10], scaled=(1e12, 2.2)).words()
    assert "failed (2)" in words
    assert "only size scaled" in words


def test_the_ladder_has_a_mark_of_its_own_and_its_place_in_the_key():
    trials = [(1e10, 3.0), (1e11, 2.5)]
    assert "ladder" not in _front(trials).words()
    assert "ladder (laws' settings) (3)" in _front(trials, ladder=[(1e10, 2.9), (3e10, 2.7), (9e10, 2.5)]).words()


def test_the_landing_says_inside_outside_or_nothing():
    drawn = {
        inside: read(plots.landing(FORECAST, actual, axis="m", inside=inside, straight=None)).words()
        for inside, actual in ((True, 2.0), (False, 3.0), (None, None))
    }
    assert "actual: inside" in drawn[True]
    assert "actual: outside" in drawn[False]
    assert "actual" not in drawn[None]


def test_a_run_that_exploded_does_not_hide_the_other_curves():
    lines = [plots.Line(name=str(n), points=[(n, 5.0), (n + 1, 2.0)], role="") for n in range(40)]
    lines.append(plots.Line(name="bad", points=[(1, 5e6), (2, 9e9)], role=""))
    assert max(_y_ticks(read(plots.time_axis(lines, [], unit="bits per byte")))) < 100
