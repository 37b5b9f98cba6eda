"""Views that cannot be trusted, names that are not those of the plan, links below what they should be."""

import io
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.health.cabling.fabrics import STYLES, Style, Tree, spoil, tree
from tests.health.cabling.judged import judged, mend
from tests.health.shared_data import shared
from wholestack.health.cabling.files import judge_files
from wholestack.health.cabling.judging import Judged


def small() -> Tree:
    return tree(random.Random(11), units=2, hosts=3, uplinks=5)


def codes(found: Judged) -> list[tuple[str, str]]:
    """Subject and check of every Finding that is not ok."""
    return sorted((each.subject, each.check) for each in found.findings if each.status != "ok")


def judge(folder: Path, plan: str, *seen: str) -> Judged:
    """Texts as they are."""
    (folder / "plan.csv").write_text(plan)
    names = []
    for number, text in enumerate(seen):
        (folder / f"seen{number}.txt").write_text(text)
        names.append(str(folder / f"seen{number}.txt"))
    return judge_files(folder / "plan.csv", names, stdin=io.BytesIO(), now=0.0)


# A view that is not whole


@pytest.mark.parametrize("style", STYLES)
def test_an_output_that_is_cut_between_two_lines_never_makes_a_cable_missing(style: Style, tmp_path: Path) -> None:
    made = tree(random.Random(11), units=1, hosts=2, uplinks=3)
    lines = made.text(style).splitlines(keepends=True)
    whole = judge(tmp_path, made.plan(), "".join(lines))
    assert whole.status == "ok"
    for end in range(1, len(lines)):
        found = judge(tmp_path, made.plan(), "".join(lines[:end]))
        assert (found.work_order, found.right + found.unknown) == ((), found.planned), end
        assert found.status == ("unknown" if found.unknown else "ok")
        if style == "ibnetdiscover":
            assert found.right == 0


def test_a_topology_without_one_port_of_a_switch_says_which_other_misses_it(tmp_path: Path) -> None:
    made = small()
    text = made.text("ibnetdiscover")
    start = text.index('su00-leaf-r0:MQM9700/U1" enhanced')
    line = re.search(r"^\[2\]\t.*\n", text[start:], re.MULTILINE)
    assert line is not None
    found = judge(tmp_path, made.plan(), text.replace(line[0], ""))
    [unreadable] = [each for each in found.findings if each.check == "cabling.unreadable"]
    assert "gpu0001 mlx5_0 port 1 goes to port 2 of MF0;su00-leaf-r0" in unreadable.evidence[0]


# Names


@pytest.mark.parametrize("style", STYLES)
def test_a_switch_with_another_name_is_one_finding_and_its_cables_are_unknown(style: Style, tmp_path: Path) -> None:
    made = small()
    box = made.boxes["su00-leaf-r2"]
    made.boxes["su00-leaf-r2"] = replace(box, described="MF0;spare7:MQM9700/U1")
    found = judged(made, tmp_path, style)
    assert codes(found) == [("su00-leaf-r2", "cabling.renamed")]
    assert "spare7" in found.findings[0].evidence[0]
    assert (found.status, found.unknown, found.work_order) == ("unknown", 8, ())


def test_a_switch_named_by_its_guid_keeps_its_place_under_any_name(tmp_path: Path) -> None:
    made = small()
    box = made.boxes["su00-leaf-r2"]
    guid = f"0x{box.guid:016x}"
    made.boxes["su00-leaf-r2"] = replace(box, described="MF0;spare7:MQM9700/U1", planned_name=guid)
    found = judged(made, tmp_path, "ibnetdiscover")
    assert (found.status, found.right) == ("ok", found.planned)


def test_a_name_that_two_devices_have_is_said_and_nothing_is_said_of_their_cables(tmp_path: Path) -> None:
    made = small()
    twin = made.boxes["su01-leaf-r2"]
    made.boxes["su01-leaf-r2"] = replace(twin, described=made.boxes["su00-leaf-r2"].described)
    found = judged(made, tmp_path, "iblinkinfo --line")
    assert ("su00-leaf-r2", "cabling.names") in codes(found)
    assert found.status == "unknown"
    assert found.right + found.unknown == found.planned
    assert found.work_order == ()


def test_a_short_name_that_is_two_devices_is_ambiguous_and_of_one_is_it(tmp_path: Path) -> None:
    one = "Switch: 0x00000000000000a1 leaf1.hall1:\n" + linked(1, 1, 2, "leaf2")
    two = "Switch: 0x00000000000000b1 leaf1.hall2:\n" + linked(3, 5, 4, "leaf9")
    plan = "a,a_port,b,b_port\nleaf1,1,0xa2,1\n"
    peer = "Switch: 0x00000000000000a2 leaf2:\n" + linked(2, 1, 1, "leaf1.hall1")
    assert judge(tmp_path, plan, one + peer).status == "ok"
    found = judge(tmp_path, plan, one + peer + two)
    assert ("leaf1", "cabling.names") in codes(found)
    assert (found.unknown, found.work_order) == (1, ())


def test_a_port_of_a_switch_that_is_no_label_is_said(tmp_path: Path) -> None:
    made = small()
    found = judge(
        tmp_path, made.plan().replace("su00-leaf-r0,1/1/1,", "su00-leaf-r0,left one,"), made.text("iblinkinfo")
    )
    assert ("su00-leaf-r0 left one", "cabling.names") in codes(found)
    assert (found.unknown, found.right) == (1, found.planned - 1)


# Views that say two things


def linked(
    lid: int, port: int, there: int, name: str, *, width: str = "4X", lane: str = "106.25", could: str = " "
) -> str:
    """A line of ``iblinkinfo`` below a switch; LIDs tell the other end, at its port 1."""
    link = f"( {width}       {lane:>6} Gbps Active/  LinkUp)"
    return f'     {lid:6d} {port:4d}[  ] =={link}==>  {there:6d}    1[  ] "{name}" ({could})\n'


def test_two_views_of_two_times_are_a_conflict_and_no_fault(tmp_path: Path) -> None:
    made = small()
    before = made.text("iblinkinfo")
    spoil(made, random.Random(1), 1)
    after = made.text("iblinkinfo")
    [fault] = made.faults
    assert fault.kind == "swapped"
    assert {check for _, check in codes(judge(tmp_path, made.plan(), after))} == {"cabling.swapped"}
    found = judge(tmp_path, made.plan(), before, after)
    assert {check for _, check in codes(found)} == {"cabling.conflict"}
    assert (found.status, found.unknown, found.work_order) == ("unknown", 2, ())


def test_a_link_that_another_view_does_not_have_is_a_conflict(tmp_path: Path) -> None:
    made = small()
    before = made.text("iblinkinfo")
    leaf = ("su00-leaf-r0", 6)
    made.unplug(leaf)
    found = judge(tmp_path, made.plan(), before, made.text("iblinkinfo"))
    assert {check for _, check in codes(found)} == {"cabling.conflict"}
    assert (found.status, found.unknown, found.right) == ("unknown", 1, found.planned - 1)


# Links below what they should be

PAIR = "Switch: 0x00000000000000a1 leaf1:\n{}Switch: 0x00000000000000a2 leaf2:\n{}"


@pytest.mark.parametrize(
    ("planned", "width", "lane", "could", "is_reduced"),
    [
        ("4x,NDR", "4X", "106.25", " ", False),
        ("4X,ndr", "4X", "106.25", " ", False),
        (",", "1X", "2.5", " ", False),
        ("4x,NDR", "4X", "53.125", " ", True),
        ("4x,HDR", "4X", "106.25", " ", False),
        ("4x,NDR", "2X", "106.25", " ", True),
        ("2x,NDR", "4X", "106.25", " ", False),
        (",", "1X", "106.25", " Could be 4X", True),
        ("4x,warp", "4X", "53.125", " ", False),
    ],
)
def test_a_link_below_the_plan_or_below_what_both_ends_can_do_is_told(
    planned: str, width: str, lane: str, could: str, is_reduced: bool, tmp_path: Path
) -> None:
    first, second = (
        linked(a, 1, b, name, width=width, lane=lane, could=could) for a, b, name in ((1, 2, "leaf2"), (2, 1, "leaf1"))
    )
    found = judge(tmp_path, f"a,a_port,b,b_port,width,speed\nleaf1,1,leaf2,1,{planned}\n", PAIR.format(first, second))
    assert codes(found) == ([("leaf1", "cabling.reduced")] if is_reduced else [])
    assert found.right == 1
    assert [row.action for row in found.work_order] == (["look"] if is_reduced else [])


# Exchanged devices


def exchange(made: Tree, *names: str) -> None:
    """Each is found in the place of the one before: its name and GUID are there."""
    boxes = {name: [key for key, box in made.boxes.items() if box.planned_name == name] for name in names}
    old = {name: [made.boxes[key] for key in keys] for name, keys in boxes.items()}
    for name, other in zip(names, (*names[1:], names[0]), strict=True):
        for key, mine, its in zip(boxes[name], old[name], old[other], strict=True):
            made.boxes[key] = replace(mine, described=its.described, guid=its.guid, lid=its.lid)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "names",
    [("su00-leaf-r2", "su01-leaf-r2"), ("gpu0000", "gpu0004"), ("spine001", "spine002", "spine003")],
)
def test_devices_in_each_others_places_are_one_finding(style: Style, names: tuple[str, ...], tmp_path: Path) -> None:
    made = small()
    cables = {
        frozenset(link)
        for link in made.planned.items()
        if {made.boxes[plug[0]].planned_name for plug in link} & set(names)
    }
    exchange(made, *names)
    found = judged(made, tmp_path, style)
    [(subject, check)] = codes(found)
    assert (subject in names, check) == (True, "cabling.exchanged")
    assert all(any(name in line for line in found.findings[0].evidence) for name in names)
    assert (found.right, found.unknown) == (found.planned - len(cables), 0)
    assert sorted((row.action, row.device) for row in found.work_order) == sorted(("look", name) for name in names)


def test_a_fault_beside_an_exchange_is_told_by_the_names_of_the_plan(tmp_path: Path) -> None:
    made = small()
    a, b = ("su00-leaf-r2", 1), ("su00-leaf-r2", 2)
    first, second = made.unplug(a), made.unplug(b)
    made.plug_in(a, second)
    made.plug_in(b, first)
    exchange(made, "su00-leaf-r2", "su01-leaf-r2")
    found = judged(made, tmp_path, "iblinkinfo")
    assert sorted(check for _, check in codes(found)) == ["cabling.exchanged", "cabling.swapped"]
    moves = [row for row in found.work_order if row.action == "move"]
    assert {(row.device, row.port, row.to_port) for row in moves} == {
        ("su00-leaf-r2", "1/1/1", "1/1/2"), ("su00-leaf-r2", "1/1/2", "1/1/1"),
    }  # fmt: skip


def test_cables_swapped_at_less_than_half_of_the_ports_are_no_exchange(tmp_path: Path) -> None:
    made = small()
    for port in (1, 2, 3):
        a, b = ("su00-leaf-r2", port), ("su01-leaf-r2", port)
        first, second = made.unplug(a), made.unplug(b)
        made.plug_in(a, second)
        made.plug_in(b, first)
    for port in range(6, 11):
        made.unplug(("su00-leaf-r2", port))
        made.unplug(("su01-leaf-r2", port))
    checks = Counter(check for _, check in codes(judged(made, tmp_path, "ibnetdiscover")))
    assert checks == {"cabling.swapped": 3, "cabling.missing": 10}


def test_cables_of_two_switches_in_other_ports_of_each_other_are_no_exchange(tmp_path: Path) -> None:
    made = small()
    ports = [port for name, port in made.planned if name == "su00-leaf-r2"]
    leaves = ("su00-leaf-r2", "su01-leaf-r2")
    far = {(leaf, port): made.unplug((leaf, port)) for leaf in leaves for port in ports}
    for leaf, other in (leaves, leaves[::-1]):
        for port, there in zip(ports, [*ports[1:], ports[0]], strict=True):
            made.plug_in((leaf, there), far[other, port])
    found = judged(made, tmp_path, "iblinkinfo")
    assert {check for _, check in codes(found)} == {"cabling.ring"}
    mend(made, found)
    assert made.actual == made.planned


# Recorded outputs


def test_a_recorded_topology_is_as_a_plan_made_of_it_and_one_cable_less_is_unplanned(tmp_path: Path) -> None:
    path = shared("bench", "ib_traffic_topo_aware_ibnetdiscover.txt")
    if not path.is_file():
        pytest.skip("the recorded topology is not there")
    text = path.read_text()
    ports = re.compile(r'^\[(\d+)\]\s+"[SH]-\w+"\[(\d+)\].*?# "(?:MF0;(\S+):\w+/(\S+)|(\w+) (ib\w+))"', re.MULTILINE)
    rows = []
    for block in text.split("vendid="):
        head = re.search(r'^Switch.*# "MF0;(\S+):\w+/(\S+)"', block, re.MULTILINE)
        if head is None:
            continue
        own = head[1] if head[2] == "U1" else f"{head[1]}/{head[2]}"
        for port, there, switch, module, host, adapter in ports.findall(block):
            other = switch if module == "U1" else f"{switch}/{module}"
            if host:
                rows.append(f"{own},{port},{host.lower()},{adapter}")
            elif (own, port) < (other, there):
                rows.append(f"{own},{port},{other},{there}")
    assert len(rows) > 10
    plan = "\n".join(["a,a_port,b,b_port", *rows]) + "\n"
    assert judge(tmp_path, plan, text).status == "ok"
    found = judge(tmp_path, plan.replace(rows[-1] + "\n", ""), text)
    assert [check for _, check in codes(found)] in (["cabling.unplanned"], ["cabling.stranger"])


@pytest.mark.parametrize("name", ["test.out", "test2.out"])
def test_recorded_ports_of_parts_of_a_fabric_make_nothing_missing(name: str, tmp_path: Path) -> None:
    path = shared("ib", "ibnetdiscover", name)
    if not path.is_file():
        pytest.skip("the recorded ports are not there")
    plan = "ib-i1l1s01,10,o0001,HCA-1\nib-i1l1s01,12,o0003,HCA-1\n5FB0405-leaf-IB01,79,worker20,mlx5_3\n"
    found = judge(tmp_path, f"a,a_port,b,b_port\n{plan}", path.read_text())
    assert found.status == "unknown"
    assert found.right == 1
    assert not [check for _, check in codes(found) if check in ("cabling.missing", "cabling.down", "cabling.absent")]
