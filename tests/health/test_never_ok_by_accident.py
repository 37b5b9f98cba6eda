"""Nothing passes because nothing was understood: each check of the catalogue, all of its probes spoilt in one way."""

import random

import pytest

from tests.health.looking import NOW, healthy, moment
from wholestack.health import catalog
from wholestack.health.check import Expectation
from wholestack.health.examine import examine
from wholestack.health.judging import judge
from wholestack.health.telemetry import CHECK_WRONG
from wholestack.remote.batch import Output

RNG = random.Random(5)
FOREIGN = (
    b"hello /there you\n",
    b"Lorem ipsum dolor sit amet, consetetur: sadipscing elitr = 7\n" * 20,
    b"<html><head><title>403 Forbidden</title></head><body>nginx</body></html>\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b"0\n",
    b"\n \n\t\n",
    b"-----\n",
    b"Permission denied\n",
    b"bash: fork: retry: Resource temporarily unavailable\n",
    b"\x00" * 300,
    b"\x1b[31m\xff\xfe\xfd\n",
    RNG.randbytes(2_000),
    b"9" * 5_000 + b"\n",
    "\u0666\u0667\n".encode(),
    b"a" * 200_000 + b"\n",
    b",".join([b"a" * 140_000] * 2) + b"\n",
    b"0 0 0 0 0 0 0 0\n" * 30,
    b"/dev/sda1 / ext4",
)
FAILED = {
    "timed out": {"exit_status": None, "ending": "timed_out"},
    "hung": {"exit_status": None, "ending": "hung"},
    "not run": {"exit_status": None, "ending": "not_run"},
    "needs root": {"exit_status": None, "ending": "needs_root"},
    "status 1": {"exit_status": 1, "stderr": b"error\n"},
    "killed": {"exit_status": 137},
    "not installed": {"exit_status": 127},
    "empty": {},
}
TABLES = (
    "mounts", "swap", "nfs", "processes", "df", "df_inodes", "sel", "sensors", "lscpu", "numa", "kernel_parameters",
    "ethernet", "pci_links", "edac", "cpu_throttle",
)  # fmt: skip
"""Probes whose tools end every line with a line feed, and whose last lines can be what is wrong."""
OPTIONS = Expectation(options={"container_image": "image"})
EACH = pytest.mark.parametrize("check", catalog.CHECKS, ids=lambda check: check.name)


def put(check, **given):
    """The check on a host all of whose probes gave this; the host says what time it is, if that is not the question."""
    outputs = {"moment": Output(name="moment", stdout=moment().encode())}
    outputs |= {probe.name: Output(name=probe.name, **given) for probe in check.probes}
    return examine(outputs, (check,), expectation=OPTIONS, now=NOW)


@EACH
def test_no_check_passes_on_foreign_text(check):
    for text in FOREIGN:
        found = put(check, stdout=text)
        assert found.passed == (), text[:60]
        assert [each for each in found.symptoms if each.check == CHECK_WRONG.code] == []


@EACH
@pytest.mark.parametrize("how", FAILED)
def test_no_check_passes_on_a_command_that_gave_nothing(check, how):
    found = put(check, **FAILED[how])
    assert found.passed == ()
    assert {each.status for each in found.symptoms} <= {"unknown"}


@EACH
def test_no_check_passes_on_whole_outputs_that_were_marked_as_cut(check):
    outputs = {
        probe.name: Output(name=probe.name, stdout=healthy()[probe.name].stdout, truncated=True)
        for probe in check.probes
        if probe.name in healthy()
    }
    assert examine(outputs, (check,), now=NOW).passed == ()


@EACH
def test_a_saved_output_that_is_foreign_is_never_ok(check):
    for text in FOREIGN:
        assert judge(check.name, text.decode(errors="replace"), expectation=OPTIONS, now=NOW).status != "ok", text[:60]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_was_cut_within_a_line_is_no_table(name):
    text = healthy()[name].stdout
    cuts = [at for at in range(len(text) - 1, 0, -max(1, len(text) // 150)) if text[at - 1 : at] != b"\n"]
    assert cuts
    reading = [check for check in catalog.chosen() if check.probes[0].name == name]
    for check in reading:
        for at in cuts:
            outputs = {**healthy(), name: Output(name=name, stdout=text[:at])}
            assert examine(outputs, (check,), now=NOW).passed == (), text[:at][-40:]
    assert reading
