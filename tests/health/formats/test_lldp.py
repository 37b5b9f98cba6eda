"""LLDP of one host in the three forms of ``lldpctl``: one reading; what is cut is no neighbour."""

import json

import pytest

from wholestack.health.formats.lldp import Neighbour, looks_like_lldp, read_lldp
from wholestack.health.probe import UnreadableError

EXPECTED = [
    Neighbour(interface="eth0", name="tor1.example.com", port="swp1", description="to gpu001"),
    Neighbour(interface="eth1", name="tor2.example.com", port="swp7", description="to gpu001"),
]


def body(name: str, port: str, via: str = "LLDP") -> dict[str, object]:
    return {
        "via": via,
        "rid": "1",
        "age": "0 day, 00:10:00",
        "chassis": {name: {"id": {"type": "mac", "value": "0c:42:a1:00:00:01"}, "descr": "Cumulus", "ttl": "120"}},
        "port": {"id": {"type": "ifname", "value": port}, "descr": "to gpu001", "ttl": "120"},
    }


def body0(interface: str, name: str, port: str) -> dict[str, object]:
    return {
        "name": interface,
        "via": "LLDP",
        "chassis": [{"id": [{"type": "mac", "value": "0c:42:a1:00:00:01"}], "name": [{"value": name}]}],
        "port": [{"id": [{"type": "ifname", "value": port}], "descr": [{"value": "to gpu001"}]}],
    }


def keys(interface: str, name: str, port: str) -> str:
    rows = {
        "via": "LLDP", "rid": "1", "chassis.mac": "0c:42:a1:00:00:01", "chassis.name": name,
        "chassis.descr": "Cumulus Linux\nversion 5 = new", "port.ifname": port, "port.descr": "to gpu001",
    }  # fmt: skip
    return "".join(f"lldp.{interface}.{key}={value}\n" for key, value in rows.items())


TWO = (("eth0", "tor1.example.com", "swp1"), ("eth1", "tor2.example.com", "swp7"))
FORMS = {
    "json": json.dumps({"lldp": {"interface": [{each: body(name, port)} for each, name, port in TWO]}}, indent=2),
    "json of old versions": json.dumps({"lldp": {"interface": {each: body(name, port) for each, name, port in TWO}}}),
    "json0": json.dumps({"lldp": [{"interface": [body0(*each) for each in TWO]}]}, indent=2),
    "keyvalue": "".join(keys(*each) for each in TWO),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_alike(form: str) -> None:
    assert looks_like_lldp(FORMS[form])
    assert read_lldp(FORMS[form]) == EXPECTED


@pytest.mark.parametrize("form", ["json", "json of old versions"])
def test_one_neighbour_is_written_without_a_list(form: str) -> None:
    [(interface, name, port)] = TWO[:1]
    held: object = {interface: body(name, port)}
    text = json.dumps({"lldp": {"interface": held if form == "json" else [held]}})
    assert read_lldp(text) == EXPECTED[:1]


def test_other_protocols_are_left_out() -> None:
    text = json.dumps({"lldp": {"interface": [{"eth0": body("old", "Gi0/1", "CDPv2")}, {"eth1": body("tor", "swp1")}]}})
    assert [each.interface for each in read_lldp(text)] == ["eth1"]
    text = "lldp.eth0.via=CDPv2\nlldp.eth0.chassis.name=old\n" + keys("eth1", "tor", "swp1")
    assert [each.interface for each in read_lldp(text)] == ["eth1"]


def test_an_interface_that_hears_two_has_both() -> None:
    text = keys("eth0", "tor1", "swp1") + keys("eth0", "tor2", "swp2")
    assert [(each.name, each.port) for each in read_lldp(text)] == [("tor1", "swp1"), ("tor2", "swp2")]


def test_a_port_named_by_its_address_is_known_by_its_description() -> None:
    text = keys("eth0", "tor1", "swp1").replace("port.ifname=swp1", "port.mac=0c:42:a1:00:00:09")
    assert [each.port for each in read_lldp(text)] == ["to gpu001"]


def test_a_neighbour_without_a_name_is_known_by_its_chassis() -> None:
    text = keys("eth0", "tor1", "swp1").replace("lldp.eth0.chassis.name=tor1\n", "")
    assert [each.name for each in read_lldp(text)] == ["0c:42:a1:00:00:01"]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_cut_has_no_neighbour_that_the_whole_has_not(form: str) -> None:
    text = FORMS[form]
    for end in range(1, len(text)):
        try:
            found = read_lldp(text[:end])
        except UnreadableError:
            continue
        assert form == "keyvalue"
        ports = [(each.interface, each.name, each.port) for each in found]
        assert ports == [(each.interface, each.name, each.port) for each in EXPECTED[: len(found)]]


@pytest.mark.parametrize(
    "text", ["{", '{"lldp": 1}', '{"lldp": {"interface": [1]}}', '{"lldp": {"interface": {"eth0": {}}}}', "hello"]
)
def test_what_is_none_is_one_error(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_lldp(text)
