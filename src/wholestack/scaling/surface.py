"""The response surface of a search: loss as a function of cost and settings, along whose valley the laws run.

    ln L = g(t) + sum_k 1/2 exp(kappa_k) (z_k - m_k(a_k))^2
    m_k(a) = mu_k + s_k a + q_k h(a),   g(t) = l - s t + c h(t)

t is centred ln cost; z_k a setting, transformed, centred and divided by its spread over the trials; a_k its axis,
centred ln cost or ln tokens of the trial; h the square up to the costliest trial and its tangent beyond, so a bent
law goes on straight. The law of a setting, m_k, is thus a parameter of the surface, and priors on laws are priors on
parameters: a slope that the losses do not show stays at its prior mean instead of wandering. A general quadratic
surface of k settings has k^2/2 terms, which 80 noisy trials cannot carry, and its valley runs off where it is flat.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wholestack.scaling.fit import Evaluation, Prior
from wholestack.scaling.points import Array
from wholestack.scaling.setting import Setting

LawForm = Literal["constant", "straight", "bent"]
FORMS: tuple[LawForm, ...] = ("constant", "straight", "bent")
FROZEN_SD = 1e-5
CURVATURE_PRIOR = (float(np.log(0.04)), 1.2)
"""ln kappa: one spread off the valley costs about 2 % of the loss, within a factor of 3."""
SLOPE_SD = 0.25
"""In spreads per unit of ln axis, where the caller gave no prior."""
GIVEN_SLOPE_SD = 0.1
"""In transformed units, around a slope that the caller gave."""
BEND_SD = 0.03
"""In spreads per squared unit of ln axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Trials as arrays, and what they were centred by."""

    t: Array
    """(n,) centred ln cost."""
    axes: Array
    """(n, k) centred ln axis of every setting."""
    z: Array
    """(n, k) centred settings, in spreads."""
    t_end: float
    """t of the costliest trial."""
    axis_end: Array
    """(k,) largest axis value of the trials."""

    @property
    def k(self) -> int:
        """Number of settings."""
        return int(self.z.shape[1])

    def take(self, index: NDArray[np.intp]) -> "Design":
        """Some trials, with the ends moved to theirs."""
        t, axes = self.t[index], self.axes[index]
        return Design(t=t, axes=axes, z=self.z[index], t_end=float(t.max()), axis_end=axes.max(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """How natural values become the coordinates of the surface."""

    log_cost: float
    """Centre of ln cost."""
    log_axis: Array
    """(k,) centre of each axis."""
    centre: Array
    """(k,) centre of each transformed setting."""
    spread: Array
    """(k,) spread of each transformed setting."""


def evaluate(theta: Array, design: Design) -> Evaluation:
    """ln L (R, n) and its Jacobian (R, n, 3 + 4k); theta is (l, s, c, kappa_1.., mu_1.., s_1.., q_1..)."""
    k = design.k
    kappa, mu, slope, bend = (theta[:, None, 3 + i * k : 3 + (i + 1) * k] for i in range(4))
    h_t = tangent_square(design.t, design.t_end)
    h_a = tangent_square(design.axes, design.axis_end)
    off = design.z - (mu + slope * design.axes + bend * h_a)
    stiffness = np.exp(np.minimum(kappa, 20.0))
    bowl = 0.5 * stiffness * off**2
    value = theta[:, :1] - theta[:, 1:2] * design.t + theta[:, 2:3] * h_t + bowl.sum(axis=2)
    pull = -stiffness * off
    base = np.stack([np.ones_like(design.t), -design.t, h_t], axis=-1)
    base = np.broadcast_to(base, (len(theta), *base.shape))
    return Evaluation(value, np.concatenate([base, bowl, pull, pull * design.axes, pull * h_a], axis=2))


def tangent_square(a: Array, end: float | Array) -> Array:
    """a^2 up to ``end``, its tangent beyond."""
    return np.where(a <= end, a**2, 2 * end * a - np.square(end))


def valley(theta: Array, axis: Array, axis_end: Array) -> Array:
    """(R, k) best settings, in spreads, at axis values (k,) or (R, k)."""
    k = len(axis_end)
    mu, slope, bend = (theta[:, 3 + i * k : 3 + (i + 1) * k] for i in range(1, 4))
    return np.asarray(mu + slope * axis + bend * tangent_square(axis, axis_end))


def prior_of(settings: Sequence[Setting], scales: Scales, near: Array, lowest: float) -> Prior:
    """Priors of theta with every law free to bend.

    Args:
        settings: With their prior slopes.
        scales: Spreads turn slopes into spreads.
        near: (k,) mean of the near-front trials, in spreads: where the valley is if the losses do not say.
        lowest: Smallest ln loss.
    """
    k = len(settings)
    given = np.array([each.prior_slope is not None for each in settings])
    slope = np.array([each.prior_slope or 0.0 for each in settings]) / scales.spread
    stated = np.array([each.prior_slope_sd or GIVEN_SLOPE_SD for each in settings]) / scales.spread
    explicit = given | np.array([each.prior_slope_sd is not None for each in settings])
    return Prior(
        mean=np.concatenate([[lowest, 0.1, 0.0], np.full(k, CURVATURE_PRIOR[0]), near, slope, np.zeros(k)]),
        sd=np.concatenate(
            [
                [2.0, 0.2, 0.02],
                np.full(k, CURVATURE_PRIOR[1]),
                np.full(k, 0.7),
                np.where(explicit, stated, SLOPE_SD),
                np.full(k, BEND_SD),
            ]
        ),
    )


def restrict(prior: Prior, forms: Sequence[LawForm]) -> Prior:
    """The prior with slopes and bends frozen at their means as the forms of the settings demand."""
    k = len(forms)
    sd = prior.sd.copy()
    for index, form in enumerate(forms):
        if form == "constant":
            sd[3 + 2 * k + index] = FROZEN_SD
        if form != "bent":
            sd[3 + 3 * k + index] = FROZEN_SD
    return replace(prior, sd=sd)
