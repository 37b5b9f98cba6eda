"""What the machine is and runs."""

from tests.health.looking import judged_file, look, recorded, said
from tests.health.shared_data import shared
from wholestack.health.check import Expectation
from wholestack.health.checks.firmware import CHECKS

SYSTEM, KERNEL, DISTRIBUTION = CHECKS


def traits(found):
    return {trait.name: trait.value for trait in found.traits}


def test_vendor_product_and_bios_are_compared_and_what_is_not_specified_is_left_out():
    text = recorded("dmidecode", "system.txt")
    assert traits(look([SYSTEM], dmi_system=text)) == {
        "host.vendor": "Synthetic Inc.",
        "host.product": "Trainer 8000",
        "host.bios_version": "2.1.3",
    }
    profile = Expectation(traits={"host.bios_version": "2.2.0"})
    assert said(look([SYSTEM], dmi_system=text, profile=profile)) == [("warn", "host.bios_differs", "host")]


def test_kernel_and_distribution_are_compared():
    found = look([KERNEL, DISTRIBUTION], moment="", os_release=recorded("kernel", "os_release.txt"))
    assert traits(found) == {"host.os": "ubuntu 22.04"}
    profile = Expectation(traits={"host.os": "ubuntu 24.04"})
    found = look([DISTRIBUTION], os_release=recorded("kernel", "os_release.txt"), profile=profile)
    assert said(found) == [("warn", "host.os_differs", "host")]


def test_the_shared_tables_are_inventories():
    found = judged_file(SYSTEM, shared("dmidecode", "system.txt").read_text())
    assert traits(found) == {"host.vendor": "Dell Inc.", "host.product": "PowerEdge XE9680"}
    found = judged_file(SYSTEM, shared("jc", "ubuntu-18.04_dmidecode.out").read_text())
    assert traits(found)["host.bios_version"] == "6.00"
    assert found.passed == ("host.system",)
