"""Names of many hosts in few characters: ``gpu[001-004,007]``, as Slurm and ClusterShell write them."""

import re
from collections.abc import Iterable


def fold(names: Iterable[str]) -> str:
    """Fold names that differ in one number.

    Args:
        names: Of hosts, in any order; each is kept once.

    Returns:
        Groups by what stands around the last number and its width, sorted; single names as they are.

    Example:
        >>> fold(["gpu001", "gpu002", "gpu004", "login"])
        'gpu[001-002,004],login'
    """
    groups: dict[tuple[str, str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        found = re.fullmatch(r"(.*?)([0-9]{1,9})([^0-9]*)", name)
        # An IP address is no numbered name: 10.0.0.1 and 10.0.0.2 fold well, but nobody types 10.0.0.[1-2].
        if found is None or re.fullmatch(r"[0-9a-fA-F.:]*[.:][0-9a-fA-F.:]*", name):
            plain.append(name)
        else:
            groups.setdefault((found[1], found[3], len(found[2])), []).append(int(found[2]))
    folded = [_group(*shape, sorted(numbers)) for shape, numbers in groups.items()]
    return ",".join(sorted([*folded, *plain]))


def _group(before: str, after: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{before}{numbers[0]:0{width}d}{after}"
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    spans = [f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}" for low, high in runs]
    return f"{before}[{','.join(spans)}]{after}"
