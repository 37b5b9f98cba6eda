"""What the reasons mean for which a draft gives no question, for a reader who has not seen how drafts are made."""

from wholestack.codetasks.drafting import DIFFERS, NO_DRAFT
from wholestack.codetasks.generating import REPEATED
from wholestack.codetasks.kinds.backward import FEW
from wholestack.codetasks.kinds.forward import NO_RESULT, SAME, UNLIKE
from wholestack.codetasks.kinds.trace import NOTHING

_MEANINGS = {
    NO_DRAFT: "the program that was drawn has no place that can be misread in two ways",
    SAME: "of the right reading and three wrong ones two give the same, so the choices would not be four",
    NO_RESULT: "read in one of the four ways the program ends in an error or shows nothing to ask about",
    UNLIKE: "the four answers are of different types or lengths, so their form could give the right one away",
    NOTHING: "at no line a variable, or how often it runs, comes out in four ways",
    FEW: "the function gives the same for most arguments that were tried, so the choices would not be four",
    REPEATED: "drawn again; a file holds every question once",
    DIFFERS: "run again in another process the program did something else; please report it, with the seed",
}


def meaning(reason: str) -> str:
    """A reason in plain words; empty for those of kinds that were installed beside ours.

    Args:
        reason: As :attr:`~wholestack.codetasks.generating.Tally.refused` has it.
    """
    return _MEANINGS.get(reason, "")
