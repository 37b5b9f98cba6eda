"""A real BMC for the tests of each file."""

import time

import pytest

from tests.health.ipmi_sim import running_bmc


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    with running_bmc(tmp_path_factory.mktemp("bmc")) as running:
        running.set_time(int(time.time()))
        yield running
