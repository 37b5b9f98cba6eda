"""Products whose right values were computed elsewhere, once, with Python's own integers.

They catch what no checksum on the same machine can: a machine that makes the same mistake twice. The test beside this
file computes them again without numpy.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.exactness import as_integers
from wholestack.health.active.operands import PATTERNS, Case, PrecisionName

ROWS, INNER, COLUMNS, SEED = 48, 96, 80, 2026

GOLDEN: dict[str, str] = {
    "random float64": "f04b4f463ac0c9b7",
    "ones float64": "f73cbbfcac0f46d2",
    "walking float64": "b49396e577118af5",
    "alternating float64": "daaa290d716170a6",
    "toggle float64": "b2e941a8c651a309",
    "random float32": "bc18fa70b66579ca",
    "ones float32": "d530568a0738df28",
    "walking float32": "31230f73da894657",
    "alternating float32": "162d52bc1d555b98",
    "toggle float32": "c23675ae69c2338d",
    "random tf32": "bc18fa70b66579ca",
    "ones tf32": "d530568a0738df28",
    "walking tf32": "31230f73da894657",
    "alternating tf32": "162d52bc1d555b98",
    "toggle tf32": "c23675ae69c2338d",
    "random float16": "a05519a726d35bd4",
    "ones float16": "8fb77e0ec1249892",
    "walking float16": "fc95805281e83c80",
    "alternating float16": "5a9564b39b32ae81",
    "toggle float16": "2576ab8689afdc6f",
    "random bfloat16": "6d040d8b4321a5f0",
    "ones bfloat16": "35124bd5c929defd",
    "walking bfloat16": "af409ba0f4fad3b0",
    "alternating bfloat16": "35124bd5c929defd",
    "toggle bfloat16": "4c7eea521d2218c5",
}
"""Digest of the product by pattern and precision."""

ONE_PRODUCT = Case(pattern="random", precision="float32", rows=256, inner=256, columns=256, seed=SEED)
"""For a look in passing, as before a training run."""
ONE_DIGEST = "46c2fc673cc83ad1"
"""Its digest."""


def golden_cases(precision: PrecisionName) -> dict[str, Case]:
    """By key of :data:`GOLDEN`: one product a pattern."""
    return {
        f"{pattern} {precision}": Case(
            pattern=pattern, precision=precision, rows=ROWS, inner=INNER, columns=COLUMNS, seed=SEED
        )
        for pattern in PATTERNS
    }


def digest_of(result: NDArray[np.floating]) -> str:
    """16 hexadecimal digits of a product; of one with an element that is no integer, none that a right one has."""
    whole = as_integers(result)
    if not bool((whole == result).all()):
        return "not of integers"
    return hashlib.sha256(whole.astype("<i8").tobytes()).hexdigest()[:16]
