"""``wholestack sandbox``: run untrusted Python with limits, and say what this machine grants."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from wholestack.cli.output import parse_duration, parse_size, print_json, read_bytes
from wholestack.errors import InputError, RecordError, SandboxError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins
from wholestack.sandbox import Isolation, Limits, Outcome, Sandbox
from wholestack.sandbox.signs import LimitName, cpu_seconds, signs_of_limits

Json = Annotated[bool, Parameter(negative="")]

app = App(
    name="sandbox", help="Run untrusted Python with limits.", help_format="plaintext", result_action="return_value"
)

_DEFAULTS = Limits()
_LONGEST_VALUE = 1000
_LIMITS: dict[LimitName, tuple[str, str]] = {
    "memory_bytes": ("{memory_bytes:,} bytes of address space of each process", "--memory raises it"),
    "file_bytes": ("{file_bytes:,} bytes of one file", "--disk raises it"),
    "disk_bytes": ("{disk_bytes:,} bytes of all files", "--disk raises it"),
    "processes": ("{processes} processes and threads at one time", "--processes raises it"),
    "open_files": ("{open_files} open files of each process", "it is fixed: close what is not used any more"),
    "wall_s": ("{cpu_s} s of processor time", "--wall raises it"),
}
"""For each limit what it bounds and what to do."""


@app.command
def run(
    file: Path,
    /,
    *,
    argument: str = "",
    wall: str = "10s",
    memory: str = "512MiB",
    processes: int = _DEFAULTS.processes,
    output: str = "1MiB",
    disk: str = "64MiB",
    hash_seed: int | None = None,
    without_isolation: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Run a Python program in namespaces of its own: no network, no files of this machine, no other process.

    What it prints is printed here. It can give back one JSON value by RESULT.write('{"n": 1}') (RESULT is an open text
    file), which --json shows as "value". Nothing of it is left afterwards. Exit code 0 if it ended with 0, 1 if it
    failed or was ended, 2 if it could not be run. Where it failed by an error that a limit may have caused, a note on
    standard error names the limit. What does not work inside, such as sockets to itself or SQLite files,
    is in docs/sandbox.md.

    Parameters
    ----------
    file
        The program. Only the standard library can be imported.
    argument
        A JSON value, which the program finds as ARGUMENT; without it there is no such name.
    wall
        Time, for instance 90s or 5m; then it is ended, whatever it does.
    memory
        Memory of all its processes, for instance 512MiB or 2GB.
    processes
        Processes and threads at one time.
    output
        Bytes of standard output, of standard error and of the result, each.
    disk
        Bytes of all its files; they lie in memory.
    hash_seed
        Of the inner interpreter, so that the order of sets repeats.
    without_isolation
        Where this machine grants no isolation, run it as a plain process that sees this machine's files and network.
        Only for programs that you would run yourself.
    json
        Print one JSON document.
    """
    sandbox = Sandbox.open(require_isolation=not without_isolation)
    if sandbox.isolation is Isolation.PROCESS:
        print("not isolated: a plain process with limits that sees this machine's files and network", file=sys.stderr)
    limits = Limits(
        wall_s=parse_duration(wall),
        memory_bytes=parse_size(memory),
        processes=processes,
        output_bytes=parse_size(output),
        disk_bytes=parse_size(disk),
        file_bytes=parse_size(disk),
    )
    outcome = sandbox.run(read_bytes(file), argument=_argument(argument), limits=limits, hash_seed=hash_seed)
    if json:
        print_json(_document(outcome))
    else:
        for stream, said in ((sys.stdout, outcome.stdout), (sys.stderr, outcome.stderr)):
            stream.write(said.decode(errors="backslashreplace"))
            if said and not said.endswith(b"\n") and stream.isatty():
                stream.write("\n")
            stream.flush()
        if outcome.result:
            print(f"result: {_shown(outcome)}", file=sys.stderr)
        print(f"{file}: {outcome.describe()}, isolated by {outcome.isolation}", file=sys.stderr)
    for note in _notes(outcome, limits):
        print(f"note: {note}", file=sys.stderr)
    return EXIT_OK if outcome.ok else EXIT_FINDINGS


@app.command
def probe(*, json: Json = False) -> int:
    """Say whether untrusted code can be isolated on this machine, by trying it, and if not what is missing.

    Exit code 0 if it can, 3 if not.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    try:
        isolation, reason = Sandbox.open().isolation, ""
    except SandboxError as error:
        isolation, reason = Isolation.PROCESS, str(error)
    if json:
        print_json({"isolation": isolation, "isolated": not reason, "reason": reason})
    else:
        print(reason or f"isolated by {isolation}: own namespaces, an empty file system, a system call filter")
    return EXIT_UNKNOWN if reason else EXIT_OK


def _notes(outcome: Outcome, limits: Limits) -> list[str]:
    """Of every limit that the program may have met, in one line each."""
    caps = {**to_builtins(limits), "cpu_s": cpu_seconds(limits)}
    notes = []
    for sign in signs_of_limits(outcome, limits):
        bound, remedy = _LIMITS[sign.limit]
        notes.append(f"{sign.seen}: the limit of {bound.format(**caps)} may have been met; {remedy}")
    return notes


def _shown(outcome: Outcome) -> str:
    """The value in one line, or why there is none."""
    try:
        return msgspec.json.encode(outcome.value()).decode()[:_LONGEST_VALUE]
    except RecordError as error:
        return str(error)


def _argument(text: str) -> Any:
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InputError(f"--argument is not JSON: {error}", remedy="a text is written '\"text\"'") from error


def _document(outcome: Outcome) -> dict[str, object]:
    """Texts instead of bytes, and the value or why there is none."""
    document: dict[str, object] = {
        "isolation": outcome.isolation,
        "ending": outcome.ending,
        "exit_code": outcome.exit_code,
        "stdout": outcome.stdout.decode(errors="backslashreplace"),
        "stderr": outcome.stderr.decode(errors="backslashreplace"),
        "seconds": outcome.seconds,
        "peak_bytes": outcome.peak_bytes,
    }
    if outcome.result:
        try:
            document["value"] = outcome.value()
        except RecordError as error:
            document["value_error"] = str(error)
    return document
