"""``nvidia-smi --query-gpu=... --format=csv``, and the same readings as metrics of ``nvidia_gpu_exporter``.

Both name a reading by the query's field (``ecc.mode.current``; as a metric ``nvidia_smi_ecc_mode_current``). Here they
are brought to the paths of ``nvidia-smi -q -x``, so that a check need not know where a reading came from.
"""

import csv
import re
from collections.abc import Iterator

from wholestack.health.formats.nvidia_smi import Gpu, Smi, kind_of, make_gpu, read_message
from wholestack.health.parts import pci_key
from wholestack.health.probe import UnreadableError

_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clocks_setting",
)
"""In the order of the bits of ``clocks_event_reasons.active`` (NVML, nvmlClocksEventReason*)."""
_REASON_PATH = "clocks_event_reasons/clocks_event_reason_"

PATHS: dict[str, str] = {
    "name": "product_name",
    "gpu_name": "product_name",
    "index": "index",
    "serial": "serial",
    "gpu_serial": "serial",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "vbios_version": "vbios_version",
    "inforom.img": "inforom_version/img_version",
    "inforom.image": "inforom_version/img_version",
    "persistence_mode": "persistence_mode",
    "pstate": "performance_state",
    "pci.bus_id": "pci/pci_bus_id",
    "gpu_bus_id": "pci/pci_bus_id",
    "count": "count",
    "fan.speed": "fan_speed",
    "temperature.gpu": "temperature/gpu_temp",
    "temperature.memory": "temperature/memory_temp",
    "temperature.gpu.tlimit": "temperature/gpu_temp_tlimit",
    "utilization.gpu": "utilization/gpu_util",
    "utilization.memory": "utilization/memory_util",
    "memory.total": "fb_memory_usage/total",
    "memory.used": "fb_memory_usage/used",
    "memory.free": "fb_memory_usage/free",
    "power.draw": "gpu_power_readings/power_draw",
    "power.draw.average": "gpu_power_readings/average_power_draw",
    "power.draw.instant": "gpu_power_readings/instant_power_draw",
    "power.limit": "gpu_power_readings/requested_power_limit",
    "enforced.power.limit": "gpu_power_readings/current_power_limit",
    "power.default_limit": "gpu_power_readings/default_power_limit",
    "power.max_limit": "gpu_power_readings/max_power_limit",
    "ecc.mode.current": "ecc_mode/current_ecc",
    "ecc.mode.pending": "ecc_mode/pending_ecc",
    "mig.mode.current": "mig_mode/current_mig",
    "mig.mode.pending": "mig_mode/pending_mig",
    "ecc.errors.corrected.volatile.total": "ecc_errors/volatile/single_bit/total",
    "ecc.errors.uncorrected.volatile.total": "ecc_errors/volatile/double_bit/total",
    "ecc.errors.corrected.aggregate.total": "ecc_errors/aggregate/single_bit/total",
    "ecc.errors.uncorrected.aggregate.total": "ecc_errors/aggregate/double_bit/total",
    "ecc.errors.uncorrected.aggregate.sram.threshold_exceeded": "ecc_errors/aggregate/sram_threshold_exceeded",
    "retired_pages.single_bit_ecc.count": "retired_pages/multiple_single_bit_retirement/retired_count",
    "retired_pages.sbe": "retired_pages/multiple_single_bit_retirement/retired_count",
    "retired_pages.double_bit.count": "retired_pages/double_bit_retirement/retired_count",
    "retired_pages.dbe": "retired_pages/double_bit_retirement/retired_count",
    "retired_pages.pending": "retired_pages/pending_retirement",
    "remapped_rows.correctable": "remapped_rows/remapped_row_corr",
    "remapped_rows.uncorrectable": "remapped_rows/remapped_row_unc",
    "remapped_rows.pending": "remapped_rows/remapped_row_pending",
    "remapped_rows.failure": "remapped_rows/remapped_row_failure",
    **{
        f"remapped_rows.histogram.{each}": f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{each}"
        for each in ("max", "high", "partial", "low", "none")
    },
    "pcie.link.gen.current": "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
    "pcie.link.gen.gpucurrent": "pci/pci_gpu_link_info/pcie_gen/device_current_link_gen",
    "pcie.link.gen.max": "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
    "pcie.link.width.current": "pci/pci_gpu_link_info/link_widths/current_link_width",
    "pcie.link.width.max": "pci/pci_gpu_link_info/link_widths/max_link_width",
    "gpu_recovery_action": "gpu_recovery_action",
    "fabric.state": "fabric/state",
    "fabric.status": "fabric/status",
    **{
        f"{prefix}.{reason}": _REASON_PATH + reason
        for prefix in ("clocks_event_reasons", "clocks_throttle_reasons")
        for reason in _REASONS
    },
}
"""Field of the query to path of the document."""

_METRIC = re.compile(r"^nvidia_smi_(\w{1,120})(?:\{([^}\n]{0,2000})\})? (\S{1,40})\s*$", re.MULTILINE)
_LABEL = re.compile(r'(\w{1,60})="([^"]{0,400})"')
_METRIC_PATHS = {name.replace(".", "_"): path for name, path in PATHS.items()}
_UNITS = ("_watts", "_bytes", "_hz", "_ratio", "_seconds")
_SAYS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Yes", "No"): (
        "remapped_rows/remapped_row_pending",
        "remapped_rows/remapped_row_failure",
        "retired_pages/pending_retirement",
        "ecc_errors/aggregate/sram_threshold_exceeded",
    ),
    ("Enabled", "Disabled"): (
        "ecc_mode/current_ecc",
        "ecc_mode/pending_ecc",
        "mig_mode/current_mig",
        "mig_mode/pending_mig",
        "persistence_mode",
    ),
    ("Active", "Not Active"): tuple(_REASON_PATH + reason for reason in _REASONS),
}
_WORDS = {path: words for words, paths in _SAYS.items() for path in paths}
_RECOVERY = ("None", "GPU Reset", "Node Reboot", "Drain P2P", "Drain and Reset")
"""In the order of NVML's nvmlDeviceGpuRecoveryAction_t."""
_FABRIC = ("N/A", "Not Started", "In Progress", "Completed")
"""In the order of NVML's NVML_GPU_FABRIC_STATE_*; 0 is "not supported"."""


def looks_like_csv(text: str) -> bool:
    """A heading of fields of the query, with or without a unit."""
    heading = next((line for line in text.splitlines() if "," in line), "")
    names = [_field(name) for name in heading.split(",")]
    return len(names) > 1 and sum(name in PATHS or name == "driver_version" for name in names) * 2 > len(names)


def read_csv(text: str) -> Smi:
    """Every row a GPU.

    Raises:
        UnreadableError: a row has another number of cells than the heading, or no row is there.
    """
    lines = text.splitlines()
    begin = next(index for index, line in enumerate(lines) if "," in line)
    names = [_field(name) for name in lines[begin].split(",")]
    said = read_message("\n".join(line for line in lines if "," not in line))
    gpus: list[Gpu] = []
    driver = ""
    for row in csv.reader((line for line in lines[begin + 1 :] if "," in line), skipinitialspace=True):
        if len(row) != len(names):
            raise UnreadableError(f"a row has {len(row)} cells, the heading {len(names)}: {','.join(row)[:80]!r}")
        cells = dict(zip(names, (cell.strip() for cell in row), strict=True))
        driver = driver or cells.get("driver_version", "")
        gpus.append(_gpu_of_cells(cells, len(gpus)))
    if not gpus and not said.lost:
        raise UnreadableError("no row of a GPU")
    counts = {int(count) for gpu in gpus if (count := gpu.fields.get("count", "")).isdigit() and len(count) < 6}
    wrong = [f"count is {count}, but {len(gpus)} GPUs are listed" for count in counts if count != len(gpus)]
    return Smi(
        gpus=tuple(gpus),
        source="csv",
        driver=driver,
        notes=said.notes,
        lost=said.lost,
        miscount="; ".join(wrong),
    )


def looks_like_metrics(text: str) -> bool:
    """Names of metrics with the exporter's prefix."""
    return re.search(r"^nvidia_smi_\w{1,120}[ {]", text, re.MULTILINE) is not None


def read_metrics(text: str) -> Smi:
    """Every ``uuid`` a GPU.

    Raises:
        UnreadableError: the exporter says that its own collection failed, or no GPU is named.
    """
    values: dict[str, dict[str, str]] = {}
    labels: dict[str, dict[str, str]] = {}
    for name, label_text, value in _METRIC.findall(text):
        named = dict(_LABEL.findall(label_text))
        if name in ("last_collect_success", "command_exit_code") and float(value) != (name == "last_collect_success"):
            raise UnreadableError(f"the exporter's own collection failed: {name} {value}")
        if uuid := named.get("uuid"):
            values.setdefault(uuid, {})[name] = value
            if name == "gpu_info":
                labels[uuid] = named
    if not values:
        raise UnreadableError("no GPU is named")
    gpus = [
        _gpu_of_metrics(uuid, each, labels.get(uuid, {}), index) for index, (uuid, each) in enumerate(values.items())
    ]
    info = next(iter(labels.values()), {})
    counts = {int(float(each["count"])) for each in values.values() if "count" in each}
    wrong = [f"count is {count}, but {len(gpus)} GPUs are named" for count in counts if count != len(gpus)]
    return Smi(
        gpus=tuple(gpus),
        source="metrics",
        driver=info.get("driver_version", ""),
        cuda=info.get("cuda_version", ""),
        miscount="; ".join(wrong),
    )


def _field(name: str) -> str:
    return re.sub(r"\s{0,4}\[[^\]]{0,20}\]\s{0,4}$", "", name.strip().lower())


def _gpu_of_cells(cells: dict[str, str], index: int) -> Gpu:
    fields = {PATHS[name]: text for name, text in cells.items() if name in PATHS}
    for name in ("clocks_event_reasons.active", "clocks_throttle_reasons.active"):
        fields.update(_reasons(cells.get(name, "")))
    return make_gpu(_key(fields, index), _index(fields, index), fields)


def _reasons(bits: str) -> Iterator[tuple[str, str]]:
    """A bit mask such as ``0x0000000000000041`` as words; what is no mask is kept as it is."""
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", bits):
        for bit, reason in enumerate(_REASONS):
            yield _REASON_PATH + reason, "Active" if int(bits, 16) >> bit & 1 else "Not Active"
    elif bits:
        yield "clocks_event_reasons", bits


def _gpu_of_metrics(uuid: str, values: dict[str, str], info: dict[str, str], index: int) -> Gpu:
    fields = {"uuid": uuid}
    for name, value in values.items():
        plain = next((name.removesuffix(unit) for unit in _UNITS if name.endswith(unit)), name)
        path = _METRIC_PATHS.get(name) or _METRIC_PATHS.get(plain)
        if path is not None and path not in ("uuid", "serial", "count", "product_name", "inforom_version/img_version"):
            fields[path] = _word(path, name, value)
    for label, path in (
        ("name", "product_name"), ("pci_bus_id", "pci/pci_bus_id"), ("serial", "serial"),
        ("vbios_version", "vbios_version"),
    ):  # fmt: skip
        if label in info:
            fields[path] = info[label]
    return make_gpu(_key(fields, index), _index(fields, index), fields)


def _word(path: str, name: str, value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    if path in _WORDS:
        return _WORDS[path][0] if number == 1 else _WORDS[path][1] if number == 0 else value
    if path == "gpu_recovery_action":
        return _RECOVERY[int(number)] if 0 <= number < len(_RECOVERY) else value
    if path == "fabric/state":
        return _FABRIC[int(number)] if 0 <= number < len(_FABRIC) else value
    if path == "performance_state":
        return f"P{number:.0f}"
    if name.endswith("_bytes"):
        return f"{number / 2**20:.6g} MiB"
    return f"{100 * number:.6g} %" if name.endswith("_ratio") else f"{number:.10g}"


def _key(fields: dict[str, str], index: int) -> str:
    address = fields.get("pci/pci_bus_id", "")
    if address and kind_of(address) != "lost":
        return pci_key(address)
    return (
        f"index {_index(fields, index)}" if fields.get("index", "").isdigit() else fields.get("uuid", f"index {index}")
    )


def _index(fields: dict[str, str], index: int) -> int:
    text = fields.get("index", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else index
