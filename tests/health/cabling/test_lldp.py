"""Ethernet cables by LLDP of many hosts: each as planned or not; what nobody heard of is unknown, never missing."""

import io
import json
from pathlib import Path

import pytest

from wholestack.health.cabling.files import judge_files
from wholestack.health.cabling.judging import Judged

HOSTS = [f"gpu{number:03d}" for number in range(1, 7)]
PLAN = {(host, f"eth{rail}"): (f"tor{rail}", f"swp{HOSTS.index(host) + 1}") for host in HOSTS for rail in (0, 1)}


def lldp(links: dict[str, tuple[str, str]]) -> str:
    """As ``lldpctl -f json`` of one host."""
    held = [
        {
            interface: {
                "via": "LLDP",
                "chassis": {name: {"id": {"type": "mac", "value": "0c:42:a1:00:00:01"}}},
                "port": {"id": {"type": "ifname", "value": port}, "descr": f"number {port[3:]}"},
            }
        }
        for interface, (name, port) in links.items()
    ]
    return json.dumps({"lldp": {"interface": held[0] if len(held) == 1 else held} if held else {}})


def heard(**other: dict[str, tuple[str, str]]) -> dict[str, dict[str, tuple[str, str]]]:
    """Neighbours of every host as planned, but of those named."""
    planned = {host: {f"eth{rail}": PLAN[host, f"eth{rail}"] for rail in (0, 1)} for host in HOSTS}
    return planned | other


def judge(folder: Path, hosts: dict[str, dict[str, tuple[str, str]]], plan: str = "") -> Judged:
    """Of a folder with a file a host."""
    rows = [f"{host},{port},{tor},{there},r{port[-1]}" for (host, port), (tor, there) in PLAN.items()]
    (folder / "plan.csv").write_text(plan or "\n".join(["a,a_port,b,b_port,rail", *rows]) + "\n")
    seen = folder / "seen"
    seen.mkdir()
    for host, links in hosts.items():
        (seen / f"{host}.json").write_text(lldp(links))
    return judge_files(folder / "plan.csv", [str(seen)], stdin=io.BytesIO(), now=0.0)


def codes(found: Judged) -> list[tuple[str, str]]:
    """Subject and check of every Finding that is not ok."""
    return sorted((each.subject, each.check) for each in found.findings if each.status != "ok")


def test_a_folder_as_planned_is_ok(tmp_path: Path) -> None:
    found = judge(tmp_path, heard())
    assert (found.status, found.right, found.unknown, found.work_order) == ("ok", 12, 0, ())


def test_the_folder_may_be_named_by_the_host(tmp_path: Path) -> None:
    for host, links in heard().items():
        (tmp_path / "all" / host).mkdir(parents=True)
        (tmp_path / "all" / host / "lldp.json").write_text(lldp(links))
    found = judge(tmp_path, heard(gpu001={"eth0": ("tor0", "swp1")}))
    again = judge_files(tmp_path / "plan.csv", [str(tmp_path / "all")], stdin=io.BytesIO(), now=0.0)
    assert (found.status, again.status, again.right) == ("fail", "ok", 12)


def test_swapped_missing_and_wrong_rail_are_told(tmp_path: Path) -> None:
    found = judge(
        tmp_path,
        heard(
            gpu001={"eth0": ("tor0", "swp2"), "eth1": ("tor1", "swp1")},
            gpu002={"eth0": ("tor0", "swp1"), "eth1": ("tor1", "swp2")},
            gpu003={"eth1": ("tor1", "swp3")},
            gpu004={"eth0": ("tor1", "swp9"), "eth1": ("tor1", "swp4")},
        ),
    )
    assert codes(found) == [
        ("gpu001", "cabling.swapped"), ("gpu003", "cabling.missing"), ("gpu004", "cabling.wrong_rail"),
    ]  # fmt: skip
    [row] = [row for row in found.work_order if row.why == "cabling.wrong_rail"]
    assert (row.device, row.port, row.to_device, row.to_port) == ("tor1", "swp9", "tor0", "swp4")


def test_two_swapped_pairs_of_hosts_with_two_cables_are_swaps(tmp_path: Path) -> None:
    hosts = heard()
    found = judge(tmp_path, hosts | {"gpu001": hosts["gpu002"], "gpu002": hosts["gpu001"]})
    assert codes(found) == [("gpu001", "cabling.swapped")] * 2


def test_a_host_without_an_output_is_unknown_and_not_missing(tmp_path: Path) -> None:
    hosts = heard()
    del hosts["gpu005"]
    found = judge(tmp_path, hosts)
    assert codes(found) == [("plan", "cabling.not_seen")]
    assert (found.status, found.right, found.unknown, found.work_order) == ("unknown", 10, 2, ())


def test_a_host_that_hears_nothing_at_all_is_unknown(tmp_path: Path) -> None:
    found = judge(tmp_path, heard(gpu005={}))
    assert {check for _, check in codes(found)} == {"cabling.not_seen", "cabling.unreadable"}
    assert (found.status, found.unknown, found.work_order) == ("unknown", 2, ())


def test_an_output_that_names_no_host_is_unreadable(tmp_path: Path) -> None:
    judge(tmp_path, heard())
    text = io.BytesIO(lldp(heard()["gpu001"]).encode())
    found = judge_files(tmp_path / "plan.csv", ["-"], stdin=text, now=0.0)
    assert "cabling.unreadable" in {check for _, check in codes(found)}
    assert (found.status, found.right) == ("unknown", 0)


def test_an_interface_that_hears_two_switches_is_unknown(tmp_path: Path) -> None:
    text = lldp({"eth1": ("tor1", "swp1"), "eth0": ("tor0", "swp1")})
    hosts = heard()
    del hosts["gpu001"]
    judge(tmp_path, hosts)
    twice = json.loads(text)
    twice["lldp"]["interface"].append(json.loads(lldp({"eth0": ("tor0", "swp30")}))["lldp"]["interface"])
    (tmp_path / "seen" / "gpu001.json").write_text(json.dumps(twice))
    found = judge_files(tmp_path / "plan.csv", [str(tmp_path / "seen")], stdin=io.BytesIO(), now=0.0)
    assert codes(found) == [("gpu001", "cabling.conflict")]
    assert (found.right, found.unknown, found.work_order) == (11, 1, ())


@pytest.mark.parametrize("where", ["plan", "outputs"])
def test_domains_do_not_matter(where: str, tmp_path: Path) -> None:
    end = ".cluster.example"
    if where == "plan":
        rows = [f"{host}{end},{port},{tor}{end},{there}" for (host, port), (tor, there) in PLAN.items()]
        found = judge(tmp_path, heard(), "\n".join(["a,a_port,b,b_port", *rows]))
    else:
        hosts = {
            f"{host}{end}": {port: (tor + end, there) for port, (tor, there) in links.items()}
            for host, links in heard().items()
        }
        found = judge(tmp_path, hosts)
    assert (found.status, found.right) == ("ok", 12)


def test_the_plan_may_name_a_port_by_its_description(tmp_path: Path) -> None:
    rows = [f"{host},{port},{tor},number {there[3:]}" for (host, port), (tor, there) in PLAN.items()]
    found = judge(tmp_path, heard(), "\n".join(["a,a_port,b,b_port", *rows]))
    assert (found.status, found.right) == ("ok", 12)


def test_names_of_ports_that_are_all_others_are_said_and_nothing_is_missing(tmp_path: Path) -> None:
    rows = [f"{host},{port},{tor},Ethernet1/{there[3:]}" for (host, port), (tor, there) in PLAN.items()]
    found = judge(tmp_path, heard(), "\n".join(["a,a_port,b,b_port", *rows]))
    assert codes(found) == [("tor0", "cabling.names"), ("tor1", "cabling.names")]
    assert (found.status, found.unknown, found.work_order) == ("unknown", 12, ())
