"""A profile is learnt from good hosts only."""

import pytest

from tests.health import fleets, network
from tests.health.fleets import Answers, df
from wholestack.errors import InputError
from wholestack.health import catalog
from wholestack.health.difference import compare_sweeps
from wholestack.health.learning import learn_from
from wholestack.health.profile import read_profile
from wholestack.remote.batch import Output
from wholestack.remote.host import Host

FULL = {"df": Output(name="df", stdout=df(99))}


@pytest.fixture
def folder(tmp_path):
    fleets.run(tmp_path / "s", ["a", "b", "c", "d"], Answers({"c": FULL, "d": "auth"}))
    return tmp_path / "s"


def test_by_default_from_every_host_that_may_train(folder):
    text = learn_from(folder)
    assert "2 hosts called good: a,b" in text
    assert read_profile(text).kinds["default"].checks == ("filesystem.bytes", "filesystem.inodes")


def test_named_hosts_that_are_unfit_silent_or_not_there_are_refused_by_name(folder):
    for host, says in (("c", "c may not train"), ("d", "d did not answer"), ("x", "x is not in the sweep")):
        with pytest.raises(InputError, match=says):
            learn_from(folder, ["a", host])


def test_a_sweep_in_which_nobody_may_train_teaches_nothing(tmp_path):
    fleets.run(tmp_path / "s", ["c"], Answers({"c": FULL}))
    with pytest.raises(InputError, match="no host may train"):
        learn_from(tmp_path / "s")


def test_hosts_with_and_without_infiniband_are_as_a_profile_learnt_from_them_says(tmp_path):
    silent = {name: Output(name=name, exit_status=2) for name in ("infiniband", "infiniband_pci")}
    ported = {
        "infiniband": Output(name="infiniband", stdout=network.host().encode()),
        "infiniband_pci": Output(name="infiniband_pci", stdout=network.addresses().encode()),
    }
    answers = Answers({"a": silent, "b": silent, "c": ported, "d": ported})
    hosts = [Host(name=name, kind="plain" if name in "ab" else "wired") for name in "abcd"]
    checks = catalog.chosen(["filesystem", "ib.count", "ib.state", "ib.firmware"])
    fleets.run(tmp_path / "first", hosts, answers, checks=checks)
    kinds = read_profile(learn_from(tmp_path / "first")).kinds
    assert kinds["plain"].checks == ("filesystem.bytes", "filesystem.inodes")
    assert kinds["plain"].traits["ib.port_count"] == 0
    assert {"ib.count", "ib.state", "ib.firmware"} < set(kinds["wired"].checks)
    fleets.run(tmp_path / "second", hosts, answers, checks=checks, expectations=kinds)
    found = compare_sweeps(tmp_path / "first", tmp_path / "second")
    assert (found.new, found.changed, found.altered) == ((), (), ())


def test_a_host_that_lost_its_infiniband_is_not_as_learnt(tmp_path):
    ported = {"infiniband": Output(name="infiniband", stdout=network.host().encode())}
    checks = catalog.chosen(["ib.count"])
    fleets.run(tmp_path / "first", ["a"], Answers({"a": ported}), checks=checks)
    kinds = read_profile(learn_from(tmp_path / "first")).kinds
    gone = {"infiniband": Output(name="infiniband", exit_status=2)}
    swept = fleets.run(tmp_path / "second", ["a"], Answers({"a": gone}), checks=checks, expectations=kinds)
    assert [each.status for each in swept.verdicts[0].findings] == ["fail"]
