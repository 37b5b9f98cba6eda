"""The models of reviewers by name; entry points of :data:`GROUP` add those of other packages."""

from wholestack.errors import InputError
from wholestack.evals.judgments.models.dawid_skene import DawidSkene
from wholestack.evals.judgments.models.glad import Glad
from wholestack.evals.judgments.models.majority import Majority
from wholestack.evals.judgments.models.model import ReviewerModel
from wholestack.plugins import installed

GROUP = "wholestack.evals_reviewer_models"
MODELS: dict[str, ReviewerModel] = {each.name: each for each in (Majority(), DawidSkene(), Glad())}


def find_model(name: str) -> ReviewerModel:
    """The model of a name.

    Raises:
        InputError: there is none; names those that there are.
    """
    if name in MODELS:
        return MODELS[name]
    others = {plugin.entry.name: plugin for plugin in installed(GROUP)}
    if name in others:
        found: ReviewerModel = others[name].load()
        return found
    raise InputError(f"no model {name!r}", remedy=f"there are {', '.join([*MODELS, *others])}")
