"""The answer of one tool: what it prints and how it ends."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Output of one command."""

    stdout: str = ""
    stderr: str = ""
    exit_status: int = 0
    seconds: float = 0.02


def not_found(tool: str) -> Answer:
    """What ``dash`` says of a command that is not installed."""
    return Answer(stderr=f"sh: 1: {tool}: not found\n", exit_status=127, seconds=0.005)


def no_folder(path: str) -> Answer:
    """What ``cd PATH && ...`` says where the folder is not there."""
    return Answer(stderr=f"sh: 1: cd: can't cd to {path}\n", exit_status=2, seconds=0.005)


def grep(values: list[tuple[str, str]]) -> Answer:
    """What ``grep -s . FILE...`` prints of short files: those with an empty or no value give no line."""
    text = "".join(f"{path}:{value}\n" for path, value in values if value != "")
    return Answer(stdout=text, exit_status=0 if text else 2)
