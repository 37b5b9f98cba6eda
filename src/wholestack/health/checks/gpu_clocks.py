"""What makes a GPU slower than its siblings: throttling, heat, a power limit.

Idle, application clocks, sync boost and the power cap under load are how a GPU works and no fault. A reason that is
active at the moment of the look counts; so does the share of time that the driver's counters add up (R555 and later).
"""

from collections.abc import Iterable, Iterator
from statistics import median

from wholestack.health.check import Cause, Check, Counter, Limit, Measure, Scalar, Seen, Symptom, Trait
from wholestack.health.checks.nvidia import NVIDIA_SMI, UNREADABLE, Reader, is_desktop, listed, per_gpu
from wholestack.health.formats.nvidia_smi import Gpu, reading
from wholestack.health.growth import Growth, Levels, Memory

THERMAL = Cause(
    code="gpu.throttle_thermal",
    says="GPU slowed down by its hardware: too hot",
    owner="data centre",
    remedy="check air flow, fans, inlet temperature and liquid loop of the host; then reseat the heat sink",
    explains=("gpu.throttle_hardware", "gpu.throttle_software_thermal", "gpu.hot", "gpu.warm", "gpu.throttle_share",
              "gpu.temperature_outlier"),
)  # fmt: skip
POWER_BRAKE = Cause(
    code="gpu.throttle_power_brake",
    says="GPU slowed down by the power brake: the host asks for less power",
    owner="data centre",
    remedy="check power supplies, cabling and power cap of the host (BMC event log)",
    explains=("gpu.throttle_hardware", "gpu.throttle_share"),
)
HARDWARE = Cause(
    code="gpu.throttle_hardware",
    says="GPU slowed down by its hardware",
    owner="data centre",
    remedy="check power cables, power supplies and temperature; if they are right, have the GPU replaced",
)
SOFTWARE_THERMAL = Cause(
    code="gpu.throttle_software_thermal",
    says="GPU slowed down by the driver: too hot",
    owner="data centre",
    remedy="check air flow, fans and inlet temperature of the host",
    status="warn",
    explains=("gpu.warm",),
)
SHARE = Cause(
    code="gpu.throttle_share",
    says="GPU was slowed down by heat or power brake for part of the time",
    owner="data centre",
    remedy="check cooling and power of the host, in particular under load",
    status="warn",
)
HOT = Cause(
    code="gpu.hot",
    says="GPU is at the temperature at which it slows down",
    owner="data centre",
    remedy="check air flow, fans, inlet temperature and liquid loop of the host",
    explains=("gpu.warm", "gpu.throttle_software_thermal", "gpu.temperature_outlier"),
)
WARM = Cause(
    code="gpu.warm",
    says="GPU or its memory is above the highest temperature meant for operation",
    owner="data centre",
    remedy="check air flow, fans and inlet temperature of the host",
    status="warn",
)
TEMPERATURE_OUTLIER = Cause(
    code="gpu.temperature_outlier",
    says="GPU is hotter than others that do the same",
    owner="data centre",
    remedy="compare with its siblings; check fans, dust, heat sink and thermal paste",
    status="warn",
)
POWER_LIMITED = Cause(
    code="gpu.power_limited",
    says="power limit below the board's default",
    owner="cluster team",
    remedy="nvidia-smi -i ID -pl WATTS with the default limit, or write the lower limit into the profile",
    status="warn",
)
POWER_OUTLIER = Cause(
    code="gpu.power_outlier",
    says="GPU draws another power than others that do the same",
    owner="vendor",
    remedy="compare clocks and processes with its siblings; run the vendor's diagnostic when the host is idle",
    status="warn",
)
CLOCK_OUTLIER = Cause(
    code="gpu.clock_outlier",
    says="GPU is clocked lower than others that do the same",
    owner="cluster team",
    remedy="compare throttle reasons, power limit and locked clocks (nvidia-smi -q -d CLOCK); then nvidia-smi -rgc",
    status="warn",
)
HOT_C = Limit(name="gpu.hot_c", default=90, about="degrees that are a fail where the board states no limit")
POWER_SHARE = Limit(
    name="gpu.power_limit_share",
    default=0.98,
    about="share of the default power limit below which a limit is a warning",
)
THROTTLED_SHARE = Limit(
    name="gpu.throttled_share", default=0.01, about="share of the time slowed down that is a warning"
)
SHARE_WINDOW_H = 1 / 6
"""The share is counted over ten minutes, or from look to look where those are rarer."""
POWER_TRAIT = "gpu.power_limit_w"
IDLE_PERCENT = 5.0
BUSY_PERCENT = 90.0
HOTTER_C = 12.0
"""Degrees that matter between GPUs of one place in hosts of one kind, at the same heat."""
SAME_W, SAME_SHARE = 20.0, 0.15
"""Watts, or share of them, within which two GPUs make about the same heat."""
FEWEST_ALIKE = 4

_EVENTS = "clocks_event_reasons/clocks_event_reason_"
_THROTTLES = "clocks_throttle_reasons/clocks_throttle_reason_"
_REASONS = (
    ("hw_thermal_slowdown", THERMAL),
    ("hw_power_brake_slowdown", POWER_BRAKE),
    ("hw_slowdown", HARDWARE),
    ("sw_thermal_slowdown", SOFTWARE_THERMAL),
)
_COUNTERS = ("sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake")
_COUNTER_PATH = "clocks_event_reasons_counters/clocks_event_reasons_counters_"
_TEMPERATURE = "temperature/"
_POWER = ("gpu_power_readings/", "power_readings/")


def _judge_throttle(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    for reason, cause in _REASONS:
        if reader.is_yes(_EVENTS + reason, _THROTTLES + reason):
            yield Symptom(cause=cause, part=reader.gpu.part, evidence=(f"{reason}: Active",))
    for growth in _growths(reader.gpu, seen):
        if growth.status != "ok":
            yield Symptom(cause=SHARE, part=reader.gpu.part, evidence=(growth.says,))


def _growths(gpu: Gpu, seen: Seen) -> Iterator[Growth]:
    levels = Levels(warn=seen.limit(THROTTLED_SHARE) * SHARE_WINDOW_H * 3600e6, window_h=SHARE_WINDOW_H)
    for name in _COUNTERS:
        found = reading(gpu, _COUNTER_PATH + name)
        if found.kind == "number" and found.number >= 0:
            counter = Counter(name=f"gpu.{name}_us", value=int(found.number), part=gpu.part.identity)
            yield Memory(seen).growth(counter, levels)


def _counters(seen: Seen) -> Iterable[Counter]:
    return [counter for gpu in listed(seen).gpus for growth in _growths(gpu, seen) for counter in growth.keep]


def _clocks(seen: Seen) -> Iterator[Measure]:
    for gpu in listed(seen).gpus:
        found = reading(gpu, "clocks/sm_clock")
        if found.kind == "number" and _load(gpu) == "busy":
            yield Measure(
                name="gpu.sm_clock_busy_mhz",
                value=found.number,
                outlies=CLOCK_OUTLIER,
                part=gpu.part,
                bad="low",
                least=200.0,
            )


def _judge_temperature(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    degrees = reader.number(_TEMPERATURE + "gpu_temp")
    if degrees is None:
        return
    if not 0 < degrees < 150:
        reader.unread.append(f"temperature/gpu_temp: {degrees:g} C cannot be")
        return
    hot, warm = _margins(reader, degrees, seen)
    if hot is not None and hot <= 0:
        yield Symptom(cause=HOT, part=reader.gpu.part, evidence=_temperatures_of(reader.gpu))
    elif (warm is not None and warm <= 0) or _memory_too_warm(reader):
        yield Symptom(cause=WARM, part=reader.gpu.part, evidence=_temperatures_of(reader.gpu))


def _temperatures_of(gpu: Gpu) -> tuple[str, ...]:
    return tuple(f"{path}: {text}" for path, text in gpu.fields.items() if path.startswith(_TEMPERATURE))


def _margins(reader: Reader, degrees: float, seen: Seen) -> tuple[float | None, float | None]:
    """Degrees left to slow-down and to the highest temperature of operation.

    Hopper and later state the distance to a limit of their own (``tlimit``) and thresholds of that distance.
    """

    def at(name: str) -> float | None:
        return reader.number(_TEMPERATURE + name, required=False)

    distance = at("gpu_temp_tlimit")
    slow, highest = at("gpu_temp_slow_tlimit_threshold"), at("gpu_temp_max_gpu_tlimit_threshold")
    if distance is not None:
        return distance - (slow if slow is not None else -2.0), distance - (highest if highest is not None else 0.0)
    slow, highest = at("gpu_temp_slow_threshold"), at("gpu_temp_max_gpu_threshold")
    return (slow if slow is not None else seen.limit(HOT_C)) - degrees, None if highest is None else highest - degrees


def _memory_too_warm(reader: Reader) -> bool:
    degrees = reader.number(_TEMPERATURE + "memory_temp", required=False)
    limit = reader.number(_TEMPERATURE + "gpu_temp_max_mem_threshold", required=False)
    return degrees is not None and limit is not None and degrees > limit > 0


def _load(gpu: Gpu) -> str:
    """``idle`` or ``busy``, or empty for what lies between or is not told: only like is compared with like."""
    used = reading(gpu, "utilization/gpu_util")
    if used.kind != "number" or len(gpu.mig_devices) > 0:
        return ""
    idle = used.number < IDLE_PERCENT and not gpu.processes
    return "idle" if idle else "busy" if used.number >= BUSY_PERCENT else ""


def _temperatures(seen: Seen) -> Iterator[Measure]:
    for gpu in listed(seen).gpus:
        load = _load(gpu)
        for name, path in (("temperature", "gpu_temp"), ("memory_temperature", "memory_temp")):
            found = reading(gpu, _TEMPERATURE + path)
            if load and found.kind == "number" and 0 < found.number < 150:
                yield Measure(
                    name=f"gpu.{name}_{load}_c",
                    value=found.number,
                    outlies=TEMPERATURE_OUTLIER,
                    part=gpu.part,
                    bad="high",
                    least=HOTTER_C,
                )
    yield from _beside_others(seen)


def _beside_others(seen: Seen) -> Iterator[Measure]:
    """Each GPU less the median of those on its host that turn about as much power into heat, whatever their load.

    Same inlet, same heat, same slot: what is left is the cooling of this one (heat sink, paste, fan, coolant).
    """
    drawn = [
        (gpu, degrees.number, watts.number)
        for gpu in listed(seen).gpus
        if (degrees := reading(gpu, _TEMPERATURE + "gpu_temp")).kind == "number"
        and 0 < degrees.number < 150
        and (watts := reading(gpu, *_draw_paths())).kind == "number"
    ]
    for gpu, degrees_c, watts_w in drawn:
        alike = [other for _, other, power in drawn if abs(power - watts_w) <= max(SAME_W, SAME_SHARE * watts_w)]
        if len(alike) >= FEWEST_ALIKE:
            yield Measure(
                name="gpu.temperature_beside_c",
                value=degrees_c - median(alike),
                outlies=TEMPERATURE_OUTLIER,
                part=gpu.part,
                bad="high",
                least=HOTTER_C,
                certain=HOTTER_C,
            )


def _judge_power(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    default = reader.number(*(base + "default_power_limit" for base in _POWER), required=reader.whole)
    limits = [
        reader.number(*(base + name for base in _POWER), required=False)
        for name in ("current_power_limit", "enforced_power_limit", "requested_power_limit", "power_limit")
    ]
    reader.number(*_draw_paths())
    lowest = min((limit for limit in limits if limit is not None), default=None)
    if (
        lowest is None
        or not default
        or is_desktop(reader.gpu)
        or _same(seen.expectation.traits.get(POWER_TRAIT), lowest)
    ):
        return
    if lowest < default * seen.limit(POWER_SHARE):
        evidence = (f"power limit {lowest:g} W, the board's default is {default:g} W",)
        yield Symptom(cause=POWER_LIMITED, part=reader.gpu.part, evidence=evidence)


def _same(wanted: Scalar | None, watts: float) -> bool:
    """Whether the profile wants just this limit."""
    return isinstance(wanted, int | float) and abs(wanted - watts) < 1


def _power_traits(seen: Seen) -> Iterator[Trait]:
    for gpu in listed(seen).gpus:
        found = reading(
            gpu, *(base + name for base in _POWER for name in ("current_power_limit", "enforced_power_limit"))
        )
        if found.kind == "number":
            yield Trait(name=POWER_TRAIT, value=round(found.number), differs=POWER_LIMITED, part=gpu.part)


def _draw_paths() -> tuple[str, ...]:
    names = ("power_draw", "instant_power_draw", "average_power_draw")
    return tuple(base + name for base in _POWER for name in names)


def _powers(seen: Seen) -> Iterator[Measure]:
    for gpu in listed(seen).gpus:
        load, found = _load(gpu), reading(gpu, *_draw_paths())
        if load and found.kind == "number":
            yield Measure(
                name=f"gpu.power_{load}_w",
                value=found.number,
                outlies=POWER_OUTLIER,
                part=gpu.part,
                bad="high" if load == "idle" else "low",
                least=30.0 if load == "idle" else 120.0,
            )


CHECKS = (
    Check(
        name="gpu.throttle",
        about="GPUs slowed down by heat or power, now or for part of the time",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(THERMAL, POWER_BRAKE, HARDWARE, SOFTWARE_THERMAL, SHARE, CLOCK_OUTLIER, UNREADABLE),
        measures=_clocks,
        limits=(THROTTLED_SHARE,),
        judge=per_gpu(_judge_throttle),
        counters=_counters,
    ),
    Check(
        name="gpu.temperature",
        about="GPUs at their limit of temperature, or hotter than others under the same load",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(HOT, WARM, TEMPERATURE_OUTLIER, UNREADABLE),
        limits=(HOT_C,),
        judge=per_gpu(_judge_temperature),
        measures=_temperatures,
    ),
    Check(
        name="gpu.power",
        about="power limits below the default, and power that differs from that of others",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(POWER_LIMITED, POWER_OUTLIER, UNREADABLE),
        limits=(POWER_SHARE,),
        judge=per_gpu(_judge_power),
        traits=_power_traits,
        trait_names=(POWER_TRAIT,),
        measures=_powers,
    ),
)
