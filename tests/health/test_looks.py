"""Hosts looked at again and again, a family of checks at a time: a fault stays until its quiet window has passed."""

import pytest

from tests.health import gpu_host, network
from tests.health.looking import NOW, moment, recorded
from wholestack.health.catalog import CHECKS
from wholestack.health.diagnosis import diagnose
from wholestack.health.examine import examine
from wholestack.health.growth import FORGET_H, MOST_CARRIED
from wholestack.health.judges import judge_reply
from wholestack.remote.batch import Output, Reply
from wholestack.remote.host import Host

UPTIME_H = 1000.0
MINUTES_10 = 1 / 6


def edac(count):
    return {
        "edac": f"mc0/mc_name:Intel\nmc0/ce_count:{count}\nmc0/ue_count:0\nmc0/dimm0/dimm_label:A1\n"
        f"mc0/dimm0/dimm_location:slot 0\nmc0/dimm0/dimm_ce_count:{count}\nmc0/dimm0/dimm_ue_count:0\n"
    }


def media(count):
    return {"smart": recorded("smartctl", "nvme_media.json").replace('"media_errors": 12', f'"media_errors": {count}')}


def throttles(count):
    return {
        "cpu_throttle": f"cpu0/thermal_throttle/core_throttle_count:{count}\n"
        "cpu0/thermal_throttle/package_throttle_count:0\n"
    }


def gpu(tag, unit=""):
    return lambda count: {"nvidia_smi": gpu_host.smi({1: [(tag, f"{count}{unit}")]} if count else None)}


def links(count):
    return {"nvidia_smi": gpu_host.smi(), "nvlink_errors": gpu_host.nvlink_errors({(1, 9): count})}


def infiniband(counter):
    def text(count):
        port = network.port("mlx5_3", counters={counter: count})
        return {"infiniband": network.host({"mlx5_3": network.adapter("mlx5_3", port)})}

    return text


def ethernet(count):
    return {"ethernet": network.nics(network.nic("rail3", speed=400_000, **{"statistics/rx_crc_errors": count}))}


FAMILIES = {
    # texts of a total, check, cause, status, a burst, hours of quiet that heal
    "edac": (edac, "memory.edac", "memory.corrected", "warn", 500, 24),
    "drive": (media, "drive.smart", "drive.media_errors", "fail", 500, 168),
    "cpu": (throttles, "cpu.throttle", "cpu.throttled", "warn", 500, 24),
    "replays": (gpu("replay_counter"), "gpu.pcie", "gpu.pcie_replays", "warn", 9000, 24),
    "ecc": (gpu("dram_correctable"), "gpu.ecc", "gpu.ecc_rate", "warn", 9000, 24),
    "clocks": (
        gpu("clocks_event_reasons_counters_hw_therm_slowdown", " us"),
        "gpu.throttle",
        "gpu.throttle_share",
        "warn",
        9 * 10**7,
        24,
    ),
    "nvlink": (links, "nvlink.errors", "nvlink.error_storm", "fail", 5000, 24),
    "infiniband": (infiniband("symbol_error"), "ib.errors", "ib.error_rate", "fail", 5000, 24),
    "ethernet": (ethernet, "nic.errors", "nic.error_rate", "fail", 5000, 24),
    "flaps": (infiniband("link_downed"), "ib.flaps", "ib.flapping", "fail", 7, 24),
}
HUNG = object()
GONE = object()


class Watch:
    """One host, one check, look after look."""

    def __init__(self, family):
        self.texts, name, self.code, self.status, self.burst, self.quiet_h = FAMILIES[family]
        self.check = next(check for check in CHECKS if check.name == name)
        self.after = None

    def look(self, at_h, total, *, boot_id="b", uptime_h=None):
        """Status of the cause under test: ``ok`` if it is not among what is found."""
        now = NOW + at_h * 3600
        texts = self.texts(0 if total in (HUNG, GONE) else total)
        texts["moment"] = moment(
            now=now, boot_id=boot_id, uptime_s=(UPTIME_H + at_h if uptime_h is None else uptime_h) * 3600
        )
        outputs = {name: Output(name=name, stdout=text.encode()) for name, text in texts.items()}
        if total is HUNG:
            lost = {"stdout": b"", "exit_status": None, "ending": "timed_out"}
            outputs = {name: Output(name=name, **lost) if name != "moment" else out for name, out in outputs.items()}
        if total is GONE:
            outputs = {name: Output(name=name, exit_status=None, ending="not_run") for name in outputs}
            reply = Reply(host=Host(name="h", kind="k"), outputs=outputs, trouble="lost")
            result = judge_reply(reply, (self.check,), expectation=None, before=self.after, now=now)
            self.after = result.after
            return "unknown"
        found = examine(outputs, (self.check,), before=self.after, now=now)
        self.after = found.after
        if total is HUNG:
            assert {each.status for each in diagnose(found.symptoms)} == {"unknown"}
            return "unknown"
        return next((one.status for one in diagnose(found.symptoms) if one.symptom.cause.code == self.code), "ok")


@pytest.fixture(params=FAMILIES)
def watch(request):
    """Of each family."""
    return Watch(request.param)


def test_a_fault_stays_after_its_burst_until_the_quiet_window_has_passed(watch):
    assert watch.look(0, 0) == "ok"
    assert watch.look(MINUTES_10, watch.burst) == watch.status
    assert watch.look(2 * MINUTES_10, watch.burst) == watch.status
    assert watch.look(watch.quiet_h - 1, watch.burst) == watch.status
    assert watch.look(watch.quiet_h + 1, watch.burst) == "ok"
    assert watch.look(watch.quiet_h + 2, watch.burst) == "ok"


@pytest.mark.parametrize("silence", [HUNG, GONE])
def test_a_look_at_which_nothing_was_told_erases_neither_fault_nor_base(watch, silence):
    assert watch.look(0, 0) == "ok"
    assert watch.look(MINUTES_10, silence) == "unknown"
    assert watch.look(2 * MINUTES_10, watch.burst) == watch.status
    assert watch.look(3 * MINUTES_10, silence) == "unknown"
    assert watch.look(4 * MINUTES_10, silence) == "unknown"
    assert watch.look(5 * MINUTES_10, watch.burst) == watch.status
    assert watch.look(watch.quiet_h - 1, watch.burst) == watch.status
    assert watch.look(watch.quiet_h + 1, watch.burst) == "ok"


def test_a_reboot_neither_heals_a_fault_nor_counts_what_was_there_before(watch):
    assert watch.look(0, 0) == "ok"
    assert watch.look(1, watch.burst) == watch.status
    total = watch.burst if watch.code.startswith("drive.") else 0
    assert watch.look(1.5, total, boot_id="c", uptime_h=0.4) == watch.status
    assert watch.look(watch.quiet_h + 2, total, boot_id="c", uptime_h=watch.quiet_h) == "ok"


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "drive"])
def test_a_counter_that_was_cleared_counts_from_zero_and_the_fault_stays_for_its_window(family):
    watch = Watch(family)
    assert watch.look(0, 0) == "ok"
    assert watch.look(1, watch.burst) == watch.status
    assert watch.look(1.2, 0) == watch.status
    assert watch.look(watch.quiet_h + 2, 0) == "ok"
    assert watch.look(watch.quiet_h + 2.1, watch.burst) == watch.status


def test_a_first_look_soon_after_boot_alarms_for_no_handful_of_errors(watch):
    few = {"drive.media_errors": 0, "gpu.throttle_share": 3 * 10**6, "memory.corrected": 19}.get(watch.code, 4)
    assert watch.look(0, few, uptime_h=0.02) == "ok"
    assert watch.look(0.01, few, uptime_h=0.03) == "ok"


def test_a_large_total_at_first_sight_is_judged_by_its_mean_and_stays_for_the_window():
    watch = Watch("edac")
    assert watch.look(0, 100_000) == "warn"
    assert watch.look(MINUTES_10, 100_000) == "warn"
    assert watch.look(25, 100_000) == "ok"


def test_a_few_media_errors_at_first_sight_warn_and_growth_by_one_in_a_month_fails():
    watch = Watch("drive")
    assert watch.look(0, 3) == "warn"
    assert watch.look(200, 3) == "ok"
    assert watch.look(700, 4) == "fail"


def test_another_drive_under_the_same_name_starts_afresh():
    watch = Watch("drive")
    assert watch.look(0, 500) == "fail"
    texts = watch.texts
    watch.texts = lambda count: {"smart": texts(count)["smart"].replace("S0SYN002", "S0SYN077")}
    assert watch.look(1, 0) == "ok"


def test_a_clock_that_went_back_keeps_no_fault_for_ever():
    watch = Watch("edac")
    assert watch.look(50_000, 0, uptime_h=1000) == "ok"
    assert watch.look(50_001, 500, uptime_h=1001) == "warn"
    assert watch.look(0, 500, uptime_h=1002) == "warn"
    assert watch.look(25, 500, uptime_h=1027) == "ok"


def test_what_was_not_read_for_long_is_forgotten_and_what_is_read_is_not_kept_twice():
    watch = Watch("edac")
    watch.look(0, 500)
    first = watch.after
    watch.look(1, HUNG)
    watch.look(2, HUNG)
    assert [(each.at, each.counters) for each in watch.after.older] == [(first.at, first.counters)]
    kept = watch.after
    watch.look(3, 500)
    assert watch.after.older == ()
    watch.after = kept
    watch.look(FORGET_H + 1, HUNG)
    assert watch.after.older == ()


def test_a_host_that_names_new_parts_at_every_look_is_bounded():
    watch = Watch("edac")
    for at in range(4):
        rows = [f"mc{at}/dimm{i}/dimm_ce_count:1\nmc{at}/dimm{i}/dimm_ue_count:0\n" for i in range(900)]
        watch.texts = lambda _, rows=rows: {"edac": "".join(rows)}
        watch.look(at, 1)
    assert 0 < sum(len(each.counters) for each in watch.after.older) <= MOST_CARRIED


def test_where_even_the_time_was_not_told_everything_stays_known_and_no_boot_is_claimed():
    watch = Watch("edac")
    watch.look(0, 500)
    kept = watch.after
    outputs = {"edac": Output(name="edac", exit_status=None, ending="timed_out")}
    outputs["moment"] = Output(name="moment", exit_status=None, ending="timed_out")
    found = examine(outputs, (watch.check,), before=kept, now=NOW + 60)
    assert (found.after, found.boot_id) == (kept, "")
