"""Simulated hosts answer as real ones would, at once, and never raise."""

import asyncio

import pytest

from tests.health.simulator.hosts import COMMANDS, SHELLS, ask, one_host, only
from wholestack.health.simulator.faults.table import fault_named
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.machine import ToolEffect
from wholestack.health.simulator.remote import FleetRemote, render_all
from wholestack.health.simulator.tools.table import TOOLS, tool_of
from wholestack.remote.batch import Command
from wholestack.remote.host import Host


def test_every_command_of_a_sweep_is_recognised_as_its_tool():
    assert {name: tool_of(shell).name for name, shell in SHELLS.items()} == {name: name for name in SHELLS}


def test_every_tool_has_a_command():
    unknown = {tool.name for tool in TOOLS} - {"nvidia_list"} ^ set(SHELLS)
    assert not unknown, f"one line each in SHELLS of tests/health/simulator/hosts.py: {sorted(unknown)}"


def test_a_tool_that_nobody_knows_is_not_installed():
    reply = FleetRemote(one_host("a10-4")).reply(
        Host(name="node0000"), [Command(name="x", shell="frobnicate -v")], deadline_s=9
    )
    assert reply.outputs["x"].exit_status == 127
    assert reply.outputs["x"].stderr == b"sh: 1: frobnicate: not found\n"


def test_a_hung_tool_costs_only_itself():
    fleet = one_host("h100-8-ndr")
    healthy = ask(fleet)
    only(fleet).effects["nvidia_smi"] = ToolEffect(kind="hung")
    reply = ask(fleet)
    hung = reply.outputs["nvidia_smi"]
    assert (hung.ending, hung.exit_status, hung.stdout) == ("hung", None, b"")
    rest = {name: output for name, output in reply.outputs.items() if name != "nvidia_smi"}
    assert rest == {name: healthy.outputs[name] for name in rest}


def test_limits_are_kept():
    fleet = one_host("h100-8-ndr")
    commands = [Command(name="a", shell="nvidia-smi -q -x", max_bytes=1_000),
                Command(name="b", shell="nvidia-smi -q -x", limit_s=0.1)]  # fmt: skip
    outputs = FleetRemote(fleet).reply(Host(name="node0000"), commands, deadline_s=60).outputs
    assert len(outputs["a"].stdout) == 1_000
    assert outputs["a"].truncated
    assert (outputs["b"].ending, outputs["b"].stdout) == ("timed_out", b"")


def test_what_is_not_done_by_the_deadline_did_not_run():
    fleet = one_host("h100-8-ndr")
    only(fleet).slow["nvidia_smi"] = 5.0
    reply = FleetRemote(fleet).reply(Host(name="node0000"), COMMANDS, deadline_s=4)
    assert reply.trouble == "timed_out"
    assert reply.outputs["nvidia_smi"].ending == "not_run"
    assert reply.outputs["lscpu"].ending == "ended"


def test_without_root_what_needs_it_is_not_started():
    fleet = one_host("l40s-8")
    fleet.inject("node0000", fault_named("tool_needs_root"))
    reply = ask(fleet)
    assert reply.outputs["smart"].ending == "needs_root"
    assert "Operation not permitted" in reply.outputs["kernel_log"].stderr.decode()
    assert "uid=1000" in reply.outputs["moment"].text


@pytest.mark.parametrize(
    ("fault", "trouble", "some"),
    [
        ("host_unreachable", "unreachable", False),
        ("host_refuses_login", "auth", False),
        ("host_key_changed", "host_key", False),
        ("host_lost_half_way", "lost", True),
        ("host_answers_too_late", "timed_out", True),
    ],
)
def test_troubles_of_the_connection(fault: str, trouble: str, some: bool):
    fleet = one_host("a10-4")
    fleet.inject("node0000", fault_named(fault))
    reply = ask(fleet)
    assert reply.trouble == trouble
    assert "node0000" in reply.detail or trouble == "auth"
    assert set(reply.outputs) == {command.name for command in COMMANDS}
    assert any(output.ending == "ended" for output in reply.outputs.values()) is some
    assert any(output.ending == "not_run" for output in reply.outputs.values())


def test_a_host_of_no_fleet_is_unreachable():
    reply = FleetRemote(one_host("a10-4")).reply(Host(name="other"), COMMANDS, deadline_s=9)
    assert reply.trouble == "unreachable"


def test_outputs_rendered_beforehand_are_those_rendered_when_asked():
    fleet = Fleet(14, seed=3, kinds=KINDS[:6])
    fleet.inject_mixture(share=1.0)
    rendered = render_all(fleet, COMMANDS)
    live = FleetRemote(fleet)

    async def both(host: Host):
        kept = await rendered.run(host, COMMANDS, deadline_s=50)
        now = await live.run(host, COMMANDS, deadline_s=50)
        return kept, now

    for host in fleet.hosts():
        kept, now = asyncio.run(both(host))
        assert kept == now
    assert 0 < rendered.size_bytes < 14 * 60_000


def test_what_was_rendered_beforehand_is_used_only_while_it_is_true():
    fleet = one_host("h100-8-ndr")
    remote, host = FleetRemote(fleet), Host(name="node0000")
    live = remote.reply(host, COMMANDS, deadline_s=50)
    assert remote.render_all(COMMANDS) > 10_000
    assert remote.reply(host, COMMANDS, deadline_s=50) == live
    fleet.inject("node0000", fault_named("swap_on"))
    changed = remote.reply(host, COMMANDS, deadline_s=50)
    assert "/swap.img" in changed.outputs["swap"].text
    remote.render_all(COMMANDS)
    fleet.advance(600)
    later = remote.reply(host, COMMANDS, deadline_s=50)
    assert later.outputs["moment"].text != changed.outputs["moment"].text


def test_outputs_that_stand_still_follow_a_change_of_the_host():
    fleet = one_host("h100-8-ndr")
    remote, host = FleetRemote(fleet), Host(name="node0000")
    before = remote.reply(host, COMMANDS, deadline_s=50).outputs["pci"].text
    fleet.inject("node0000", fault_named("gpu_off_bus_xid"), index=2)
    after = remote.reply(host, COMMANDS, deadline_s=50).outputs["pci"].text
    assert before.count("(rev ff)") == 0
    assert after.count("(rev ff)") == 1
