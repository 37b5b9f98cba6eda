"""Rules: replayed on what was recorded before they may drain, and judged by what came after."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.health.history.looks import HOUR, host, machine, sight, sweep
from wholestack.errors import InputError
from wholestack.health.history.silences import silence
from wholestack.health.history.spans import Event, FindingSpan, Timeline
from wholestack.health.history.store import History
from wholestack.health.operations.cluster import Node
from wholestack.health.operations.draining import plan_drain
from wholestack.health.operations.floor import Floor
from wholestack.health.operations.replaying import (
    REPLAYED,
    _of_part,
    describe_replay,
    refuse_unreplayed,
    replay,
    wanted_by,
    write_down,
)
from wholestack.health.operations.rules import Rule, read_rule
from wholestack.health.operations.simulated import MemoryCluster


def rule(**changes):
    return Rule(**{"name": "ecc", "check": "gpu.ecc", "seen": 2, "of": 3, "soon_h": 5.0, **changes})


@pytest.fixture
def recorded(tmp_path):
    """A history of hourly sweeps of host a; a text says what each showed: x the fault, w a warning, . nothing."""
    opened = History(tmp_path / "h.sqlite", write=True)

    def record(shown, *, name="a"):
        for hour, each in enumerate(shown, 1):
            sights = {"x": [sight(host=name)], "w": [sight(host=name, status="warn")], ".": []}[each]
            opened.add(sweep(hour, host(name, seats=[machine(f"S{name}{name}{name}9")], sights=sights)))
        return opened

    yield record
    opened.close()


def told(history, at, kind, *, id=1):
    history.tell(Event(at=at * HOUR, host=id, kind=kind, subject="s", says="", by="ann"))


def drains(found):
    return [(each.at / HOUR, None if each.until is None else each.until / HOUR, each.verdict) for each in found.drains]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("..x..........", []),
        ("..xx.........", [(4, 5, "wrong")]),
        ("..x.x........", [(5, 6, "wrong")]),  # twice in three sweeps
        ("..x..x.......", []),
        ("..xxxxxxx....", [(4, 10, "right")]),  # longer than soon_h
        ("..xx.xx......", [(4, 8, "wrong")]),  # one drain: it was not gone for three sweeps
        ("..xx...xx....", [(4, 5, "wrong"), (9, 10, "wrong")]),
        ("..ww.........", []),  # a warning is less than it asks for
        ("...........xx", [(13, None, "open")]),
        ("..xxxxxxxxxxx", [(4, None, "right")]),
    ],
)
def test_it_would_drain_when_it_holds_and_is_judged_by_what_came_after(recorded, shown, expected):
    found = replay(recorded(shown), rule())
    assert drains(found) == expected
    verdicts = [each[2] for each in expected]
    assert (found.judged, found.wrong) == (len(verdicts) - verdicts.count("open"), verdicts.count("wrong"))
    assert found.exit_code == (1 if found.wrong else 0 if found.judged else 3)
    assert found.low <= (found.wrong / found.judged if found.judged else 0.5) <= found.high


def test_warnings_and_other_causes_count_where_the_rule_says_so(recorded):
    history = recorded("..ww.........")
    assert len(replay(history, rule(status="warn")).drains) == 1
    assert len(replay(history, rule(status="warn", check="gpu.*")).drains) == 1
    assert replay(history, rule(status="warn", cause="another*")).drains == ()
    assert replay(history, rule(status="warn", check="host.system")).drains == ()


@pytest.mark.parametrize(
    ("kind", "at", "verdict"),
    [
        ("fix_begun", 4.5, "right"),
        ("part_replaced", 4.5, "right"),
        ("fix_begun", 9.0, "wrong"),  # it was gone by then
        ("first_seen", 4.5, "wrong"),  # no deed
        ("undrained_by_person", 4.5, "wrong"),
    ],
)
def test_a_deed_explains_why_it_went_away_and_a_person_overrules(recorded, kind, at, verdict):
    history = recorded("..xx.........")
    told(history, at, kind)
    (drain,) = replay(history, rule()).drains
    assert drain.verdict == verdict


def test_a_person_who_returned_the_host_says_that_it_was_wrong_however_long_it_lasts(recorded):
    history = recorded("..xxxxxxxxxxx")
    told(history, 8, "undrained_by_person")
    (drain,) = replay(history, rule()).drains
    assert (drain.verdict, "a person returned" in drain.why) == ("wrong", True)


def test_what_a_person_had_silenced_is_no_drain_to_judge(recorded):
    history = recorded("..xx.........")
    history.silence(silence(check="gpu.ecc", reason="known", by="ann", since=0.0, until=99 * HOUR))
    found = replay(history, rule())
    assert ([each.verdict for each in found.drains], found.judged) == (["vetoed"], 0)


def test_the_interval_is_the_exact_one(recorded):
    """Clopper and Pearson: of none in n the upper end is 1 - 0.025 ** (1 / n)."""
    found = replay(recorded("..xxxxxxx....", name="a"), rule())
    assert (found.wrong, found.judged, found.low) == (0, 1, 0.0)
    assert found.high == pytest.approx(0.975, abs=1e-6)


def test_a_rule_drains_only_as_it_was_replayed(recorded):
    history = recorded("...........xx")
    cluster = MemoryCluster(["a", "b"])
    with pytest.raises(InputError, match="was not replayed"):
        wanted_by(history, rule(), now=13.5 * HOUR)
    write_down(history, replay(history, rule()), by="ann", at=13 * HOUR)
    (wanted,) = wanted_by(history, rule(), now=13.5 * HOUR)
    assert (wanted.host, wanted.told_by_name, wanted.story.cause) == ("a", False, "broken")
    (decision,) = plan_drain([wanted], cluster.nodes(), cluster, floor=Floor(amount=1, is_share=False))
    assert decision.outcome == "will"
    cluster.by_name["a"] = Node(name="a", is_usable=True, is_drained=False, jobs=("job 7 of bob",))
    (decision,) = plan_drain([wanted], cluster.nodes(), cluster, floor=Floor(amount=1, is_share=False))
    assert (decision.outcome, "job 7" in decision.why) == ("refused", True)
    with pytest.raises(InputError, match="was changed since it was replayed"):
        refuse_unreplayed(history, rule(seen=1))
    with pytest.raises(InputError, match="was not replayed"):
        refuse_unreplayed(history, rule(name="another"))
    assert [event.by for event in history.events() if event.kind == REPLAYED] == ["ann"]


def test_it_names_no_host_that_is_well_now_stale_or_could_not_be_looked_at(recorded):
    history = recorded("...xx........")
    write_down(history, replay(history, rule()), by="ann", at=13 * HOUR)
    assert wanted_by(history, rule(), now=13.5 * HOUR) == []
    history.add(sweep(14, host("a", seats=[machine("Saaa9")], sights=[sight()])))
    history.add(sweep(15, host("a", seats=[machine("Saaa9")], sights=[sight()])))
    assert len(wanted_by(history, rule(), now=15.5 * HOUR)) == 1
    assert wanted_by(history, rule(), now=999 * HOUR) == []
    history.add(sweep(16, host("a", seats=[machine("Saaa9")], judged=())))
    assert wanted_by(history, rule(), now=16.5 * HOUR) == []


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="x.", min_size=1, max_size=40), st.integers(1, 4), st.integers(0, 3))
def test_the_stretches_are_those_that_counting_look_by_look_gives(shown, seen, more):
    of = seen + more
    times = tuple(float(each) for each in range(len(shown)))
    spans, begin = [], None
    for place, each in enumerate(shown + "."):
        if each == "x" and begin is None:
            begin = place
        elif each == "." and begin is not None:
            gone = None if place == len(shown) else float(place)
            spans.append(FindingSpan(id="i", host=1, check="gpu.ecc", part="p", serial="", cause="c", owner="v",
                                     status="fail", evidence=(), first=float(begin), gone=gone))  # fmt: skip
            begin = None
    found = [(each.at, each.until) for each in _of_part(1, spans, rule(seen=seen, of=of), Timeline(times=times))]
    assert found == look_by_look(shown, seen, of)


def look_by_look(shown, seen, of):
    """The definition: it begins where the rule holds at a look that shows it, ends when no look of the window does."""
    stretches, start, last = [], None, None
    for place, each in enumerate(shown):
        if start is not None and each == "x" and place - last > of:
            stretches.append((float(start), float(last + 1)))
            start = None
        window = shown[max(0, place + 1 - of) : place + 1]
        if each == "x":
            last = place
            if start is None and window.count("x") >= seen:
                start = place
    if start is not None:
        stretches.append((float(start), None if last == len(shown) - 1 else float(last + 1)))
    return stretches


def test_what_is_said_names_the_wrong_ones_first(recorded):
    said = describe_replay(replay(recorded("..xx...xxxxxx"), rule()))
    lines = said.splitlines()
    assert "seen in 2 of 3 sweeps" in lines[0]
    assert "2 drains; 1 of " in lines[2]
    assert lines[3].startswith("WRONG  1970-01-01 04:00 a, gpu 0000:01:00: broken; gone by itself after 1.0 h")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seen = 2", "missing"),
        ('name = "x"\ncheck = "gpu.ecc"\nseen = 4\nof = 3', "must be 1 <= seen <= of"),
        ('name = "x"\ncheck = "gpu.ecx"\nseen = 1\nof = 3', "no check is 'gpu.ecx'"),
        ('name = "x"\ncheck = "gpu.ecc"\nseen = 1\nof = 3\nsoon_h = 0', "soon_h is 0"),
        ('name = "x"\ncheck = "gpu.ecc"\nseen = 1\nof = 3\nmore = 1', "more"),
        ("name = ", "r.toml"),
        ("\xff", "r.toml"),
    ],
)
def test_a_wrong_rule_is_one_line(tmp_path, text, says):
    path = tmp_path / "r.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=says) as raised:
        read_rule(path)
    assert "\n" not in str(raised.value)


def test_the_hash_is_of_what_it_says_not_of_how_it_is_written(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('name = "ecc"\ncheck = "gpu.ecc"\nseen = 2\nof = 3\n')
    first = read_rule(path).hash
    path.write_text('# the same\nof = 3\nseen = 2\ncheck = "gpu.ecc"\nname = "ecc"\nsoon_h = 24.0\n')
    assert read_rule(path).hash == first
    path.write_text('name = "ecc"\ncheck = "gpu.ecc"\nseen = 1\nof = 3\n')
    assert read_rule(path).hash != first
