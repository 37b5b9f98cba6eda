"""The short version fits 80 columns, says the verdict first, and obeys nothing that a run wrote."""

import io

import pytest
from rich.console import Console

from wholestack.experiments.records import ForecastPoint
from wholestack.report.terminal import landing_bar, summary

from .synthetic_run import END, STAGES


def _printed(folder, *, colour=False):
    console = Console(width=80, record=True, force_terminal=colour, file=io.StringIO())
    console.print(summary(folder, now=END))
    return console.export_text(styles=colour)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_fits_eighty_columns_and_begins_with_the_verdict(drawn, stage):
    text = _printed(drawn(stage).folder)
    assert max(map(len, text.splitlines())) <= 80
    assert " ".join(text.split())[2:].startswith(("The large run", "This rehearsal", "No prediction", "Stopped after"))
    assert len(text.splitlines()) < 60


def test_claims_stand_worst_first_with_word_and_sign(drawn):
    lines = [line.strip() for line in _printed(drawn("outside").folder).partition(" status ")[2].splitlines()]
    signs = ("✕ broken", "? unknown", "? expired", "✓ held")
    seen = [sign for line in lines for sign in signs if line.startswith(sign)][:8]
    assert seen == sorted(seen, key=signs.index)
    assert set(seen) == set(signs)


def test_codes_and_markup_of_a_run_are_shown_not_obeyed(drawn):
    folder = drawn("outside", hostile=True).folder
    assert "\x1b" not in _printed(folder)
    plain = " ".join(_printed(folder).split())
    assert "[31m" in plain
    assert "[bold]" in plain
    coloured = _printed(folder, colour=True)
    assert "\x1b[31m<" not in coloured


def test_the_bar_puts_interval_prediction_and_actual_in_proportion():
    forecast = ForecastPoint(cost_flops=1.0, value=2.0, low=1.0, high=3.0)
    assert landing_bar(forecast, 5.0, width=9) == "1.000 [-|-]   * 5.000"
    assert landing_bar(forecast, None, width=9) == "1.000 [---|---] 3.000"
    assert landing_bar(forecast, 2.5, width=9) == "1.000 [---|-*-] 3.000"


def test_a_bar_of_no_width_is_drawn_too():
    point = ForecastPoint(cost_flops=1.0, value=2.0, low=2.0, high=2.0)
    assert landing_bar(point, 2.0, width=5) == "2.000 *     2.000"


def test_what_to_do_without_a_prediction_and_what_broke_stand_below_the_verdict(drawn):
    assert "To get a prediction, start afresh" in " ".join(_printed(drawn("refused").folder).split())
    broken = next(line for line in _printed(drawn("outside").folder).splitlines() if "claims broken" in line)
    assert broken == "  ✕ 2 claims broken: large.metric, large.step."
