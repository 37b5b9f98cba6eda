"""Which devices are probed: GPUs where there are some, else cores; GPUs that are out of reach are never passed over."""

import os

import pytest

from wholestack.errors import InputError
from wholestack.health.active.command import Asked, run_probe
from wholestack.health.active.cores import Core
from wholestack.health.active.finding_devices import devices_here
from wholestack.runs import RunReader
from wholestack.testing.devices import FaultyDevice


def gpu(name):
    return FaultyDevice(inner=Core(0, frozenset({0})), name=name)


@pytest.fixture
def driver(tmp_path):
    for address in ("0000:9b:00.0", "0000:9c:00.0"):
        (tmp_path / "gpus" / address).mkdir(parents=True)
    return tmp_path / "gpus"


@pytest.mark.parametrize(("which", "names"), [(None, ["a", "b"]), ("gpu", ["a", "b"])])
def test_gpus_are_taken_where_there_are_some(driver, which, names):
    with devices_here(which, driver=driver, gpus=lambda: ([gpu("a"), gpu("b")], "")) as found:
        assert ([each.part.key for each in found.devices], found.out_of_reach) == (names, "")


def test_cores_are_taken_where_there_is_no_gpu_or_they_are_asked_for(driver, tmp_path):
    cores = {f"core {number}" for number in os.sched_getaffinity(0)}
    nothing = tmp_path / "none"
    with devices_here(None, driver=nothing, gpus=lambda: pytest.fail("torch was loaded for nothing")) as found:
        assert ({each.part.key for each in found.devices}, found.out_of_reach) == (cores, "")
    with devices_here("cpu", driver=driver, gpus=lambda: pytest.fail("not asked for")) as found:
        assert {each.part.key for each in found.devices} == cores
    with devices_here("all", driver=driver, gpus=lambda: ([gpu("a"), gpu("b")], "")) as found:
        assert {each.part.key for each in found.devices} == {"a", "b", *cores}


def test_a_name_of_an_idle_device_that_is_not_here_is_refused_before_anything_is_written(driver, tmp_path):
    asked = Asked(
        devices="cpu", seconds=9, room_bytes=None, reference=None, rounds=1, seed=1, even_if_busy=False, idle=("gpu 9",)
    )
    with pytest.raises(InputError, match=r"'gpu 9': there is no such device.*cpu core"):
        run_probe(asked, tmp_path / "run", content=None, tell=lambda _: None, driver=driver)
    assert not (tmp_path / "run").exists()


def test_gpus_that_torch_does_not_see_are_a_finding_and_cores_do_not_stand_in(driver, tmp_path):
    asked = Asked(
        devices=None, seconds=9, room_bytes=None, reference=None, rounds=1, seed=1, even_if_busy=False, side=8
    )
    _, found = run_probe(asked, tmp_path / "run", content=None, tell=lambda _: None, driver=driver)
    (only,) = found.judgement.findings
    assert (found.judgement.status, only.status) == ("unknown", "unknown")
    assert only.evidence[0].startswith("2 GPUs here, 0 within reach: torch")
    assert RunReader(tmp_path / "run").findings() == [only]
