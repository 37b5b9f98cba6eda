"""What a history says of one host and of the fleet."""

import pytest

from tests.health.history.looks import CHECKS, HOUR, fact, host, machine, seat, sight, sweep
from wholestack.errors import InputError
from wholestack.health.history.account import find_machine, fleet_history, host_history
from wholestack.health.history.describing import describe_fleet, describe_host, duration
from wholestack.health.history.silences import Silence, silence
from wholestack.health.history.store import History
from wholestack.record import to_json


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "h.sqlite", write=True) as opened:
        yield opened


def test_one_host_over_time(history):
    seats = [machine("MXQ1"), seat("gpu 0000:01:00", "1652")]
    rows = [(1, [], "535"), (2, [sight()], "535"), (3, [], "550"), (4, [sight()], "550"), (5, [sight()], "550")]
    for at, sights, driver in rows:
        history.add(sweep(at, host("a", seats=seats, sights=sights, facts=[fact("gpu.driver", driver)]), host("b")))
    found = host_history(history, "a", now=5.5 * HOUR)
    assert (found.standing, found.looks, found.first, found.last) == ("fail", 5, HOUR, 5 * HOUR)
    (story,) = found.stories
    assert (story.first, story.last, story.returns, story.is_open, story.serial) == (
        2 * HOUR, 5 * HOUR, 1, True, "1652",
    )  # fmt: skip
    assert len(found.failures) == 1  # it was fit for an hour only
    assert [(each.value, each.gone) for each in found.changes] == [("535", 3 * HOUR)]
    assert [each.value for each in found.facts] == ["550"]
    assert found.exit_code == 1
    assert host_history(history, "MXQ1", now=5.5 * HOUR) == found
    assert host_history(history, "1652", now=5.5 * HOUR) == found
    assert host_history(history, "b", now=5.5 * HOUR).exit_code == 0


def test_a_finding_that_is_gone_was_seen_last_in_the_look_before(history):
    for at, sights in ((1, [sight()]), (2, [sight()]), (5, [])):
        history.add(sweep(at, host("a", sights=sights)))
    (story,) = host_history(history, "a", now=5 * HOUR).stories
    assert (story.last, story.is_open) == (2 * HOUR, False)


def test_a_finding_that_could_not_be_looked_for_says_when_it_was_seen_last(history):
    history.add(sweep(1, host("a", sights=[sight()])))
    history.add(sweep(2, host("a", judged=["host.system"])))
    (story,) = host_history(history, "a", now=2 * HOUR).stories
    assert (story.last, story.is_open, story.is_blind) == (HOUR, True, True)


def test_a_host_that_was_not_asked_for_long_is_stale_and_never_ok(history):
    for at in range(1, 6):
        history.add(sweep(at, *[host(name) for name in ("a", "b") if name == "a" or at < 3]))
    assert fleet_history(history, now=5 * HOUR).standings["ok"] == 2
    late = fleet_history(history, now=8 * HOUR)
    assert (late.standings["ok"], late.standings["stale"]) == (1, 1)
    assert late.exit_code == 3
    assert host_history(history, "b", now=8 * HOUR).standing == "stale"


def test_a_host_that_was_only_ever_asked_in_part_is_unknown_and_a_fault_of_it_stays_one(history):
    history.add(sweep(1, host("a"), host("b", sights=[sight(host="b")]), checks=CHECKS[:1], in_full=False))
    found = fleet_history(history, now=1.5 * HOUR)
    assert (found.standings["unknown"], found.standings["fail"], found.standings["ok"]) == (1, 1, 0)
    one = host_history(history, "a", now=1.5 * HOUR)
    assert (one.standing, one.exit_code, one.last_in_full) == ("unknown", 3, None)
    assert "in full  never" in describe_host(one)
    history.add(sweep(2, host("a")))
    one = host_history(history, "a", now=2.5 * HOUR)
    assert (one.standing, one.last_in_full) == ("ok", 2 * HOUR)
    assert "in full" not in describe_host(one)


def test_sweeps_in_part_between_those_in_full_change_nothing_until_the_latter_are_too_old(history):
    """In full each 10 hours, the same checks in part each hour: what was seen in full counts for 40 hours."""
    for at in range(1, 62):
        history.add(sweep(at, host("a"), in_full=at in (1, 11, 21)))
    assert host_history(history, "a", now=61 * HOUR).standing == "ok"
    history.add(sweep(62, host("a"), in_full=False))
    late = host_history(history, "a", now=62 * HOUR)
    assert (late.standing, late.last, late.last_in_full) == ("unknown", 62 * HOUR, 21 * HOUR)


def test_a_silenced_finding_does_not_make_a_host_that_was_asked_in_part_any_better(history):
    history.add(sweep(1, host("a", sights=[sight()]), in_full=False))
    history.silence(silence(check="gpu.ecc", reason="known", by="ada", since=HOUR, until=99 * HOUR))
    assert host_history(history, "a", now=1.5 * HOUR).standing == "unknown"


def test_a_retired_host_leaves_the_counts_keeps_its_past_and_comes_back_when_it_is_seen(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")], sights=[sight()]), host("b")))
    history.retire(find_machine(history, "a"), by="ada", why="sold", at=1.2 * HOUR)
    found = fleet_history(history, now=1.5 * HOUR)
    assert (found.hosts, found.standings["fail"], found.standings["ok"], found.exit_code) == (1, 0, 1, 0)
    for name in ("a", "MXQ1"):
        one = host_history(history, name, now=1.5 * HOUR)
        assert (one.standing, len(one.stories)) == ("stale", 1)
        assert [(each.kind, each.by, each.why) for each in one.events if each.by] == [("retired", "ada", "sold")]
    history.add(sweep(2, host("b")))
    assert fleet_history(history, now=2 * HOUR).hosts == 1
    history.add(sweep(3, host("c", seats=[machine("MXQ1")], sights=[sight(host="c")]), host("b")))
    back = host_history(history, "c", now=3 * HOUR)
    assert (back.standing, back.host.serial, back.stories[0].first) == ("fail", "MXQ1", HOUR)
    assert [each.kind for each in back.events] == ["first_seen", "retired", "returned"]
    assert fleet_history(history, now=3 * HOUR).hosts == 2


@pytest.mark.parametrize(
    ("before", "after", "same"), [("", "", True), ("", "MXQ1", True), ("MXQ1", "", True), ("MXQ1", "MXQ2", False)]
)
def test_a_retired_host_is_known_again_by_its_name_unless_serial_numbers_say_otherwise(history, before, after, same):
    def asked(serial):
        return host("a", seats=[machine(serial)] if serial else [])

    history.add(sweep(1, asked(before)))
    old = find_machine(history, "a")
    history.retire(old, by="ada", why="sold", at=1.2 * HOUR)
    history.add(sweep(2, asked(after)))
    now = find_machine(history, "a")
    assert (now.id == old.id, now.is_named) == (same, True)
    assert now.serial == (after or before)


def test_where_every_host_is_retired_that_is_said(history):
    history.add(sweep(1, host("a")))
    history.retire(find_machine(history, "a"), by="ada", why="sold", at=1.2 * HOUR)
    with pytest.raises(InputError, match="every host in it is retired"):
        fleet_history(history, now=2 * HOUR)


def test_who_retires_a_host_twice_or_without_a_reason_is_refused(history):
    history.add(sweep(1, host("a"), host("b")))
    one = find_machine(history, "a")
    with pytest.raises(InputError, match="--why and --by"):
        history.retire(one, by="ada", why=" ", at=HOUR)
    assert one.is_named
    history.retire(one, by="ada", why="sold", at=HOUR)
    with pytest.raises(InputError, match="not among the hosts"):
        history.retire(one, by="ada", why="sold", at=HOUR)


def test_a_machine_whose_name_another_one_has_is_found_by_its_serial_number(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")], sights=[sight()])))
    history.add(sweep(2, host("a", seats=[machine("MXQ2")])))
    assert host_history(history, "a", now=2 * HOUR).host.serial == "MXQ2"
    old = host_history(history, "MXQ1", now=2 * HOUR)
    assert (old.standing, old.host.is_named) == ("stale", False)
    assert fleet_history(history, now=2 * HOUR).hosts == 1


def test_a_name_that_is_near_none_is_answered_with_names_and_not_with_checks(history):
    history.add(sweep(1, host("gpu001")))
    with pytest.raises(InputError, match=r"no host 'zzz' \(it has 1, such as gpu001\)"):
        find_machine(history, "zzz")


def test_a_silence_that_never_ends_does_not_make_a_host_unreadable(history):
    """Found by hand: a mistyped --until was kept, and neither the host nor the list of silences could be shown."""
    history.add(sweep(1, host("gpu001", sights=[sight(host="gpu001")])))
    history.silence(Silence(id=0, check="gpu.ecc", reason="typing", by="ann", since=0.0, until=9e18))
    assert "9999-12-31" in describe_host(host_history(history, "gpu001", now=2 * HOUR))


def test_a_name_that_is_none_is_answered_with_the_nearest(history):
    history.add(sweep(1, host("gpu001")))
    with pytest.raises(InputError, match=r"no host 'gpu0001'.*gpu001"):
        host_history(history, "gpu0001", now=HOUR)


def test_an_empty_history_says_how_to_fill_it(history):
    with pytest.raises(InputError, match="no sweep in it"):
        fleet_history(history, now=HOUR)


def test_what_is_said_fits_the_terminal_and_a_record(history):
    long = "a cause that takes many words to say what is wrong with this poor old machine " * 2
    for at in range(1, 60):
        broken = [sight(part="gpu 0000:0a:00", cause=long)] if at % 3 else []
        hosts = [host(f"n{n:04d}", sights=broken if n in (1, 2) else [], facts=[fact("host.rack", f"r{n // 4}")],
                      seats=[machine(f"MX{n}x")]) for n in range(40)]  # fmt: skip
        history.add(sweep(at, *hosts))
    fleet, one = fleet_history(history, now=60 * HOUR), host_history(history, "n0001", now=60 * HOUR)
    for record, text in ((fleet, describe_fleet(fleet)), (one, describe_host(one))):
        assert max(map(len, text.splitlines())) <= 80
        assert to_json(record)
    assert "2 findings came back at least three times" in describe_fleet(fleet)
    assert "came back 19 times" in describe_host(one)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45, "45 s"), (720, "12 min"), (3 * HOUR, "3 h"), (40 * 24 * HOUR, "40 d"), (8e7, "2.5 years")],
)
def test_durations_are_read_at_a_glance(seconds, text):
    assert duration(seconds) == text
