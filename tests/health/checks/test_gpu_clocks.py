"""Throttling, temperature and power: what is normal, what is not, what only the fleet can tell."""

import pytest

from tests.health.gpu_host import NOW, key, look, smi, told
from wholestack.health.check import Before, Counter, Expectation

GPU = f"gpu {key(6)}"
REASON = "clocks_event_reason_"


@pytest.mark.parametrize(
    ("changes", "code", "status"),
    [
        ([(REASON + "hw_slowdown", "Active")], "gpu.throttle_hardware", "fail"),
        (
            [(REASON + "hw_slowdown", "Active"), (REASON + "hw_thermal_slowdown", "Active")],
            "gpu.throttle_thermal",
            "fail",
        ),
        (
            [(REASON + "hw_slowdown", "Active"), (REASON + "hw_power_brake_slowdown", "Active")],
            "gpu.throttle_power_brake",
            "fail",
        ),
        ([(REASON + "sw_thermal_slowdown", "Active")], "gpu.throttle_software_thermal", "warn"),
        ([("gpu_temp", "90 C"), ("gpu_temp_tlimit", "-3 C")], "gpu.hot", "fail"),
        ([("gpu_temp", "87 C"), ("gpu_temp_tlimit", "0 C")], "gpu.warm", "warn"),
        ([("current_power_limit", "350.00 W")], "gpu.power_limited", "warn"),
    ],
)
def test_each_fault_is_named_at_its_gpu(changes, code, status):
    assert told(nvidia_smi=smi({6: changes})) == [(code, GPU, status)]


def test_idle_application_clocks_power_cap_and_sync_boost_are_normal():
    changes = [(REASON + name, "Active") for name in ("applications_clocks_setting", "sw_power_cap", "sync_boost")]
    assert told(nvidia_smi=smi({6: changes})) == []


def test_older_boards_state_thresholds_in_degrees():
    old = [
        (
            r"<gpu_temp_tlimit>.*</gpu_temp_max_gpu_tlimit_threshold>",
            "<gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold>"
            "<gpu_temp_max_gpu_threshold>85 C</gpu_temp_max_gpu_threshold>",
        ),
    ]
    everywhere = {index: old for index in range(8)}
    for degrees, expected in (("84 C", []), ("86 C", ["gpu.warm"]), ("89 C", ["gpu.hot"])):
        changes = everywhere | {6: [*old, ("gpu_temp", degrees)]}
        assert [code for code, _, _ in told(nvidia_smi=smi(changes))] == expected


@pytest.mark.parametrize("text", ["0 C", "-1 C", "4294967295 C", "ERR!", "Unknown Error"])
def test_a_temperature_that_cannot_be_is_unknown(text):
    assert {(part, status) for _, part, status in told(nvidia_smi=smi({6: [("gpu_temp", text)]}))} == {(GPU, "unknown")}


def test_a_desktop_boards_owner_may_lower_its_power_limit():
    card = [("product_name", "NVIDIA GeForce RTX 3090"), ("current_power_limit", "200.00 W")]
    assert told(nvidia_smi=smi(dict.fromkeys(range(8), card))) == []


def test_only_like_loads_are_compared():
    busy = smi({6: [("gpu_util", "99 %"), ("gpu_temp", "70 C")], 5: [("gpu_util", "40 %")]})
    found = [(each.name, each.part.key) for each in look(nvidia_smi=busy).measures]
    assert ("gpu.temperature_busy_c", key(6)) in found
    assert ("gpu.temperature_idle_c", key(0)) in found
    assert not any(part == key(5) for name, part in found if name.endswith(("idle_c", "busy_c")))


def beside(changes):
    """Degrees beside those that draw about the same power, by index."""
    measures = look(nvidia_smi=smi(changes)).measures
    index_of = {key(index): index for index in range(8)}
    return {index_of[each.part.key]: each.value for each in measures if each.name == "gpu.temperature_beside_c"}


def test_whatever_the_load_a_gpu_is_compared_with_those_that_draw_the_same_power():
    half = [
        ("gpu_util", "N/A"),
        ("instant_power_draw", "400.00 W"),
        ("average_power_draw", "400.00 W"),
        ("gpu_temp", "55 C"),
    ]
    everywhere = {index: half for index in range(8)}
    found = beside(everywhere | {3: [*half[:3], ("gpu_temp", "75 C")]})
    assert found == {index: 20.0 if index == 3 else 0.0 for index in range(8)}


def test_gpus_that_draw_more_power_than_the_others_are_not_called_hot():
    busy = [("instant_power_draw", "650.00 W"), ("average_power_draw", "650.00 W"), ("gpu_temp", "75 C")]
    assert set(beside({index: busy for index in range(4)}).values()) == {0.0}
    assert set(beside({0: busy})) == set(range(1, 8))


def test_time_slowed_down_counts_as_a_share_since_the_last_look():
    hour = 3_600_000_000
    before = Before(
        at=NOW - 3600,
        boot_id="b1",
        counters=(Counter(name="gpu.hw_therm_slowdown_us", value=hour, part=GPU),),
    )
    name = "clocks_event_reasons_counters_hw_therm_slowdown"
    assert told(nvidia_smi=smi({6: [(name, f"{hour + 60_000_000} us")]}), before=before) == [
        ("gpu.throttle_share", GPU, "warn")
    ]
    assert told(nvidia_smi=smi({6: [(name, f"{hour + 6_000_000} us")]}), before=before) == []


def test_a_limit_that_the_profile_wants_is_no_fault_and_another_one_is():
    lower = smi({index: [("current_power_limit", "500.00 W")] for index in range(8)})
    assert {code for code, _, _ in told(nvidia_smi=lower)} == {"gpu.power_limited"}
    wanted = Expectation(traits={"gpu.power_limit_w": 500})
    assert told(nvidia_smi=lower, expectation=wanted) == []
    assert {code for code, _, _ in told(expectation=wanted)} == {"gpu.power_limited"}
