"""Where the time went, and commands that do it again."""

import shlex
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.experiments.records import PHASE_ORDER, PhaseRecord
from wholestack.report.ledger import everything, failures_and_findings, time_by_phase
from wholestack.report.style import COLOURS

from .reading import read


def _record(phase, event, used):
    return PhaseRecord(phase=phase, event=event, at=used, used_s=used)


def test_time_goes_to_the_phase_that_was_under_way_also_when_it_was_interrupted():
    records = (
        _record("data", "began", 1.0),
        _record("data", "ended", 4.0),
        _record("search", "began", 5.0),
        _record("search", "began", 25.0),
        _record("search", "ended", 65.0),
    )
    assert time_by_phase(records) == {"data": 3.0, "between": 1.0, "search": 60.0}


@given(st.lists(st.tuples(st.sampled_from(["data", "search"]), st.sampled_from(["began", "ended"]), st.floats(0, 50))))
def test_no_time_is_lost_or_doubled(steps):
    used, records = 0.0, []
    for phase, event, seconds in steps:
        used += seconds
        records.append(_record(phase, event, used))
    total = sum(after.used_s - before.used_s for before, after in pairwise(records))
    assert abs(sum(time_by_phase(tuple(records)).values()) - total) < 1e-6


def _commands(evidence):
    return [each.words() for each in read(everything(evidence)).all("pre")]


def test_the_command_to_do_it_again_has_recipe_seed_budget_and_workers(drawn):
    assert _commands(drawn("inside").evidence)[0] == (
        "wholestack rehearse laptop --out again --seed 7 --budget 8m --workers 2"
    )


def test_the_command_to_do_it_again_has_the_items_that_were_given(drawn):
    evidence = drawn("inside").evidence
    recipe = {**evidence.recipe, "items": "/data/my items.jsonl", "metric": "choice_nll_raw"}
    manifest = replace(evidence.manifest, config={**evidence.manifest.config, "recipe": recipe})
    command = _commands(replace(evidence, manifest=manifest))[0]
    assert command.endswith("--items '/data/my items.jsonl' --metric choice_nll_raw")


@pytest.mark.parametrize("given", ["recipes/mine.py", "my recipes/mine.py", "/" + "deep/" * 300 + "mine.py"])
def test_a_recipe_that_came_from_a_file_is_named_by_the_path_that_was_given(drawn, given):
    evidence = drawn("inside").evidence
    manifest = replace(evidence.manifest, config={**evidence.manifest.config, "recipe_given": given})
    command = _commands(replace(evidence, manifest=manifest))[0]
    assert shlex.split(command)[:4] == ["wholestack", "rehearse", given, "--out"]


def test_only_an_unfinished_run_is_told_how_to_go_on(drawn):
    assert "wholestack rehearse --resume interrupted" in _commands(drawn("interrupted").evidence)
    assert not any("--resume" in each for each in _commands(drawn("inside").evidence))


def test_a_hostile_recipe_name_stays_one_word_of_the_command(drawn):
    evidence = drawn("inside").evidence
    manifest = replace(evidence.manifest, config={"recipe": {"name": "x; rm -rf ~"}})
    command = _commands(replace(evidence, manifest=manifest))[0]
    assert shlex.split(command)[2] == "x; rm -rf ~"


def test_phases_show_what_was_planned_and_used_and_which_were_not_reached(drawn):
    words = read(everything(drawn("interrupted").evidence)).words()
    assert "search began, did not end 230.0 s 88.0 s" in words
    assert "large not reached 150.0 s –" in words


def test_the_phases_stand_in_order_and_each_has_a_colour_of_its_own(drawn):
    page = read(everything(drawn("preflight").evidence))
    table = next(each for each in page.all("table") if each.words().startswith("Phases"))
    assert tuple(row.all("td")[0].words() for row in table.all("tr")[1:]) == PHASE_ORDER
    assert [name for name in COLOURS if name.startswith("phase-")] == [
        f"phase-{place}" for place in range(1, len(PHASE_ORDER) + 1)
    ]


def test_findings_stand_worst_first_and_skipped_checks_are_no_verdicts(drawn):
    page = read(failures_and_findings(drawn("outside").evidence))
    table = next(each for each in page.all("table") if "findings, worst first" in each.words())
    statuses = [row.all("td")[0].words().split()[1] for row in table.all("tr")[1:]]
    assert statuses == sorted(statuses, key=["fail", "unknown", "warn", "ok"].index)
    assert set(statuses) == {"fail", "unknown", "warn", "ok"}
    assert "machine.device not expected the recipe trains on the CPU" in page.words()
