"""The command's top: every noun is registered by name and imported only when it is called."""

import os
import sys

from cyclopts import App, CycloptsError
from cyclopts.panel import CycloptsPanel

from wholestack import __version__
from wholestack.errors import WholestackError
from wholestack.finding import EXIT_USAGE

INTERRUPTED = 130
BROKEN_PIPE = 141
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Set before numpy loads: the numerics of this process take one thread, the cores belong to its workers."""

app = App(
    name="wholestack",
    help="Train a large model without surprises: tune small, predict large, and settle every claim by evidence.",
    version=f"wholestack {__version__}",
    help_format="plaintext",
    result_action="return_value",
)
app.command(
    "wholestack.cli.rehearse:rehearse",
    name="rehearse",
    help="Tune small, predict large, train it, show where it landed.",
)
app.command("wholestack.cli.claims:ready", name="ready", help="Go or no-go: every claim of a run that is not held.")
app.command("wholestack.cli.claims:settle", name="settle", help="Settle the claims that a run's evidence allows.")
app.command("wholestack.cli.claims:why", name="why", help="Which claim broke, what it rests on, what is ruled out.")
app.command("wholestack.cli.report:report", name="report", help="Draw report.html of a run directory again.")
app.command("wholestack.cli.data:app", name="data", help="Provenance of a run's data: statement, where, verify.")
app.command(
    "wholestack.cli.health:app", name="health", help="Which machines may train, which part is broken, who owns it."
)
app.command(
    "wholestack.cli.evals:app",
    name="evals",
    help="Score models on items, compare them, and say what the comparison can show.",
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code; one clear line for an error, never a traceback."""
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")
    try:
        code = app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        app.error_console.print(CycloptsPanel(error))
        sys.exit(EXIT_USAGE)
    except WholestackError as error:
        print(f"wholestack: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except KeyboardInterrupt:
        print("wholestack: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does: ended as by SIGPIPE, with no verdict.
        sys.stderr.close()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        # Everything that a command opens by name is checked where it is opened: what is left is where we write to.
        print(f"wholestack: {error.filename or 'output'}: cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    sys.exit(code if isinstance(code, int) else 0)
