"""Faults that share a batch, through the file: what is planted is named, what coincides is said, chance is not."""

import random

import pytest

from tests.health.history.looks import HOUR, fact, host, seat, sight, sweep
from wholestack.health.history.batches import batches
from wholestack.health.history.store import History


def found(tmp_path, hosts, *, status="fail"):
    """Batches of one sweep of hosts (name: facts, seats, broken parts)."""
    with History(tmp_path / "h.sqlite", write=True) as opened:
        opened.add(sweep(1, *(
            host(name, facts=facts, seats=seats,
                 sights=[sight(part=part, host=name, check=check, status=status) for check, part in broken])
            for name, (facts, seats, broken) in hosts.items()
        )))  # fmt: skip
        return batches(opened.machines(), opened.findings(), opened.fact_groups(), opened, 2 * HOUR)


def fleet(count, broken, *, driver=lambda n: "535", rack=lambda n: f"r{n // 16}", check="gpu.ecc"):
    return {
        f"n{n}": (
            [fact("host.rack", rack(n)), fact("gpu.driver", driver(n))],
            [],
            [(check, "gpu 1")] if n in broken else [],
        )
        for n in range(count)
    }


def test_a_rack_with_too_many_of_one_fault_is_named_with_its_hosts(tmp_path):
    result = found(tmp_path, fleet(320, {48, 49, 50, 51, 52, 53, 54, 55, 100, 200, 300}))
    (batch,) = result.found
    assert (batch.factor, batch.value, batch.hits, batch.cases, batch.having, batch.total, batch.units) == (
        "host.rack", "r3", 8, 11, 16, 320, "hosts",
    )  # fmt: skip
    assert batch.hosts == tuple(f"n{n}" for n in range(48, 56))
    assert batch.p < batch.q <= 0.05
    assert result.families == 1


def test_scattered_faults_name_nothing(tmp_path):
    result = found(tmp_path, fleet(320, set(range(5, 320, 29))))
    assert result.found == ()
    assert result.tests == 20  # racks; of one driver there is nothing to test


def test_factors_that_coincide_are_named_together(tmp_path):
    """The same hosts are in rack r3 and have driver 550: nobody can tell which it is."""
    broken = {48, 49, 50, 51, 52, 53, 54, 100}
    hosts = fleet(320, broken, driver=lambda n: "550" if n // 16 == 3 else "535")
    (batch,) = found(tmp_path, hosts).found
    assert {f"{batch.factor} {batch.value}", *batch.alike} == {"host.rack r3", "gpu.driver 550"}


def test_of_a_factor_that_only_follows_from_another_nothing_is_said(tmp_path):
    """The bad driver is on all of racks r3 to r6 and fails alike in each: no rack stands by itself."""
    bad = set(range(48, 112))
    hosts = fleet(640, {n for n in bad if n % 2}, driver=lambda n: "550" if n in bad else "535")
    (batch,) = found(tmp_path, hosts).found
    assert (batch.factor, batch.value, batch.alike) == ("gpu.driver", "550", ())


def test_two_batches_of_one_fault_are_both_named(tmp_path):
    broken = set(range(16, 28)) | {n for n in range(320, 640) if n % 10 == 0 and n < 480}
    hosts = fleet(640, broken, driver=lambda n: "550" if n % 10 == 0 and n >= 320 else "535")
    named = {(each.factor, each.value) for each in found(tmp_path, hosts).found}
    assert ("host.rack", "r1") in named
    assert ("gpu.driver", "550") in named


def test_a_lot_of_parts_is_told_by_the_parts_and_not_by_their_hosts(tmp_path):
    """Every host has four cables; one lot is scattered over hosts, and half of it is bad."""
    rng = random.Random(5)
    hosts = {}
    for n in range(200):
        seats, broken = [], []
        for k in range(4):
            lot = "B" if (n * 4 + k) % 40 == 0 else rng.choice("ACDEF")
            seats.append(seat(f"cable mlx5_{k}/1", f"C{n}-{k}", model="MCP4Y10", lot=lot))
            if lot == "B" and n % 20 == 0:
                broken.append(("ib.state", f"hca_port mlx5_{k}/1"))
        hosts[f"n{n}"] = ([fact("host.rack", f"r{n // 16}")], seats, broken)
    (batch,) = found(tmp_path, hosts).found
    assert (batch.factor, batch.value, batch.units, batch.hits, batch.having, batch.total) == (
        "cable lot", "MCP4Y10 B", "cables", 10, 20, 800,
    )  # fmt: skip


def test_a_fault_is_not_blamed_on_the_version_that_it_is_about(tmp_path):
    """`gpu.driver differs` is on all hosts with the odd driver, by what it says; and that is no news."""
    hosts = fleet(320, set(range(48, 56)), driver=lambda n: "550" if 48 <= n < 56 else "535", check="gpu.driver")
    assert "gpu.driver" not in {each.factor for each in found(tmp_path, hosts).found}


def test_a_host_that_shows_a_fault_again_and_again_is_one_case(tmp_path):
    with History(tmp_path / "h.sqlite", write=True) as opened:
        for at in range(1, 40):
            broken = {48} if at % 2 else set()
            rows = fleet(64, broken)
            opened.add(sweep(at, *(host(name, facts=facts, sights=[sight(part=part, host=name) for _, part in parts])
                                   for name, (facts, _, parts) in rows.items())))  # fmt: skip
        result = batches(opened.machines(), opened.findings(), opened.fact_groups(), opened, 40 * HOUR)
    assert (result.found, result.tests) == ((), 0)


@pytest.mark.parametrize("status", ["unknown"])
def test_what_is_not_known_is_no_case(tmp_path, status):
    assert found(tmp_path, fleet(320, set(range(48, 60))), status=status).found == ()


def test_the_facts_are_those_of_the_time_of_the_faults(tmp_path):
    """The hosts with the bad driver were moved to the good one since; the faults are still the bad one's."""
    bad = set(range(0, 320, 16))
    with History(tmp_path / "h.sqlite", write=True) as opened:
        for at, broken, driver in ((1, bad, "550"), (2, set(), "535")):
            rows = fleet(320, broken, driver=lambda n, driver=driver: driver if n in bad else "535")
            opened.add(sweep(at, *(host(name, facts=facts, sights=[sight(part=part, host=name) for _, part in parts])
                                   for name, (facts, _, parts) in rows.items())))  # fmt: skip
        (batch,) = batches(opened.machines(), opened.findings(), opened.fact_groups(), opened, 3 * HOUR).found
    assert (batch.factor, batch.value, batch.hits) == ("gpu.driver", "550", 20)
