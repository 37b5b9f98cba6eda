"""Planned and seen links laid over each other: what differs falls apart into paths and rings.

Every port has at most one planned and at most one seen link, so a connected piece of both together is a path or a ring
on which planned and seen links alternate. A link as planned is a ring of two ports and is passed over. In a ring of
``k`` planned and ``k`` seen links every seen link has an end that is not where it belongs, and moving one end of each,
always the same way round, mends them all: ``k`` moves, and fewer do not (Berge 1957 on alternating paths).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

P = TypeVar("P", bound=tuple[str, str])
Layer = Literal["plan", "seen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component(Generic[P]):
    """Ports in order; between one and the next is a link, planned and seen in turn."""

    ports: tuple[P, ...]
    first: Layer
    """What is between the first two."""
    is_ring: bool
    """Whether the last is linked to the first as well."""

    def links(self, layer: Layer) -> list[tuple[P, P]]:
        """Links of one layer, in order; each as it is walked."""
        start = 0 if self.first == layer else 1
        ports = (*self.ports, self.ports[0]) if self.is_ring else self.ports
        return [(ports[place], ports[place + 1]) for place in range(start, len(ports) - 1, 2)]


def components(planned: Mapping[P, P], seen: Mapping[P, P]) -> Iterator[Component[P]]:
    """Pieces in which plan and view differ.

    Args:
        planned: The other end of each planned port, both ways.
        seen: The same of seen links.

    Returns:
        In the order of ``planned``, then of ``seen``. Time and memory grow with the number of links.
    """
    done: set[P] = set()
    for layer in (planned, seen):
        for port in layer:
            if port in done:
                continue
            there = planned.get(port)
            if there is not None and seen.get(port) == there:
                done.update((port, there))
                continue
            piece = _piece(port, planned, seen)
            done.update(piece.ports)
            yield piece


def _piece(port: P, planned: Mapping[P, P], seen: Mapping[P, P]) -> Component[P]:
    onward, is_ring = _walk(port, planned, seen)
    if is_ring:
        return Component(ports=tuple(onward), first="plan", is_ring=True)
    back, _ = _walk(port, seen, planned)
    ports = (*reversed(back[1:]), *onward)
    return Component(ports=ports, first="plan" if planned.get(ports[0]) == ports[1] else "seen", is_ring=False)


def _walk(port: P, now: Mapping[P, P], then: Mapping[P, P]) -> tuple[list[P], bool]:
    """From a port along links of one layer, then the other, until there is none or it is back."""
    ports = [port]
    while (following := now.get(ports[-1])) is not None:
        if following == port:
            return ports, True
        ports.append(following)
        now, then = then, now
    return ports, False
