"""Jobs that no engine could start are refused where they are made."""

import math
from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.launch import Job, JobState, Limits


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"name": ""}, "name"),
        ({"name": "../up"}, "name"),
        ({"name": "a b"}, "name"),
        ({"entry": "module.function"}, "module:function"),
        ({"entry": "mod ule:function"}, "module:function"),
        ({"entry": ()}, "at least one word"),
        ({"entry": ("ls",), "arguments": {"a": 1}}, "no arguments"),
        ({"arguments": {"a": {1, 2}}}, "JSON"),
        ({"arguments": {"a": math.nan}}, "JSON"),
    ],
)
def test_a_bad_job_is_refused_by_name(settings, word):
    good = {"name": "job", "entry": "package.module:Class.method", "folder": Path("x")}
    assert Job(**good).name == "job"
    with pytest.raises(InputError, match=word):
        Job(**{**good, **settings})


@pytest.mark.parametrize(
    "settings", [{"wall_s": 0}, {"resident_bytes": -1}, {"log_bytes": 1}, {"threads": 0}, {"grace_s": -0.1}]
)
def test_a_limit_that_means_nothing_is_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Limits(**settings)


def test_every_outcome_but_running_is_an_end():
    for outcome in ("done", "failed", "out_of_memory", "timeout", "cancelled", "killed", "lost", "running"):
        state = JobState(id="a", name="a", outcome=outcome, stdout="", stderr="")
        assert state.ended == (outcome != "running")
