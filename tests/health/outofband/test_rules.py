"""Every way to a BMC keeps the rules that users' own are held to, and the rules find one that does not."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.health.ipmi_sim import PASSWORD, SUPPLY_1, running_bmc
from tests.health.redfish_bmc import ANN, certificate, scripted_bmc
from wholestack.health.outofband import address, catalog
from wholestack.health.outofband.address import Credentials, address_of
from wholestack.health.outofband.catalog import open_bmc
from wholestack.health.outofband.memory import MemoryBmc
from wholestack.remote.batch import Output
from wholestack.remote.host import Host
from wholestack.testing.bmcs import broken_rules

GUIDE = Path(__file__).parents[3] / "docs" / "adding" / "bmc.md"


def test_a_bmc_by_ipmi_keeps_the_rules(tmp_path):
    with running_bmc(tmp_path) as controller:
        controller.add((0x08, SUPPLY_1, 0x6F, 0xA1))
        there = address_of(Host(name="a", bmc=f"ipmi://127.0.0.1:{controller.port}?cipher=3"))
        bmc = open_bmc(there, Credentials(user="ADMIN", password=PASSWORD))
        assert asyncio.run(broken_rules(bmc, PASSWORD)) == []
        assert controller.switched() == ["0", "1"]


def test_a_bmc_by_redfish_keeps_the_rules(tmp_path):
    with scripted_bmc(certificate(tmp_path)) as scripted:
        bmc = open_bmc(address_of(Host(name="a", bmc=scripted.url())), ANN)
        assert asyncio.run(broken_rules(bmc, ANN.password)) == []
        assert scripted.resets == ["ForceOff", "On"]


def test_the_one_in_memory_keeps_the_rules():
    bmc = MemoryBmc(log={"sel": "SEL has no entries\n", "other": "x"})
    assert asyncio.run(broken_rules(bmc, "s3cret")) == []
    assert bmc.switched == ["off", "on"]


class Odd(MemoryBmc):
    def shown(self, to):
        return "curl --user root:s3cret"

    async def set_power(self, to):
        return Output(name="x")

    async def log(self, wanted):
        return {"sel": Output(name="sel", stdout=b"<html>"), "moment": Output(name="moment")}


@pytest.mark.parametrize("words", ["password", "not the same", "set_power('off')", "nothing was wanted",
                                   "cannot be read by the probe", "none of sel"])  # fmt: skip
def test_the_rules_find_what_is_wrong(words):
    assert any(words in rule for rule in asyncio.run(broken_rules(Odd(), "s3cret")))


def test_the_example_of_the_guide_is_a_sound_protocol(monkeypatch):
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "bmc.md", "exec", dont_inherit=True), space)
    space["test_it_keeps_the_rules"]()
    monkeypatch.setattr(catalog, "PROTOCOLS", {**catalog.PROTOCOLS, "pdu": space["Outlet"]})
    monkeypatch.setattr(address, "OPTIONS", {**address.OPTIONS, "pdu": ("outlet",)})
    monkeypatch.setitem(address._VALUES, "outlet", re.compile(r"\d+"))
    there = address_of(Host(name="gpu001", bmc="pdu://rack7?outlet=12"))
    bmc = open_bmc(there, Credentials(user="a", password="b"))
    assert bmc.shown("on") == "outlet 12 of rack7: on"


def test_every_protocol_has_its_options():
    assert set(catalog.PROTOCOLS) == set(address.OPTIONS)
