"""SMART: which drive, what is wrong with it, who replaces what."""

import json
from dataclasses import replace

import pytest

from tests.health.looking import NOW, before, judged_file, look, recorded, said
from tests.health.shared_data import shared
from wholestack.health.check import Counter
from wholestack.health.checks.drives import CHECKS, SMART
from wholestack.health.formats.smartctl import drive_key
from wholestack.remote.batch import Output

SMART_CHECK = CHECKS[0]


def drives(name):
    return recorded("smartctl", name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvme_read_only.json", [("fail", "drive.failing", "drive /dev/nvme3")]),
        ("nvme_spare.json", [("fail", "drive.spare", "drive /dev/nvme2")]),
        ("nvme_media.json", [("fail", "drive.media_errors", "drive /dev/nvme2")]),
        ("nvme_hot.json", [("warn", "drive.hot", "drive /dev/nvme5")]),
        ("nvme_worn.json", [("warn", "drive.worn", "drive /dev/nvme5")]),
        ("nvme_field.json", [("unknown", "telemetry.field", "drive /dev/nvme5")]),
        ("sata_pending.json", [("warn", "drive.sectors", "drive /dev/sda")]),
        ("sata_failed.json", [("fail", "drive.failing", "drive /dev/sdb")]),
        ("sata_cable.json", [("warn", "drive.link_errors", "drive /dev/sda")]),
        ("self_test.json", [("fail", "drive.self_test", "drive /dev/sdc")]),
        ("gone.json", [("fail", "drive.gone", "drive /dev/nvme7")]),
        ("needs_root.json", [("unknown", "telemetry.needs_root", "drive /dev/nvme0")]),
        ("healthy_mixed.json", []),
    ],
)
def test_each_fault_is_one_finding_on_its_drive(name, expected):
    assert said(look(CHECKS, smart=drives(name))) == expected


def test_the_label_has_model_and_serial_for_whoever_replaces_it():
    (only,) = look(CHECKS, smart=drives("nvme_spare.json")).symptoms[:1]
    assert only.symptom.part.label == "SYNTHETIC MZQL23T8 S0SYN002"
    assert only.symptom.cause.owner == "vendor"


def test_a_virtual_disk_without_smart_and_a_host_without_drives_are_skipped():
    skipped = {each.check: each.reason for each in look(CHECKS, smart=drives("virtual.json")).skipped}
    assert skipped["drive.smart"] == "not_supported"
    for absent in (
        Output(name="smart", stdout=b"smartctl --scan finds no drive\n"),
        Output(name="smart", exit_status=127),
    ):
        assert {each.check for each in look(CHECKS, smart=absent).skipped} == {check.name for check in CHECKS}


def test_counts_that_do_not_grow_heal_and_counts_that_grow_are_judged_even_over_a_reboot():
    media = Counter(name="drive.media_errors", value=12, part="/dev/nvme2 S0SYN002")
    for boot_id in ("b", "other"):
        assert said(look(CHECKS, smart=drives("nvme_media.json"), before=before(media, boot_id=boot_id))) == []
        less = Counter(name="drive.media_errors", value=11, part="/dev/nvme2 S0SYN002")
        found = look(CHECKS, smart=drives("nvme_media.json"), before=before(less, boot_id=boot_id))
        assert said(found) == [("fail", "drive.media_errors", "drive /dev/nvme2")]
    cable = Counter(name="drive.attribute_199", value=15_233, part="/dev/sda SYNa")
    assert said(look(CHECKS, smart=drives("sata_cable.json"), before=before(cable, hours=24))) == []
    cable = Counter(name="drive.attribute_199", value=15_200, part="/dev/sda SYNa")
    assert (
        said(look(CHECKS, smart=drives("sata_cable.json"), before=before(cable, hours=24)))[0][1] == "drive.link_errors"
    )


def test_what_is_left_behind_is_what_the_next_look_compares_with():
    after = look(CHECKS, smart=drives("nvme_media.json")).after
    assert Counter(name="drive.media_errors", value=12, part="/dev/nvme2 S0SYN002") in after.counters
    assert said(look(CHECKS, smart=drives("nvme_media.json"), before=replace(after, at=NOW - 600))) == [
        ("fail", "drive.media_errors", "drive /dev/nvme2")
    ]


@pytest.mark.parametrize("field", ["critical_warning", "available_spare", "available_spare_threshold", "media_errors"])
@pytest.mark.parametrize("value", [None, "foo", True, float("nan"), []])
def test_a_field_that_decides_and_is_no_number_is_unknown(field, value):
    document = json.loads(drives("nvme_worn.json")) | {}
    document["nvme_smart_health_information_log"] |= {field: value, "percentage_used": 1}
    assert said(look(CHECKS, smart=json.dumps(document))) == [("unknown", "telemetry.field", "drive /dev/nvme5")]


def test_the_overall_verdict_must_be_there():
    document = json.loads(drives("nvme_worn.json"))
    document["nvme_smart_health_information_log"]["percentage_used"] = 1
    del document["smart_status"]
    assert said(look(CHECKS, smart=json.dumps(document))) == [("unknown", "telemetry.field", "drive /dev/nvme5")]


def test_an_attribute_at_its_threshold_counts_without_the_exit_status_unless_it_only_tells_age():
    document = json.loads(drives("sata_pending.json").split("\n}\n{")[0] + "}")
    rows = {row["id"]: row for row in document["ata_smart_attributes"]["table"]}
    rows[197]["raw"]["value"] = 0
    rows[5]["when_failed"] = "now"
    assert said(look(CHECKS, smart=json.dumps(document))) == [("fail", "drive.failing", "drive /dev/sda")]
    rows[5]["flags"]["prefailure"] = False
    assert said(look(CHECKS, smart=json.dumps(document))) == []


def test_a_self_test_that_only_says_failure_in_words_failed():
    document = json.loads(drives("self_test.json"))
    newest = document["ata_smart_self_test_log"]["standard"]["table"][0]["status"]
    del newest["passed"]
    assert said(look(CHECKS, smart=json.dumps(document))) == [("fail", "drive.self_test", "drive /dev/sdc")]
    newest["string"] = "Aborted by host"
    assert said(look(CHECKS, smart=json.dumps(document))) == []


def test_smart_that_is_switched_off_is_unknown():
    off = {"smartctl": {"exit_status": 4}, "device": {"name": "/dev/sda", "type": "sat"}}
    off["smart_support"] = {"available": True, "enabled": False}
    assert [status for status, *_ in said(look([SMART_CHECK], smart=json.dumps(off)))] == ["unknown"]


@pytest.mark.parametrize("cut", [50, 400, 2000, 3500])
def test_a_cut_output_is_unknown(cut):
    text = drives("healthy_mixed.json")
    assert [each.status for each in look(CHECKS, smart=text[:cut]).symptoms] == ["unknown"]


def test_a_warning_before_the_first_document_does_no_harm():
    text = "sudo: unable to resolve host node7\n" + drives("nvme_spare.json")
    assert said(look(CHECKS, smart=text)) == [("fail", "drive.spare", "drive /dev/nvme2")]


def test_traits_name_the_drive_whose_firmware_differs_and_count_the_models():
    traits = {trait.name: trait for trait in look(CHECKS, smart=drives("healthy_mixed.json")).traits}
    assert traits["drive.count"].value == 4
    assert traits["drive.models"].value == "2 x SYNTHETIC MZQL23T8, 2 x SYNTHETIC SATA 480G"
    assert traits["drive.firmware.synthetic_sata_480g"].value == "SC60"
    assert traits["drive.firmware.synthetic_sata_480g"].part.kind == "drive"


def test_temperatures_are_measured_per_drive():
    measures = look(CHECKS, smart=drives("healthy_mixed.json")).measures
    assert [(each.part.key, each.value) for each in measures if each.name == "drive.temperature_c"] == [
        ("/dev/nvme0", 38), ("/dev/nvme1", 38), ("/dev/sda", 31), ("/dev/sdb", 31),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "key"),
    [
        ("/dev/nvme0n1p2", "/dev/nvme0"), ("nvme12n1", "/dev/nvme12"), ("/dev/sda1", "/dev/sda"), ("sdaa", "/dev/sdaa"),
        ("/dev/mapper/root", "/dev/mapper/root"), ("/dev/md0", "/dev/md0"), ("/dev/vda", "/dev/vda"),
    ],
)  # fmt: skip
def test_a_partition_belongs_to_its_drive(device, key):
    assert drive_key(device) == key


def test_the_command_does_not_take_the_last_drives_status_for_all():
    out = Output(name="smart", stdout=drives("nvme_spare.json").encode(), exit_status=8)
    assert said(look(CHECKS, smart=out)) == [("fail", "drive.spare", "drive /dev/nvme2")]
    assert SMART.command.needs_root


@pytest.mark.parametrize("folder", ["smartctl/learn_good", "smartctl/learn_bad_nvme9", "smartctl_fleet"])
def test_the_shared_sets_are_judged_as_their_readme_says(folder):
    files = sorted(shared(folder).glob("*.json"))
    assert files
    for path in files:
        found = [said(judged_file(check, path.read_text())) for check in CHECKS]
        if path.parts[-2:] == ("learn_bad_nvme9", "nvme9.json"):
            assert found[0] == [("fail", "drive.spare", "drive /dev/nvme9")]
            found = found[1:]
        assert not any(found), path


def test_a_whole_shared_set_as_one_output_names_the_one_bad_drive():
    files = sorted(shared("smartctl", "learn_bad_nvme9").glob("*.json"))
    text = "".join(path.read_text() for path in files)
    assert said(look(CHECKS, smart=text)) == [("fail", "drive.spare", "drive /dev/nvme9")]
