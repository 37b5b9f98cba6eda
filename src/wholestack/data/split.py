"""Which clusters of documents are held out.

Clusters are taken in the order of a seeded hash of their first member, so the choice does not depend on how the
sources are ordered, until each source has its share of bytes. A cluster that would overshoot a share by more than
15 %, or that alone is more than a quarter of one, stays in training: the held-out text is to be many documents.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wholestack.data.source import Split

OVERSHOOT = 1.15
LARGEST_PART = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What the split needs to know of one document."""

    id: str
    """Identity of the document."""
    source: str
    """Name of its source."""
    size_bytes: int
    """Its length."""
    cluster: int
    """Label of its cluster."""


def choose_splits(members: Sequence[Member], *, fraction: float, seed: int) -> list[Split]:
    """Split of every document; members of a cluster share one.

    A source of two or more clusters always has at least one held out (its smallest if all are too large).

    Args:
        members: The documents.
        fraction: Share of each source's bytes to hold out, 0 for none.
        seed: Another seed holds out others.
    """
    clusters: dict[int, list[Member]] = {}
    for member in members:
        clusters.setdefault(member.cluster, []).append(member)
    ordered = sorted(clusters.values(), key=lambda cluster: _order(cluster, seed))
    held_out = _held_out(ordered, fraction) if fraction > 0 else set()
    return ["held_out" if member.cluster in held_out else "train" for member in members]


def _order(cluster: Sequence[Member], seed: int) -> str:
    first = min(member.id for member in cluster)
    return hashlib.sha256(f"{seed}:{first}".encode()).hexdigest()


def _held_out(ordered: Sequence[Sequence[Member]], fraction: float) -> set[int]:
    shares = {source: fraction * size for source, size in _sizes(member for each in ordered for member in each).items()}
    taken = dict.fromkeys(shares, 0)
    chosen: set[int] = set()

    def take(cluster: Sequence[Member]) -> None:
        chosen.add(cluster[0].cluster)
        for source, size in _sizes(cluster).items():
            taken[source] += size

    for cluster in ordered:
        sizes = _sizes(cluster)
        wanted = any(taken[source] < shares[source] for source in sizes)
        if wanted and all(_fits(size, taken[source], shares[source]) for source, size in sizes.items()):
            take(cluster)
    for source in shares:
        of_source = [each for each in ordered if source in _sizes(each)]
        if not taken[source] and len(of_source) > 1:
            take(min(of_source, key=lambda each: _sizes(each)[source]))
    return chosen


def _fits(size: int, taken: int, share: float) -> bool:
    return size <= LARGEST_PART * share and taken + size <= OVERSHOOT * share


def _sizes(members: Iterable[Member]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for member in members:
        sizes[member.source] = sizes.get(member.source, 0) + member.size_bytes
    return sizes
