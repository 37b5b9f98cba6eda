"""The claims of a rehearsal: what is sealed before the fact, and what each rests on.

=================== ========================================================== =============================
name                statement                                                  rests on
=================== ========================================================== =============================
machine.exact       the machine multiplies right                               nothing
machine.pace        no worker takes more than twice its modelled time          machine.exact
data.sources        the data are only from the named sources, byte for byte    nothing
evaluation.fixed    the items are these, and detect this difference            nothing
ROLE.settings       the run trains with the settings that the laws give, or,   nothing
                    without laws, with a small trial's settings scaled up
ROLE.metric         the metric lands in its interval                           all of the above
ROLE.duration       the run takes about this long                              machine.pace, ROLE.settings
=================== ========================================================== =============================

ROLE is ``rung`` or ``large``. Where no prediction was possible, ROLE.metric says so and why: it predicts nothing, rests
on nothing and is settled as ``unknown``, so that a run without a prediction never counts as one whose claims all held.
"""

import json

from wholestack.claim import Claim, seal
from wholestack.data.corpus import Corpus
from wholestack.evals.items import ItemSet, metric_name
from wholestack.experiments.recipe import metric_unit
from wholestack.experiments.records import ForecastPoint, Laws, Params, Role
from wholestack.experiments.stage import MACHINE_PACE, Stage, claim_named, find_claim
from wholestack.health.active.golden import ONE_DIGEST
from wholestack.record import digest

MACHINE_EXACT = "machine.exact"
DATA = "data.sources"
EVALUATION = "evaluation.fixed"
FOUNDATIONS = (MACHINE_EXACT, MACHINE_PACE, DATA, EVALUATION)

SLOWEST_PACE = 2.0
"""A worker that takes this many times its modelled time is slow: well above the spread of a shared machine, and
below the factor of three that a throttled or crowded-out worker shows."""

TO_PREDICT = "start afresh in another folder: with a longer --budget, or when the machine has nothing else to do"
"""What to do about a run that could not predict."""


def settings_claim(role: Role) -> str:
    """Name of the claim on a run's settings."""
    return f"{role}.settings"


def metric_claim(role: Role) -> str:
    """Name of the claim on a run's metric."""
    return f"{role}.metric"


def duration_claim(role: Role) -> str:
    """Name of the claim on a run's duration."""
    return f"{role}.duration"


def seal_machine(stage: Stage, host: str) -> Claim:
    """What the preflight stands for: right products (this claim is handed back), and a steady pace from now on."""
    exact = find_claim(stage.run, MACHINE_EXACT) or seal(
        MACHINE_EXACT,
        host,
        "The machine multiplies right: a product of integers has its known checksum.",
        quantity="checksum",
        predicted=ONE_DIGEST,
        sealed_at=stage.clock.now,
    )
    pace = seal(
        MACHINE_PACE,
        host,
        f"The machine keeps its pace: no worker takes more than {SLOWEST_PACE:g} times its modelled training time.",
        quantity="training time over modelled time",
        predicted=1.0,
        interval=(0.0, SLOWEST_PACE),
        rests_on=[exact.id],
        sealed_at=stage.clock.now,
    )
    _once(stage, exact)
    _once(stage, pace)
    return exact


def seal_data(stage: Stage, corpus: Corpus) -> Claim:
    """The data are what the ledger says, and nothing else."""
    names = ", ".join(corpus.sources)
    return _once(
        stage,
        seal(
            DATA,
            "data",
            f"The training data are only from {names}, byte for byte as in the ledger.",
            quantity="hash of the corpus",
            predicted=corpus.manifest.digest,
            sealed_at=stage.clock.now,
        ),
    )


def seal_evaluation(stage: Stage, items: ItemSet, smallest_difference: float) -> Claim:
    """The evaluation stays as it is, and how small a difference it sees."""
    return _once(
        stage,
        seal(
            EVALUATION,
            "evaluation",
            f"All runs are measured by {metric_name(stage.recipe.metric, items)}: {len(items.items)} items, which"
            f" detect a paired difference of {smallest_difference:.3f} bits per byte in answer_bpb.",
            quantity="hash of the item set",
            predicted=items.digest,
            sealed_at=stage.clock.now,
        ),
    )


def seal_run(
    stage: Stage,
    role: Role,
    params: Params,
    *,
    laws: Laws,
    forecast: ForecastPoint | None,
    seconds: float,
    metric: str,
) -> None:
    """Seal what is said about rung or large run before it starts, also that its metric could not be foreseen."""
    settings = _once(
        stage,
        seal(
            settings_claim(role),
            f"{role} run",
            f"The {role} run trains with {_whence(laws)}: {shown(params)}.",
            quantity="hash of the settings",
            predicted=digest(params),
            sealed_at=stage.clock.now,
        ),
    )
    _once(
        stage,
        seal(
            duration_claim(role),
            f"{role} run",
            f"The {role} run trains for about {seconds:.0f} s.",
            quantity="seconds",
            predicted=seconds,
            interval=(0.0, SLOWEST_PACE * seconds),
            rests_on=[claim_named(stage.run, MACHINE_PACE).id, settings.id],
            sealed_at=stage.clock.now,
        ),
    )
    if forecast is None:
        seal_no_prediction(stage, role, f"none is possible, {laws.refusal}")
        return
    _seal_metric(stage, role, forecast, metric, settings)


def seal_no_prediction(stage: Stage, role: Role, why_not: str) -> None:
    """Seal that nothing is predicted for a long run's metric, unless something was."""
    _once(
        stage,
        seal(
            metric_claim(role),
            f"{role} run",
            f"There is no prediction of the {role} run's metric: {why_not or 'it was not reached'}.",
            quantity=metric_unit(stage.recipe.metric),
            predicted=None,
            sealed_at=stage.clock.now,
        ),
    )


def _seal_metric(stage: Stage, role: Role, forecast: ForecastPoint, metric: str, settings: Claim) -> None:
    unit = metric_unit(stage.recipe.metric)
    foundations = [claim_named(stage.run, name).id for name in FOUNDATIONS]
    _once(
        stage,
        seal(
            metric_claim(role),
            f"{role} run",
            f"{metric} of the {role} run ({forecast.cost_flops:.3g} FLOPs) lands between"
            f" {forecast.low:.3f} and {forecast.high:.3f} {unit}.",
            quantity=unit,
            predicted=forecast.value,
            interval=(forecast.low, forecast.high),
            level=stage.recipe.level,
            rests_on=[*foundations, settings.id],
            sealed_at=stage.clock.now,
        ),
    )


def _whence(laws: Laws) -> str:
    """Where the settings of a long run come from."""
    if laws.supported:
        return "the settings that the laws give"
    source = "best small trial's settings" if laws.pareto else "centre of the search's space"
    return f"the {source}, only size and tokens scaled (there are no laws)"


def _once(stage: Stage, claim: Claim) -> Claim:
    """Seal a claim unless a session before a kill has sealed one of that name: what was sealed first stands."""
    return find_claim(stage.run, claim.name) or stage.run.seal(claim)


def shown(params: Params) -> str:
    """Settings in one line."""
    return ", ".join(f"{name} {_number(value)}" for name, value in params.items())


def _number(value: float | int | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value).strip('"')
