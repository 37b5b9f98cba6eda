"""False alarms and power of the outlier tests over a fleet, on healthy data that are anything but normal.

Three designs are put to the same sweeps of ten measures each:

* ``tail``: what sweeps use (`wholestack.health.outliers`): the fleet's own tail, shape and scale integrated;
* ``t``: median and MAD of the upper half, against a Student t with 3 degrees of freedom, Bonferroni over values;
* ``3.5``: median and MAD against the customary 3.5 (Iglewicz and Hoaglin 1993).

Usage: ``python benchmarks/fleet_outliers.py [--sweeps N] [--seed S]``; about four minutes of one core by default.
"""

import argparse
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from wholestack.health.fleet import ALPHA
from wholestack.health.outliers import standing_out

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], FloatArray]
MEASURES = 10
"""Of a sweep: each gets a tenth of the rate."""
SIZES = (64, 512, 2048)
SHIFTS_MAD = (6, 8, 10, 15, 20, 30, 50, 100, 300)
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(60, 2, n),
    "whole degrees": lambda rng, n: np.round(rng.normal(60, 2, n)),
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "skewed (gamma 2)": lambda rng, n: rng.gamma(2.0, 1.0, n),
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "Laplace": lambda rng, n: rng.laplace(0.0, 1.0, n),
    "lognormal, sigma 0.5": lambda rng, n: rng.lognormal(0.0, 0.5, n),
    "lognormal, sigma 1": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "Student t, 4": lambda rng, n: rng.standard_t(4, n),
    "Student t, 3": lambda rng, n: rng.standard_t(3, n),
    "Cauchy (beyond the promise)": lambda rng, n: rng.standard_cauchy(n),
    "counts, mean 0.1": lambda rng, n: rng.poisson(0.1, n).astype(float),
    "counts, mean 3": lambda rng, n: rng.poisson(3.0, n).astype(float),
    "idle and busy, half": lambda rng, n: _humps(rng, n, 0.5),
    "idle and busy, a tenth": lambda rng, n: _humps(rng, n, 0.1),
    "drift along the row": lambda rng, n: np.linspace(40, 80, n) + rng.normal(0, 2, n),
    "all equal": lambda rng, n: np.full(n, 350.0),
}


def _humps(rng: np.random.Generator, n: int, busy: float) -> FloatArray:
    return np.where(rng.random(n) < busy, rng.normal(650, 20, n), rng.normal(90, 5, n))


def tail(values: FloatArray, alpha: float) -> bool:
    """Whether anything is named."""
    return standing_out(values, alpha=alpha) is not None


def reference_t(values: FloatArray, alpha: float) -> bool:
    """Median and MAD, against a Student t with 3 degrees of freedom."""
    return _z(values) > stats.t.isf(alpha / len(values), 3) / stats.t.isf(0.25, 3)


def customary(values: FloatArray, alpha: float) -> bool:
    """Median and MAD, against 3.5 standard deviations of a normal."""
    return 0.6745 * _z(values) > 3.5


def _z(values: FloatArray) -> float:
    """Distance of the highest value from the median in MADs of the upper half."""
    median = float(np.median(values))
    spread = float(np.median(values[values >= median] - median))
    return (float(values.max()) - median) / spread if spread > 0 else (math.inf if values.max() > median else 0.0)


DESIGNS: dict[str, Callable[[FloatArray, float], bool]] = {"tail": tail, "t": reference_t, "3.5": customary}


def false_alarms(draw: Draw, size: int, sweeps: int, rng: np.random.Generator) -> dict[str, int]:
    """Sweeps of healthy fleets in which anything is named, by design."""
    alarms = dict.fromkeys(DESIGNS, 0)
    for _ in range(sweeps):
        measures = [draw(rng, size) for _ in range(MEASURES)]
        for name, design in DESIGNS.items():
            alarms[name] += any(design(values, ALPHA / MEASURES) for values in measures)
    return alarms


def smallest_shift(draw: Draw, size: int, design: str, rng: np.random.Generator) -> str:
    """Shift of one value in MADs that is named in at least 80 of 100 fleets."""
    for shift in SHIFTS_MAD:
        if np.mean([DESIGNS[design](_shifted(draw(rng, size), shift), ALPHA / MEASURES) for _ in range(100)]) >= 0.8:
            return str(shift)
    return f"> {SHIFTS_MAD[-1]}"


def _shifted(values: FloatArray, shift: float) -> FloatArray:
    median = np.median(values)
    values[0] = median + shift * np.median(np.abs(values - median))
    return values


def _row(cells: Sequence[object]) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261129)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    started = time.process_time()
    print(f"Sweeps of 1,000 that name a healthy value ({asked.sweeps} sweeps of {MEASURES} measures, bound {ALPHA}):\n")
    _row(["healthy values", *(f"{name}, {size}" for name in DESIGNS for size in SIZES)])
    _row(["---"] * (1 + len(DESIGNS) * len(SIZES)))
    for shape, draw in SHAPES.items():
        by_size = [false_alarms(draw, size, asked.sweeps, rng) for size in SIZES]
        _row([shape, *(f"{1000 * each[name] / asked.sweeps:.1f}" for name in DESIGNS for each in by_size)])
    print("\nShift in MADs of one value that is named in 80 of 100 fleets:\n")
    _row(["healthy values", *(f"{name}, {size}" for name in ("tail", "t") for size in SIZES)])
    _row(["---"] * (1 + 2 * len(SIZES)))
    for shape in ("normal", "whole degrees", "exponential", "lognormal, sigma 0.5", "Student t, 3"):
        _row([shape, *(smallest_shift(SHAPES[shape], size, name, rng) for name in ("tail", "t") for size in SIZES)])
    print(f"\n{time.process_time() - started:.0f} s of CPU")


if __name__ == "__main__":
    main()
