"""The baseboard management controller: its event log, its sensors, its clock.

An event counts within a window before now, dated by how far the BMC's clock is from the host's; a state that was taken
back (``Deasserted``) later is over. What lasts, the sensors tell.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from wholestack.health.check import Cause, Check, Limit, Measure, Seen, Symptom, Trait
from wholestack.health.checks.bmc_states import (
    BMC_TIME,
    CLOCK,
    CRITICAL,
    FAN,
    HOT,
    LASTING,
    LIMIT,
    POWER_GONE,
    RULES,
    SEL,
    SENSORS,
    SILENT,
    SUPPLIES,
    VOLTAGE,
    Rule,
    event_part,
    meaning,
    part_of,
)
from wholestack.health.checks.memory import CORRECTED
from wholestack.health.formats.ipmi import Event, Sensor
from wholestack.health.parts import Part, PartKind

BMC = Part(kind="bmc")
BMC_CLOCK = Part(kind="bmc", within=("clock",))
"""A host's clock that jumped explains that the BMC's seems to be off."""
DAY_S = 86_400.0
SLACK_S = 300.0
"""An entry may be written between asking for the clock and reading the log."""

WINDOW = Limit(name="bmc.event_hours", default=24, about="age in hours to which an event of the log counts")
SKEW = Limit(name="bmc.clock_skew_s", default=300, about="difference of the BMC's clock, time zones aside, a warning")
CORRECTED_EVENTS = Limit(
    name="bmc.corrected_events", default=10, about="corrected memory errors of one module in the window, a warning"
)
FAMILY = Limit(
    name="bmc.silent_family", default=4, about="sensors of one name but for its number that make one silent odd"
)

STATES = tuple({rule.cause.code: rule.cause for rule in RULES}.values())
HOT_INLET = replace(HOT, code="bmc.inlet_outlier", says="air at the inlet is warmer than at other hosts", status="warn")
SLOW_FAN = replace(
    FAN, code="fan.outlier", says="fan turns slower than those of other hosts", status="warn", explains=()
)


def judge_sel(seen: Seen) -> Iterator[Symptom]:
    """Bad events of the window that were not taken back."""
    events = seen.of(SEL)
    dates = dated(events, seen.now, seen.maybe(BMC_TIME))
    begin = seen.now - seen.limit(WINDOW) * 3600
    told = zip(events, dates, _taken_back(events), strict=True)
    recent = [event for event, at, ended in told if not ended and (at is None or at >= begin)]
    yield from _corrected(recent, seen)
    meanings = _meanings(recent)
    yield from merged(_symptom(event, rule, seen) for event in recent if (rule := meanings[_state(event)]))
    # Of words that no rule knows, the BMC's own grade is all that is known.
    unknown = [event for event in recent if event.is_critical and event.asserted and not meanings[_state(event)]]
    yield from merged(Symptom(cause=CRITICAL, part=BMC, evidence=(event.line,)) for event in unknown)
    ahead = max((event.at for event in events if event.at is not None), default=0.0) - seen.now
    if seen.boot_id and ahead > DAY_S:
        evidence = f"newest entry is {ahead / DAY_S:.0f} days ahead of the host's clock"
        yield Symptom(cause=CLOCK, part=BMC_CLOCK, evidence=(evidence, events[-1].line))


def dated(events: Sequence[Event], now: float, clock: float | None = None) -> list[float | None]:
    """When each happened, by the host's clock as far as it can be told.

    An entry is as old as it lies behind the BMC's own clock. What lies ahead of that (all, where it is not known) was
    dated by a clock that was set otherwise: if the newest of these lies ahead of now as well, that clock was ahead, and
    they are moved back by as much. An entry of a BMC without a clock happened before the next dated one; after the last
    dated one it may be of today.

    Args:
        events: In the order of the log.
        now: Seconds since the epoch by the host's clock.
        clock: The same moment by the BMC's.
    """

    def own(event_at: float) -> bool:
        return clock is not None and event_at <= clock + SLACK_S

    foreign = [event.at for event in events if event.at is not None and not own(event.at)]
    ahead = max(max(foreign, default=now) - now, 0.0)
    found: list[float | None] = []
    following: float | None = None
    for event in reversed(events):
        if event.at is not None:
            following = event.at - (clock - now if clock is not None and own(event.at) else ahead)
        found.append(following)
    return found[::-1]


def _corrected(events: Iterable[Event], seen: Seen) -> Iterator[Symptom]:
    """Single corrected errors of memory are normal; many of one module in the window are not."""
    by_part: dict[Part, list[str]] = {}
    for event in events:
        if event.asserted and re.match(r"correctable ECC(?! logging)", event.what, re.IGNORECASE):
            by_part.setdefault(event_part("dimm", event.sensor, event.what, seen), []).append(event.line)
    for part, lines in by_part.items():
        if len(lines) >= seen.limit(CORRECTED_EVENTS):
            evidence = (f"{len(lines)} corrected errors within {seen.limit(WINDOW):g} h", lines[0], lines[-1])
            yield Symptom(cause=CORRECTED, part=part, evidence=evidence)


def _state(event: Event) -> tuple[str, str, bool]:
    return event.sensor, event.what, event.asserted


def _meanings(events: Iterable[Event]) -> dict[tuple[str, str, bool], Rule | None]:
    """Each state is looked up once, however often the log repeats it."""
    states = dict.fromkeys(_state(event) for event in events)
    return {state: meaning(state[0], state[1], asserted=state[2]) for state in states}


def _taken_back(events: Sequence[Event]) -> list[bool]:
    """For each entry whether the last one of that sensor and state says the opposite, of states that have an end."""
    last = {(event.sensor, event.what): event.asserted for event in events}
    opposite = [last[event.sensor, event.what] != event.asserted for event in events]
    meanings = _meanings(event for event, other in zip(events, opposite, strict=True) if other)
    lasting = {state for state, rule in meanings.items() if rule is not None and rule.cause.code in LASTING}
    return [other and _state(event) in lasting for event, other in zip(events, opposite, strict=True)]


def _symptom(event: Event, rule: Rule, seen: Seen) -> Symptom:
    part = event_part(rule.kind, event.sensor, event.what, seen)
    return Symptom(cause=rule.cause, part=part, evidence=(event.line,), status=rule.status)


def merged(symptoms: Iterable[Symptom]) -> Iterator[Symptom]:
    """One a cause and part: first and last line, and how many there were; the worst status."""

    def key(symptom: Symptom) -> tuple[str, str]:
        return symptom.cause.code, symptom.part.identity

    for _, group in groupby(sorted(symptoms, key=key), key=key):
        alike = list(group)
        lines = [line for each in alike for line in each.evidence]
        shown = lines if len(lines) <= 3 else [lines[0], f"({len(lines) - 2} more)", lines[-1]]
        worst = None if any(each.status is None for each in alike) else alike[0].status
        yield replace(alike[0], evidence=tuple(shown), status=worst)


def judge_sensors(seen: Seen) -> Iterator[Symptom]:
    """Sensors beyond a limit, in a bad state, or silent among others that speak."""
    sensors = seen.of(SENSORS)
    for sensor in sensors:
        by_state = list(_by_state(sensor, seen))
        # A discrete sensor in a bad state is told with the state.
        yield from by_state or _by_limit(sensor, seen)
    yield from _silent(sensors, seen)
    yield from _absent_supply(sensors, seen)


def _by_limit(sensor: Sensor, seen: Seen) -> Iterator[Symptom]:
    """``nc`` is a warning, ``cr`` and ``nr`` are faults."""
    grade = sensor.status[-2:]
    if grade not in ("nc", "cr", "nr"):
        return
    unit, name = sensor.unit.lower(), sensor.name.lower()
    cause, kind = _measured(unit, name)
    part = part_of(kind, _place(sensor), "", seen)
    yield Symptom(cause=cause, part=part, evidence=(sensor.line,), status="warn" if grade == "nc" else "fail")


def _measured(unit: str, name: str) -> tuple[Cause, PartKind]:
    if unit == "rpm" or re.match(r"(?:sys_?)?fan", name):
        return FAN, "fan"
    if unit.startswith("degrees") or "temp" in name:
        return HOT, "sensor"
    if unit in ("volts", "amps", "watts"):
        return VOLTAGE, "sensor"
    return LIMIT, "sensor"


def _by_state(sensor: Sensor, seen: Seen) -> Iterator[Symptom]:
    name = f"{sensor.name} (power supply)" if sensor.entity.startswith("10.") else sensor.name
    for state in filter(None, (state.strip() for state in sensor.states.split(","))):
        rule = meaning(name, state)
        if rule is not None:
            part = part_of(rule.kind, _place(sensor), state, seen)
            yield Symptom(cause=rule.cause, part=part, evidence=(sensor.line,), status=rule.status)


def _supplies(sensors: Sequence[Sensor]) -> dict[bool, list[Sensor]]:
    """Status sensors of power supplies, by whether a supply is in."""
    found: dict[bool, list[Sensor]] = {True: [], False: []}
    for sensor in sensors:
        status = sensor.name == "Status" and sensor.entity.startswith("10.")
        if status or re.fullmatch(r"PSU?[ _]?\d{1,2}[ _]Status", sensor.name, re.IGNORECASE):
            found["presence detected" in sensor.states.lower()].append(sensor)
    return found


def _absent_supply(sensors: Sequence[Sensor], seen: Seen) -> Iterator[Symptom]:
    """One bay empty while all others are filled; several empty ones are how the host was bought."""
    found = _supplies(sensors)
    if found[True] and len(found[False]) == 1 and found[False][0].status != "ns":
        empty = found[False][0]
        part = part_of("psu", _place(empty), "", seen)
        yield Symptom(cause=POWER_GONE, part=part, evidence=(empty.line,), status="warn")


def _place(sensor: Sensor) -> str:
    """Its number where it has one: names repeat (each power supply may have a sensor `Status`)."""
    return f"#0x{sensor.number}" if sensor.number else sensor.name


def _silent(sensors: Sequence[Sensor], seen: Seen) -> Iterator[Symptom]:
    """One that does not answer among at least three that do; empty slots come in larger numbers."""
    families: dict[str, list[Sensor]] = {}
    for sensor in sensors:
        if re.search(r"\d", sensor.name):
            families.setdefault(re.sub(r"\d+", "#", sensor.name), []).append(sensor)
    for family in families.values():
        # "Disabled" is a choice of the vendor.
        quiet = [sensor for sensor in family if sensor.status == "ns" and "isabled" not in sensor.line]
        if len(quiet) == 1 and len(family) >= seen.limit(FAMILY):
            _, kind = _measured(next((each.unit.lower() for each in family if each.unit), ""), quiet[0].name.lower())
            yield Symptom(cause=SILENT, part=part_of(kind, _place(quiet[0]), "", seen), evidence=(quiet[0].line,))


def _traits(seen: Seen) -> Iterator[Trait]:
    present = len(_supplies(seen.of(SENSORS))[True])
    if present:
        yield Trait(name="psu.count", value=present, differs=SUPPLIES)


def _measures(seen: Seen) -> Iterator[Measure]:
    for sensor in seen.of(SENSORS):
        if sensor.value is None or sensor.status == "ns":
            continue
        if sensor.unit.startswith("degrees C") and re.search(r"inlet|ambient", sensor.name, re.IGNORECASE):
            part = part_of("sensor", _place(sensor), "", seen)
            yield Measure(name="bmc.inlet_c", value=sensor.value, outlies=HOT_INLET, part=part, bad="high", least=5)
        elif sensor.unit == "RPM":
            part = part_of("fan", _place(sensor), "", seen)
            yield Measure(name="fan.speed_rpm", value=sensor.value, outlies=SLOW_FAN, part=part, bad="low", least=2000)


def judge_clock(seen: Seen) -> Iterator[Symptom]:
    """The BMC's clock against the host's; a BMC may live in another time zone."""
    found = seen.of(BMC_TIME)
    if found is None:
        yield Symptom(cause=CLOCK, part=BMC, evidence=("the BMC's clock was never set",))
    elif seen.boot_id:
        difference = found - seen.now
        zone = round(difference / 900) * 900 if abs(difference) <= 14 * 3600 + 900 else 0
        if abs(difference - zone) >= seen.limit(SKEW):
            evidence = f"the BMC's clock differs from the host's by {difference:.0f} s"
            yield Symptom(cause=CLOCK, part=BMC_CLOCK, evidence=(evidence,))


CHECKS = (
    Check(
        name="bmc.sel",
        about="recent events in the BMC's log: power, memory, fans, heat, PCI Express, drives, watchdog",
        probes=(SEL, SENSORS, BMC_TIME),
        parts=("psu", "dimm", "fan", "cpu", "pci", "drive", "sensor", "bmc", "host"),
        causes=(*STATES, CRITICAL, CLOCK),
        limits=(WINDOW, CORRECTED_EVENTS),
        judge=judge_sel,
    ),
    Check(
        name="bmc.sensors",
        about="sensors of the BMC beyond a limit, in a bad state or silent",
        probes=(SENSORS,),
        parts=("psu", "fan", "sensor", "drive", "dimm", "cpu", "pci", "bmc", "host"),
        causes=(*STATES, LIMIT, SILENT, SUPPLIES, HOT_INLET, SLOW_FAN),
        limits=(FAMILY,),
        judge=judge_sensors,
        traits=_traits,
        trait_names=("psu.count",),
        measures=_measures,
    ),
    Check(
        name="bmc.clock",
        about="the BMC's clock against the host's",
        probes=(BMC_TIME,),
        parts=("bmc",),
        causes=(CLOCK,),
        limits=(SKEW,),
        judge=judge_clock,
    ),
)
