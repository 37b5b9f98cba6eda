"""The command's top: every noun is registered by name and imported only when it is called."""

import io
import os
import sys
import traceback

from cyclopts import App, CycloptsError
from cyclopts.panel import CycloptsPanel

from wholestack import __version__
from wholestack.cli.guarded import GuardedStream, guarded
from wholestack.errors import WholestackError
from wholestack.finding import EXIT_UNKNOWN, EXIT_USAGE

INTERRUPTED = 130
BROKEN_PIPE = 141
LONGEST_ERROR = 4000
"""Characters of a message."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Set before numpy loads: the numerics of this process take one thread, the cores belong to its workers."""

app = App(
    name="wholestack",
    help="Train a large model without surprises: tune small, predict large, and settle every claim by evidence.",
    version=f"wholestack {__version__}",
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # it would end without a word; main says it
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
app.command("wholestack.cli.sandbox:app", name="sandbox", help="Run untrusted Python with limits, isolated.")
app.command(
    "wholestack.cli.codetasks:app",
    name="codetasks",
    help="Questions about programs that nobody has seen, answered by running them.",
)


def _mend_streams() -> None:
    """A closed stream swallows what is written; a character that it lacks, or that steers a terminal, is escaped."""
    sys.stdout, sys.stderr = (
        stream or open(os.devnull, "w")  # noqa: SIM115  for the life of the process
        for stream in (sys.stdout, sys.stderr)
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Progress is drawn on stderr, texts of others go there through _say only.
    if not isinstance(sys.stdout, GuardedStream):
        sys.stdout = GuardedStream(sys.stdout, live=False)
    if not isinstance(sys.stderr, GuardedStream):
        sys.stderr = GuardedStream(sys.stderr, live=True)


def _say(message: str) -> None:
    """One line on stderr; of a message that quotes an input of any length, head and tail."""
    if len(message) > LONGEST_ERROR:
        half = LONGEST_ERROR // 2
        message = f"{message[:half]} [... {len(message) - 2 * half} characters ...] {message[-half:]}"
    print(f"wholestack: {guarded(message, styles=False)}", file=sys.stderr)


def _show_own_help(arguments: list[str]) -> None:
    """On its own page a command says all that its docstring does, not only its line in the list of commands."""
    if {"--help", "-h"}.isdisjoint(arguments):
        return
    _, path, _ = app.parse_commands(arguments)
    for command in path[:-1]:  # the last one prints the page
        if command.default_command is not None:
            command.help = None


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code; one clear line for an error, a traceback for our own mistakes only."""
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")
    _mend_streams()
    try:
        _show_own_help(sys.argv[1:] if arguments is None else arguments)
        code = app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        app.error_console.print(CycloptsPanel(error))
        sys.exit(EXIT_USAGE)
    except WholestackError as error:
        _say(str(error))
        sys.exit(EXIT_USAGE)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does: ended as by SIGPIPE, with no verdict.
        sys.stderr.close()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        # Everything that a command opens by name is checked where it is opened: what is left is where we write to.
        _say(f"{error.filename or 'output'}: cannot be written: {error.strerror}")
        sys.exit(EXIT_USAGE)
    except Exception:  # noqa: BLE001  Python ends with 1 then, which is a verdict: "something is wrong"
        traceback.print_exc()
        _say("a mistake of ours, no verdict; please open an issue with the lines above")
        sys.exit(EXIT_UNKNOWN)
    sys.exit(code if isinstance(code, int) else 0)
