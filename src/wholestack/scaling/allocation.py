"""The settings for a target cost, with sizes rounded and tokens solved so that the cost is met."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.scaling.setting import Setting
from wholestack.scaling.settings import SettingsLaw

Cost = Callable[[Mapping[str, float]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation(Record):
    """Settings that can be trained, and what they cost."""

    SCHEMA = "scaling.allocation/1"

    settings: Mapping[str, float]
    """Every setting of the law, inside its bounds and rounded."""
    cost_flops: float
    """What these settings cost."""
    relative_miss: float
    """cost_flops / target - 1: rounding of tokens, or a bound that was met."""
    tokens_of_law: float
    """Tokens that the law of tokens alone asked for."""
    warnings: tuple[str, ...]
    """What was cut or moved."""


def allocate(law: SettingsLaw, target_cost_flops: float, cost: Cost) -> Allocation:
    """Settings for a cost: sizes from their laws, then tokens so that the cost is met, then the laws along tokens.

    Args:
        law: Laws that include one of tokens.
        target_cost_flops: FLOPs to spend.
        cost: FLOPs of a mapping of settings; must rise with tokens.

    Raises:
        InputError: the law has no tokens.
    """
    names = [each.name for each in law.settings]
    if law.tokens_name not in names:
        raise InputError("allocation needs a law of tokens", remedy="give tokens as a setting to fit_settings")
    first = law.at(target_cost_flops)
    values = {name: each.value for name, each in first.items()}
    wanted = values[law.tokens_name]
    setting = law.settings[names.index(law.tokens_name)]
    # Twice: settings along tokens follow the solved tokens, and one of them might have a share in the cost.
    for _ in range(2):
        values[law.tokens_name] = solve_tokens(values, setting, target_cost_flops, cost)
        later = law.at(target_cost_flops, tokens=values[law.tokens_name])
        along = [each.name for each in law.settings if each.prior_axis == "tokens"]
        values |= {name: later[name].value for name in along}
    spent = cost(values)
    return Allocation(
        settings=values,
        cost_flops=spent,
        relative_miss=spent / target_cost_flops - 1,
        tokens_of_law=wanted,
        warnings=tuple(_warnings(first, values[law.tokens_name], wanted, spent / target_cost_flops - 1)),
    )


def solve_tokens(values: Mapping[str, float], tokens: Setting, target_cost_flops: float, cost: Cost) -> float:
    """Tokens, rounded and inside their bounds, at which the cost comes closest to the target in ratio."""

    def spent(log_tokens: float) -> float:
        return cost({**values, tokens.name: math.exp(log_tokens)})

    low, high = 0.0, 80.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spent(middle) < target_cost_flops else (low, middle)
    return tokens.round(tokens.clip(math.exp(0.5 * (low + high))))


def _warnings(first: Mapping[str, object], tokens: float, wanted: float, miss: float) -> list[str]:
    cut = [name for name, each in first.items() if getattr(each, "at_bound", False)]
    found = [f"{name} was cut at its bound" for name in cut]
    if abs(miss) > 0.02:
        found.append(f"the cost misses the target by {miss:+.1%}: tokens met a bound or their rounding is coarse")
    if not 2 / 3 <= tokens / wanted <= 1.5:
        found.append(f"tokens are {tokens:.3g} to meet the cost, their own law asked for {wanted:.3g}")
    return found
