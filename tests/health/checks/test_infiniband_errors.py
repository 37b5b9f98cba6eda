"""Error counters of InfiniBand and RoCE: rates, not totals; full counters and flaps; congestion is no fault."""

import pytest

from tests.health.network import NOW, adapter, host, look, moment, port, recorded, said, saved, verdict
from wholestack.health.check import Before, Expectation
from wholestack.health.checks.infiniband_errors import CHECKS

BY_NAME = {check.name: check for check in CHECKS}
PORT = "hca_port mlx5_3/1"


def text(link_layer="InfiniBand", hw=None, **counters):
    return host({"mlx5_3": adapter("mlx5_3", port("mlx5_3", counters=counters, hw=hw, link_layer=link_layer))})


def put(*args, uptime_h=200.0, **kwargs):
    profile, before = kwargs.pop("profile", None), kwargs.pop("before", None)
    given = moment(uptime_s=uptime_h * 3600)
    return look(CHECKS, profile=profile, before=before, moment=given, infiniband=text(*args, **kwargs))


def later(first, hours, **kwargs):
    """A look so many hours after another one; time is moved back instead of forth."""
    kept = tuple(
        type(each)(
            name=each.name,
            part=each.part,
            value=each.value - int(hours * 3600) if each.name.endswith("_at") else each.value,
        )
        for each in first.after.counters
    )
    return put(before=Before(at=NOW - hours * 3600, boot_id="b", counters=kept), **kwargs)


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"symbol_error": 5000}, [f"warn ib.error_rate {PORT}"]),
        ({"symbol_error": 60_000, "port_rcv_errors": 60_000}, [f"warn ib.error_rate {PORT}"]),
        ({"symbol_error": 1_000_000}, [f"fail ib.error_rate {PORT}"]),
        ({"port_rcv_errors": 3000}, [f"warn ib.error_rate {PORT}"]),
        ({"local_link_integrity_errors": 9}, []),
        ({"port_rcv_remote_physical_errors": 60_000}, [f"warn ib.remote_error_rate {PORT}"]),
        ({"port_xmit_discards": 60_000}, [f"warn ib.remote_error_rate {PORT}"]),
        ({"port_xmit_wait": 4_000_000_000}, []),
        ({"symbol_error": 14, "port_rcv_errors": 14, "excessive_buffer_overrun_errors": 15, "link_downed": 2}, []),
    ],
)
def test_the_rate_since_boot_decides_at_the_first_look(counters, expected):
    assert said(put(**counters)) == expected


def test_a_few_errors_of_bringing_the_link_up_are_none_soon_after_boot():
    few = {"port_rcv_errors": 14, "symbol_error": 60, "link_downed": 4}
    assert said(put(uptime_h=0.2, **few)) == []
    assert said(put(uptime_h=0.2, symbol_error=200)) == [f"warn ib.error_rate {PORT}"]


def test_what_was_counted_before_the_last_look_is_forgotten_and_what_came_since_is_not():
    first = put(symbol_error=900, port_rcv_errors=1200)
    assert said(first) == []
    assert said(later(first, 0.5, symbol_error=905, port_rcv_errors=1200)) == []
    found = later(first, 0.5, symbol_error=930, port_rcv_errors=1200)
    assert said(found) == [f"warn ib.error_rate {PORT}"]
    assert "+30 in 0.5 h" in found.symptoms[0].symptom.evidence[0]


def test_errors_on_a_port_that_had_none_count_from_the_last_look():
    assert said(later(put(), 0.2, symbol_error=40)) == [f"warn ib.error_rate {PORT}"]


def test_a_port_of_which_the_last_look_says_nothing_is_judged_since_boot():
    blind = Before(at=NOW - 600, boot_id="b", counters=())
    assert said(put(before=blind, symbol_error=900)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("symbol_error", 65535),
        ("link_error_recovery", 255),
        ("port_xmit_constraint_errors", 255),
        ("VL15_dropped", 65535),
    ],
)
def test_a_full_counter_is_a_warning_of_its_own_and_no_rate(name, value):
    assert said(put(uptime_h=1, **{name: value})) == [f"warn ib.counter_full {PORT}"]
    assert f"warn ib.counter_full {PORT}" not in said(put(**{name: value - 1}))


def test_the_counters_of_four_bits_are_full_on_healthy_ports_too():
    assert said(put(local_link_integrity_errors=15, excessive_buffer_overrun_errors=15)) == []


def test_a_full_counter_of_lost_links_is_one_warning():
    assert said(put(link_downed=255)) == [f"warn ib.flapping {PORT}"]


@pytest.mark.parametrize(
    ("count", "uptime_h", "status"), [(4, 10, None), (12, 2400, "warn"), (37, 240, "fail"), (6, 24, "fail")]
)
def test_lost_links_since_boot(count, uptime_h, status):
    assert said(put(link_downed=count, uptime_h=uptime_h)) == ([f"{status} ib.flapping {PORT}"] if status else [])


def test_lost_links_since_the_last_look_warn_fail_and_heal_after_a_quiet_day():
    first = put(link_downed=2)
    one = later(first, 1, link_downed=3)
    assert said(one) == [f"warn ib.flapping {PORT}"]
    assert said(later(one, 6, link_downed=3)) == [f"warn ib.flapping {PORT}"]
    assert said(later(one, 6, link_downed=6)) == [f"fail ib.flapping {PORT}"]
    assert said(later(one, 25, link_downed=3)) == []


def test_a_link_that_retrains_is_a_warning_and_part_of_its_flapping():
    assert said(put(link_error_recovery=200, uptime_h=10)) == [f"warn ib.recovering {PORT}"]
    both = put(link_error_recovery=200, link_downed=30, uptime_h=10)
    assert said(both) == [f"fail ib.flapping {PORT}"]


def test_a_profile_scales_the_limits():
    assert said(put(symbol_error=5000, profile=Expectation(limits={"ib.error_scale": 10}))) == []
    assert said(put(link_downed=37, uptime_h=240, profile=Expectation(limits={"ib.flaps_per_day": 5}))) == [
        f"warn ib.flapping {PORT}"
    ]


def test_saved_perfquery_output_has_no_time_so_that_only_lost_links_and_huge_totals_count():
    calm = recorded("infiniband", "perfquery.txt")
    assert verdict(saved(BY_NAME["ib.errors"], calm)) == "ok"
    assert said(saved(BY_NAME["ib.flaps"], calm)) == ["warn ib.flapping hca_port lid 12/1"]
    wild = calm.replace("SymbolErrorCounter:..............7", "SymbolErrorCounter:..............70000")
    assert said(saved(BY_NAME["ib.errors"], wild)) == ["warn ib.error_rate hca_port lid 12/1"]


def test_ibstat_has_no_counters_so_that_they_are_unknown():
    for name in ("ib.errors", "ib.saturated", "ib.flaps"):
        assert verdict(saved(BY_NAME[name], recorded("infiniband", "ibstat.txt"))) == "unknown"


def test_roce_retransmissions_count_on_ethernet_ports_only():
    hw = {"out_of_sequence": 30_000_000, "packet_seq_err": 0, "np_cnp_sent": 5}
    assert said(put("Ethernet", hw)) == [f"warn roce.error_rate {PORT}"]
    assert said(put("InfiniBand", hw)) == []
    assert said(put("Ethernet", {"local_ack_timeout_err": 100_000_000})) == [f"fail roce.error_rate {PORT}"]
    assert said(put("Ethernet", {"local_ack_timeout_err": "foo"})) == [f"unknown telemetry.field {PORT}"]


def test_congestion_is_compared_with_the_fleet_but_no_fault():
    found = put("Ethernet", {"np_cnp_sent": 10**12, "rp_cnp_handled": 10**12, "np_ecn_marked_roce_packets": 10**12})
    assert said(found) == []
    assert {each.name for each in found.measures} >= {"roce.cnp_per_hour"}
    values = [each.value for each in found.measures if each.name == "roce.cnp_per_hour"]
    assert values == [10**12 / 200]


def test_the_sum_of_local_errors_is_compared_with_the_fleet():
    found = put(symbol_error=100, port_rcv_errors=300, port_xmit_discards=900)
    rates = {each.part.key: each.value for each in found.measures if each.name == "ib.errors_per_hour"}
    assert rates["mlx5_3/1"] == 2.0
    assert rates["mlx5_4/1"] == 0.0
