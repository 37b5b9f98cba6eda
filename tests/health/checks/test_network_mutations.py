"""Outputs cut, doubled, garbled or foreign: never a crash, and never healthy where nothing is left."""

import itertools
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.health.network import addresses, host, never_crashes, nics, recorded, saved, verdict
from wholestack.health.checks import benchmarks, ethernet, fabric, infiniband, infiniband_errors, manifest, optics, pci
from wholestack.health.formats.manifest import expectation

MANIFEST = recorded("manifest", "node.json")
PROFILE = expectation(MANIFEST)
FAMILIES = {
    "infiniband": (infiniband.CHECKS + infiniband_errors.CHECKS, [host(count=2), addresses()]
        + [recorded("infiniband", f"{name}.txt") for name in ("ibstat", "ibstatus", "perfquery")]),
    "ethernet": (ethernet.CHECKS, [nics()]),
    "optics": (optics.CHECKS, [recorded("ethernet", "optics.txt")]),
    "pci": (pci.CHECKS, [recorded("pci", "lspci_nn.txt"), recorded("pci", "lspci_vvv.txt"),
        "0000:13:00.0/vendor:0x15b3\n0000:13:00.0/class:0x020700\n0000:13:00.0/current_link_width:16\n"]),
    "manifest": (manifest.CHECKS, [MANIFEST, "{}", '{"intf_status": [{"ifname": "enp1"}], "link_speed": {}}']),
    "fabric": (fabric.CHECKS,
        [recorded("fabric", f"{name}.txt") for name in ("ibswinfo", "ibnetdiscover", "ibnetdiscover_p")]),
    "benchmarks": (benchmarks.CHECKS, [recorded("benchmarks", f"{name}.txt")
        for name in ("nccl", "ib_write_bw", "nvbandwidth", "gpu_burn", "port_guids")]),
}  # fmt: skip
PIECES = [
    "",
    "\n",
    "\x00",
    "-1",
    "N/A",
    "ERR!",
    "9" * 400,
    "Unknown",
    ":",
    "{",
    "]",
    '"',
    "|",
    "\t",
    "é",
    "(4X",
    "0x",
    "\r",
]


@st.composite
def mutated(draw, texts):
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 80)))
        middle = draw(st.sampled_from([*PIECES, text[begin:end] * 2, text[begin:end][::-1]]))
        text = text[:begin] + middle + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_no_mutation_crashes_a_check(family, data):
    checks, texts = FAMILIES[family]
    text = data.draw(mutated(texts))
    for check in checks:
        never_crashes(check, text, profile=PROFILE)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=300))
def test_foreign_text_is_never_healthy(family, text):
    for check in FAMILIES[family][0]:
        found = saved(check, text, profile=PROFILE)
        assert verdict(found) in ("unknown", "fail", "skipped"), (check.name, text)


BEGINNINGS = ["", "mlx5_0/ports/1/", "CA 'a'\n", "a -> ", "\tIdentifier : 1\n\ta", "part number | x\nx|",
    "SW 1 1 0x1 4x X - SW 1 1 0x1 ( '", "Ca 1 \"H-0\" # \"a\"\n[1](0) \"S-0\"[1] # \"", "0000:00:00.0 a [0000]: ",
    "BW average[MB/sec]\n", "# nThread 1\n 1 1 float sum", "Running a.\n 0\n 0 ", "proc'd: errors: "]  # fmt: skip
MIDDLES = [" ", "a", "a ", "/", "\n", " \n", "1 ", "' - '", '"', " [", "| ", "(1 Gflop/s)", "0 - "]


@pytest.mark.parametrize("family", FAMILIES)
def test_readers_take_time_that_grows_with_the_text_only(family):
    forms = {form.name: form for check in FAMILIES[family][0] for probe in check.probes for form in probe.formats}
    for begin, middle, form in itertools.product(BEGINNINGS, MIDDLES, forms.values()):
        text = begin + middle * (30_000 // len(middle))
        form.matches(text)
        with suppress(Exception):  # what it raises is tested elsewhere, here how long it takes
            form.read(text)


def test_what_is_healthy_here_is_what_the_mutations_start_from():
    for checks, texts in FAMILIES.values():
        assert any(
            verdict(saved(check, text, profile=PROFILE)) in ("ok", "warn", "fail") for check in checks for text in texts
        )
