import math

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.record import from_json, to_json
from wholestack.search import Budget, Suggestion, Trial
from wholestack.search.trials import spent


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "ok", "output": math.nan, "cost": 1.0},
        {"status": "ok", "output": 1.0, "cost": math.inf},
        {"status": "ok", "output": 1.0},
        {"status": "ok", "output": "low", "cost": 1.0},
        {"status": "ok", "cost": 1.0},
        {"status": "ok", "output": 1.0, "cost": 0.0},
        {"status": "failed"},
        {"status": "failed", "kind": "diverged", "output": 1.0},
        {"status": "abandoned"},
        {"status": "failed", "kind": "k", "cost": -1.0},
    ],
)
def test_an_outcome_is_ok_or_failed_or_abandoned_and_never_nan(wrong):
    with pytest.raises(InputError, match="trial 7"):
        Trial(number=7, params={}, **wrong)


@pytest.mark.parametrize("key", ["max_cost", "total_cost", "max_trials"])
def test_a_limit_that_is_not_positive_is_named(key):
    with pytest.raises(InputError, match=f"{key} must be positive and finite: 0"):
        Budget(**{key: 0})


def test_records_come_back_from_json_with_their_types():
    params = {"lr": 1.0, "width": 64, "act": "relu"}
    asked = Suggestion(number=1, params=params, origin="model", note="n", target_cost=0.1 + 0.2)
    back = from_json(Suggestion, to_json(asked))
    assert back == asked
    assert [type(value) for value in back.params.values()] == [float, int, str]


def test_numpy_scalars_become_plain_numbers():
    trial = Trial(
        number=0, params={"a": np.float64(1.5), "b": np.int64(3)}, status="ok", output=np.float32(2), cost=np.int64(4)
    )
    assert [type(x) for x in (*trial.params.values(), trial.output, trial.cost)] == [float, int, float, float]
    assert from_json(Trial, to_json(trial)) == trial


def test_failed_and_abandoned_trials_count_in_what_was_spent():
    lost = [Trial(number=k, params={}, status=s, kind="k", cost=2.0) for k, s in enumerate(["failed", "abandoned"])]
    assert spent([*lost, Trial(number=3, params={}, status="ok", output=1.0, cost=3.0)]) == 7.0
