"""After a fix, a device is probed as well: what computes wrong is not given back, though the check sees nothing."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.health.operations.test_fixing import Broken
from wholestack.cli.output import findings_document
from wholestack.finding import finding
from wholestack.health.active import causes
from wholestack.health.operations import fixing
from wholestack.health.operations.draining import _is_proved
from wholestack.health.operations.probing import probe_device, read_probe
from wholestack.health.operations.story import next_step
from wholestack.remote.batch import Output
from wholestack.remote.host import Host
from wholestack.remote.local import LocalRemote

PART = "gpu 0000:9b:00"
OTHER = "gpu 0000:19:00"


def printed(*found):
    """What ``wholestack health probe --json --all`` prints."""
    return json.dumps({"host": "a", "run": "x", **findings_document(found, everything=True), "devices": []}).encode()


def ok(part=PART, check=causes.EXACT):
    return finding("a", check, "ok", part=f"{part} (index 2)", evidence=(), at=0.0)


def wrong(part=PART):
    return causes.WRONG_PRODUCT.finding("a", causes.EXACT, part=part, evidence=())


def busy(part=PART):
    return causes.BUSY.finding("a", causes.FREE, part=part, evidence=())


def output(text=b"", status=0, **more):
    return Output(name="probe", stdout=text, exit_status=status, **more)


@pytest.mark.parametrize(
    ("given", "status", "says"),
    [
        (output(printed(ok(), ok(check=causes.MEMORY))), "sound", "nothing wrong"),
        (output(printed(ok(), wrong(OTHER)), 1), "sound", "nothing wrong"),
        (output(printed(wrong(), ok(OTHER)), 1), "wrong", "multiplies wrong"),
        (output(printed(wrong(), busy()), 1), "wrong", "multiplies wrong"),
        (output(printed(busy()), 3), "unknown", "the device is busy"),
        (output(printed(ok(OTHER))), "unknown", "did not answer for it"),
        (output(printed(ok(check=causes.PACE))), "unknown", "did not answer for it"),
        (output(b"sh: wholestack: not found", 127), "unknown", "not installed"),
        (output(b"[" * 100_000), "unknown", "did not answer"),
        (output(b'{"findings": [{"part": 3}, 4, {}]}'), "unknown", "did not answer"),
        (output(b"", None, ending="timed_out"), "unknown", "did not answer"),
    ],
)
def test_only_a_device_that_multiplied_right_is_sound(given, status, says):
    found = read_probe(given, PART)
    assert found.status == status
    assert says in found.says


def test_the_command_runs_the_probe_of_the_host_and_leaves_nothing_behind(tmp_path, monkeypatch):
    """In a real shell, with a tool of that name that writes down what it is asked."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "tmp").mkdir()
    tool = tmp_path / "bin" / "wholestack"
    (tmp_path / "answer.json").write_bytes(printed(wrong()))
    tool.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\nmkdir -p "$9"\ncat {tmp_path}/answer.json\nexit 1\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))

    def ask(part):
        return asyncio.run(probe_device(Host(name="a"), part, LocalRemote()))

    assert ask(PART).status == "wrong"
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("health probe --devices gpu --seconds 20s --all --json --out ")
    assert list((tmp_path / "tmp").iterdir()) == []
    tool.unlink()
    assert ask(PART).says == "not probed: wholestack is not installed there"
    assert ask("service slurmd") is None


class Probing:
    """The simulated hosts, with a probe installed on them."""

    def __init__(self, inner, part):
        self.inner, self.part, self.found = inner, part, ok

    async def run(self, host, commands, *, deadline_s):
        reply = await self.inner.run(host, commands, deadline_s=deadline_s)
        if commands[0].name != "probe":
            return reply
        return replace(reply, outputs={"probe": output(printed(self.found(self.part)))})


def test_a_gpu_that_computes_wrong_after_the_fix_is_handed_over_and_not_given_back(tmp_path):
    broken = Broken(tmp_path, "gpu_remap_pending", "gpu.row_remap_pending")
    remote = broken.remote = Probing(broken.remote, broken.case().part)
    remote.found = wrong
    told = broken.mend()
    assert (told.outcome, told.exit_code) == ("refused", 1)
    assert told.why == "gpu.row_remap no longer sees it, but a probe finds the device wrong: multiplies wrong"
    assert broken.kinds() == ["fix_begun", "fix_ended", "probe_broken"]
    story = broken.story()
    assert next_step(story, fixable=True).action == "hand_over"
    assert not _is_proved(replace(story, gone=broken.fleet.now))
    assert fixing.plan_fix(broken.case(), story).outcome == "refused"
    remote.found = busy
    assert broken.mend().outcome == "refused"
    assert broken.kinds() == ["fix_begun", "fix_ended", "probe_broken"]
    remote.found = ok
    assert broken.mend().outcome == "is_so"
    assert broken.kinds()[-1] == "proof_held"
    assert _is_proved(broken.story())


def test_a_probe_that_finds_nothing_is_named_in_the_proof(tmp_path):
    broken = Broken(tmp_path, "gpu_remap_pending", "gpu.row_remap_pending")
    broken.remote = Probing(broken.remote, broken.case().part)
    assert broken.mend().why == "gpu.row_remap no longer sees it; a probe of 20 s finds nothing wrong"
    assert broken.kinds() == ["fix_begun", "fix_ended", "proof_held"]
