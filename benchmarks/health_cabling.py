"""Cabling: 12,000 cables with planted faults: all named, no false end, how long.

A rail-optimised fat tree with three levels (8 rails, 510 hosts, leaves, spines, cores), planted with swapped pairs,
rings of three to six, plugs in a wrong port or rail, plugs in another's place, missing and unplanned cables. It is
written as the tools write (`tests/health/cabling/fabrics.py` knows nothing of what detects), and judged from the files.
A fault is found if one Finding has its cause and its ports, and no other Finding touches them; an end is false if it is
in the work order and in no fault. Then the work order is carried out: the fabric must be the plan.

Usage: ``python benchmarks/health_cabling.py [--faults N] [--seeds S ...]``; about a minute a seed on one core.
"""

import argparse
import io
import random
import resource
import tempfile
import time
from pathlib import Path

from tests.health.cabling.fabrics import STYLES, spoil, tree
from tests.health.cabling.judged import EXPECTED, mend, wrong_plugs

from wholestack.health.cabling.files import judge_files


def main() -> None:
    """Print a line a seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seeds", type=int, nargs="+", default=[7101, 7102, 7103, 7104])
    given = parser.parse_args()
    started = time.perf_counter()
    sum(range(10**7))
    print(f"sum(range(10**7)): {time.perf_counter() - started:.2f} s")
    for place, seed in enumerate(given.seeds):
        print(one(seed, given.faults, place))


def one(seed: int, faults: int, place: int) -> str:
    """Judge one fabric; the tools take turns."""
    rng = random.Random(seed)
    made = tree(rng, units=17, hosts=30, uplinks=32)
    spoil(made, rng, faults)
    style = STYLES[place % len(STYLES)]
    with tempfile.TemporaryDirectory() as folder:
        plan, seen = Path(folder) / "plan.csv", Path(folder) / "seen.txt"
        plan.write_text(made.plan())
        seen.write_text(made.text(style))
        megabytes = seen.stat().st_size / 1e6
        started, busy = time.perf_counter(), time.process_time()
        found = judge_files(plan, [str(seen)], stdin=io.BytesIO(), now=0.0)
        seconds, cpu = time.perf_counter() - started, time.process_time() - busy
    stories = wrong_plugs(made, found)
    named = 0
    for fault in made.faults:
        near = [why for why, plugs in stories if plugs & fault.plugs]
        named += len(near) == 1 and near[0] in EXPECTED[fault.kind]
    touched = frozenset().union(*(fault.touched for fault in made.faults))
    false = sum(len(plugs - touched) for _, plugs in stories)
    mend(made, found)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"seed {seed}, {style}, {megabytes:.1f} MB: {found.planned:,} cables, "
        f"{named} of {len(made.faults)} faults named, "
        f"{len(found.findings)} findings, {false} false ends, {found.moves} lines of work for "
        f"{sum(fault.moves for fault in made.faults)} planted, mended: {made.actual == made.planned}; {seconds:.2f} s "
        f"({cpu:.2f} s of CPU time), {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
