"""Drives: what SMART says of NVMe, SATA and SAS drives.

A SMART counter keeps its value over reboots, so that it is compared with the last look whichever boot that was; a
total that does not grow heals. Sources: NVM Express Base Specification 2.0 (critical warning bits), smartctl(8),
"Hard Drive SMART Stats" (Backblaze, 2016: attributes 5, 187, 188, 197, 198 precede failure; 199 is the cable).
"""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from dataclasses import replace
from re import sub
from typing import Any

from wholestack.finding import Status
from wholestack.health import telemetry
from wholestack.health.check import Cause, Check, Counter, Identity, Limit, Measure, Seen, Symptom, Trait
from wholestack.health.formats.smartctl import (
    COMMAND_FAILED,
    DISK_FAILING,
    PREFAIL_NOW,
    Drive,
    looks_like_smartctl,
    read_smartctl,
)
from wholestack.health.formats.sysfs import trusted
from wholestack.health.growth import Growth, Levels, Memory
from wholestack.health.parts import Part
from wholestack.health.probe import FORBIDDEN, Format, NotThereError, Probe
from wholestack.remote.batch import Command, Output

NO_DRIVE = "smartctl --scan finds no drive"


def _no_drive(output: Output) -> str:
    return NO_DRIVE if output.text.strip() == NO_DRIVE and output.exit_status == 0 else ""


SMART = Probe(
    command=Command(
        name="smart",
        shell=(
            "command -v smartctl >/dev/null || exit 127; "
            f'drives=$(smartctl --scan) || exit 1; [ "$drives" ] || echo "{NO_DRIVE}"; '
            'for d in $(echo "$drives" | cut -d" " -f1); do smartctl -j -a "$d"; done'
        ),
        limit_s=20,
        max_bytes=2_000_000,
        needs_root=True,
    ),
    formats=(Format(name="smartctl -j", matches=looks_like_smartctl, read=read_smartctl),),
    absent=_no_drive,
    # The status of the loop is that of the last drive alone; each document carries its own.
    failure=trusted,
)

BREAKS = (
    "kernel.io_error", "kernel.readonly", "kernel.nvme", "kernel.ata", "mount.readonly", "mount.missing",
    "pool.degraded", "pool.errors", "pool.device", "array.degraded", "array.member", "bmc.drive",
)  # fmt: skip
"""What a broken drive brings about."""

FAILING = Cause(
    code="drive.failing",
    says="drive says that it is failing",
    owner="vendor",
    remedy="copy off what is needed, drain the host, replace the drive (serial in the part's label)",
    explains=(*BREAKS, "drive.media_errors", "drive.sectors", "drive.self_test", "drive.spare", "drive.hot"),
)
SPARE = Cause(
    code="drive.spare",
    says="spare blocks used up",
    owner="vendor",
    remedy="replace the drive before it turns read-only (serial in the part's label)",
    explains=(*BREAKS, "drive.media_errors", "drive.worn"),
)
MEDIA = Cause(
    code="drive.media_errors",
    says="drive loses data (media errors)",
    owner="vendor",
    remedy="check the data on it; replace the drive if the count grows again",
    explains=BREAKS,
)
SECTORS = Cause(
    code="drive.sectors",
    says="sectors that cannot be read or were replaced",
    owner="vendor",
    remedy="run smartctl -t long DEVICE; replace the drive if sectors stay pending or the count grows",
    status="warn",
    explains=BREAKS,
)
SELF_TEST = Cause(
    code="drive.self_test",
    says="last self-test failed",
    owner="vendor",
    remedy="repeat it (smartctl -t long DEVICE); replace the drive if it fails again",
    explains=BREAKS,
)
LINK = Cause(
    code="drive.link_errors",
    says="errors on the drive's cable (CRC, time-outs)",
    owner="data centre",
    remedy="reseat the drive and its cable or backplane connector; replace the cable if the count still grows",
    status="warn",
    explains=BREAKS,
)
GONE = Cause(
    code="drive.gone",
    says="drive is listed but does not open",
    owner="data centre",
    remedy="reseat the drive; if it stays away, have the vendor replace it",
    explains=(*BREAKS, "drive.missing", "pci.nvme"),
)
HOT = Cause(
    code="drive.hot",
    says="drive too hot",
    owner="data centre",
    remedy="check airflow, blanking panels, fans and inlet temperature of this host",
    status="warn",
)
WORN = Cause(
    code="drive.worn",
    says="drive's rated endurance nearly or wholly used",
    owner="vendor",
    remedy="plan its replacement; move write-heavy caches elsewhere",
    status="warn",
)
MISSING = Cause(
    code="drive.missing",
    says="number of drives differs",
    owner="data centre",
    remedy="compare smartctl --scan with a good host; reseat the missing drive, then have the vendor replace it",
    explains=("pci.nvme", "pci.gone", "drive.model_differs"),
)
OTHER_MODEL = Cause(
    code="drive.model_differs",
    says="drive models differ from hosts of this kind",
    owner="cluster team",
    remedy="check that the replacement is of equal size and speed; correct the profile if it is wanted",
    status="warn",
)
OTHER_FIRMWARE = Cause(
    code="drive.firmware_differs",
    says="drive firmware differs",
    owner="cluster team",
    remedy="bring it to the fleet's version in the next maintenance",
    status="warn",
)

WARM_C = Limit(name="drive.warm_c", default=70, about="temperature that is a warning, where the drive names none")
HOT_C = Limit(name="drive.hot_c", default=80, about="temperature that is a fail, where the drive names none")
WEAR = Limit(name="drive.used_percent", default=90, about="share of the rated endurance that is a warning")
MEDIA_LIMIT = Limit(name="drive.media_errors", default=10, about="media errors in all that are a fail at first sight")
SECTOR_LIMIT = Limit(name="drive.sectors", default=50, about="pending or uncorrectable sectors that are a fail")
REALLOCATED = Limit(name="drive.reallocated", default=50, about="replaced sectors in all that are a warning")
CRC_LIMIT = Limit(name="drive.crc_errors", default=200, about="cable errors in all that are a warning at first sight")
CRC_RATE = Limit(name="drive.crc_errors_per_day", default=5, about="new cable errors a day that are a warning")
QUIET_H = 168.0
"""A week: drives read all their blocks in about that time."""
ALWAYS_H = 1e5
"""A window that is never over: any growth counts, however long it took."""

WARNING_BITS = (
    (0, "available spare below threshold", SPARE),
    (1, "temperature beyond a threshold", HOT),
    (2, "reliability degraded by media or internal errors", FAILING),
    (3, "media is read-only", FAILING),
    (4, "volatile memory backup failed", FAILING),
    (5, "persistent memory region unreliable", FAILING),
)


def drive_part(drive: Drive) -> Part:
    """The drive as findings name it."""
    return Part(kind="drive", key=drive.device, label=" ".join(filter(None, (drive.model, drive.serial)))[:100])


def _symptom(cause: Cause, drive: Drive, *evidence: str, fails: bool | None = None) -> Symptom:
    status: Status | None = None if fails is None else "fail" if fails else "warn"
    return Symptom(cause=cause, part=drive_part(drive), evidence=evidence, status=status)


def _unread(drive: Drive, evidence: str) -> Symptom:
    return _symptom(telemetry.FIELD, drive, evidence)


def judged(seen: Seen) -> list[Drive]:
    """Drives that have SMART.

    Raises:
        NotThereError: none has.
    """
    drives = [drive for drive in seen.of(SMART) if drive.supported]
    if not drives:
        raise NotThereError("not_supported", "no drive with SMART")
    return drives


def _growth(drive: Drive, counter: str, value: int, levels: Levels, seen: Seen) -> Growth:
    """Drives keep their counters over reboots; a fault heals after the quiet window, since spare blocks took over."""
    levels = replace(levels, quiet_h=QUIET_H, lasting=True)
    # By serial number: another drive under the same name starts afresh.
    part = f"{drive.device} {drive.serial}"
    return Memory(seen).growth(Counter(name=f"drive.{counter}", value=value, part=part), levels)


def _media_growth(drive: Drive, seen: Seen) -> Growth | None:
    """Any growth is a fail; at first sight the total decides."""
    total = _media_errors(drive)
    if total is None:
        return None
    levels = Levels(warn=1, fail=1, window_h=ALWAYS_H, timeless=1, timeless_fail=seen.limit(MEDIA_LIMIT))
    return _growth(drive, "media_errors", total, levels, seen)


def _media_errors(drive: Drive) -> int | None:
    """Of NVMe, or the uncorrected errors of SCSI."""
    media = drive.number("nvme_smart_health_information_log", "media_errors")
    if media is not None or drive.protocol == "NVMe" or drive.health:
        return None if media is None else int(media)
    counts = [
        drive.number("scsi_error_counter_log", way, "total_uncorrected_errors") for way in ("read", "write", "verify")
    ]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if known and not drive.attributes else None


def _attribute_growths(drive: Drive, seen: Seen) -> Iterator[tuple[int, str, Growth]]:
    """Of replaced sectors (any growth, or a large total at first sight) and of errors of the cable."""
    worn = Levels(warn=1, fail=1, window_h=ALWAYS_H, timeless=seen.limit(REALLOCATED))
    loose = Levels(warn=seen.limit(CRC_RATE), window_h=24, timeless=seen.limit(CRC_LIMIT))
    for number, name, levels in (
        (5, "reallocated sectors", worn),
        (187, "reported uncorrectable errors", worn),
        (199, "CRC errors", loose),
    ):
        total = drive.raw(number)
        if total is not None:
            yield number, name, _growth(drive, f"attribute_{number}", total, levels, seen)


def judge_smart(seen: Seen) -> Iterator[Symptom]:
    """Everything that a drive says of its own health, but wear and temperature."""
    for drive in judged(seen):
        if not drive.opened:
            yield _not_opened(drive)
            continue
        if drive.passed is None:
            yield _unread(drive, f"{drive.device}: no smart_status.passed")
        yield from _self_test(drive)
        if drive.protocol == "NVMe" or drive.health:
            yield from _nvme(drive, seen)
        else:
            yield from _overall(drive)
            yield from _ata(drive, seen) if drive.attributes else _scsi(drive, seen)


def _not_opened(drive: Drive) -> Symptom:
    said = "; ".join(drive.errors) or f"smartctl ended with {drive.exit_status} and read nothing"
    if FORBIDDEN.search(said):
        return _symptom(telemetry.NEEDS_ROOT, drive, said)
    if "No such device" in said or "Input/output error" in said:
        return _symptom(GONE, drive, said)
    return _unread(drive, said)


def _overall(drive: Drive) -> Iterator[Symptom]:
    rows = [f"{row.get('id')} {row.get('name')}" for row in drive.attributes.values() if _fails_now(row)]
    if drive.passed is False or drive.exit_status & DISK_FAILING:
        yield _symptom(FAILING, drive, f"{drive.device}: SMART overall: FAILED (exit status {drive.exit_status})")
    elif rows or drive.exit_status & PREFAIL_NOW:
        yield _symptom(FAILING, drive, f"{drive.device}: pre-failure attribute at its threshold: {', '.join(rows)}")
    elif drive.exit_status & COMMAND_FAILED and drive.passed is None:
        yield _unread(drive, f"{drive.device}: a SMART command failed (exit status {drive.exit_status})")


def _fails_now(row: Mapping[str, Any]) -> bool:
    """Below its threshold, and one whose threshold means failure rather than age."""
    flags = row.get("flags")
    ages = isinstance(flags, dict) and flags.get("prefailure") is False
    return str(row.get("when_failed")).lower() in ("now", "failing_now") and not ages


def _nvme(drive: Drive, seen: Seen) -> Iterator[Symptom]:
    names = ("critical_warning", "available_spare", "available_spare_threshold", "percentage_used", "media_errors")
    values = {name: drive.number("nvme_smart_health_information_log", name) for name in names}
    for name in (name for name, value in values.items() if value is None):
        yield _unread(drive, f"{drive.device}: {name} is {str(drive.health.get(name, 'missing'))[:40]}")
    bits = int(values["critical_warning"] or 0)
    for bit, words, cause in WARNING_BITS:
        if bits >> bit & 1:
            yield _symptom(cause, drive, f"{drive.device}: critical_warning {bits:#04x}: {words}")
    if drive.passed is False and not bits:
        yield _symptom(FAILING, drive, f"{drive.device}: smart_status.passed is false")
    spare, threshold = values["available_spare"], values["available_spare_threshold"]
    if spare is not None and threshold is not None and spare < threshold:
        yield _symptom(SPARE, drive, f"{drive.device}: available_spare {spare:g} is below its threshold {threshold:g}")
    yield from _media(drive, seen)


def _media(drive: Drive, seen: Seen) -> Iterator[Symptom]:
    growth = _media_growth(drive, seen)
    if growth is not None and growth.status != "ok":
        yield _symptom(MEDIA, drive, f"{drive.device}: media errors: {growth.says}", fails=growth.status == "fail")


def _ata(drive: Drive, seen: Seen) -> Iterator[Symptom]:
    for number, name in ((197, "pending"), (198, "offline uncorrectable")):
        count = drive.raw(number)
        if number in drive.attributes and count is None:
            yield _unread(drive, f"{drive.device}: attribute {number} has no raw number")
        elif count:
            evidence = f"{drive.device}: attribute {number}: {count} {name} sectors"
            yield _symptom(SECTORS, drive, evidence, fails=count >= seen.limit(SECTOR_LIMIT))
    for number, name, growth in _attribute_growths(drive, seen):
        if growth.status != "ok":
            cause = LINK if number == 199 else SECTORS
            yield _symptom(cause, drive, f"{drive.device}: attribute {number}: {name}: {growth.says}")


def _scsi(drive: Drive, seen: Seen) -> Iterator[Symptom]:
    yield from _media(drive, seen)
    defects = drive.number("scsi_grown_defect_list")
    if defects is not None and defects >= seen.limit(REALLOCATED):
        yield _symptom(SECTORS, drive, f"{drive.device}: {defects:g} grown defects")


def _self_test(drive: Drive) -> Iterator[Symptom]:
    """Only the newest one: an old failure that a later test did not repeat is past."""
    newest = _newest(drive.document, "nvme_self_test_log")
    for kind in ("extended", "standard"):
        newest = newest or _newest(drive.document, "ata_smart_self_test_log", kind)
    result = newest.get("status") or newest.get("self_test_result")
    if not isinstance(result, dict):
        return
    # NVMe result codes 5, 6 and 7 are failures (Base Specification, "Self-test Result Data Structure").
    words = str(result.get("string", "failed"))[:100]
    told = result.get("passed") is False or ("failure" in words and result.get("passed") is not True)
    if told or ("self_test_result" in newest and result.get("value") in (5, 6, 7)):
        yield _symptom(SELF_TEST, drive, f"{drive.device}: newest self-test: {words}")


def _newest(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """First row of a log's table, or nothing."""
    log: Any = document
    for key in path:
        log = log.get(key) if isinstance(log, dict) else None
    rows = log.get("table") if isinstance(log, dict) else None
    return rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}


def _counters(seen: Seen) -> Iterator[Counter]:
    for drive in judged(seen):
        media = _media_growth(drive, seen)
        yield from media.keep if media is not None else ()
        for _, _, growth in _attribute_growths(drive, seen):
            yield from growth.keep


def judge_temperature(seen: Seen) -> Iterator[Symptom]:
    """Against the drive's own limits where it names them."""
    for drive in judged(seen):
        now = _temperature(drive)
        if now is None:
            continue
        critical = _own_limit(drive, "critical", "critical_limit_max") or seen.limit(HOT_C)
        warning = _own_limit(drive, "warning", "op_limit_max") or min(seen.limit(WARM_C), critical)
        if now >= warning:
            evidence = f"{drive.device}: {now:g} C, warning at {warning:g}, critical at {critical:g}"
            yield _symptom(HOT, drive, evidence, fails=now >= critical)


def _temperature(drive: Drive) -> float | None:
    return drive.number("temperature", "current")


def _own_limit(drive: Drive, threshold: str, limit: str) -> float | None:
    own = drive.number("nvme_composite_temperature_threshold", threshold) or drive.number("temperature", limit)
    trip = drive.number("temperature", "drive_trip") if threshold == "critical" else None
    return own or trip


def _temperatures(seen: Seen) -> Iterator[Measure]:
    for drive in judged(seen):
        if (now := _temperature(drive)) is not None:
            yield Measure(
                name="drive.temperature_c", value=now, outlies=HOT, part=drive_part(drive), bad="high", least=15
            )


def judge_wear(seen: Seen) -> Iterator[Symptom]:
    """Rated endurance used; a drive lives on after 100 %, but its vendor does not promise it."""
    for drive in judged(seen):
        used = drive.number("nvme_smart_health_information_log", "percentage_used")
        for path in (("endurance_used", "current_percent"), ("scsi_percentage_used_endurance_indicator",)):
            used = drive.number(*path) if used is None else used
        if used is not None and used >= seen.limit(WEAR):
            yield _symptom(WORN, drive, f"{drive.device}: percentage_used {used:g}")


def _inventory(seen: Seen) -> Iterator[Trait]:
    drives = [drive for drive in seen.of(SMART) if drive.opened]
    yield Trait(name="drive.count", value=len(drives), differs=MISSING)
    models = Tally(drive.model for drive in drives if drive.model)
    text = ", ".join(f"{count} x {model}" for model, count in sorted(models.items()))
    if text:
        yield Trait(name="drive.models", value=text, differs=OTHER_MODEL)
    for drive in drives:
        if drive.model and drive.firmware:
            slug = sub(r"[^a-z0-9]+", "_", drive.model.lower()).strip("_")
            yield Trait(
                name=f"drive.firmware.{slug}", value=drive.firmware, differs=OTHER_FIRMWARE, part=drive_part(drive)
            )


def _identities(seen: Seen) -> Iterator[Identity]:
    for drive in seen.of(SMART):
        yield Identity(part=drive_part(drive), serial=drive.serial, model=drive.model)


CHECKS = (
    Check(
        name="drive.smart",
        about="drives that fail, lose data, run out of spare blocks or have a bad cable, by SMART",
        probes=(SMART,),
        parts=("drive",),
        causes=(FAILING, SPARE, MEDIA, SECTORS, SELF_TEST, LINK, GONE, HOT),
        limits=(MEDIA_LIMIT, SECTOR_LIMIT, REALLOCATED, CRC_LIMIT, CRC_RATE),
        judge=judge_smart,
        counters=_counters,
    ),
    Check(
        name="drive.temperature",
        about="drives above their own warning or critical temperature, or hotter than the fleet's",
        probes=(SMART,),
        parts=("drive",),
        causes=(HOT,),
        limits=(WARM_C, HOT_C),
        judge=judge_temperature,
        measures=_temperatures,
    ),
    Check(
        name="drive.wear",
        about="drives whose rated endurance is used up",
        probes=(SMART,),
        parts=("drive",),
        causes=(WORN,),
        limits=(WEAR,),
        judge=judge_wear,
    ),
    Check(
        name="drive.inventory",
        about="number, models and firmware of drives, against profile or fleet",
        probes=(SMART,),
        parts=("host", "drive"),
        causes=(MISSING, OTHER_MODEL, OTHER_FIRMWARE),
        traits=_inventory,
        identities=_identities,
        trait_names=("drive.count", "drive.models", "drive.firmware.*"),
    ),
)
