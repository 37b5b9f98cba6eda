"""Pieces in which plan and view differ: every link once, alternating; the fewest moves; time that grows with links."""

import io
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wholestack.health.cabling.components import components
from wholestack.health.cabling.files import judge_files

Port = tuple[str, str]


def both(links: list[tuple[Port, Port]]) -> dict[Port, Port]:
    """Both ways."""
    return {port: other for a, b in links for port, other in ((a, b), (b, a))}


@st.composite
def matchings(draw: st.DrawFn, most: int = 12) -> dict[Port, Port]:
    """Some links between few ports, each with one link at most."""
    ports = draw(st.permutations([("d", str(number)) for number in range(most)]))
    count = draw(st.integers(0, most // 2))
    return both([(ports[2 * place], ports[2 * place + 1]) for place in range(count)])


@given(planned=matchings(), seen=matchings())
def test_every_differing_link_is_in_one_piece_and_pieces_alternate(
    planned: dict[Port, Port], seen: dict[Port, Port]
) -> None:
    found: dict[str, list[frozenset[Port]]] = {"plan": [], "seen": []}
    for piece in components(planned, seen):
        for layer, links in (("plan", planned), ("seen", seen)):
            for a, b in piece.links("plan" if layer == "plan" else "seen"):
                assert links[a] == b
                found[layer].append(frozenset((a, b)))
        assert abs(len(piece.links("plan")) - len(piece.links("seen"))) <= 1
        assert piece.is_ring == (all(port in planned and port in seen for port in piece.ports))
    for layer, links, other in (("plan", planned, seen), ("seen", seen, planned)):
        expected = {frozenset(link) for link in links.items() if other.get(link[0]) != link[1]}
        assert len(found[layer]) == len(set(found[layer]))
        assert set(found[layer]) == expected


class Counting(Mapping[Port, Port]):
    """Counts how often it is asked."""

    def __init__(self, held: dict[Port, Port]) -> None:
        self.held, self.asked = held, 0

    def __getitem__(self, port: Port) -> Port:
        self.asked += 1
        return self.held[port]

    def __iter__(self) -> Iterator[Port]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)


@pytest.mark.parametrize("is_ring", [False, True])
def test_looks_grow_with_the_number_of_cables_even_in_one_long_chain(is_ring: bool) -> None:
    def asked(count: int) -> int:
        planned = both([(("a", str(n)), ("b", str(n))) for n in range(count)])
        shifted = [(("a", str(n)), ("b", str((n + 1) % count))) for n in range(count - (not is_ring))]
        maps = Counting(planned), Counting(both(shifted))
        [piece] = components(*maps)
        assert len(piece.links("plan")) == count
        return sum(each.asked for each in maps)

    assert asked(4000) <= 2 * asked(2000) + 20
    assert asked(4000) <= 10 * 4000


def fewest_moves(planned: dict[Port, Port], seen: dict[Port, Port]) -> int:
    """By trying every way to take seen cables for planned ones: plugs that are not where they belong."""
    wanted = list({frozenset(link) for link in planned.items()})
    there = list({frozenset(link) for link in seen.items()})
    few, many = sorted((wanted, there), key=len)
    return min(
        sum(2 - len(a & b) for a, b in zip(chosen, order, strict=True))
        for chosen in combinations(few, len(few))
        for order in permutations(many, len(few))
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(planned=matchings(8), seen=matchings(8))
def test_the_work_order_has_the_fewest_moves_there_can_be(
    planned: dict[Port, Port], seen: dict[Port, Port], tmp_path: Path
) -> None:
    """Ports of one switch; cables that are too many or missing are taken out or plugged in."""
    plan = ["a,a_port,b,b_port"]
    plan += [f"sw,{int(a) + 1},sw,{int(b) + 1}" for (_, a), (_, b) in planned.items() if a < b]
    lines = ["Switch: 0x0000000000000abc sw:"]
    for number in range(8):
        peer = seen.get(("d", str(number)))
        head = f"          1 {number + 1:4d}[  ] =="
        up = "( 4X       106.25 Gbps Active/  LinkUp)==>       1"
        lines.append(
            f'{head}{up} {int(peer[1]) + 1:4d}[  ] "sw" ( )'
            if peer
            else f'{head}(                Down/ Polling)==>             [  ] "" ( )'
        )
    if len(plan) == 1:
        return
    (tmp_path / "plan.csv").write_text("\n".join(plan))
    (tmp_path / "seen.txt").write_text("\n".join(lines))
    found = judge_files(tmp_path / "plan.csv", [str(tmp_path / "seen.txt")], stdin=io.BytesIO(), now=0.0)
    moved = sum(row.action == "move" for row in found.work_order)
    # A cable that is missing in one place and too many in another is plugged in and taken out: both its plugs.
    apart = min(
        sum(row.action in ("look", "plug in") for row in found.work_order),
        sum(row.action == "take out" for row in found.work_order),
    )
    assert moved + 2 * apart == fewest_moves(planned, seen)
