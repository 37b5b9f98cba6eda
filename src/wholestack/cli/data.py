"""``wholestack data``: where a run's text came from."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from wholestack.cli.output import findings_document, print_json
from wholestack.data.corpus import Corpus
from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, exit_code
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]

app = App(name="data", help="Provenance of a run's data.", help_format="plaintext", result_action="return_value")


def _corpus(folder: Path) -> Corpus:
    """The corpus in a folder, which may also be a run directory that holds one."""
    return Corpus.open(folder / "data" if (folder / "data" / "manifest.json").exists() else folder)


@app.command
def statement(folder: Path, /, *, json: Json = False) -> int:
    """Print the data statement: sources, licences, sizes, and what was refused and why.

    Parameters
    ----------
    folder
        A corpus, or a run directory.
    json
        Print one JSON document.
    """
    stated = _corpus(folder).statement()
    if json:
        print_json(to_builtins(stated))
    else:
        print(stated.text())
    return EXIT_OK


@app.command
def where(
    folder: Path, source: str, token: int, /, *, split: Literal["train", "held_out"] = "train", json: Json = False
) -> int:
    """Say which document a token came from.

    Parameters
    ----------
    folder
        A corpus, or a run directory.
    source
        Name of the source.
    token
        Place of the token in the stream of that source, from 0.
    split
        train or held_out.
    json
        Print one JSON document.
    """
    entry = _corpus(folder).where(source, split, token)
    if json:
        print_json(to_builtins(entry))
    else:
        print(f"{entry.source}: {entry.path} ({entry.licence}), {entry.size_bytes:,} bytes, SHA-256 {entry.sha256}")
    return EXIT_OK


@app.command
def only(folder: Path, /, *sources: str, json: Json = False) -> int:
    """Check that every document is from one of these sources; exit 1 and name the documents that are not.

    Parameters
    ----------
    folder
        A corpus, or a run directory.
    sources
        Names of the sources that are allowed.
    json
        Print one JSON document.
    """
    if not sources:
        raise InputError("no source is named", remedy="name the sources that are allowed; `data statement` lists all")
    others = _corpus(folder).not_from(sources)
    if json:
        print_json({"only": not others, "others": [to_builtins(entry) for entry in others]})
    elif not others:
        print(f"every document is from {', '.join(sources)}")
    else:
        print(f"{len(others)} documents are from other sources:")
        for entry in others[:20]:
            print(f"  {entry.source}: {entry.path}")
        if len(others) > 20:
            print(f"  and {len(others) - 20} more (--json lists all)")
    return EXIT_FINDINGS if others else EXIT_OK


@app.command
def verify(folder: Path, /, *, json: Json = False) -> int:
    """Hash every shard and file again and name what changed.

    Parameters
    ----------
    folder
        A corpus, or a run directory.
    json
        Print one JSON document.
    """
    found = _corpus(folder).verify()
    if json:
        print_json(findings_document(found))
    else:
        for each in found:
            print(f"{each.status:<8} {each.subject}: {'; '.join(each.evidence)}")
    return exit_code(found)
