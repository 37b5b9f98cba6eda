"""A profile is learnt from good hosts only."""

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df
from wholestack.errors import InputError
from wholestack.health.learning import learn_from
from wholestack.health.profile import read_profile
from wholestack.remote.batch import Output

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
