"""The fabric manager: needed where there are NVSwitches."""

import pytest

from tests.health.gpu_host import FABRIC, FABRIC_LOG, key, look, lspci, smi, told
from wholestack.health import catalog
from wholestack.health.examine import examine
from wholestack.health.judging import judge
from wholestack.remote.batch import Output

SERVICE = "service nvidia-fabricmanager.service"
NO_SWITCH = "\n".join(line for line in lspci().splitlines() if "0680" not in line) + "\n"
SWITCH_ERROR = (
    "[Nov 29 2025 {hour}:10:02] [ERROR] [tid 12727] detected NVSwitch {severity} error {code} on fid 0 on NVSwitch "
    "pci bus id 00000000:06:00.0 physical id 3 port 61\n"
)


@pytest.mark.parametrize(
    ("unit", "code"),
    [
        (FABRIC.replace("=active", "=inactive").replace("running", "dead"), "fabric_manager.down"),
        (FABRIC.replace("=active", "=failed").replace("running", "failed"), "fabric_manager.down"),
        (FABRIC.replace("=active", "=activating").replace("running", "auto-restart"), "fabric_manager.down"),
        ("LoadState=not-found\nActiveState=inactive\nSubState=dead\n", "fabric_manager.missing"),
        (FABRIC.replace("NRestarts=0", "NRestarts=7"), "fabric_manager.restarts"),
    ],
)
def test_a_manager_that_does_not_run_is_named(unit, code):
    assert [(found, part) for found, part, _ in told(fabric_manager=unit)] == [(code, SERVICE)]


def test_without_nvswitches_none_is_needed():
    for unit in ("LoadState=not-found\nActiveState=inactive\nSubState=dead\n", FABRIC.replace("=active", "=inactive")):
        found = look(fabric_manager=unit, pci=NO_SWITCH)
        assert "fabric_manager.state" in {each.check for each in found.skipped}
        assert found.symptoms == ()


NO_SYSTEMD = Output(
    name="fabric_manager",
    exit_status=1,
    stderr=b"System has not been booted with systemd as init system (PID 1). Can't operate.\n",
)


@pytest.mark.parametrize(
    "others",
    [
        {"pci": NO_SWITCH},
        {"pci": Output(name="pci", exit_status=127), "nvidia_smi": Output(name="nvidia_smi", exit_status=127)},
    ],
)
def test_without_systemd_nothing_is_missed_where_there_is_no_nvswitch(others):
    outputs = {"fabric_manager": NO_SYSTEMD} | {
        name: each if isinstance(each, Output) else Output(name=name, stdout=each.encode())
        for name, each in others.items()
    }
    found = examine(outputs, [catalog.named("fabric_manager.state")], now=0.0)
    assert [each.check for each in found.skipped] == ["fabric_manager.state"]
    assert found.symptoms == ()


def test_without_systemd_the_manager_of_nvswitches_is_unknown():
    for pci in (Output(name="pci", stdout=lspci().encode()), Output(name="pci", exit_status=127)):
        outputs = {"fabric_manager": NO_SYSTEMD, "pci": pci}
        outputs["nvidia_smi"] = Output(name="nvidia_smi", stdout=smi().encode())
        (only,) = examine(outputs, [catalog.named("fabric_manager.state")], now=0.0).symptoms
        assert only.status == "unknown"
        assert "systemd" in only.symptom.evidence[0]


def test_errors_of_switches_in_its_log_are_those_of_the_kernel_log():
    fatal = FABRIC_LOG + SWITCH_ERROR.format(hour=15, severity="fatal", code=20034)
    kernel = "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
    from tests.health.gpu_host import LOG, line

    expected = [("nvswitch.fatal", "nvswitch 0000:06:00", "fail")]
    assert told(fabric_manager_log=fatal) == expected
    assert told(fabric_manager_log=fatal, kernel_log=LOG + line(9, kernel)) == expected
    mild = FABRIC_LOG + SWITCH_ERROR.format(hour=15, severity="non-fatal", code=12028)
    assert told(fabric_manager_log=mild) == [("nvswitch.nonfatal", "nvswitch 0000:06:00", "warn")]


def test_old_and_harmless_errors_do_not_count():
    old = SWITCH_ERROR.format(hour=15, severity="fatal", code=20034).replace("Nov 29", "Nov 20") + FABRIC_LOG
    assert told(fabric_manager_log=old) == []
    harmless = FABRIC_LOG + SWITCH_ERROR.format(hour=15, severity="non-fatal", code=22013)
    assert told(fabric_manager_log=harmless) == []


def test_a_manager_that_gives_up_says_so_in_its_log():
    text = FABRIC_LOG + (
        "[Nov 29 2025 14:00:00] [ERROR] [tid 9] detected number of NVSwitches don't match with any supported system "
        "topology, aborting fabric manager\n"
    )
    assert told(fabric_manager_log=text) == [("fabric_manager.error", SERVICE, "fail")]


def test_a_saved_log_is_dated_by_its_newest_line():
    text = FABRIC_LOG.replace("Nov 29", "Nov 20") + SWITCH_ERROR.format(hour=15, severity="fatal", code=1)
    assert judge("fabric_manager.log", text.replace("Nov 29", "Nov 20"), now=0).status == "fail"
    assert judge("fabric_manager.log", text.replace("Nov 29", "Nov 10") + FABRIC_LOG, now=0).status == "ok"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([(r"<state>Completed", "<state>In Progress")], "gpu.fabric"),
        ([(r"<status>Success", "<status>Insufficient Resources")], "gpu.fabric"),
        ([(r"<summary>N/A", "<summary>Unhealthy")], "gpu.fabric_health"),
        ([(r"<bandwidth>N/A", "<bandwidth>Degraded")], "gpu.fabric_health"),
    ],
)
def test_what_a_gpu_says_of_the_fabric(changes, code):
    assert told(nvidia_smi=smi({1: changes})) == [(code, f"gpu {key(1)}", "fail")]
