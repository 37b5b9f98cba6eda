"""The metrics, and their samples from what was told. Pure.

What is not known has no sample that could be read as good: a host is in one **state** and has one series, a host whose
latest sweep is too old is ``stale`` and its Findings are gone, and a source that cannot be read leaves
:data:`SOURCE_UP` at 0 and nothing else. The ages are exported as times, so that a reader sees by itself that a file is
no longer written.

Labels are bounded: a part is named by its kind, never by a serial number; of one host at most
:data:`MOST_OF_A_HOST` series of Findings are told apart, the rest are counted together as :data:`OTHERS`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from wholestack.finding import WORST_FIRST
from wholestack.health.export.exposition import Metric, Samples, clean
from wholestack.health.export.told import HostTold, SourceName, Told, joined
from wholestack.health.history.silences import Silence, silenced_by
from wholestack.health.history.spans import FindingSpan

MOST_OF_A_HOST = 12
OTHERS = "others"
"""Check and cause of Findings beyond that."""
PREFIX = "wholestack_health"

EXPORTED = Metric(
    name=f"{PREFIX}_export_timestamp_seconds",
    help="When these values were made; a file in which it is old is no longer written.",
)
SOURCE_UP = Metric(
    name=f"{PREFIX}_source_up",
    help="1 if the source could be read, else 0; then nothing else comes from it, and the log says why.",
    labels=("source",),
)
SOURCE_STALE = Metric(
    name=f"{PREFIX}_source_stale",
    help="1 if no host in the source was asked within its stated time, else 0.",
    labels=("source",),
    absent="the source cannot be read",
)
SWEEP_ENDED = Metric(
    name=f"{PREFIX}_sweep_end_timestamp_seconds",
    help="When the newest sweep in the source ended.",
    labels=("source",),
    absent="the source cannot be read",
)
SWEEP_SECONDS = Metric(
    name=f"{PREFIX}_sweep_duration_seconds",
    help="Wall time of asking the hosts in the newest sweep.",
    absent="no sweep is read, or it is stale",
)
SWEEP_ASKED = Metric(
    name=f"{PREFIX}_sweep_hosts_asked",
    help="Hosts that the newest sweep asked.",
    absent="no sweep is read, or it is stale",
)
SWEEP_ANSWERED = Metric(
    name=f"{PREFIX}_sweep_hosts_answered",
    help="Hosts of the newest sweep of which at least one check could be judged.",
    absent="no sweep is read, or it is stale",
)
HOST_STATE = Metric(
    name=f"{PREFIX}_host_state",
    help="1 for the state a host is in: may_train, may_not, unknown, silenced (all that is wrong is silenced) or"
    " stale (not asked within its stated time).",
    labels=("host", "kind", "state"),
    absent="the host is in another state",
)
HOST_SEEN = Metric(
    name=f"{PREFIX}_host_last_seen_timestamp_seconds",
    help="When the newest sweep that asked the host ended.",
    labels=("host",),
)
HOST_STALE_AFTER = Metric(
    name=f"{PREFIX}_host_stale_after_seconds",
    help="The stated time: how long after that sweep something is known of the host.",
    labels=("host",),
)
HOST_FINDINGS = Metric(
    name=f"{PREFIX}_host_findings",
    help="Findings of a host that are there and not silenced.",
    labels=("host", "status", "check", "part_kind", "cause", "owner"),
    absent="there is none, or the host is stale",
)
FINDINGS = Metric(
    name=f"{PREFIX}_findings",
    help="Findings of all hosts that are there and not silenced.",
    labels=("status", "check", "owner"),
    absent="there is none on a host that is not stale",
)
FINDINGS_SILENCED = Metric(
    name=f"{PREFIX}_findings_silenced",
    help="Findings of all hosts that are there and silenced by a person.",
    labels=("status", "check", "owner"),
    absent="there is none on a host that is not stale",
)
OFFENDER = Metric(
    name=f"{PREFIX}_repeat_offender_failures",
    help="Failures of a host that fails again sooner than a sound one would.",
    labels=("host",),
    absent="the host is no repeat offender, or no history is read",
)
DRAINED = Metric(
    name=f"{PREFIX}_host_drained",
    help="1 for a host that `wholestack health drain` drained, as the events in the history say.",
    labels=("host",),
    absent="the host is not drained by us, or no history is read",
)
METRICS = (
    EXPORTED, SOURCE_UP, SOURCE_STALE, SWEEP_ENDED, SWEEP_SECONDS, SWEEP_ASKED, SWEEP_ANSWERED, HOST_STATE, HOST_SEEN,
    HOST_STALE_AFTER, HOST_FINDINGS, FINDINGS, FINDINGS_SILENCED, OFFENDER, DRAINED,
)  # fmt: skip


def samples_of(sources: Mapping[SourceName, Told | None], *, now: float, stale_after_s: float | None = None) -> Samples:
    """All samples.

    Args:
        sources: What each tells; ``None`` where it could not be read.
        now: Seconds since the epoch.
        stale_after_s: The stated time of all hosts, where it is not to follow from how often they are asked.
    """
    samples: dict[Metric, dict[tuple[str, ...], float]] = {metric: {} for metric in METRICS}
    samples[EXPORTED][()] = now
    read = [_within(told, stale_after_s) for told in sources.values() if told is not None]
    for name, told in sources.items():
        samples[SOURCE_UP][(name,)] = float(told is not None)
    for told in read:
        fresh = told.is_fresh(now)
        samples[SOURCE_STALE][(told.source,)] = float(not fresh)
        samples[SWEEP_ENDED][(told.source,)] = told.ended
        if told.figures is not None and fresh:
            samples[SWEEP_SECONDS][()] = told.figures.seconds
            samples[SWEEP_ASKED][()] = told.figures.asked
            samples[SWEEP_ANSWERED][()] = told.figures.answered
        samples[OFFENDER].update({(clean(each.host),): each.failures for each in told.offenders})
        samples[DRAINED].update({(clean(name),): 1.0 for name in told.drained})
    silences = [silence for told in read for silence in told.silences if silence.is_active(now)]
    for each in joined(read):
        _host(samples, each, silences, now)
    return samples


def state_of(host: HostTold, loud: Sequence[FindingSpan], now: float) -> str:
    """The one state that a host is in.

    Args:
        host: What was told of it.
        loud: Its Findings that are not silenced.
        now: Seconds since the epoch.
    """
    if not host.is_fresh(now):
        return "stale"
    statuses = {each.status for each in loud}
    if "fail" in statuses:
        return "may_not"
    if "unknown" in statuses or not host.is_known(now):
        return "unknown"
    return "silenced" if {each.status for each in host.findings} & {"fail", "unknown"} else "may_train"


def _within(told: Told, stale_after_s: float | None) -> Told:
    if stale_after_s is None:
        return told
    return replace(
        told, hosts=tuple(replace(each, stale_s=stale_after_s, in_full_stale_s=stale_after_s) for each in told.hosts)
    )


def _host(
    samples: Mapping[Metric, dict[tuple[str, ...], float]],
    host: HostTold,
    silences: Sequence[Silence],
    now: float,
) -> None:
    name = clean(host.host)
    loud, silent = _heard(host.findings, silences, now)
    samples[HOST_STATE][(name, clean(host.kind), state_of(host, loud, now))] = 1
    samples[HOST_SEEN][(name,)] = host.at
    samples[HOST_STALE_AFTER][(name,)] = host.stale_s
    if host.is_fresh(now):
        for metric, spans in ((FINDINGS, loud), (FINDINGS_SILENCED, silent)):
            for span in spans:
                key = (span.status, clean(span.check), clean(span.owner))
                samples[metric][key] = samples[metric].get(key, 0) + 1
        samples[HOST_FINDINGS].update({(name, *key): count for key, count in _told_apart(loud).items()})


def _heard(
    spans: Sequence[FindingSpan], silences: Sequence[Silence], now: float
) -> tuple[list[FindingSpan], list[FindingSpan]]:
    """Those that nobody silenced, and the others."""
    if not silences:
        return list(spans), []
    both: tuple[list[FindingSpan], list[FindingSpan]] = ([], [])
    for span in spans:
        both[silenced_by(span, silences, now) is not None].append(span)
    return both


def _told_apart(spans: Sequence[FindingSpan]) -> dict[tuple[str, ...], int]:
    """Findings of one host by their labels, the worst first, as many as are told apart."""
    counts: Counter[tuple[str, ...]] = Counter()
    for each in sorted(spans, key=lambda each: (WORST_FIRST.index(each.status), each.check, each.part)):
        kind = clean(each.part.partition(" ")[0])
        counts[(each.status, clean(each.check), kind, clean(each.cause), clean(each.owner))] += 1
    shown = dict(islice(counts.items(), MOST_OF_A_HOST))
    for key, count in islice(counts.items(), MOST_OF_A_HOST, None):
        others = (key[0], OTHERS, "", OTHERS, "")
        shown[others] = shown.get(others, 0) + count
    return shown
