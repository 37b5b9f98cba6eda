"""Launch: run a job to its end on an existing engine; what became of it is a value, never an exception.

``LocalEngine`` is in :mod:`wholestack.launch.local`, ``SimulatedEngine`` in :mod:`wholestack.launch.simulated`.
"""

from wholestack.launch.job import Engine, Job, JobState, Limits, Outcome

__all__ = ["Engine", "Job", "JobState", "Limits", "Outcome"]
