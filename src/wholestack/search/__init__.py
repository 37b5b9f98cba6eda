"""Cost-aware search for settings: which to try next, so that the best is known at every cost. numpy and scipy only."""

from wholestack.search.carbs import suggest
from wholestack.search.dimensions import Categorical, Linear, Log, Logit
from wholestack.search.pareto import pareto_front
from wholestack.search.space import Space
from wholestack.search.study import Study
from wholestack.search.trials import Budget, Suggestion, Trial

__all__ = [
    "Budget",
    "Categorical",
    "Linear",
    "Log",
    "Logit",
    "Space",
    "Study",
    "Suggestion",
    "Trial",
    "pareto_front",
    "suggest",
]
