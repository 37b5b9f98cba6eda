"""``wholestack evals items``: cut items from one's own text."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.output import print_json
from wholestack.evals.items import items_bytes
from wholestack.evals.own_text import items_from_text, own_sources
from wholestack.finding import EXIT_OK
from wholestack.journal import write_atomic


def items(
    text: Path | None = None,
    /,
    *,
    out: Path,
    count: int = 400,
    seed: int = 0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Cut four-way continuation choices from text: which of these pieces really follows?

    Right and wrong pieces are real text of the same length, cut at the same kind of place. Only text that no model has
    read makes items that no model has memorised; the Python library is public.

    Parameters
    ----------
    text
        A folder of text files, or a JSON Lines file with text and licence a line. Default: the library of the Python
        that is running.
    out
        File for the items, one JSON object a line.
    count
        Items wanted.
    seed
        Seed of every draw.
    json
        Print one JSON document.
    """
    made = items_from_text(own_sources(text), count=count, seed=seed)
    write_atomic(out, items_bytes(made.items.items))
    manifest = made.items.manifest
    if json:
        print_json(
            {"items": len(manifest.item_ids), "sources": manifest.sources, "refused": made.refused, "path": str(out)}
        )
        return EXIT_OK
    shares = ", ".join(f"{count} from {source}" for source, count in manifest.sources.items())
    print(f"{out}: {len(manifest.item_ids)} items from {len(manifest.documents)} documents ({shares})")
    if made.refused:
        reasons = ", ".join(f"{count} {reason}" for reason, count in made.refused.items())
        print(f"not read: {sum(made.refused.values())} documents ({reasons})")
    return EXIT_OK
