"""A fabric judged by its plan, and what the work order says of it, as tests and the benchmark read it."""

import io
from collections import Counter
from pathlib import Path

from tests.health.cabling.fabrics import Plug, Style, Tree
from wholestack.health.cabling.files import judge_files
from wholestack.health.cabling.judging import Judged

EXPECTED = {
    "swapped": {"cabling.swapped"},
    "ring": {"cabling.ring"},
    "wrong_port": {"cabling.wrong_port"},
    "wrong_rail": {"cabling.wrong_rail"},
    "displaced": {"cabling.displaced"},
    "missing": {"cabling.missing", "cabling.down"},
    "unplanned": {"cabling.unplanned"},
}


def judged(made: Tree, folder: Path, *styles: Style) -> Judged:
    """By the plan of a fabric, in the words of one tool or several."""
    plan = folder / "plan.csv"
    plan.write_text(made.plan())
    for number, style in enumerate(styles):
        (folder / f"seen{number}.txt").write_text(made.text(style))
    seen = [str(folder / f"seen{number}.txt") for number in range(len(styles))]
    return judge_files(plan, seen, stdin=io.BytesIO(), now=0.0)


def mend(made: Tree, found: Judged) -> None:
    """Do what the work order says: first unplug, then plug."""
    names = made.names()
    rows = [(row, names[row.device, row.port]) for row in found.work_order]
    others = {row: made.unplug(at) for row, at in rows if row.action in ("move", "take out")}
    for row, at in rows:
        stays = names[tuple(row.other_end.split())] if row.other_end else None  # type: ignore[index]
        if row.action == "move":
            assert others[row] == stays
            made.plug_in(names[row.to_device, row.to_port], others[row])
        elif row.action in ("plug in", "look"):
            assert stays is not None
            made.plug_in(at, stays)


def wrong_plugs(made: Tree, found: Judged) -> Counter[tuple[str, frozenset[Plug]]]:
    """Cause and ports of every story, from the rows of the work order alone."""
    names = made.names()
    stories: dict[int, tuple[str, set[Plug]]] = {}
    for row in found.work_order:
        plugs = stories.setdefault(row.story, (row.why, set()))[1]
        plugs.add(names[row.device, row.port])
        plugs.update({names[row.to_device, row.to_port]} if row.to_device else ())
        plugs.update({names[tuple(row.other_end.split())]} if row.other_end else ())  # type: ignore[index]
    return Counter((why, frozenset(plugs)) for why, plugs in stories.values())
