"""What is said of a boot: one fault, one Finding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.health.bootlog.written import ADAPTER, GPUS, STYLES, dressed, expecting, learnt, read, written
from wholestack.finding import exit_code
from wholestack.health.bootlog.expecting import Expectations
from wholestack.health.bootlog.judging import judge_boot
from wholestack.health.bootlog.learning import Learner
from wholestack.health.probe import UnreadableError

NEW_SEED = 77
MAIN_LINES = [f"main: step {first}{second}" for first in "abcdef" for second in "abcdef"]
EXPECTED = expecting()


def judged(messages, *, style="dmesg", expectations=EXPECTED, end=None):
    (boot,) = read(dressed(messages, style)[:end])
    return judge_boot(boot, expectations, subject="node9", now=0.0)


def wrong(messages, **options):
    return [each for each in judged(messages, **options).findings if each.status != "ok"]


def only(messages, **options):
    found = wrong(messages, **options)
    assert len(found) == 1, [(each.check, each.evidence) for each in found]
    return found[0]


@pytest.mark.parametrize("style", STYLES)
def test_a_good_boot_is_ok_in_every_dress(style):
    found = judged(written(NEW_SEED), style=style)
    assert found.status == "ok"
    assert {each.check for each in found.findings} == {
        "bootlog.unknown", "bootlog.missing", "bootlog.value", "bootlog.order",
    }  # fmt: skip


def test_many_good_boots_are_ok():
    alarms = [seed for seed in range(100, 300) if wrong(written(seed))]
    assert len(alarms) <= 2


def test_an_unknown_line_is_one_finding_with_its_line():
    line = "megaraid_sas 0000:c1:00.0: FW in FAULT state"
    found = only([*written(NEW_SEED)[:30], line, *written(NEW_SEED)[30:]])
    assert (found.check, found.status) == ("bootlog.unknown", "warn")
    assert found.part == "pci 0000:c1:00.0"
    assert line in found.evidence
    assert "0 of 20 boots" in found.evidence[0]


TRACE = """\
------------[ cut here ]------------
WARNING: CPU: 3 PID: 412 at drivers/net/core/queue.c:88 queue_reset+0x1a/0x2b0
Modules linked in: queue(+) dca igb
RIP: 0010:queue_reset+0x1a/0x2b0
Call Trace:
 <TASK>
 queue_probe+0x33/0x4f0
 ? local_pci_probe+0x47/0xa0
 </TASK>
---[ end trace 0123456789abcdef ]---""".splitlines()


def test_a_stack_trace_is_one_failure_though_other_lines_come_between():
    lines = written(NEW_SEED)
    mixed = [*lines[:-3], *TRACE[:4], lines[-3], *TRACE[4:8], lines[-2], lines[-1], *TRACE[8:]]
    found = only(mixed)
    assert found.status == "fail"
    assert "crashed" in found.cause
    assert set(TRACE) & set(found.evidence) == set(TRACE)


def test_a_missing_line_is_a_failure_with_its_support():
    lines = written(NEW_SEED)
    found = only([each for each in lines if each != "SCSI subsystem initialized"])
    assert (found.check, found.status) == ("bootlog.missing", "fail")
    assert found.evidence == ("20 of 20 boots on 5 hosts", "SCSI subsystem initialized")


def test_a_missing_line_whose_values_vary_is_named_by_its_wording():
    found = only([each for each in written(NEW_SEED) if not each.startswith("RAMDISK")])
    assert found.evidence[1] == "RAMDISK: [mem <#>-<#>]"


def test_a_driver_that_did_not_come_up_is_one_finding_that_names_all_its_lines():
    found = only([each for each in written(NEW_SEED) if each not in GPUS])
    assert found.check == "bootlog.missing"
    assert set(GPUS) <= set(found.evidence)
    error = "nvidia: probe of all devices failed with error -1"
    lines = [each for each in written(NEW_SEED) if each not in GPUS]
    found = only([*lines[:30], error, *lines[30:]])
    assert {error, *GPUS} <= set(found.evidence)


def test_one_of_four_accelerators_is_missed_by_its_address():
    found = only([each for each in written(NEW_SEED) if "0000:ca:00.0" not in each])
    assert found.part == "pci 0000:ca:00.0"
    assert found.status == "fail"


def test_two_adapters_that_are_gone_leave_the_other_lines_alone():
    adapter = [line.format(address="0000:9a:00.0") for line in ADAPTER]
    found = only([each for each in written(NEW_SEED) if each not in adapter])
    assert set(found.evidence[1:]) == set(adapter)


def test_fewer_processors_are_one_finding_over_all_lines_that_count_them():
    found = only(written(NEW_SEED, cpus=63))
    assert (found.check, found.status) == ("bootlog.value", "warn")
    assert "smp: Brought up 2 nodes, 63 CPUs" in found.evidence
    assert "always: smp: Brought up 2 nodes, 64 CPUs" in found.evidence
    assert any(each.startswith("smpboot: Total of 63") for each in found.evidence)


def changed(old, new):
    lines = written(NEW_SEED)
    assert any(old in each for each in lines)
    return [each.replace(old, new, 1) if old in each else each for each in lines]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("263834240K", "197875680K"),
        ("mlx5_core 0000:18:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16",
         "mlx5_core 0000:18:00.0: 126.024 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x8"),
        ("535.129.03", "535.104.12"),
        ("0000:9a:00.0: firmware version: 28.39.1002", "0000:9a:00.0: firmware version: 28.38.1900"),
        ("0x000000403fffffff", "0x000000303fffffff"),
    ],
)  # fmt: skip
def test_a_value_that_never_changed_is_judged(old, new):
    found = only(changed(old, new))
    assert found.check == "bootlog.value"
    assert any(new in each for each in found.evidence)


def test_a_value_that_always_changes_is_not():
    assert not wrong(changed("RAMDISK: [mem 0x", "RAMDISK: [mem 0x1"))


def test_a_line_that_comes_more_often_than_ever_is_a_finding():
    line = "eno1: renamed from eth0"
    found = only([*written(NEW_SEED), *[line] * 5])
    assert found.check == "bootlog.value"
    assert "6 lines of it, always 1" in found.evidence


def test_a_line_that_moved_is_one_finding():
    lines = written(NEW_SEED)
    lines.insert(22, lines.pop(4))
    found = only(lines)
    assert (found.check, found.status) == ("bootlog.order", "warn")
    assert found.evidence[1] == written(NEW_SEED)[4]
    assert found.evidence[2].startswith("came after, and always came before: ")


def test_two_faults_are_two_findings():
    lines = [each for each in written(NEW_SEED, cpus=63) if each not in GPUS]
    assert sorted(each.check for each in wrong(lines)) == ["bootlog.missing", "bootlog.value"]


def test_a_ring_buffer_that_lost_its_beginning_makes_the_lost_unknown():
    found = only(written(NEW_SEED)[12:])
    assert found.status == "unknown"
    assert "Command line" in " ".join(found.evidence)
    status = {each.check: each.status for each in judged(written(NEW_SEED)[12:]).findings}
    assert "bootlog.missing" not in {check for check, each in status.items() if each == "ok"}


def test_a_fault_behind_the_lost_beginning_is_still_a_failure():
    lines = [each for each in written(NEW_SEED)[12:] if each not in GPUS]
    assert sorted(each.status for each in wrong(lines)) == ["fail", "unknown"]


def test_a_log_that_is_cut_makes_its_end_unknown():
    found = wrong(written(NEW_SEED), end=-300)
    assert found
    assert {each.status for each in found} == {"unknown"}
    assert exit_code(found) == 3


def test_a_file_without_its_last_newline_is_whole():
    assert not wrong(written(NEW_SEED), end=-1)


@pytest.mark.parametrize(
    "line", ["net_ratelimit: 15 callbacks suppressed", "systemd-journald[4]: Missed 3 kernel messages"]
)
def test_lines_that_were_suppressed_are_unknown_and_not_missing(line):
    lines = [each for each in written(NEW_SEED) if each != "SCSI subsystem initialized"]
    found = wrong([*lines, line])
    assert {each.status for each in found} == {"unknown"}
    assert any("SCSI subsystem initialized" in each.evidence for each in found)


def test_another_kernel_is_one_finding_and_values_are_still_judged():
    lines = [each.replace("5.15.0-91", "6.8.0-40") for each in written(NEW_SEED, cpus=63)]
    lines += ["landlock: Up and running.", "Yama: becoming mindful."]
    found = wrong([each for each in lines if each != "x2apic enabled"])
    by_check = {each.check: each for each in found}
    assert set(by_check) == {"bootlog.reading", "bootlog.value"}
    assert by_check["bootlog.reading"].status == "unknown"
    assert "6.8.0-40" in by_check["bootlog.reading"].evidence[0]
    assert any("63 CPUs" in each for each in by_check["bootlog.value"].evidence)


def test_a_crash_is_told_under_another_kernel_too():
    lines = [each.replace("5.15.0-91", "6.8.0-40") for each in written(NEW_SEED)]
    assert "fail" in {each.status for each in wrong([*lines, *TRACE])}


@pytest.mark.parametrize(("boots", "put"), [(1, {"unknown"}), (3, {"unknown", "missing"})])
def test_from_few_boots_it_is_said_what_cannot_be_told(boots, put):
    expectations = expecting(boots)
    found = judged(written(0), expectations=expectations)
    assert found.status == "unknown"
    (told,) = [each for each in found.findings if each.status != "ok"]
    assert f"learnt from {boots} whole boot" in told.evidence[0]
    assert {each.check for each in found.findings if each.status == "ok"} == {f"bootlog.{each}" for each in put}
    assert "bootlog.unknown" in {each.check for each in wrong([*written(0), "a new thing"], expectations=expectations)}


def test_evidence_is_bounded_and_steers_no_terminal():
    flood = [f"bad\x07 thing {chr(97 + place % 26)} {'x' * 900}" for place in range(500)]
    (boot,) = read(dressed([*written(NEW_SEED), *flood]))
    found = [each for each in judge_boot(boot, EXPECTED, subject="node9", now=0.0).findings if each.status != "ok"]
    for each in found:
        assert len(each.evidence) <= 41
        assert all(len(line) <= 400 and "\x07" not in line for line in each.evidence)


def test_the_same_trouble_has_the_same_id_on_the_next_boot():
    def found(seed):
        return only([each for each in written(seed) if each not in GPUS])

    assert found(NEW_SEED).id == found(NEW_SEED + 1).id


def test_a_model_of_two_kernels_knows_both():
    learner = Learner(learnt(8))
    for seed in range(20, 28):
        lines = [each.replace("5.15.0-91", "6.8.0-40") for each in written(seed)]
        learner.add(read(dressed([*lines, "landlock: Up and running."]))[0], host="node1")
    expectations = Expectations(learner.model())
    lines = [each.replace("5.15.0-91", "6.8.0-40") for each in written(NEW_SEED)]
    assert not wrong([*lines, "landlock: Up and running."], expectations=expectations)
    assert not wrong(written(NEW_SEED), expectations=expectations)


def test_a_thread_that_was_slow_is_one_finding():
    """Its lines come late one by one, between others."""
    main, late = MAIN_LINES[:30], [f"late: step {chr(97 + place)}" for place in range(20)]
    slow = [f"slow: step {chr(97 + place)}" for place in range(4)]
    learner = Learner()
    for seed in range(10):
        learner.add(read(dressed([f"Linux version 5.1{seed}", *main, *slow, *late]))[0], host=f"node{seed}")
    mixed = [*late[:12], slow[0], late[12], slow[1], late[13], slow[2], late[14], slow[3], *late[15:]]
    expectations = Expectations(learner.model())
    found = only(["Linux version 5.11", *main, *mixed], expectations=expectations)
    assert found.check == "bootlog.order"
    assert set(slow) <= set(found.evidence)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_mutation_of_a_log_is_too_strange(rng):
    data = bytearray(dressed(written(rng.randrange(1000)), rng.choice(STYLES)).encode())
    for _ in range(rng.randrange(1, 12)):
        start = rng.randrange(len(data))
        end = min(len(data), start + rng.randrange(1, 400))
        way = rng.randrange(4)
        if way == 0:
            del data[start:end]
        elif way == 1:
            data[start:start] = data[start:end]
        elif way == 2:
            data[start:end] = bytes(rng.randrange(1, 256) for _ in range(start, end))
        else:
            data[start:start] = rng.choice([b"\n", b"\x1b[31m", b"<#>", b"Linux version 9\n", b"-- Reboot --\n"])
        data = data or bytearray(b"x")
    try:
        boots = read(bytes(data))
    except UnreadableError:
        return
    for boot in boots:
        found = judge_boot(boot, EXPECTED, subject="node9", now=0.0)
        assert found.status in {"ok", "warn", "fail", "unknown"}
        assert found.findings
