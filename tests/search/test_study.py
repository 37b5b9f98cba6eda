import json
import subprocess
import sys
from pathlib import Path

import pytest

from wholestack.errors import InputError, RecordError
from wholestack.search import Budget, Categorical, Linear, Log, Space, Study
from wholestack.search.study import StudyEvent


def make_space():
    return Space(
        [
            Log("n", centre=1e3, low=10, high=1e6, integer=True),
            Linear("x", centre=0.0, low=-2.0, high=2.0),
            Categorical("c", choices=("a", "b"), centre="a"),
        ]
    )


def answer(study, asked):
    p = asked.params
    if p["x"] > 1.0:
        return study.tell(asked, failed="diverged", cost=0.5)
    loss = 1.0 + 20.0 / p["n"] ** 0.4 + 0.3 * (p["x"] - 0.5) ** 2 + 0.1 * (p["c"] == "a")
    return study.tell(asked, output=loss, cost=p["n"] / 100.0)


def two_workers(study, steps):
    """Always two pending; the older one is told."""
    asked = []
    for _ in range(steps):
        while len(study.pending) < 2:
            asked.append(study.ask())
        answer(study, study.pending[0])
    return asked


def test_a_study_gone_on_with_from_its_journal_asks_bit_by_bit_what_an_unbroken_one_asks(tmp_path):
    with Study.open(tmp_path / "whole.jsonl", make_space(), seed=3) as whole:
        two_workers(whole, 22)
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    for cut in (1, 4, 9, 20, 37):
        path = tmp_path / f"cut{cut}.jsonl"
        path.write_bytes(b"".join(lines[:cut]) + lines[cut][:11])  # killed in the middle of a line
        with Study.open(path, make_space(), seed=3) as again:
            expected = next(json.loads(line)["asked"] for line in lines[cut:] if json.loads(line)["asked"])
            while again._count < expected["number"]:
                again.ask()
            while len(again.pending) >= 2:
                answer(again, again.pending[0])
            assert again.ask().params == expected["params"]


@pytest.mark.heavy
def test_another_process_asks_the_same_bit_by_bit(tmp_path):
    path = tmp_path / "study.jsonl"
    with Study.open(path, make_space(), seed=3) as study:
        two_workers(study, 12)
        answer(study, study.pending[0])
        code = (
            "import sys, pathlib; sys.path.insert(0, sys.argv[2]); import test_study as t;"
            "from wholestack.search import Study;"
            "from wholestack.journal import read_journal; from wholestack.search.study import StudyEvent;"
            "e = read_journal(pathlib.Path(sys.argv[1]), StudyEvent);"
            "print(sorted(Study(t.make_space(), seed=3, events=e).ask().params.items()))"
        )
        folder = str(Path(__file__).parent)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), folder], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(sorted(study.ask().params.items()))


def test_events_are_recorded_before_they_count():
    def refuse(event):
        if event.told is not None:
            raise OSError("disk full")

    study = Study(make_space(), record=refuse)
    asked = study.ask()
    with pytest.raises(OSError, match="disk full"):
        study.tell(asked, output=1.0, cost=1.0)
    assert study.trials == ()
    assert study.pending == (asked,)


def test_suggestions_depend_on_seed_and_number_alone():
    first, second, other = (Study(make_space(), seed=s) for s in (1, 1, 2))
    runs = [[study.ask().params for _ in range(3)] for study in (first, second, other)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 2}, "seed 1, not 2"),
        ({"direction": "maximise"}, "direction 'minimise', not 'maximise'"),
        ({"space": Space([Log("n", centre=1e3, low=10, high=1e5, integer=True)])}, "high=1000000.0.*not with.*high=1"),
    ],
)
def test_a_journal_of_another_study_is_refused(tmp_path, change, says):
    Study.open(tmp_path / "s.jsonl", make_space(), seed=1).close()
    given = {"space": make_space(), "seed": 1} | change
    with pytest.raises(InputError, match=says):
        Study.open(tmp_path / "s.jsonl", given.pop("space"), **given)


def test_damage_inside_a_journal_is_named(tmp_path):
    path = tmp_path / "s.jsonl"
    with Study.open(path, make_space()) as study:
        answer(study, study.ask())
    path.write_bytes(path.read_bytes().replace(b'"told"', b'"tolt"'))
    with pytest.raises(RecordError, match=r"s.jsonl:1.*tolt"):
        Study.open(path, make_space())


def test_what_is_not_pending_cannot_be_told():
    study = Study(make_space())
    asked = study.ask()
    study.tell(asked, output=1.0, cost=1.0)
    with pytest.raises(InputError, match="suggestion 0 is not pending"):
        study.tell(asked, output=1.0, cost=1.0)
    with pytest.raises(InputError, match="as failed 'a' and as abandoned 'b'"):
        study.tell(study.ask(), failed="a", abandoned="b")


def test_nan_is_refused_and_the_suggestion_stays_pending():
    study = Study(make_space())
    asked = study.ask()
    with pytest.raises(InputError, match="tell it as failed"):
        study.tell(asked, output=float("nan"), cost=1.0)
    assert study.pending == (asked,)


def test_an_abandoned_trial_leaves_the_pending_ones_and_teaches_nothing():
    study = Study(make_space())
    study.tell(study.ask(), abandoned="worker_killed", cost=3.0)
    assert study.pending == ()
    assert study.spent == 3.0
    assert study.ask().number == 1
    assert study.front() == ()


def test_trials_from_elsewhere_are_learnt_from_and_move_the_search():
    study = Study(make_space(), budget=Budget())
    for k in range(8):
        study.add({"n": 50 + 10 * k, "x": -1.5, "c": "b"}, output=9.0 - k, cost=1.0 + k)
    assert study.ask().origin == "model"
    with pytest.raises(InputError, match="unknown key 'y'"):
        study.add({"y": 1.0}, output=1.0, cost=1.0)


def test_best_respects_a_cost_and_says_when_there_is_none():
    study = Study(make_space(), direction="maximise")
    with pytest.raises(InputError, match="no successful trial"):
        study.best()
    for k in range(1, 6):
        study.add({"n": 10 * k, "x": 0.0, "c": "b"}, output=float(k), cost=float(k))
    assert study.best().output == 5.0
    assert study.best(max_cost=3.5).output == 3.0
    assert [point.output for point in study.front(min_cost_fraction=0.0)] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_every_event_holds_exactly_one_thing(tmp_path):
    seen = []
    study = Study(make_space(), record=seen.append)
    answer(study, study.ask())
    assert [sum(x is not None for x in (e.began, e.asked, e.told)) for e in seen] == [1, 1, 1]
    assert all(isinstance(event, StudyEvent) for event in seen)


def test_importing_the_package_brings_no_torch_and_draws_no_plots():
    heavy = ("torch", "matplotlib", "sklearn", "optuna")
    code = f"import sys, wholestack.search; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
