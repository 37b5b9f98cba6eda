"""Five tools say the same of InfiniBand ports; what is cut or garbled is not taken for a value."""

import pytest

from tests.health.network import adapter, host, port, recorded
from wholestack.health.checks.infiniband import INFINIBAND
from wholestack.health.probe import UnreadableError


def ports(text):
    return {each.key: each for each in INFINIBAND.read_text(text).ports}


def test_sysfs_lines_give_fields_of_adapters_and_ports():
    (first, *others) = INFINIBAND.read_text(host(count=3)).adapters
    assert (first.name, first.firmware, first.board, first.numa_node) == ("mlx5_0", "28.41.1000", "MT_0000000838", "0")
    (only,) = first.ports
    assert (only.state, only.phys_state, only.rate_gbs, only.lanes) == ("active", "linkup", 400, 4)
    assert only.counters["link_downed"] == 0
    assert only.hw_counters == {"out_of_sequence": 0, "lifespan": 12}
    assert [each.name for each in others] == ["mlx5_1", "mlx5_2"]


def test_tab_lines_of_one_adapter_say_the_same_as_grep_lines():
    grep = "\n".join(adapter("mlx5_0")) + "\n"
    tab = "\n".join(line.partition("/")[2].replace(":", "\t", 1) for line in adapter("mlx5_0")) + "\n"
    one, other = INFINIBAND.read_text(grep).adapters[0], INFINIBAND.read_text(tab).adapters[0]
    assert one.ports[0].counters == other.ports[0].counters
    assert (one.firmware, one.ports[0].rate, one.ports[0].state) == (
        other.firmware,
        other.ports[0].rate,
        other.ports[0].state,
    )


def test_ibstat_tells_states_rates_and_link_layers():
    found = ports(recorded("infiniband", "ibstat.txt"))
    assert {key: (each.state, each.phys_state, each.rate_gbs) for key, each in found.items()} == {
        "mlx5_0/1": ("active", "linkup", 400),
        "mlx5_1/1": ("init", "linkup", 200),
        "mlx5_1/2": ("down", "disabled", 10),
    }
    assert not found["mlx5_1/2"].is_infiniband


def test_ibstatus_tells_the_same():
    found = ports(recorded("infiniband", "ibstatus.txt"))
    assert {key: (each.state, each.lanes) for key, each in found.items()} == {
        "mlx5_0/1": ("active", 4),
        "mlx5_1/1": ("init", 4),
    }


def test_perfquery_counters_have_the_names_of_sysfs():
    found = ports(recorded("infiniband", "perfquery.txt"))
    assert found["lid 12/1"].counters["symbol_error"] == 7
    assert found["lid 12/1"].counters["link_downed"] == 3
    assert found["lid 12/2"].counters["port_rcv_errors"] == 0


def test_a_cut_perfquery_is_not_read_as_without_errors():
    text = recorded("infiniband", "perfquery.txt")
    with pytest.raises(UnreadableError, match="LinkDownedCounter"):
        INFINIBAND.read_text(text[: text.index("LinkDowned")])


@pytest.mark.parametrize("value", ["foo", "-1", "1" * 30, "0x10", "1.5"])
def test_a_counter_that_is_no_number_is_kept_apart(value):
    found = ports("\n".join(port("mlx5_0", counters={"symbol_error": value})) + "\n")
    assert "symbol_error" not in found["mlx5_0/1"].counters
    assert found["mlx5_0/1"].garbled["symbol_error"] == value[:40]


def test_a_counter_that_the_device_does_not_have_is_neither():
    found = ports("\n".join(port("mlx5_0", counters={"symbol_error": "N/A (no PMA)"})) + "\n")
    assert not found["mlx5_0/1"].garbled
