"""Untrusted Python with limits: each program in namespaces of its own, proved to be gone afterwards."""

from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Ending, Isolation, Outcome
from wholestack.sandbox.sandbox import Sandbox

__all__ = ["Ending", "Isolation", "Limits", "Outcome", "Sandbox"]
