"""The suite that every remote passes, on each way to run a command."""

import shutil
from contextlib import nullcontext

import pytest

from wholestack.remote.host import Host
from wholestack.remote.local import LocalRemote
from wholestack.remote.simulated import SimulatedRemote
from wholestack.remote.ssh import SshRemote
from wholestack.testing.remotes import RemoteConformance, behave

HERE = Host(name="here")
TOOLS = (
    "busybox",
    "sh",
    "head",
    "base64",
    "setsid",
    "sleep",
    "cat",
    "grep",
    "id",
    "od",
    "tr",
    "fold",
    "kill",
    "printf",
)


class TestSimulated(RemoteConformance):
    def make_remote(self, folder):
        return nullcontext((SimulatedRemote(behave), HERE))


class TestLocal(RemoteConformance):
    def make_remote(self, folder):
        return nullcontext((LocalRemote(), HERE))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
class TestLocalBash(RemoteConformance):
    def make_remote(self, folder):
        return nullcontext((LocalRemote(shell=("bash", "--posix", "-s")), HERE))


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")
class TestLocalBusybox(RemoteConformance):
    """Its own head, base64, setsid and sleep come first in the path."""

    def make_remote(self, folder):
        tools = folder / "tools"
        tools.mkdir()
        for tool in TOOLS:
            (tools / tool).symlink_to(shutil.which("busybox"))
        path = f"PATH={tools}"
        return nullcontext((LocalRemote(shell=("env", path, "busybox", "sh", "-s")), HERE))


class TestSsh(RemoteConformance):
    @pytest.fixture(autouse=True)
    def _server(self, sshd):
        self.server = sshd

    def make_remote(self, folder):
        remote = SshRemote(config=[], known_hosts=[self.server.known_hosts], retries=0)
        return nullcontext((remote, self.server.hosts()[0]))
