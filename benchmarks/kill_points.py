"""Kill a rehearsal with SIGKILL at random moments, resume it, and count what was lost, doubled or left running.

    python benchmarks/kill_points.py --points 20 --seed 0

Each point is a small rehearsal of its own (the recipe of the tests), killed once at a moment drawn over its whole
length, then resumed to its end. A JSON line a point, then the summary. Checked: no process is left after 10 s; what was
acknowledged before the kill is still there, byte for byte; every suggestion has exactly one trial; no claim is sealed
twice; every phase ended once. A point killed after its end counts as ``finished`` and says nothing.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.experiments.tiny import tiny_recipe

from wholestack.experiments import rehearsal
from wholestack.experiments.records import PHASES, SUGGESTIONS, TRIALS, PhaseRecord, SuggestionRecord, TrialRecord
from wholestack.processes import marked_processes
from wholestack.runs import CLAIMS, FINDINGS, RunReader

OWNER = """
import sys
from pathlib import Path
from wholestack.experiments import rehearsal
with rehearsal.resume(Path(sys.argv[1])) as run:
    rehearsal.rehearse(run)
"""
JOURNALS = (TRIALS, SUGGESTIONS, CLAIMS, FINDINGS, PHASES)


def kill_point(folder: Path, seed: int, after_s: float) -> dict[str, object]:
    """One rehearsal, killed and resumed."""
    run = folder / "run"
    rehearsal.create(run, tiny_recipe(folder / "text"), budget_s=900, seed=seed, at=time.time()).close()
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(run)])
    finished = True
    try:
        owner.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        finished = False
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    acknowledged = {name: whole_lines(run / name) for name in JOURNALS}
    phase = next((each.phase for each in reversed(RunReader(run).journal(PHASES, PhaseRecord))), "before the first")
    gone_s = seconds_until_gone(rehearsal.token_of(RunReader(run)))
    with rehearsal.resume(run) as resumed:
        rehearsal.rehearse(resumed)
    return {
        "seed": seed,
        "after_s": round(after_s, 2),
        "phase": phase,
        "finished": finished,
        "processes_gone_after_s": gone_s,
        "lost": [name for name, before in acknowledged.items() if not (run / name).read_bytes().startswith(before)],
        "doubled": doubled(RunReader(run)),
    }


def whole_lines(path: Path) -> bytes:
    """What was acknowledged: everything up to the last newline."""
    return path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""


def seconds_until_gone(token: str, limit_s: float = 10.0) -> float | None:
    """How long the processes of a run outlived it; ``None`` if longer than the limit."""
    started = time.monotonic()
    while time.monotonic() - started < limit_s:
        if not marked_processes(token):
            return round(time.monotonic() - started, 2)
        time.sleep(0.05)
    return None


def doubled(run: RunReader) -> list[str]:
    """Names that stand more than once, or only on one side."""
    suggested = [each.name for each in run.journal(SUGGESTIONS, SuggestionRecord)]
    trained = [each.name for each in run.journal(TRIALS, TrialRecord)]
    claims = [claim.name for claim in run.claims()]
    ended = [str(each.phase) for each in run.journal(PHASES, PhaseRecord) if each.event == "ended"]
    twice = [name for names in (suggested, trained, claims, ended) for name in set(names) if names.count(name) > 1]
    return sorted(twice) + sorted(set(suggested) ^ set(trained))


def main() -> None:
    """Parse arguments, kill, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest-s", type=float, default=40.0, help="about how long a whole rehearsal takes here")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    rows = []
    for point in range(given.points):
        with tempfile.TemporaryDirectory(prefix="kill-") as name:
            rows.append(kill_point(Path(name), point, rng.uniform(0.2, given.longest_s)))
        print(json.dumps(rows[-1]), flush=True)
    killed = [row for row in rows if not row["finished"]]
    bad = [row for row in killed if row["lost"] or row["doubled"] or row["processes_gone_after_s"] is None]
    phases = sorted({str(row["phase"]) for row in killed})
    print(json.dumps({"points": len(rows), "killed": len(killed), "bad": len(bad), "phases": phases}), flush=True)


if __name__ == "__main__":
    main()
