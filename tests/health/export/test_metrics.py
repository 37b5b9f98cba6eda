"""What is exported of a history and a sweep: what is not known, silenced or old is never good."""

from dataclasses import replace
from pathlib import Path

from tests.health.export.fleet import exporter, parsed, states, value, write_history
from tests.health.history.looks import HOUR, host, sight, sweep
from wholestack.health.export.exposition import render
from wholestack.health.export.metrics import METRICS, MOST_OF_A_HOST, OTHERS, samples_of
from wholestack.health.export.told import HostTold, SweepFigures, Told, joined
from wholestack.health.history.silences import silence
from wholestack.health.history.spans import Event, FindingSpan
from wholestack.health.history.store import History

DOCS = Path(__file__).parents[3] / "docs" / "health-metrics.md"


def told(name="a", *, at=0.0, findings=(), **more):
    more = {"in_full_at": at, **more}
    one = HostTold(host=name, kind="h100", at=at, stale_s=HOUR, findings=tuple(findings), **more)
    return Told(source="sweep", hosts=(one,), ended=at, figures=SweepFigures(seconds=2.0, asked=1, answered=1))


def test_each_host_is_in_one_state_and_findings_are_counted(tmp_path):
    path = tmp_path / "h.sqlite"
    write_history(path)
    samples = parsed(exporter(history=path, now=5.5 * HOUR).text())
    assert states(samples) == {"a": "may_train", "b": "may_not", "c": "may_train"}
    assert value(samples, "findings", status="fail", check="gpu.ecc", owner="vendor") == 1
    labels = {"host": "b", "status": "fail", "check": "gpu.ecc", "part_kind": "gpu", "cause": "broken"}
    assert value(samples, "host_findings", **labels, owner="vendor") == 1
    assert value(samples, "host_last_seen_timestamp_seconds", host="a") == 5 * HOUR
    assert value(samples, "host_stale_after_seconds", host="a") == 4 * HOUR
    assert value(samples, "source_up", source="history") == 1
    assert value(samples, "export_timestamp_seconds") == 5.5 * HOUR


def test_a_sweep_that_stopped_turns_stale_within_its_stated_time(tmp_path):
    """Asked each hour, so known for four; a second later nothing is healthy, nor is any finding there."""
    path, now = tmp_path / "h.sqlite", [9 * HOUR]
    write_history(path)
    one = exporter(history=path, now=lambda: now[0])
    before = parsed(one.text())
    assert set(states(before).values()) == {"may_train", "may_not"}
    assert value(before, "source_stale", source="history") == 0
    now[0] += 1
    after = parsed(one.text())
    assert set(states(after).values()) == {"stale"}
    assert value(after, "source_stale", source="history") == 1
    assert value(after, "source_up", source="history") == 1
    assert value(after, "host_last_seen_timestamp_seconds", host="a") == 5 * HOUR
    assert not [name for name, _ in after if name in ("findings", "host_findings", "sweep_hosts_answered")]


def test_a_stated_time_of_ones_own_holds_for_every_host(tmp_path):
    path = tmp_path / "h.sqlite"
    write_history(path)
    samples = parsed(exporter(history=path, now=5.2 * HOUR, stale_after_s=600.0).text())
    assert set(states(samples).values()) == {"stale"}
    assert value(samples, "host_stale_after_seconds", host="a") == 600


def test_one_host_that_is_no_longer_asked_is_stale_beside_others_that_are(tmp_path):
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as opened:
        for at in range(1, 10):
            opened.add(sweep(at, *[host(name) for name in "ab" if name == "a" or at < 3]))
    samples = parsed(exporter(history=path, now=9 * HOUR).text())
    assert states(samples) == {"a": "may_train", "b": "stale"}
    assert value(samples, "source_stale", source="history") == 0


def test_a_sweep_from_the_future_is_stale_since_its_age_is_not_known():
    assert states_of(told(at=HOUR), now=0.0) == {"a": "stale"}
    assert states_of(told(at=60.0), now=0.0) == {"a": "may_train"}


def test_unknown_and_a_part_of_a_sweep_are_not_good():
    with_unknown = told(findings=[span("unknown")])
    assert states_of(with_unknown, now=0.0) == {"a": "unknown"}
    assert states_of(told(in_full_at=None), now=0.0) == {"a": "unknown"}
    assert states_of(told(in_full_at=None, findings=[span("fail")]), now=0.0) == {"a": "may_not"}
    assert states_of(told(findings=[span("warn")]), now=0.0) == {"a": "may_train"}


def test_what_is_silenced_is_counted_apart_and_does_not_make_a_host_good(tmp_path):
    path = tmp_path / "h.sqlite"
    write_history(path)
    with History(path, write=True) as opened:
        opened.silence(silence(check="gpu.*", reason="known", by="ann", since=5 * HOUR, until=6 * HOUR))
    samples = parsed(exporter(history=path, now=5.5 * HOUR).text())
    assert states(samples)["b"] == "silenced"
    assert value(samples, "findings_silenced", status="fail", check="gpu.ecc", owner="vendor") == 1
    assert not [name for name, _ in samples if name in ("findings", "host_findings")]
    assert states(parsed(exporter(history=path, now=6.5 * HOUR).text()))["b"] == "may_not"


def test_a_newer_sweep_outranks_the_history_and_its_silences_still_count(tmp_path):
    path = tmp_path / "h.sqlite"
    write_history(path)
    with History(path, write=True) as opened:
        number = opened.silence(silence(check="gpu.*", reason="known", by="ann", since=0, until=9 * HOUR, host=1))
    assert number
    history = exporter(history=path, now=5.5 * HOUR).told()["history"]
    newer = told(at=5.4 * HOUR, findings=[span("fail")])
    samples = samples_of({"history": history, "sweep": newer}, now=5.5 * HOUR)
    assert states(flat(samples)) == {"a": "silenced", "b": "may_not", "c": "may_train"}
    older = told(at=4 * HOUR, findings=[span("fail")])
    assert states(flat(samples_of({"history": history, "sweep": older}, now=5.5 * HOUR)))["a"] == "may_train"


def test_repeat_offenders_are_named(tmp_path):
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as opened:
        for at in range(1, 40):
            rows = [host(f"n{n}", sights=[sight(host=f"n{n}")] if n == 3 and at in (10, 16, 22) else [])
                    for n in range(30)]  # fmt: skip
            opened.add(sweep(at * 12, *rows))
    samples = parsed(exporter(history=path, now=39 * 12 * HOUR).text())
    assert {labels: count for (name, labels), count in samples.items() if name == "repeat_offender_failures"} == {
        (("host", "n3"),): 3.0
    }


def test_a_host_is_drained_from_the_event_that_says_so_until_it_is_given_back(tmp_path):
    path = tmp_path / "h.sqlite"
    write_history(path)
    drained = []
    for kind in ("drain_begun", "drain_ended", "undrain_begun", "undrain_ended"):
        with History(path, write=True) as opened:
            opened.tell(Event(at=5 * HOUR, host=2, kind=kind, subject="story", says="", by="ann", why=""))
        samples = parsed(exporter(history=path).text())
        drained.append([labels for name, labels in samples if name == "host_drained"])
    assert drained == [[], [(("host", "b"),)], [(("host", "b"),)], []]


def test_a_host_with_very_many_findings_has_few_series_and_none_is_lost():
    many = [span("warn", check=f"made.up{n}") for n in range(500)] + [span("fail", check="gpu.ecc")]
    samples = flat(samples_of({"sweep": told(findings=many)}, now=0.0))
    rows = {labels: count for (name, labels), count in samples.items() if name == "host_findings"}
    assert len(rows) == MOST_OF_A_HOST + 1
    assert sum(rows.values()) == 501
    assert any(dict(labels)["check"] == "gpu.ecc" for labels in rows)
    assert any(dict(labels)["check"] == OTHERS for labels in rows)


def test_the_page_describes_every_metric():
    page = DOCS.read_text()
    for each in METRICS:
        labels = ", ".join(f"`{name}`" for name in each.labels)
        assert f"| `{each.name}` | {labels} | {each.help} | {each.absent} |" in page


def span(status, *, check="gpu.ecc"):
    return FindingSpan(id=check + "0123456789abcdef", host=0, check=check, part="gpu 0000:01:00", serial="", cause="c",
                       owner="o", status=status, evidence=(), first=0.0)  # fmt: skip


def flat(samples):
    return parsed(render(samples))


def states_of(source, *, now):
    return states(flat(samples_of({"sweep": source}, now=now)))


def known(*findings, in_full_at=0.0):
    one = HostTold(host="a", kind="h100", at=0.0, stale_s=HOUR, findings=findings, in_full_at=in_full_at, machine=7)
    return Told(source="history", hosts=(one,), ended=0.0)


def test_a_later_sweep_that_could_not_see_a_finding_does_not_hide_it():
    """One in part that left its check out, and one to which the host did not answer; one that looked ends it."""
    old = replace(span("fail"), host=7)
    new = replace(span("warn"), id="other", check="kernel.other")

    def seen(*findings, judged, in_full_at):
        later = told(at=60.0, findings=findings, judged=frozenset(judged), in_full_at=in_full_at)
        (one,) = joined([known(old), later])
        return {each.id for each in one.findings}, one.in_full_at

    assert seen(new, judged={"kernel.other"}, in_full_at=None) == ({old.id, "other"}, 0.0)
    assert seen(new, judged=(), in_full_at=60.0) == ({old.id, "other"}, 60.0)
    assert seen(judged={old.check}, in_full_at=60.0) == (set(), 60.0)
    assert seen(judged={old.check}, in_full_at=None) == (set(), 0.0)
    assert seen(old, judged={old.check}, in_full_at=None) == ({old.id}, 0.0)
