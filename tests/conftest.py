"""Settings shared by all tests: hypothesis without deadlines and without chance, one torch thread a process."""

import os

# Before torch or numpy load: two test processes on two cores must not start four threads.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import secrets
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from wholestack.processes import end_leftovers

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("suite")


@pytest.fixture
def token() -> Iterator[str]:
    """Marks the processes of a test; what still carries it at the end is ended."""
    token = f"test-{secrets.token_hex(6)}"
    yield token
    end_leftovers(token)
