"""What is learnt, and that it does not matter how."""

import random

import pytest

from tests.health.bootlog.written import dressed, learnt, read, written
from wholestack.errors import InputError, RecordError
from wholestack.health.bootlog import learning as module
from wholestack.health.bootlog.expecting import Expectations
from wholestack.health.bootlog.learning import MOST_ORDERS, MOST_VARIANTS, Learner
from wholestack.health.bootlog.records import BootModel, read_model
from wholestack.record import from_json, to_json


def taught(seeds, learner=None):
    learner = learner or Learner()
    for seed in seeds:
        learner.add(read(dressed(written(seed)))[0], host=f"node{seed % 5}")
    return learner


def said(model):
    """All that it expects, by names."""
    ready = Expectations(model)
    units = [unit.text for unit in ready.units]
    pairs = zip(ready.precedence.before.tolist(), ready.precedence.after.tolist(), strict=True)
    values = {each.wording.text: [each.wording.slots[slot] for slot in each.slots] for each in ready.expected}
    return (set(units), {(units[a], units[b]) for a, b in pairs}, values, {each.support for each in ready.expected})


def test_it_does_not_matter_in_which_order_boots_come():
    seeds = list(range(12))
    one = said(taught(seeds).model())
    random.Random(1).shuffle(seeds)
    other = said(taught(seeds).model())
    assert one[0] == other[0]
    assert one[2:] == other[2:]


def test_adding_boots_later_is_as_learning_all_at_once():
    first = from_json(BootModel, to_json(taught(range(6)).model()))
    later = taught(range(6, 15), Learner(first)).model()
    assert said(later) == said(taught(range(15)).model())


def test_the_same_boot_counts_once_in_whatever_dress():
    learner = Learner()
    assert learner.add(read(dressed(written(1), "short-iso"))[0])
    assert not learner.add(read(dressed(written(1), "dmesg"))[0], host="other")
    assert not Learner(learner.model()).add(read(dressed(written(1), "kern.log"))[0])
    assert len(learner.boots) == 1


def test_what_varies_is_told_from_what_does_not():
    ready = Expectations(learnt())
    by_text = {each.wording.text: each for each in ready.expected}
    cpus = by_text["smp: Brought up <#> nodes, <#> CPUs"]
    assert cpus.closed
    memory = by_text["Memory: <#>/<#> available (<#> kernel code, <#> rwdata)"]
    assert memory.slots == (1, 2, 3)  # how much is free differs, how much there is does not
    assert memory.support == "20 of 20 boots on 5 hosts"


def test_one_of_a_few_values_is_as_good_as_another_but_no_new_one():
    learner = Learner()
    for seed in range(20):
        firmware = "22.1" if seed < 10 else "22.2"  # the same for many boots on end
        text = dressed([*written(seed), f"nic: firmware {firmware}, {seed * 7919} pages"])
        learner.add(read(text)[0], host=f"node{seed % 5}")
    by_text = {each.wording.text: each for each in Expectations(learner.model()).expected}
    nic = by_text["nic: firmware <#>, <#> pages"]
    assert nic.slots == (0,)
    assert nic.wording.slots[0] == {"22.1": 10, "22.2": 10}


def test_a_line_that_not_every_boot_has_is_not_expected():
    assert not any("corrupted" in unit.text for unit in Expectations(learnt()).units)


def test_what_belongs_to_one_host_is_expected_of_no_other():
    def model(hosts):
        learner = Learner()
        for seed in range(12):
            mac = f"0c:42:a1:00:00:{seed % hosts:02x}"
            text = dressed([*written(seed), f"nic: address {mac}"])
            learner.add(read(text)[0], host=f"node{seed % hosts}")
        return Expectations(learner.model())

    for hosts in (1, 2, 4):
        texts = {unit.text for unit in model(hosts).units if unit.text.startswith("nic: address")}
        assert texts == {"nic: address <#>"}


def test_a_boot_that_is_not_whole_tells_nothing_of_what_is_missing():
    learner = taught(range(8))
    learner.add(read(dressed(written(8)[10:]))[0], host="node1")
    learner.add(read(dressed(written(9))[:-9])[0], host="node1")
    learner.add(read(dressed([*written(10)[:20], "net_ratelimit: 3 callbacks suppressed"]))[0], host="node1")
    ready = Expectations(learner.model())
    assert ready.boots == 8
    assert {unit.text for unit in ready.units} == {unit.text for unit in Expectations(taught(range(8)).model()).units}


def test_names_of_programs_become_one_line():
    names = ("alpha", "bravo", "cargo", "delta", "echo", "forest")
    learner = Learner()
    for seed, name in enumerate(names):
        learner.add(read(dressed([*written(seed), f"process {name} started with executable stack"]))[0], host="node1")
    ready = Expectations(learner.model())
    assert ready.familiar("process golf started with executable stack") is not None
    assert ready.familiar("process golf ended with executable stack") is None


def test_memory_of_a_model_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_WORDINGS", 40)
    learner = Learner()
    for seed in range(3):
        flood = [f"port {place} of {seed}" for place in range(3_000)]
        words = [f"word {chr(97 + place)}{chr(97 + seed)}" for place in range(26)]
        learner.add(read(dressed([*written(seed), *flood, *words]))[0], host="node1")
    model = learner.model()
    assert len(model.wordings) == 40
    assert model.left_out > 26
    assert max(len(each.variants) for each in model.wordings) <= MOST_VARIANTS
    assert Expectations(model).boots == 3


def test_orders_are_kept_of_so_many_boots_whichever_came_first():
    def orders(seeds):
        learner = Learner()
        for seed in seeds:
            learner.add(read(dressed([f"Linux version 5.{seed}", *MAIN_LINES]))[0], host=f"node{seed}")
        return {order.boot for order in learner.model().orders}

    seeds = list(range(MOST_ORDERS + 20))
    found = orders(seeds)
    assert len(found) == MOST_ORDERS
    assert orders(seeds[::-1]) == found


MAIN_LINES = ["one: begins", "two: follows", "three: ends"]


def test_a_model_of_a_later_version_or_a_damaged_one_is_refused_in_a_line(tmp_path):
    file = tmp_path / "model.json"
    good = to_json(learnt(3))
    file.write_bytes(good.replace(b'"bootlog/1"', b'"bootlog/2"'))
    with pytest.raises(RecordError, match=r"bootlog/2.*reads 'bootlog/1'"):
        read_model(file)
    file.write_bytes(good[:-40])
    with pytest.raises(RecordError, match="not JSON"):
        read_model(file)
    file.write_bytes(good.replace(b'"boots":"7"', b'"boots":"ff"', 1))
    with pytest.raises(InputError, match="contradicts itself"):
        read_model(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_model(tmp_path / "none.json")
    file.write_bytes(good)
    assert read_model(file) == learnt(3)
