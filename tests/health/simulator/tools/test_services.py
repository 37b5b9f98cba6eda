"""Time synchronisation and containers."""

import json

import pytest

from tests.health.simulator.hosts import ALL_KINDS, ask, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named


def test_docker_gives_one_json_document_with_its_runtimes():
    body = json.loads(said(one_host("h100-8-ndr"), "docker"))
    assert "nvidia" in body["Runtimes"]
    assert body["ServerVersion"] == "27.3.1"
    assert "nvidia" not in json.loads(said(one_host("cpu-intel"), "docker"))["Runtimes"]


def test_docker_without_its_daemon_says_so_and_fails():
    fleet = one_host("h100-8-ndr")
    fleet.inject("node0000", fault_named("docker_dead"))
    outputs = ask(fleet).outputs
    assert outputs["docker"].exit_status == 1
    assert "Cannot connect to the Docker daemon" in json.loads(outputs["docker"].text)["ServerErrors"][0]
    assert outputs["container_gpu"].exit_status == 125


def test_a_container_sees_the_gpus_only_with_the_runtime():
    fleet = one_host("l40s-8")
    assert said(fleet, "container_gpu").count("UUID: GPU-") == 8
    fleet.inject("node0000", fault_named("docker_gpu_runtime_missing"))
    output = ask(fleet).outputs["container_gpu"]
    assert output.exit_status == 125
    assert b"could not select device driver" in output.stderr


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_clock_of_a_healthy_host_is_synchronised(kind: str):
    text = said(one_host(kind), "time_sync")
    assert "Leap status     : Normal" in text or "Leap: normal" in text or "\n*10.0." in text


@pytest.mark.parametrize("kind", ["h100-8-ndr", "a10-4", "a100-8-hdr"])
def test_an_offset_is_printed_by_each_daemon(kind: str):
    fleet = one_host(kind)
    only(fleet).time.offset_s = -2.5
    text = said(fleet, "time_sync")
    assert "2.500000000 seconds slow" in text or "Offset: -2.500000s" in text or "-2500.000" in text


@pytest.mark.parametrize("kind", ["h100-8-ndr", "a10-4", "a100-8-hdr"])
def test_a_dead_daemon_gives_no_measurement(kind: str):
    fleet = one_host(kind)
    fleet.inject("node0000", fault_named("time_daemon_dead"))
    output = ask(fleet).outputs["time_sync"]
    assert output.exit_status != 0
    assert "Offset" not in output.text
    assert "System time" not in output.text
