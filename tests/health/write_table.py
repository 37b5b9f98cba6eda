"""Write docs/health-checks.md from the catalogue: ``python -m tests.health.write_table``."""

from pathlib import Path

from wholestack.health import catalog
from wholestack.health.describing import describe_check
from wholestack.health.sources import SOURCES

PAGE = Path(__file__).parents[2] / "docs" / "health-checks.md"
INTRODUCTION = """# Health checks

Written from the catalogue by `python -m tests.health.write_table`; a test compares. `wholestack health checks --json`
has the commands as well, `wholestack health explain NAME` the causes, limits and remedies of one check.

Severity is the worst that a check can say by itself. **root**: a command of it needs root; without it the verdict is
`unknown: needs root`. **saved**: it only judges saved outputs (`wholestack health judge`), a sweep does not put it.

Counters are judged by their growth since the sweep that `--since` names, without one by the mean since boot. Growth
beyond a limit stays a warning or a fail until a quiet window has passed without any: 24 hours, for drives, whose
counters outlive a reboot, a week. A host that does not answer, a tool that hangs, a counter that is cleared and a
reboot heal nothing: what was known stays known with its own time, for at most 30 days. Damage that is a state is a
fail as long as it is there: uncorrectable errors of memory or GPU until the reboot or reset that repairs them, a
pending remap, a pending sector, spare blocks used up.

"""


def table() -> str:
    """The page."""
    rows = [describe_check(check) for check in catalog.CHECKS]
    passive = sum(row.passive for row in rows)
    lines = [f"{len(rows)} checks, {passive} of them put by a sweep.\n", "| check | about | parts | severity | reads |"]
    lines.append("|---|---|---|---|---|")
    for row in rows:
        marks = "".join([" **root**" if row.needs_root else "", "" if row.passive else " **saved**"])
        cells = (f"`{row.name}`", row.about + marks, ", ".join(row.parts), row.severity, ", ".join(row.formats))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return INTRODUCTION + "\n".join([*lines, "", *_other_causes()]) + "\n"


def _other_causes() -> list[str]:
    """What is said by no check of the catalogue."""
    lines = ["## What no check of a sweep says", "", "The same commands explain these causes, by code or by finding."]
    for source in SOURCES:
        lines += ["", f"`{source.command}`: {source.about}.", "", "| cause | says | status | owner | remedy |"]
        lines.append("|---|---|---|---|---|")
        for cause in source.causes:
            cells = (f"`{cause.code}`", cause.says, cause.status, cause.owner, cause.remedy)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
