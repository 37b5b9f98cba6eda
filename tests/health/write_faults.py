"""Write docs/health-faults.md from the simulator's table: ``python -m tests.health.write_faults``."""

from pathlib import Path

from wholestack.health.simulator.faults.table import FAULTS
from wholestack.health.simulator.kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "health-faults.md"
INTRODUCTION = """# Faults of simulated hosts

Written from the simulator's table by `python -m tests.health.write_faults`; a test compares. `name` is the `kind` of a
`[[fault]]` entry in a plan (`wholestack health simulate --faults PLAN`):

```toml
[[fault]]
host = "node0001"
kind = "gpu_off_bus_xid"
at = 0.0          # hours after the start
part = 3          # which of its parts; drawn if left out
severity = 0.8    # 0 just noticeable to 1 blatant; drawn if left out
idle = true       # no job runs there from then on
```

**tool**: it is a tool or the connection that fails, `unknown` is the right verdict. **rate**: certain only from the
second sweep on. Source is the document or issue that shows the format of what the fault leaves behind.

"""


def page() -> str:
    """The page."""
    kinds = ", ".join(f"`{kind.name}`" for kind in KINDS)
    lines = [f"Kinds of host: {kinds}.\n", f"{len(FAULTS)} faults.\n", "| name | part | owner | source |"]
    lines.append("|---|---|---|---|")
    for fault in FAULTS:
        marks = "".join([" **tool**" if fault.tool else "", " **rate**" if fault.by_rate else ""])
        cells = (f"`{fault.name}`{marks}", fault.part, ", ".join(fault.owners), fault.source)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return INTRODUCTION + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
