"""Profiles: strict to read, learnt from hosts that agree."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.health.check import Cause, Check, Expectation, Limit
from wholestack.health.parts import HOST, Part
from wholestack.health.probe import Probe
from wholestack.health.profile import Profile, expectation_from, learn, read_profile
from wholestack.health.result import HostResult, SeenSymptom, SeenTrait
from wholestack.remote.batch import Command

PROBE = Probe(command=Command(name="x", shell="x"), formats=(), option="container_image")
CAUSE = Cause(code="gpu.missing", says="GPU missing", owner="vendor", remedy="reseat it")
CHECKS = (
    Check(
        name="gpu.state",
        about="",
        probes=(PROBE,),
        parts=("gpu",),
        causes=(CAUSE,),
        limits=(Limit(name="gpu.hot_c", default=90, about=""),),
        trait_names=("gpu.count", "gpu.driver", "drive.firmware.*"),
        options=("site",),
    ),
)
GOOD = """
[kinds.h100]
checks = ["gpu.state"]
[kinds.h100.traits]
gpu.count = 8
"gpu.driver" = "550.1"
"drive.firmware.pm9a3" = "GDC5"
[kinds.h100.limits]
"gpu.hot_c" = 85
[kinds.h100.options]
container_image = "cuda:12"
site = "north"
"""


def result(host, *traits, kind="h100", passed=("gpu.state",), **other):
    gpus = tuple(Part(kind="gpu", key=f"0000:{n:02x}:00") for n in range(8))
    seen = tuple(
        SeenTrait(name=name, value=value, cause="gpu.missing", parts=tuple(parts), drifts=drifts)
        for name, value, parts, drifts in traits
    )
    return HostResult(
        host=host, kind=kind, at=1.0, seconds=1.0, attempts=1, parts=(HOST, *gpus), traits=seen, passed=passed, **other
    )


def good(host, count=8, driver="550.1", **kwargs):
    return result(host, ("gpu.count", count, [0], True), ("gpu.driver", driver, [1, 2], True), **kwargs)


def test_a_profile_is_read_whether_names_are_quoted_or_not():
    profile = read_profile(GOOD, checks=CHECKS)
    assert profile.kinds["h100"] == Expectation(
        traits={"gpu.count": 8, "gpu.driver": "550.1", "drive.firmware.pm9a3": "GDC5"},
        limits={"gpu.hot_c": 85.0},
        checks=("gpu.state",),
        options={"container_image": "cuda:12", "site": "north"},
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("gpu.count", "gpu.cuont", r"h100\.traits: unknown trait 'gpu\.cuont'.*did you mean gpu\.count"),
        ("gpu.hot_c", "gpu.hot_f", r"unknown limit 'gpu\.hot_f'.*gpu\.hot_c"),
        ('"gpu.state"]', '"gpu.stat"]', r"unknown check 'gpu\.stat'.*gpu\.state"),
        ("container_image", "container_img", r"unknown option 'container_img'.*container_image"),
        ("h100.limits", "h100.limit", r"unknown key 'limit'.*limits"),
        ("[kinds.h100]", "[kind.h100]", r"unknown table 'kind'.*kinds"),
        ("= 8\n", "= [8]\n", r"gpu\.count: is \[8\], must be"),
        ("= 85", "= true", r"hot_c: is True, must be a number"),
        ("= 85", "= nan", r"hot_c: is nan, must be a number"),
        ("= 85", "= -1", r"hot_c: is -1, must be at least 0"),
        ('"cuda:12"', "12", r"container_image: is 12, must be a text"),
        ('["gpu.state"]', '"gpu.state"', r"checks: is 'gpu\.state', must be a list"),
        ("= 8\n", "= 8 8\n", "no TOML"),
    ],
)
def test_what_is_misspelt_or_of_the_wrong_type_is_refused_with_file_and_key(old, new, says):
    assert old in GOOD
    with pytest.raises(InputError, match=rf"site\.toml.*{says}"):
        read_profile(GOOD.replace(old, new), where="site.toml", checks=CHECKS)


@pytest.mark.parametrize("text", ["", "[kinds]\n", "kinds = 3"])
def test_a_profile_without_a_kind_is_refused(text):
    with pytest.raises(InputError, match="kind"):
        read_profile(text)


@given(st.text())
def test_no_text_is_a_crash(text):
    try:
        read_profile(text)
    except InputError:
        return


def test_a_host_of_no_stated_kind_is_of_the_only_one():
    one = Profile(kinds={"h100": Expectation(traits={"gpu.count": 8})})
    two = Profile(kinds=one.kinds | {"login": Expectation(traits={"gpu.count": 0})})
    assert one.of("default").traits == {"gpu.count": 8}
    assert two.of("default") == Expectation()
    assert two.for_kinds(["login", "other"])["other"] == Expectation()
    with pytest.raises(InputError, match=r"h100, login.*spare"):
        two.for_kinds(["spare"])


def test_which_kind_has_to_be_said_where_there_are_several():
    text = '[kinds.a.limits]\n"filesystem.full_share" = 0.5\n[kinds.b]\n'
    with pytest.raises(InputError, match="a, b"):
        expectation_from(text)
    assert expectation_from(text, kind="a").limits == {"filesystem.full_share": 0.5}
    with pytest.raises(InputError, match="no kind 'c'"):
        expectation_from(text, kind="c")


def test_a_check_that_counted_none_need_not_apply():
    def checks_of(ports):
        row = ("ib.port_count", ports, [0], True)
        text = learn([result("a", row, passed=("ib.count", "filesystem.bytes"))])
        return read_profile(text).kinds["h100"].checks

    assert checks_of(0) == ("filesystem.bytes",)
    assert checks_of(8) == ("filesystem.bytes", "ib.count")


def test_what_is_learnt_can_be_read_and_says_from_how_many_hosts():
    text = learn([good(f"gpu{n:03d}") for n in range(3)])
    assert "learnt from 3 hosts called good: gpu[000-002]" in text
    read = read_profile(text, checks=CHECKS).kinds["h100"]
    assert read.traits == {"gpu.count": 8, "gpu.driver": "550.1"}


def test_only_checks_that_applied_on_all_are_expected():
    symptom = SeenSymptom(check="filesystem.inodes", cause="x", part=0, evidence=())
    one = good("a", passed=("filesystem.bytes", "filesystem.inodes"))
    other = good("b", passed=("filesystem.bytes",), symptoms=(symptom,))
    third = good("c", passed=("filesystem.inodes",))
    assert tomllib.loads(learn([one, other]))["kinds"]["h100"]["checks"] == ["filesystem.bytes", "filesystem.inodes"]
    assert tomllib.loads(learn([one, third]))["kinds"]["h100"]["checks"] == ["filesystem.inodes"]


def test_hosts_that_disagree_are_named():
    with pytest.raises(InputError, match=r"gpu\.count: 7 on odd; 8 on gpu\[0-2\].*odd\?"):
        learn([*(good(f"gpu{n}") for n in range(3)), good("odd", count=7)])


def test_what_differs_by_nature_is_left_out_and_said():
    def mixed(host, used):
        return result(host, ("nic.speed", 25, [1], True), ("nic.speed", 400, [2], True), ("gpu.used", used, [0], False))

    text = learn([mixed("a", 1), mixed("b", 2)])
    assert tomllib.loads(text)["kinds"]["h100"]["traits"] == {}
    assert "# nic.speed: differs from part to part" in text
    assert "# gpu.used: differs from host to host" in text


def test_a_trait_that_one_host_lacks_is_left_out():
    text = learn([good("a"), result("b", ("gpu.count", 8, [0], True))])
    assert "# gpu.driver: not on all of them (on a)" in text


def test_a_host_that_did_not_answer_teaches_nothing():
    with pytest.raises(InputError, match="b did not answer"):
        learn([good("a"), good("b", trouble="unreachable")])
    with pytest.raises(InputError, match="no host"):
        learn([])


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20),
    st.one_of(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(), st.booleans(),
              st.floats(allow_nan=False, allow_infinity=False)),
)  # fmt: skip
def test_any_kind_and_value_comes_back_as_it_was(kind, value):
    text = learn([result("a", ("gpu.driver", value, [1], True), kind=kind)])
    read = tomllib.loads(text)["kinds"][kind]["traits"]["gpu.driver"]
    assert (read, type(read)) == (value, type(value))
