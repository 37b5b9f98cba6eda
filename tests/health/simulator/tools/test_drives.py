"""``smartctl -j`` of all drives, one JSON document behind the other."""

import json

import pytest

from tests.health.simulator.hosts import ALL_KINDS, ask, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named


def documents(fleet):
    text, at, found = said(fleet, "smart"), 0, []
    while at < len(text):
        body, at = json.JSONDecoder().raw_decode(text, at)
        found.append(body)
        at += 1
    return found


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_drive_is_there_and_well(kind: str):
    fleet = one_host(kind)
    found = documents(fleet)
    assert [body["device"]["name"] for body in found] == [drive.device for drive in only(fleet).drives]
    for body in found:
        assert body["smart_status"]["passed"] is True
        assert body["smartctl"]["exit_status"] == 0
        if body["device"]["protocol"] == "NVMe":
            log = body["nvme_smart_health_information_log"]
            assert log["critical_warning"] == log["media_errors"] == 0
            assert log["available_spare"] > log["available_spare_threshold"]
        else:
            raw = {row["id"]: row["raw"]["value"] for row in body["ata_smart_attributes"]["table"]}
            assert raw[197] == raw[5] == 0


def test_a_drive_that_left_is_not_listed():
    fleet = one_host("h200-8-roce")
    fleet.inject("node0000", fault_named("nvme_missing"), index=1)
    names = [body["device"]["name"] for body in documents(fleet)]
    assert "/dev/nvme1" not in names
    assert len(names) == 5
    assert "nvme0n1[0] nvme1n1[1](F)" in said(fleet, "mdstat")


def test_a_failing_last_drive_shows_in_the_exit_status():
    fleet = one_host("a10-4")
    fleet.inject("node0000", fault_named("sata_failed"), index=0)
    assert ask(fleet).outputs["smart"].exit_status == 8
