"""One OpenSSH server for all tests of a process."""

import shutil

import pytest

from wholestack.testing.sshd import loopback_sshd


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    if shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None:
        pytest.skip("sshd is not installed")
    with loopback_sshd(tmp_path_factory.mktemp("sshd"), addresses=4, settings={"LogLevel": "VERBOSE"}) as server:
        yield server
