"""Functional forms of a loss law, with Jacobians, priors and starts.

Symbols: x = ln(cost / reference), n = ln(params / reference), d = ln(tokens / reference); the references are the
geometric centres of the runs in the fit. Every form gives ln L; theta are its parameters.

=============  ==================================================  ===========================================
form           ln L                                                parameters
=============  ==================================================  ===========================================
line           l - s x                                             l, s
semilog        l + ln(1 - s x)                                     l, s
bend           l - s x + c h(x)                                    l, s, c
power          ln(E + A exp(-a x))                                 ln E, ln A, ln a
size_tokens    ln(E + A exp(-a n) + B exp(-b d))                   ln E, ln A, ln B, ln a, ln b
tied           ln(E + A exp(-a n) + B exp(-a d))                   ln E, ln A, ln B, ln a
=============  ==================================================  ===========================================

``semilog`` is a loss that falls by the same amount for every factor of cost: the middle of a long fall, where the
slope in log-log still steepens (measured on models of 1e10 to 1e13 FLOPs; see docs/log.md).

``bend`` is for tiny models, whose curve is still leaving the unigram plateau: h(x) = x^2 up to the costliest run
and its tangent from there, so a forecast follows the slope at the costly end and does not turn upward.

size_tokens is equation 10 of Hoffmann et al. 2022 (arXiv:2203.15556), in their log-sum-exp parameters. tied sets the
two exponents equal, as Gadre et al. 2024 (arXiv:2403.08540) do: few runs cannot tell them apart, and what they cannot
tell apart they trade against E. Priors are weak and stated in :func:`prior_of`; fitted exponents of public laws lie
between 0.05 and 0.5, and their asymptotes at 0.2 to 0.8 of the lowest loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from wholestack.scaling.fit import Evaluation, Law, Prior
from wholestack.scaling.points import Array, Table

ASYMPTOTE_SHARE = 0.5
"""Centre of the prior of E, as a share of the lowest loss; also the fixed asymptote unless the caller knows one."""
SMALLEST_SHARE = 0.05
"""``semilog`` stops falling at this share of the loss at the centre."""
FIXED_SD = 1e-4
"""Prior standard deviation of ln E when it is fixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The runs' centre and end, from which features are measured."""

    log_cost: float
    """Natural log of the reference cost."""
    log_params: float
    """Natural log of the reference size; 0 where sizes are not known."""
    log_tokens: float
    """Natural log of the reference tokens; 0 where tokens are not known."""
    end: float
    """x of the costliest run."""
    log_lowest: float
    """Natural log of the lowest loss."""

    def features(self, table: Table) -> "Features":
        """Features of any runs in this frame."""
        return Features(
            x=table.log_cost - self.log_cost,
            n=None if table.log_params is None else table.log_params - self.log_params,
            d=None if table.log_tokens is None else table.log_tokens - self.log_tokens,
            end=self.end,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Centred logs of runs, each (n,)."""

    x: Array
    """Cost."""
    n: Array | None
    """Parameters."""
    d: Array | None
    """Tokens."""
    end: float
    """Where ``bend`` turns into its tangent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One functional form."""

    name: str
    """Name in a Forecast."""
    parameters: tuple[str, ...]
    """Names of the entries of theta."""
    prior_weight: float
    """Share of a blend before any run is seen: every known law of language models flattens towards an asymptote."""
    needs_size: bool
    """Whether it reads params and tokens."""
    evaluate: Callable[[Array, Features], Evaluation]
    """ln L (R, n) and its Jacobian (R, n, p) at theta (R, p)."""

    def law(self, features: Features) -> Law:
        """The form as a function of theta alone."""
        return lambda theta: self.evaluate(theta, features)


def frame_of(table: Table) -> Frame:
    """Centre and end of the runs."""
    centre = float(table.log_cost.mean())
    return Frame(
        log_cost=centre,
        log_params=0.0 if table.log_params is None else float(table.log_params.mean()),
        log_tokens=0.0 if table.log_tokens is None else float(table.log_tokens.mean()),
        end=float(table.log_cost.max()) - centre,
        log_lowest=float(table.log_loss.min()),
    )


def prior_of(form: Form, frame: Frame, *, log_asymptote: float | None = None) -> Prior:
    """Weak priors, stated here and nowhere else.

    Args:
        form: Whose parameters.
        frame: Gives the scale of the loss.
        log_asymptote: Fixes ln E.
    """
    table: Mapping[str, tuple[float, float]] = {
        "l": (frame.log_lowest, 2.0),
        "s": (0.1, 0.2),
        "c": (0.0, 0.02),
        "ln E": (frame.log_lowest + np.log(ASYMPTOTE_SHARE), 0.7),
        "ln A": (frame.log_lowest + np.log(0.5), 2.0),
        "ln B": (frame.log_lowest + np.log(0.5), 2.0),
        "ln a": (np.log(0.3 if form.needs_size else 0.2), 0.8),
        "ln b": (np.log(0.3), 0.8),
    }
    prior = Prior(
        mean=np.array([table[name][0] for name in form.parameters]),
        sd=np.array([table[name][1] for name in form.parameters]),
    )
    if log_asymptote is None or "ln E" not in form.parameters:
        return prior
    where = form.parameters.index("ln E")
    mean, sd = prior.mean.copy(), prior.sd.copy()
    mean[where], sd[where] = log_asymptote, FIXED_SD
    return replace(prior, mean=mean, sd=sd)


def _line(theta: Array, features: Features) -> Evaluation:
    x = features.x
    jacobian = np.stack(np.broadcast_arrays(1.0, -x), axis=-1)
    return Evaluation(theta[:, :1] - theta[:, 1:2] * x, np.broadcast_to(jacobian, (len(theta), *jacobian.shape)))


def _semilog(theta: Array, features: Features) -> Evaluation:
    x, slope = features.x, theta[:, 1:2]
    left = 1 - slope * x
    inside = left > SMALLEST_SHARE
    kept = np.where(inside, left, SMALLEST_SHARE)
    jacobian = np.stack(np.broadcast_arrays(1.0, np.where(inside, -x / kept, 0.0)), axis=-1)
    return Evaluation(theta[:, :1] + np.log(kept), jacobian)


def _bend(theta: Array, features: Features) -> Evaluation:
    x, end = features.x, features.end
    curve = np.where(x <= end, x**2, 2 * end * x - end**2)
    jacobian = np.stack(np.broadcast_arrays(1.0, -x, curve), axis=-1)
    value = theta[:, :1] - theta[:, 1:2] * x + theta[:, 2:3] * curve
    return Evaluation(value, np.broadcast_to(jacobian, (len(theta), *jacobian.shape)))


def _power(theta: Array, features: Features) -> Evaluation:
    exponent = np.exp(theta[:, 2:3])
    shares, value = _log_sum([theta[:, :1] + 0 * features.x, theta[:, 1:2] - exponent * features.x])
    return Evaluation(value, np.stack([shares[0], shares[1], -shares[1] * exponent * features.x], axis=-1))


def _size_tokens(theta: Array, features: Features) -> Evaluation:
    n, d = _sizes(features)
    a, b = np.exp(theta[:, 3:4]), np.exp(theta[:, 4:5])
    shares, value = _log_sum([theta[:, :1] + 0 * n, theta[:, 1:2] - a * n, theta[:, 2:3] - b * d])
    return Evaluation(value, np.stack([*shares, -shares[1] * a * n, -shares[2] * b * d], axis=-1))


def _tied(theta: Array, features: Features) -> Evaluation:
    n, d = _sizes(features)
    a = np.exp(theta[:, 3:4])
    shares, value = _log_sum([theta[:, :1] + 0 * n, theta[:, 1:2] - a * n, theta[:, 2:3] - a * d])
    return Evaluation(value, np.stack([*shares, -a * (shares[1] * n + shares[2] * d)], axis=-1))


def _log_sum(terms: list[Array]) -> tuple[Array, Array]:
    """Share of each term in the sum of their exponentials, and the log of that sum."""
    # Not scipy's logsumexp: its checks cost ten times the arithmetic at these sizes.
    stacked = np.stack(np.broadcast_arrays(*terms))
    largest = stacked.max(axis=0)
    raw = np.exp(stacked - largest)
    total = raw.sum(axis=0)
    return raw / total, largest + np.log(total)


def _sizes(features: Features) -> tuple[Array, Array]:
    if features.n is None or features.d is None:
        raise ValueError("this form needs params and tokens of every run")
    return features.n, features.d


LINE = Form(name="line", prior_weight=0.15, parameters=("l", "s"), needs_size=False, evaluate=_line)
SEMILOG = Form(name="semilog", prior_weight=0.15, parameters=("l", "s"), needs_size=False, evaluate=_semilog)
BEND = Form(name="bend", prior_weight=0.25, parameters=("l", "s", "c"), needs_size=False, evaluate=_bend)
POWER = Form(name="power", prior_weight=0.6, parameters=("ln E", "ln A", "ln a"), needs_size=False, evaluate=_power)
SIZE_TOKENS = Form(
    name="size_tokens",
    prior_weight=2.0,
    parameters=("ln E", "ln A", "ln B", "ln a", "ln b"),
    needs_size=True,
    evaluate=_size_tokens,
)
TIED = Form(name="tied", prior_weight=2.0, parameters=("ln E", "ln A", "ln B", "ln a"), needs_size=True, evaluate=_tied)

COST_FORMS = (LINE, SEMILOG, POWER, BEND)
SIZE_FORMS = (TIED, SIZE_TOKENS)
