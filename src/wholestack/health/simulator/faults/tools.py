"""Faults of the tools and of the way to the host: here ``unknown`` is the right verdict, naming the tool."""

from collections.abc import Callable

from wholestack.health.simulator.faults.fault import Draw, Fault, fault, has_gpus
from wholestack.health.simulator.machine import Machine, ToolEffect


def _effect(kind: str, *tools: str, low: float = 0.1, high: float = 0.9) -> Callable[[Machine, Draw], tuple[str, ...]]:
    """One tool (or, drawn, one of several) fails in this way."""

    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        tool = draw.one(tools)
        machine.effects[tool] = ToolEffect(kind=kind, amount=draw.rng.uniform(low, high))
        return ()

    return inject


def _hang(*tools: str) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        for tool in tools:
            machine.effects[tool] = ToolEffect(kind="hung", amount=1.0)
        return ()

    return inject


def _german(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """A tool whose deciding values have a comma or another name in German."""
    tool = "time_sync" if machine.time.daemon == "chrony" else "lscpu"
    machine.effects[tool] = ToolEffect(kind="locale")
    return ()


def _trouble(trouble: str) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        machine.trouble = trouble
        return ()

    return inject


def _no_root(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.root = False
    return ()


def _has_fabric(machine: Machine) -> bool:
    return has_gpus(machine) and bool(machine.gpus[0].links)


TOOL_ISSUES = "NVIDIA/gpu-monitoring-tools#46 (nvidia-smi in state D), mej/nhc#134"
SSH = "OpenSSH, ssh(1) and sshd(8), messages of the client"

FAULTS: tuple[Fault, ...] = (
    fault("tool_nvidia_smi_hung", "tool", TOOL_ISSUES, _hang("nvidia_smi", "nvlink_status", "nvlink_errors"),
          "cluster team", "vendor", applies=has_gpus, tool=True),
    fault("tool_smart_hung", "tool", "smartctl(8); mej/nhc#134", _hang("smart"), "cluster team", tool=True),
    fault("tool_ipmi_timed_out", "tool", "ipmitool(1); mej/nhc#161", _effect("timed_out", "sel", "sensors"),
          "cluster team", "data centre", tool=True),
    fault("tool_df_hung", "tool", "df(1) on a dead mount; mej/nhc#134", _hang("df", "df_inodes"), "cluster team",
          tool=True),
    fault("tool_streams_for_ever", "tool", "NVIDIA/gpu-monitoring-tools#46; a tool in its loop mode (nvidia-smi -l)",
          _effect("endless", "nvidia_smi", "sensors", "docker"), "cluster team", applies=has_gpus, tool=True),
    fault("tool_truncated", "tool", "output cut short by a full pipe or a kill (nebius/soperator#1711)",
          _effect("truncated", "smart", "nvidia_smi", "docker"), "cluster team", applies=has_gpus, tool=True),
    fault("tool_garbled", "tool", "recorded gpu_burn output with control characters (microsoft/superbenchmark)",
          _effect("garbled", "nvidia_smi", "lscpu", "time_sync", "infiniband"), "cluster team",
          applies=lambda machine: _has_fabric(machine) and bool(machine.hcas), tool=True),
    fault("tool_empty", "tool", "treydock/infiniband_exporter, empty perfquery output; gpud#141",
          _effect("empty", "nvidia_smi", "smart", "df"), "cluster team", applies=has_gpus, tool=True),
    fault("tool_locale", "tool", "locale(7): decimal comma and translated words where a wrapper sets LC_ALL",
          _german, "cluster team", tool=True),
    fault("tool_crashed", "tool", "IBM/autopilot#68 (a tool that dies half way)", _effect("crashed", "nvidia_smi",
          "smart"), "cluster team", applies=has_gpus, tool=True),
    fault("tool_needs_root", "tool", "dmidecode(8), smartctl(8): permission denied", _no_root, "cluster team",
          tool=True),
    fault("host_unreachable", "host", SSH, _trouble("unreachable"), "data centre", "cluster team", "network",
          tool=True),
    fault("host_refuses_login", "host", SSH, _trouble("auth"), "cluster team", tool=True),
    fault("host_key_changed", "host", SSH, _trouble("host_key"), "cluster team", tool=True),
    fault("host_lost_half_way", "host", SSH, _trouble("lost"), "data centre", "cluster team", "network", tool=True),
    fault("host_answers_too_late", "host", "mej/nhc#161", _trouble("timed_out"), "cluster team", "data centre",
          tool=True),
)  # fmt: skip
