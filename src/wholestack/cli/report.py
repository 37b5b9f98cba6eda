"""``wholestack report DIR``: draw the page of a run directory again, and say the short version."""

import json as json_text
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wholestack.errors import InputError
from wholestack.experiments.records import KIND
from wholestack.finding import EXIT_OK
from wholestack.runs import RunReader


def report(folder: Path, *, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Draw report.html of a run directory again, at any stage of the run.

    Args:
        folder: The run directory.
        json: Print one JSON document, {"report": PATH}, instead of the short version.
    """
    kind = RunReader(folder).manifest.kind
    if kind != KIND:
        raise InputError(f"{folder}: is a {kind!r} run, this page is of a rehearsal", remedy="see its own commands")
    path = draw(folder)
    if json:
        print(json_text.dumps({"report": str(path)}))
    else:
        from wholestack.report.terminal import summary

        Console().print(summary(folder))
    return EXIT_OK


def draw(folder: Path) -> Path:
    """Write the page.

    Raises:
        InputError: matplotlib, an extra of the installation, is missing.
    """
    try:
        from wholestack.report.rehearsal import write_report
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise InputError("the report needs matplotlib", remedy="pip install 'wholestack[report]'") from error
    return write_report(folder)
