"""One round of exactness on one device: multiply, hold, fetch, judge; then the memory."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.device import Device, Handle
from wholestack.health.active.exactness import compare, shape_of
from wholestack.health.active.golden import GOLDEN, digest_of, golden_cases
from wholestack.health.active.memory import MOST_WORDS, check_memory
from wholestack.health.active.operands import (
    PATTERNS,
    PRECISIONS,
    Case,
    PrecisionName,
    left_operand,
    right_operand,
)
from wholestack.health.active.records import Round, WrongProduct

MOST_WRONG = 8
"""Wrong products that a round describes."""
SEEDS_A_ROUND = 1_000_000


def golden_failures(device: Device, *, late: Callable[[], bool]) -> list[WrongProduct]:
    """Products that differ from values computed elsewhere; those that were made until time was up."""
    wrong: list[WrongProduct] = []
    for precision in device.precisions:
        for key, case in golden_cases(precision).items():
            if late():
                return wrong
            result = _product(device, case)
            if digest_of(result) != GOLDEN[key]:
                wrong.append(replace(_judged(case, result) or WrongProduct(case=case), golden=True))
    return wrong


def shapes(side: int) -> tuple[tuple[int, int, int], ...]:
    """Rows, inner, columns: square, of odd sides, flat (many results), deep (many terms)."""
    return (
        (side, side, side),
        (side + 1, max(side // 2 - 1, 1), max(side - 3, 1)),
        (2 * side, 16, 2 * side),
        (max(side // 4, 1), 4 * side, max(side // 4, 1)),
    )


def one_pass(precisions: tuple[PrecisionName, ...], *, side: int, number: int, seed: int) -> Iterator[Case]:
    """Every pattern in every precision; within four passes also in every shape."""
    for place, (precision, pattern) in enumerate((name, pattern) for name in precisions for pattern in PATTERNS):
        rows, inner, columns = shapes(side)[(number + place) % 4]
        yield Case(pattern=pattern, precision=precision, rows=rows, inner=inner, columns=columns, seed=seed + place)


def run_round(
    device: Device, *, number: int, side: int, room: int, seed: int, late: Callable[[], bool], full: Callable[[], bool]
) -> Round:
    """One round.

    Args:
        device: What multiplies.
        number: Of the round, from 1.
        side: Of a square product.
        room: Bytes to hold at once. Passes are added until the results fill it.
        seed: Of the whole probe.
        late: Whether time is up altogether.
        full: Whether this round has had its share of the time, and adds no further pass.
    """
    first = seed + number * SEEDS_A_ROUND
    held: deque[tuple[Case, Handle]] = deque()
    held_bytes, passes, complete = 0, 0, False
    while not late() and (passes == 0 or (held_bytes < room and not full())):
        for case in one_pass(device.precisions, side=side, number=number + passes, seed=first + 100 * passes):
            if late() or (passes and (held_bytes >= room or full())):
                break
            left, right = left_operand(case), right_operand(case)
            operands = device.put(left, case.precision), device.put(right, case.precision)
            held.append((case, device.multiply(*operands, case.precision)))
            held_bytes += case.rows * case.columns * PRECISIONS[case.precision].result_bytes
        else:
            complete = True
        passes += 1
    products = len(held)
    elements = sum(case.rows * case.columns for case, _ in held)
    wrong = []
    while held:  # each is let go when it was judged
        case, product = held.popleft()
        wrong.append(_judged(case, device.fetch(product)))
        del product
    found = [each for each in wrong if each is not None]
    memory = check_memory(device, room=room, seed=number - 1, late=lambda: late() or full())
    return Round(
        device=device.part.identity,
        number=number,
        products=products,
        elements=elements,
        held_bytes=max(held_bytes, memory.tested_bytes),
        tested_bytes=memory.tested_bytes,
        complete=complete,
        patterns=tuple(sorted({each.case.pattern for each in found})),
        wrong_products=len(found),
        wrong=tuple(found[:MOST_WRONG]),
        wrong_words=memory.wrong_words,
        words=memory.wrong[:MOST_WORDS],
    )


def _product(device: Device, case: Case) -> NDArray[np.floating]:
    left, right = left_operand(case), right_operand(case)
    operands = device.put(left, case.precision), device.put(right, case.precision)
    return _floats(device.fetch(device.multiply(*operands, case.precision)))


def _judged(case: Case, fetched: NDArray[np.generic]) -> WrongProduct | None:
    found = compare(left_operand(case), right_operand(case), _floats(fetched), precision=case.precision, seed=case.seed)
    if not found.wrong_rows:
        return None
    return WrongProduct(
        case=case,
        wrong_rows=found.wrong_rows,
        elements=found.elements,
        shape=shape_of(found.elements),
        checksum_only=not found.elements,
    )


def _floats(fetched: NDArray[np.generic]) -> NDArray[np.floating]:
    if not np.issubdtype(fetched.dtype, np.floating):
        raise TypeError(f"a product came back as {fetched.dtype}")
    return fetched  # type: ignore[return-value]
