"""``wholestack health bmc``, and a sweep and a fix that go by the BMC: the command, a real BMC, no host."""

import json
import time

import pytest

from tests.health.ipmi_sim import PASSWORD, SUPPLY_1, running_bmc
from tests.health.looking import moment
from wholestack.cli import health_operations
from wholestack.cli.main import main
from wholestack.health.operations.cluster import Node
from wholestack.health.operations.simulated import MemoryCluster
from wholestack.remote.batch import Output
from wholestack.remote.simulated import SimulatedRemote


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    with running_bmc(tmp_path_factory.mktemp("bmc")) as running:
        running.set_time(int(time.time()))
        yield running


@pytest.fixture
def command(controller, tmp_path, monkeypatch, capsys):
    """Calls the command where one host has a BMC; its way to hosts is in memory, and the host answers once it is on."""
    controller.set_power(on=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.toml").write_text(
        f'[kinds.h100]\nhosts = ["gpu[007-008]"]\n[[hosts]]\nname = "gpu007"\n'
        f'bmc = "ipmi://127.0.0.1:{controller.port}?cipher=3"\n[[hosts]]\nname = "gpu008"\nbmc = "ipmi://127.0.0.1:1"\n'
    )
    monkeypatch.setenv("WHOLESTACK_BMC_USER", "ADMIN")
    monkeypatch.setenv("WHOLESTACK_BMC_PASSWORD", PASSWORD)
    monkeypatch.delenv("WHOLESTACK_BMC_CREDENTIALS", raising=False)

    def answer(host, asked):
        on = (controller.folder / "power").read_text().strip() == "1"
        return Output(name=asked.name, stdout=moment().encode()) if on else "unreachable"

    monkeypatch.setattr("wholestack.remote.ssh.SshRemote", lambda **_: SimulatedRemote(answer))

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["health", *arguments])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def test_what_the_bmc_of_a_host_says(command, controller):
    controller.shell("ipmitool sel clear")
    controller.add((0x08, SUPPLY_1, 0x6F, 0xA1))
    code, out, _ = command("bmc", "hosts.toml", "gpu007")
    assert code == 1
    assert out.startswith(f"gpu007: power off (ipmi://127.0.0.1:{controller.port})\n")
    for words in (
        "the host is powered off",
        "power supply failed on",
        "Failure detected | Asserted",
        "vendor: replace",
    ):
        assert words in " ".join(out.split())
    code, out, _ = command("bmc", "hosts.toml", "gpu007", "--json")
    found = json.loads(out)["hosts"]["gpu007"]
    assert (code, found["power"], found["status"]) == (1, "off", "fail")
    assert "the host is powered off" in [each["cause"] for each in found["findings"]]


def test_a_wrong_password_is_code_3_and_nowhere_to_be_seen(command, monkeypatch):
    monkeypatch.setenv("WHOLESTACK_BMC_PASSWORD", "wr0ng-word")
    code, out, err = command("bmc", "hosts.toml", "gpu007", "--json")
    assert (code, json.loads(out)["hosts"]["gpu007"]["power"]) == (3, None)
    assert "user or password is refused" in out
    assert "wr0ng" not in out + err


def test_what_is_missing_is_said_before_anything_is_asked(command, monkeypatch, tmp_path):
    assert command("bmc")[0] == 2
    code, _, err = command("bmc", "gpu007")
    assert (code, "no file of hosts is named" in err) == (2, True)
    code, _, err = command("bmc", "hosts.toml", "gpu009")
    assert (code, "gpu009 is no host of hosts.toml" in err) == (2, True)
    (tmp_path / "bare.toml").write_text('[kinds.a]\nhosts = ["gpu001"]\n')
    code, _, err = command("bmc", "bare.toml")
    assert (code, "gpu001 has no bmc" in err) == (2, True)
    (tmp_path / "odd.toml").write_text('[defaults]\nbmc = "ipmi://root:word@b"\n[kinds.a]\nhosts = ["gpu001"]\n')
    code, _, err = command("sweep", "odd.toml", "--out", "odd")
    assert (code, "holds a password" in err, "word@" in err) == (2, True, False)
    monkeypatch.delenv("WHOLESTACK_BMC_PASSWORD")
    code, _, err = command("bmc", "hosts.toml")
    assert (code, "do not go together" in err) == (2, True)
    monkeypatch.delenv("WHOLESTACK_BMC_USER")
    code, _, err = command("bmc", "hosts.toml")
    assert (code, "no user and password" in err) == (2, True)
    path = tmp_path / "bmc.toml"
    path.write_text(f'user = "ADMIN"\npassword = "{PASSWORD}"\n')
    path.chmod(0o600)
    monkeypatch.setenv("WHOLESTACK_BMC_CREDENTIALS", str(path))
    assert command("bmc", "hosts.toml", "gpu007")[0] == 1


def test_from_a_sweep_to_a_host_that_is_up_again(command, controller, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    inventory = (
        (tmp_path / "hosts.toml")
        .read_text()
        .replace('"gpu[007-008]"', '"gpu007"')
        .partition('[[hosts]]\nname = "gpu008')
    )
    (tmp_path / "hosts.toml").write_text(inventory[0])
    before = len(controller.switched())
    code, out, _ = command("sweep", "hosts.toml", "--out", "s", "--only", "bmc", "--json")
    (found,) = [each for each in json.loads(out)["hosts"]["gpu007"]["findings"] if each["check"] == "telemetry.host"]
    assert (code, found["cause"]) == (1, "the host is powered off")
    assert command("history", "add", "s")[0] == 0
    code, out, _ = command("explain", found["id"], "--in", "s")
    assert (code, "wholestack health fix" in out) == (0, True)

    code, out, _ = command("fix", found["id"], "--in", "s")
    assert code == 0
    assert f"ipmitool -I lanplus -H 127.0.0.1 -p {controller.port} -U ADMIN -E" in out
    assert "nothing was done" in out
    assert controller.switched()[before:] == []

    cluster = MemoryCluster(["gpu007"])
    cluster.by_name["gpu007"] = Node(name="gpu007", is_usable=False, is_drained=False, jobs=("job 9 of bob",))
    monkeypatch.setattr(health_operations.Scheduler, "open", lambda _: cluster)
    code, out, _ = command("fix", found["id"], "--in", "s", "--apply", "--slurm")
    assert (code, "job 9 of bob runs there" in out) == (1, True)
    code, out, _ = command("fix", found["id"], "--in", "s", "--apply", "--json")
    assert (code, json.loads(out)["outcome"]) == (0, "done")
    assert controller.switched()[before:] == ["1"]
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes(), path
