"""A rail-optimised fat tree with three levels: as plan, as text of the real tools, with faults that are known.

Shares nothing with the detector: formats are written from the tools' sources, truth is what is plugged in where.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Plug = tuple[str, int]
"""Node and port."""
Style = Literal["ibnetdiscover", "ibnetdiscover -p", "iblinkinfo", "iblinkinfo --line"]
STYLES: tuple[Style, ...] = ("ibnetdiscover", "ibnetdiscover -p", "iblinkinfo", "iblinkinfo --line")
RAILS = 8


@dataclass(frozen=True, kw_only=True)
class Box:
    """One node of the fabric."""

    kind: Literal["CA", "SW"]
    guid: int
    described: str
    """As the tools print it."""
    lid: int
    planned_name: str
    planned_port: str = ""
    """Of an adapter, which has one port."""
    rack: str
    unit: int


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that is wrong."""

    kind: str
    """``swapped``, ``ring``, ``wrong_port``, ``wrong_rail``, ``displaced``, ``missing``, ``unplanned``."""
    plugs: frozenset[Plug]
    """Ports of the planned cables concerned; of an unplanned one, where it is."""
    moves: int
    """That it took."""
    strays: frozenset[Plug] = frozenset()
    """Ports that are in no plan and have a plug."""

    @property
    def touched(self) -> frozenset[Plug]:
        """Every port that may be named."""
        return self.plugs | self.strays


@dataclass(kw_only=True)
class Tree:
    """What was planned and what is plugged in."""

    boxes: dict[str, Box]
    ports: dict[str, int]
    planned: dict[Plug, Plug]
    """Both ways."""
    actual: dict[Plug, Plug]
    rails: dict[str, str]
    """Of adapters and leaves."""
    faults: list[Fault] = field(default_factory=list)

    def plan(self) -> str:
        """CSV."""
        rows = ["a,a_port,b,b_port,a_rack,a_unit,b_rack,b_unit,rail,label,lot,part_number"]
        for number, (a, b) in enumerate(each for each in self.planned.items() if each[0] < each[1]):
            here, there = self.boxes[a[0]], self.boxes[b[0]]
            rail = self.rails.get(a[0], "") if "CA" in (here.kind, there.kind) else ""
            rows.append(
                f"{here.planned_name},{self.label(a)},{there.planned_name},{self.label(b)},{here.rack},{here.unit},"
                f"{there.rack},{there.unit},{rail},C{number:05d},L{number % 40},MCP4Y10-N001"
            )
        return "\n".join(rows) + "\n"

    def label(self, plug: Plug) -> str:
        """As the plan writes a port: switches have cages with two ports each."""
        box = self.boxes[plug[0]]
        return box.planned_port or f"1/{(plug[1] + 1) // 2}/{(plug[1] - 1) % 2 + 1}"

    def names(self) -> dict[tuple[str, str], Plug]:
        """Plugs by what the plan, or the tools, call them; a switch's port also by its number."""
        found: dict[tuple[str, str], Plug] = {}
        for name, box in self.boxes.items():
            for port in range(1, self.ports[name] + 1):
                found[box.planned_name, self.label((name, port))] = (name, port)
                if box.kind == "SW":
                    found[box.planned_name, str(port)] = (name, port)
        return found

    def unplug(self, plug: Plug) -> Plug:
        """Take a cable out at both ends; gives the other end."""
        other = self.actual.pop(plug)
        del self.actual[other]
        return other

    def plug_in(self, a: Plug, b: Plug) -> None:
        """Put a cable in."""
        if a in self.actual or b in self.actual:
            raise ValueError(f"{a} or {b} has a cable")
        self.actual[a], self.actual[b] = b, a

    def text(self, style: Style) -> str:
        """What a tool prints of it; an adapter without a link is not found by any."""
        return "\n".join(
            {"ibnetdiscover": self._topology, "ibnetdiscover -p": self._ports}.get(style, lambda: self._links(style))()
        )

    def _alive(self) -> Iterator[tuple[str, Box, list[int]]]:
        for name, box in self.boxes.items():
            used = [port for port in range(1, self.ports[name] + 1) if (name, port) in self.actual]
            if used:
                yield name, box, used

    def _topology(self) -> list[str]:
        lines = ["#", "# Topology file: generated", "#"]
        for name, box, used in sorted(self._alive(), key=lambda each: each[1].kind, reverse=True):
            letter, word = ("S", "Switch") if box.kind == "SW" else ("H", "Ca")
            lines += [
                "",
                "vendid=0x2c9",
                f"sysimgguid=0x{box.guid:x}",
                f"{word.lower()}guid=0x{box.guid:x}({box.guid:x})",
            ]
            tail = f"enhanced port 0 lid {box.lid} lmc 0" if box.kind == "SW" else ""
            lines.append(
                f'{word}\t{self.ports[name]} "{letter}-{box.guid:016x}"\t\t# "{box.described}" {tail}'.rstrip()
            )
            for port in used:
                there, number = self.actual[name, port]
                peer = self.boxes[there]
                sign, more = ("S", "") if peer.kind == "SW" else ("H", f"({peer.guid:x})")
                own = f"lid {box.lid} lmc 0 " if box.kind == "CA" else ""
                mine = f"({box.guid:x})" if box.kind == "CA" else ""
                head = f'[{port}]{mine}\t"{sign}-{peer.guid:016x}"[{number}]{more}\t\t'
                lines.append(f'{head}# {own}"{peer.described}" lid {peer.lid} 4xNDR')
        return lines

    def _ports(self) -> list[str]:
        lines = []
        for name, box, _ in self._alive():
            for port in range(1, self.ports[name] + 1):
                head = f"{box.kind} {box.lid:5d} {port:2d} 0x{box.guid:016x}"
                if (name, port) not in self.actual:
                    lines.append(f"{head} 4x SDR{' ' * 36}'{box.described}'")
                    continue
                there, number = self.actual[name, port]
                peer = self.boxes[there]
                lines.append(
                    f"{head} 4x NDR - {peer.kind} {peer.lid:5d} {number:2d} 0x{peer.guid:016x} "
                    f"( '{box.described}' - '{peer.described}' )"
                )
        return lines

    def _links(self, style: Style) -> list[str]:
        lines = []
        is_line = style == "iblinkinfo --line"
        for name, box, _ in self._alive():
            if not is_line:
                lines.append(
                    f"Switch: 0x{box.guid:016x} {box.described}:" if box.kind == "SW" else f"CA: {box.described}:"
                )
            for port in range(1, self.ports[name] + 1):
                head = f'0x{box.guid:016x} "{box.described:>30}" ' if is_line else " " * 6
                if box.kind == "CA" and not is_line:
                    head += f"0x{box.guid:016x} "
                head += f"{box.lid:6d} {port:4d}[  ] =="
                if (name, port) not in self.actual:
                    lines.append(f'{head}(                Down/ Polling)==>             [  ] "" ( )')
                    continue
                there, number = self.actual[name, port]
                peer = self.boxes[there]
                guid = f"0x{peer.guid:016x} " if is_line else ""
                lines.append(
                    f"{head}( 4X       106.25 Gbps Active/  LinkUp)==>  {guid}{peer.lid:6d} {number:4d}[  ] "
                    f'"{peer.described}" ( )'
                )
        return lines


def tree(rng: random.Random, *, units: int, hosts: int, uplinks: int) -> Tree:
    """A fabric as planned.

    Args:
        rng: For GUIDs.
        units: Scalable units, each with one leaf a rail.
        hosts: In a unit.
        uplinks: Of a leaf, and of a spine; leaves have twice as many ports, two at least of them free.
    """
    made = Tree(boxes={}, ports={}, planned={}, actual={}, rails={})
    guids = iter(
        rng.sample(range(0x08C0EB0300000000, 0x08C0EB0300FFFFFF, 4), 8 * units * (hosts + 2) + 4 * uplinks * units)
    )
    lids = iter(range(1, 1_000_000))

    def switch(name: str, ports: int, rack: str, unit: int) -> None:
        box = Box(
            kind="SW", guid=next(guids), described=f"MF0;{name}:MQM9700/U1", lid=next(lids), planned_name=name,
            rack=rack, unit=unit,
        )  # fmt: skip
        made.boxes[name], made.ports[name] = box, ports

    def cable(a: Plug, b: Plug) -> None:
        made.planned[a], made.planned[b] = b, a

    for unit in range(units):
        for rail in range(RAILS):
            leaf = f"su{unit:02d}-leaf-r{rail}"
            switch(leaf, 2 * uplinks, f"L{unit:02d}", 40 - rail)
            made.rails[leaf] = f"r{rail}"
            for host in range(hosts):
                name = f"gpu{unit * hosts + host:04d}"
                adapter = f"{name}/{rail}"
                made.boxes[adapter] = Box(
                    kind="CA", guid=next(guids), described=f"{name} mlx5_{rail}", lid=next(lids), planned_name=name,
                    planned_port=f"mlx5_{rail}", rack=f"G{unit:02d}{host // 4:02d}", unit=8 * (host % 4) + 1,
                )  # fmt: skip
                made.ports[adapter] = 1
                made.rails[adapter] = f"r{rail}"
                cable((adapter, 1), (leaf, host + 1))
    leaves = [name for name in made.boxes if "-leaf-" in name]
    spines = [f"spine{number:03d}" for number in range(len(leaves))]
    for number, name in enumerate(spines):
        switch(name, 2 * uplinks, f"S{number // 10:02d}", number % 10 + 1)
    for number in range(-(-len(spines) // 2)):
        switch(f"core{number:03d}", 2 * uplinks, f"K{number // 10:02d}", number % 10 + 1)
    down = dict.fromkeys((*made.boxes,), 0)
    for place, lower in enumerate((*leaves, *spines)):
        upper = spines if lower in leaves else [f"core{number:03d}" for number in range(-(-len(spines) // 2))]
        for link in range(uplinks):
            there = upper[(place % len(leaves) * uplinks + link) % len(upper)]
            down[there] += 1
            cable((lower, uplinks + link + 1), (there, down[there]))
    made.actual = dict(made.planned)
    return made


KINDS = ("swapped", "ring", "wrong_port", "wrong_rail", "displaced", "missing", "unplanned")


def spoil(made: Tree, rng: random.Random, count: int) -> None:
    """Plant faults, each at ports of its own, so that each is a story of its own."""
    free = [
        (name, port)
        for name in made.boxes
        if "-leaf-" in name
        for port in range(1, made.ports[name] + 1)
        if (name, port) not in made.planned
    ]
    rng.shuffle(free)
    plugs = sorted(plug for plug in made.planned if plug < made.planned[plug])

    def draw() -> tuple[Plug, Plug]:
        """A cable that was not drawn before; the host's end first."""
        while True:
            a = rng.choice(plugs)
            b = made.planned[a]
            if a not in touched:
                touched.update((a, b))
                return (a, b) if made.boxes[b[0]].kind == "SW" else (b, a)

    touched: set[Plug] = set()
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        if kind in ("swapped", "ring"):
            cables = [draw() for _ in range(2 if kind == "swapped" else rng.randint(3, 6))]
            for a, _ in cables:
                made.unplug(a)
            for (a, _), (_, b) in zip(cables, [*cables[1:], cables[0]], strict=True):
                made.plug_in(a, b)
            made.faults.append(Fault(kind=kind, plugs=frozenset(sum(cables, ())), moves=len(cables)))
        elif kind in ("wrong_port", "wrong_rail"):
            a, b = draw()
            while made.boxes[a[0]].kind != "CA":
                a, b = draw()
            same = kind == "wrong_port"
            there = next(
                plug for plug in free if (plug[0] == b[0] if same else made.rails[plug[0]] != made.rails[b[0]])
            )
            free.remove(there)
            made.unplug(a)
            made.plug_in(a, there)
            made.faults.append(Fault(kind=kind, plugs=frozenset((a, b)), moves=1, strays=frozenset({there})))
        elif kind == "displaced":
            (a, b), (c, d) = draw(), draw()
            while made.rails.get(b[0]) != made.rails.get(d[0]):
                c, d = draw()
            made.unplug(a)
            made.unplug(c)
            made.plug_in(a, d)
            made.faults.append(Fault(kind=kind, plugs=frozenset((a, b, c, d)), moves=2))
        elif kind == "missing":
            a, b = draw()
            made.unplug(a)
            made.faults.append(Fault(kind=kind, plugs=frozenset((a, b)), moves=1))
        else:
            a, b = free.pop(), free.pop()
            made.plug_in(a, b)
            made.faults.append(Fault(kind=kind, plugs=frozenset((a, b)), moves=1))
