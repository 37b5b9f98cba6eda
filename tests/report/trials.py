"""Trial records for tests that only care about cost, metrics and errors."""

from wholestack.experiments.records import TrialRecord


def trial(name="t", *, cost=1e10, at=0.0, role="search", outcome="ok", params=None, errors=None, **metrics):
    return TrialRecord(
        name=name,
        role=role,
        number=0,
        params=params or {},
        seed=0,
        outcome=outcome,
        cost_flops=cost,
        parameters=1,
        tokens=1,
        seconds=1.0,
        train_seconds=1.0,
        cpu_seconds=1.0,
        peak_bytes=1,
        threads=1,
        metrics=metrics,
        errors=errors or {},
        started_at=at,
        ended_at=at + 1,
    )
