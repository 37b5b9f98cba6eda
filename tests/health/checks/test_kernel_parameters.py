"""Kernel parameters: two are judged, the others compared."""

import pytest

from tests.health.looking import look, recorded, said
from wholestack.health.check import Expectation
from wholestack.health.checks.kernel_parameters import CHECKS
from wholestack.health.diagnosis import diagnose

TEXT = recorded("kernel", "parameters.txt")


def test_a_kernel_with_proprietary_modules_and_warnings_passes_and_its_settings_are_compared():
    found = look(CHECKS, kernel_parameters=TEXT)
    assert found.passed == ("kernel.parameters",)
    traits = {trait.name: trait.value for trait in found.traits}
    assert traits["kernel.transparent_hugepage"] == "madvise"
    assert traits["kernel.options"] == "intel_iommu=on iommu=pt"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("numa_balancing:0", "numa_balancing:1", ("warn", "kernel.numa_balancing", "kernel numa_balancing")),
        ("zone_reclaim_mode:0", "zone_reclaim_mode:1", ("warn", "kernel.zone_reclaim", "kernel zone_reclaim_mode")),
        ("zone_reclaim_mode:0", "zone_reclaim_mode:?", ("unknown", "telemetry.field", "kernel zone_reclaim_mode")),
        ("tainted:12865", f"tainted:{12865 | 1 << 4}", ("warn", "kernel.tainted", "host")),
        ("tainted:12865", "tainted:x", ("unknown", "telemetry.field", "kernel tainted")),
    ],
)
def test_what_is_judged_by_itself(old, new, expected):
    assert said(look(CHECKS, kernel_parameters=TEXT.replace(old, new))) == [expected]


def test_a_profile_is_held_against_the_command_line():
    profile = Expectation(traits={"kernel.options": "intel_iommu=on iommu=pt pci=realloc"})
    found = look(CHECKS, kernel_parameters=TEXT, profile=profile)
    assert said(found) == [("warn", "kernel.parameter_differs", "kernel options")]


def test_a_wrong_parameter_explains_itself_and_no_other():
    profile = Expectation(traits={"kernel.numa_balancing": 0, "kernel.overcommit_memory": 1})
    found = look(CHECKS, kernel_parameters=TEXT.replace("numa_balancing:0", "numa_balancing:1"), profile=profile)
    named = [(each.symptom.cause.code, each.symptom.part.key) for each in diagnose(found.symptoms)]
    assert sorted(named) == [
        ("kernel.numa_balancing", "numa_balancing"),
        ("kernel.parameter_differs", "overcommit_memory"),
    ]
