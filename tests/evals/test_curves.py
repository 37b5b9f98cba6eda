"""The same checkpoints under several metrics."""

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.evals.curves import judge_curves
from wholestack.evals.jumps import detectable_jump
from wholestack.evals.measured import Numbers

X = np.geomspace(1e7, 1e10, 12)
P = 0.5 + 0.48 * np.linspace(0, 1, 12)
WAYS = {"exact_match": "higher", "answer_bpb": "lower", "choice_nll": "lower"}


def checkpoints(tokens=10, seed=1, exact=None):
    """Exact match of k-token answers, p^k, beside two losses of the same p (Schaeffer et al. 2023)."""
    rng = np.random.default_rng(seed)
    share = rng.binomial(400, P**tokens) / 400 if exact is None else exact
    bits, nats = -np.log2(P) / 3 + 0.006 * rng.normal(size=12), 1.4 - P + 0.02 * rng.normal(size=12)
    return [
        Numbers(
            model=f"step-{place}",
            values={"tokens": x, "exact_match": share[place], "answer_bpb": bits[place], "choice_nll": nats[place]},
            errors={
                "exact_match": float(np.sqrt(share[place] * (1 - share[place]) / 400)),
                "answer_bpb": 0.006,
                "choice_nll": 0.02,
            },
            where=f"table:{place}",
        )
        for place, x in enumerate(X)
    ]


def _shapes(report):
    return {each.metric: each.shape for each in report.curves}


def test_the_report_names_the_metric_that_makes_the_jump():
    report = judge_curves(checkpoints(), WAYS, x="tokens")
    assert _shapes(report) == {"exact_match": "jumps", "answer_bpb": "smooth", "choice_nll": "smooth"}
    assert report.status == "warn"
    assert any("no jump under answer_bpb and choice_nll: it is in exact_match" in each for each in report.conclusions)
    said = [
        each for each in report.conclusions if each.startswith("a jump like that of exact_match would have been seen")
    ]
    assert ["answer_bpb" in said[0], "choice_nll" in said[1]] == [True, True]
    powers = [each.detectable_jump for each in report.curves]
    assert powers[0] is None
    assert all(0 < each.share < 1 and each.like == "exact_match" for each in powers[1:])


def test_without_a_jump_nothing_is_said_of_power_and_errors_that_hide_everything_are_named():
    (quiet,) = judge_curves(checkpoints(), {"answer_bpb": "lower"}, x="tokens").curves
    assert quiet.detectable_jump is None
    early = np.interp(np.arange(12), [0, 1, 11], [0.0, 0.9, 1.0])  # steep at the beginning is no acceleration
    power = detectable_jump(X, -np.log2(P), np.full(12, 0.006), early, like="e", axis="logarithmic",
                            rng=np.random.default_rng(0))  # fmt: skip
    assert (power.size, power.share) == (None, None)


def test_when_every_metric_jumps_the_metric_is_not_blamed():
    step = np.where(X > 5e8, 0.9, 0.1)
    rows = [
        Numbers(model="", values={"tokens": x, "exact_match": a, "answer_bpb": 2 - a}, errors=e, where=f"t:{x}")
        for x, a, e in zip(X, step, [{"exact_match": 0.02, "answer_bpb": 0.02}] * 12, strict=True)
    ]
    report = judge_curves(rows, {"exact_match": "higher", "answer_bpb": "lower"}, x="tokens")
    assert set(_shapes(report).values()) == {"jumps"}
    assert any("the metric alone does not explain the jump" in each for each in report.conclusions)


def test_the_result_does_not_depend_on_the_order_of_the_rows_and_repeats_by_seed():
    rows = checkpoints()
    assert judge_curves(rows, WAYS, x="tokens") == judge_curves(rows[::-1], WAYS, x="tokens")


def test_a_share_of_zero_or_one_does_not_outweigh_every_other_point():
    exact = np.array([0, 0, 0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.9, 1, 1])
    (curve,) = judge_curves(checkpoints(exact=exact), {"exact_match": "higher"}, x="tokens").curves
    smallest = min(point.error for point in curve.points)
    # One right and one wrong answer added to 400: the error of 1 in 402.
    assert smallest == pytest.approx(np.sqrt(1 / 402 * 401 / 402 / 402), rel=0.02)


@pytest.mark.parametrize("top", [0.05, 0.6])
def test_accuracy_that_grows_steadily_from_nothing_is_rarely_called_a_jump(top):
    """Errors estimated from the very shares, zeros among them: the calibration holds where it matters."""
    rng = np.random.default_rng(2)
    called = 0
    for seed in range(30):
        share = rng.binomial(400, top * np.linspace(0, 1, 12)) / 400
        report = judge_curves(checkpoints(exact=share), {"exact_match": "higher"}, x="tokens", seed=seed, alpha=0.05)
        called += _shapes(report)["exact_match"] in {"jumps", "accelerates"}
    assert called <= 5


def test_a_metric_that_some_checkpoints_lack_is_judged_on_the_others():
    rows = checkpoints()
    rows[0] = Numbers(model="", values={"tokens": X[0], "answer_bpb": 1.0}, errors={"answer_bpb": 0.1}, where="t")
    curves = {each.metric: each for each in judge_curves(rows, WAYS, x="tokens").curves}
    assert len(curves["exact_match"].points) == 11
    assert len(curves["answer_bpb"].points) == 12


def test_few_checkpoints_are_unknown():
    report = judge_curves(checkpoints()[:4], WAYS, x="tokens")
    assert report.status == "unknown"
    assert "too few to tell" in report.conclusions[0]


def test_step_zero_has_no_place_on_a_logarithmic_axis():
    rows = checkpoints()
    rows[0] = Numbers(model="", values=rows[0].values | {"tokens": 0.0}, errors=rows[0].errors, where="t")
    report = judge_curves(rows, WAYS, x="tokens")
    assert [test.axis for test in report.curves[0].jumps] == ["linear"]


def test_two_checkpoints_at_one_place_and_a_missing_x_are_errors():
    rows = checkpoints()
    with pytest.raises(InputError, match="stands at tokens = 1e"):
        judge_curves([*rows, rows[0]], WAYS, x="tokens")
    with pytest.raises(InputError, match="known are: tokens, exact_match"):
        judge_curves(rows, WAYS, x="flops")
