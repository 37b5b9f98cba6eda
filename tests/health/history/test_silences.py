"""Silences: about what, until when, and that nothing silenced is ever called well."""

import pytest

from tests.health.history.looks import HOUR, host, machine, seat, sight, sweep
from wholestack.errors import InputError
from wholestack.health.history.account import fleet_history, host_history
from wholestack.health.history.silences import silence, silenced_by, without_silenced
from wholestack.health.history.store import History


def quiet(**kwargs):
    return silence(**({"reason": "vendor knows", "by": "ann", "since": 2 * HOUR, "until": 9 * HOUR} | kwargs))


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "h.sqlite", write=True) as opened:
        seats = [machine("MXQ1"), seat("gpu 0000:01:00", "1652")]
        opened.add(sweep(1, host("a", seats=seats, sights=[sight()]), host("b")))
        yield opened


@pytest.mark.parametrize(
    "scope",
    [
        {"check": "gpu.ecc"},
        {"check": "gpu.*"},
        {"finding": sight().id[:8]},
        {"host": 1},
        {"part": "1652"},
        {"part": "gpu 0000:01:00", "check": "gpu.*", "host": 1},
    ],
)
def test_what_is_asked_for_must_all_fit(history, scope):
    (span,) = history.findings()
    assert silenced_by(span, [quiet(**scope)], 3 * HOUR)
    for other in ({"check": "ib.*"}, {"finding": "ffffff"}, {"host": 2}, {"part": "1653"}):
        if not other.keys() & scope.keys():
            assert silenced_by(span, [quiet(**(scope | other))], 3 * HOUR) is None


def test_a_silence_begins_and_ends_by_itself(history):
    (span,) = history.findings()
    silences = [quiet(check="gpu.ecc")]
    assert [silenced_by(span, silences, at * HOUR) is not None for at in (1.9, 2, 8.9, 9)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "needs a check, finding, host or part"),
        ({"check": "*"}, "needs a check, finding, host or part"),
        ({"finding": "ab"}, "may be many"),
        ({"check": "gpu.ecc", "reason": " "}, "needs a reason and a person"),
        ({"check": "gpu.ecc", "by": ""}, "needs a reason and a person"),
        ({"check": "gpu.ecc", "until": 2 * HOUR}, "ends after it begins"),
        ({"check": "gpu.ecc", "until": 1e16}, "ends within 10 years"),
    ],
)
def test_a_silence_without_bounds_or_reason_is_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        quiet(**wrong)


def test_a_silenced_host_is_shown_as_silenced_and_counted_apart_and_is_itself_again_at_the_end(history):
    number = history.silence(quiet(check="gpu.ecc", host=1))
    during, after = (fleet_history(history, now=at * HOUR) for at in (3, 9))
    assert {name: count for name, count in during.standings.items() if count} == {"silenced": 1, "ok": 1}
    assert during.silenced == 1
    assert {name: count for name, count in after.standings.items() if count} == {"fail": 1, "ok": 1}
    found = host_history(history, "a", now=3 * HOUR)
    assert (found.standing, found.stories[0].silenced_until, found.silences[0].id) == ("silenced", 9 * HOUR, number)
    assert found.exit_code == 0


def test_a_silence_hides_nothing_else_that_is_wrong(history):
    history.silence(quiet(check="gpu.ecc", host=1))
    history.add(sweep(3, host("a", seats=[machine("MXQ1")], sights=[sight(), sight("gpu.board", status="warn")])))
    assert host_history(history, "a", now=3 * HOUR).standing == "warn"


def test_a_lifted_silence_counts_no_more_and_both_are_events_with_person_and_reason(history):
    number = history.silence(quiet(check="gpu.ecc"))
    history.lift(number, by="bob", why="it was replaced", at=4 * HOUR)
    (span,) = history.findings()
    assert silenced_by(span, history.silences(), 5 * HOUR) is None
    told = [(each.kind, each.subject, each.by, each.why) for each in history.events() if each.by]
    assert told == [("silenced", "silence 1", "ann", "vendor knows"), ("lifted", "silence 1", "bob", "it was replaced")]
    for at in (5, 20):
        with pytest.raises(InputError, match="silence 1 has ended"):
            history.lift(number, by="bob", why="again", at=at * HOUR)
    with pytest.raises(InputError, match="silence 7 is none"):
        history.lift(7, by="bob", why="x", at=5 * HOUR)


def test_what_began_while_it_was_silenced_is_no_failure(history):
    history.silence(quiet(check="gpu.ecc"))
    history.add(sweep(3, host("a", seats=[machine("MXQ1")])))
    history.add(sweep(4, host("a", seats=[machine("MXQ1")], sights=[sight()])))
    counted = without_silenced(history.findings(), history.silences())
    assert [each.first for each in counted] == [1 * HOUR]
    assert without_silenced(history.findings(), []) == history.findings()


def test_a_silence_of_a_host_follows_its_machine(history):
    history.silence(quiet(host=1))
    history.add(sweep(3, host("z", seats=[machine("MXQ1")], sights=[sight(host="z")])))
    assert host_history(history, "z", now=3 * HOUR).standing == "silenced"
