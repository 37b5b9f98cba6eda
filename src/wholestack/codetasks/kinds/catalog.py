"""The table of kinds: one line each."""

from wholestack.codetasks.kinds.branch import Branch
from wholestack.codetasks.kinds.cloze import Cloze
from wholestack.codetasks.kinds.eval import Eval
from wholestack.codetasks.kinds.kind import Kind
from wholestack.codetasks.kinds.outcome import Outcome
from wholestack.codetasks.kinds.trace import Trace

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
