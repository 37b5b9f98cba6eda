"""``wholestack health cabling``: the wiring plan against what the fabric and LLDP see."""

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.output import code_for, print_json

Flag = Annotated[bool, Parameter(negative="")]


def cabling(
    plan: Path,
    /,
    *,
    seen: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    out: Path | None = None,
    json: Flag = False,
    all: Flag = False,
) -> int:
    """Compare the wiring plan with what ibnetdiscover, iblinkinfo or LLDP see, and write a work order by rack.

    Swapped, shifted, misplaced, wrong-rail, missing, dead and unplanned cables; each fault is one finding with the
    fewest moves that mend it. Devices in each other's places are one finding too. What no output shows is unknown,
    never missing. Names that do not match are said.

    An ibnetdiscover file in which one end of a link is not there, and LLDP without any neighbour, are taken for cut
    and not used. Keyvalue of LLDP that ends after a whole interface cannot be told from a whole one: json can.

    The plan is CSV with a header, TOML ([[cable]]) or JSON; a cable has a, a_port, b, b_port and may have a_rack,
    a_unit, b_rack, b_unit, rail, label, length_m, lot, part_number, width (4x) and speed (NDR).

    A device is named as it is seen: a host as in "gpu001 mlx5_0" (port mlx5_0), a switch as in "MF0;leaf1:MQM9700/U1"
    (leaf1), or by GUID. A port of a switch is its number, or CAGE/PORT, 1/CAGE/PORT or IB1/CAGE/PORT of a cage with
    two ports. Names are taken without their domain where that is one device only.

    Exit codes: 0 all as planned; 1 something is not; 3 something could not be told; 2 usage.

    Parameters
    ----------
    plan
        File of the plan.
    seen
        Saved outputs and folders of them: ibnetdiscover (also -p), iblinkinfo (also --line), lldpctl -f json or
        keyvalue in a file named by its host (gpu001.json, or gpu001/lldp.json). Default: standard input.
    out
        File for the work order (CSV).
    json
        Print one JSON document.
    all
        Show every finding and every line of the work order.
    """
    from wholestack.health.cabling.files import judge_files
    from wholestack.health.cabling.showing import cabling_document, describe_cabling
    from wholestack.health.cabling.work_order import to_csv
    from wholestack.journal import write_atomic

    judged = judge_files(plan, seen or ("-",), stdin=sys.stdin.buffer, now=time.time())
    if out is not None:
        write_atomic(out, to_csv(judged.work_order))
    if json:
        print_json(cabling_document(judged, everything=all))
    else:
        print(describe_cabling(judged, everything=all, out=str(out) if out else ""))
    return code_for(judged.status, judged.findings)
