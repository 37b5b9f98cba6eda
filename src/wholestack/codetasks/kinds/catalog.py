"""The table of kinds: one line each."""

from wholestack.codetasks.kinds.branch import Branch
from wholestack.codetasks.kinds.cloze import Cloze
from wholestack.codetasks.kinds.eval import Eval
from wholestack.codetasks.kinds.kind import Kind
from wholestack.codetasks.kinds.outcome import Outcome
from wholestack.codetasks.kinds.trace import Trace
from wholestack.errors import InputError
from wholestack.plugins import installed

ENTRY_POINTS = "wholestack.codetasks_kinds"

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Eval(),
        Trace(),
        Outcome(),
        Cloze(),
        Branch(),
    )
}
"""Built in. Only these take turns where no kind is named, so a file does not depend on what else is installed."""


def find_kind(name: str) -> Kind:
    """A built-in kind, or the class of one that an installed package offers under this name.

    Raises:
        InputError: there is no such kind, or it cannot be loaded.
    """
    if name in KINDS:
        return KINDS[name]
    offered = {plugin.entry.name: plugin for plugin in installed(ENTRY_POINTS)}
    if name not in offered:
        raise InputError(f"there is no kind {name!r}", remedy=f"choose among {', '.join((*KINDS, *offered))}")
    plugin = offered[name]
    with plugin.blamed("cannot be made"):
        kind: Kind = plugin.load(type)()
    if kind.name != name:
        raise plugin.fault(f"its kind calls itself {kind.name!r}")
    return kind
