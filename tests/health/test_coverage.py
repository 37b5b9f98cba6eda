"""A host of which hardly anything could be looked at is unknown, whatever passed."""

import asyncio
import time

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, moment
from tests.health.gpu_host import smi
from wholestack.claim import status_of
from wholestack.finding import Skipped
from wholestack.health import catalog
from wholestack.health.check import Expectation
from wholestack.health.coverage import expects_gpus, shortfall
from wholestack.health.local import check_this_machine
from wholestack.health.telemetry import TOO_LITTLE
from wholestack.remote.batch import Output
from wholestack.remote.host import Host
from wholestack.remote.simulated import SimulatedRemote
from wholestack.runs import RunReader

EVERY = catalog.chosen()
NAMES = [each.name for each in EVERY]
GPU_TRAIT = Expectation(traits={"gpu.count": 8})


def bare(_, command):
    """A host that knows the time and has no tool at all."""
    if command.name == "moment":
        return Output(name="moment", stdout=moment(time.time()))
    return Output(name=command.name, exit_status=127)


def skipped(*names):
    return [Skipped(check=name, reason="not_installed", detail="x is not installed") for name in names]


def test_a_host_without_any_tool_is_unknown_and_its_claim_is_not_held(tmp_path, monkeypatch):
    class Bare(Answers):
        __call__ = staticmethod(bare)

    monkeypatch.setattr(fleets, "NOW", time.time())
    (verdict,) = fleets.run(tmp_path / "s", ["a"], Bare(), checks=EVERY).verdicts
    run = RunReader(tmp_path / "s")
    (claim,) = run.claims()
    assert verdict.passed  # so little is needed to pass, and so little it says
    assert (verdict.status, verdict.findings[0].cause) == ("unknown", TOO_LITTLE.says)
    assert "nothing of cpu could be judged: lscpu is not installed" in " ".join(verdict.findings[0].evidence)
    assert status_of(claim, run.findings(), now=time.time()) == "unknown"


def test_a_check_of_this_machine_has_the_same_rule():
    found = asyncio.run(check_this_machine(EVERY, SimulatedRemote(bare), expectation=None))
    assert found.status == "unknown"
    assert TOO_LITTLE.says in [each.cause for each in found.findings]


@pytest.mark.parametrize(
    ("expectation", "wanted"),
    [
        (GPU_TRAIT, True),
        (Expectation(checks=("nvlink.state",)), True),
        (Expectation(traits={"gpu.count": 0}), False),
        (Expectation(traits={"cpu.count": 8}), False),
        (Expectation(), False),
    ],
)
def test_a_profile_expects_gpus_where_it_names_any(expectation, wanted):
    assert expects_gpus(expectation) is wanted


def test_a_host_without_a_sign_of_its_gpus_is_unknown_only_where_its_kind_has_some():
    none = skipped(*(name for name in NAMES if name.partition(".")[0] == "gpu"))
    assert shortfall(NAMES, none, gpus=False) == []
    (short,) = shortfall(NAMES, none, gpus=True)
    assert short.symptom.evidence == ("nothing of gpu could be judged: x is not installed",)


def test_what_was_tried_or_not_put_is_no_shortfall():
    assert shortfall(NAMES, skipped(*(name for name in NAMES if name != "cpu.count")), gpus=False) != []
    assert shortfall(["swap.on"], skipped("swap.on"), gpus=True) == []
    assert shortfall(["cpu.count", "cpu.governor"], skipped("cpu.governor"), gpus=True) == []


@pytest.mark.parametrize(("kinds", "status"), [(("h100", "h100", "h100"), "unknown"), (("h100", "h100", "cpu"), "ok")])
def test_the_other_hosts_of_its_kind_say_whether_gpus_are_missing(tmp_path, kinds, status):
    checks = tuple(each for each in EVERY if each.name in ("gpu.driver", "filesystem.bytes"))
    gone = {"nvidia_smi": Output(name="nvidia_smi", exit_status=127), "pci": Output(name="pci", exit_status=127)}
    gone["driver_version"] = Output(name="driver_version", exit_status=127)
    there = {"nvidia_smi": Output(name="nvidia_smi", stdout=smi().encode())} | {
        "driver_version": gone["driver_version"]
    }
    hosts = [Host(name=name, kind=kind) for name, kind in zip("abc", kinds, strict=True)]
    found = fleets.run(tmp_path / "s", hosts, Answers({"a": there, "b": there, "c": gone}), checks=checks)
    assert [each.status for each in found.verdicts] == ["ok", "ok", status]
