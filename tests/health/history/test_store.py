"""A history keeps what changed, knows machines and parts by serial number, and loses nothing that it said it has."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.health.history.looks import CHECKS, HOUR, fact, host, machine, seat, sight, sweep
from wholestack.errors import HistoryError
from wholestack.health.history.database import VERSION
from wholestack.health.history.silences import silence
from wholestack.health.history.store import History
from wholestack.record import digest


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "h.sqlite", write=True) as opened:
        yield opened


def spans(history):
    """Status, first, last seen and gone in hours, by Finding and begin."""
    hours = [(each.first, each.seen, each.gone) for each in history.findings()]
    statuses = [each.status for each in history.findings()]
    return [(status, *(t and t / HOUR for t in row)) for status, row in zip(statuses, hours, strict=True)]


def kinds(history):
    return [each.kind for each in history.events() if each.kind != "first_seen"]


def test_a_finding_that_stays_is_one_span_and_ends_where_a_look_shows_so(history):
    for at, sights in ((1, [sight()]), (2, [sight()]), (3, [])):
        history.add(sweep(at, host(sights=sights)))
    assert spans(history) == [("fail", 1, None, 3)]


def test_another_status_is_another_span_of_the_same_finding(history):
    history.add(sweep(1, host(sights=[sight(status="warn")])))
    history.add(sweep(2, host(sights=[sight(status="fail")])))
    assert spans(history) == [("warn", 1, None, 2), ("fail", 2, None, None)]
    assert len({each.id for each in history.findings()}) == 1


def test_a_look_that_could_not_look_ends_nothing_and_says_since_when(history):
    history.add(sweep(1, host(sights=[sight()])))
    history.add(sweep(2, host(sights=[sight()])))
    history.add(sweep(3, host(judged=())))
    history.add(sweep(4, host(judged=["host.system"])))
    assert spans(history) == [("fail", 1, 2, None)]
    history.add(sweep(5, host(sights=[sight()])))
    assert spans(history) == [("fail", 1, None, None)]


def test_the_serial_of_the_broken_part_is_kept_with_the_finding(history):
    history.add(sweep(1, host(seats=[seat("gpu 0000:01:00", "1652")], sights=[sight()])))
    assert history.findings()[0].serial == "1652"


def test_the_same_sweep_twice_changes_nothing(history):
    look = sweep(1, host(sights=[sight()]))
    assert history.add(look).is_new
    before = (history.findings(), history.events(), history.sweeps().count)
    assert not history.add(look).is_new
    assert (history.findings(), history.events(), history.sweeps().count) == before


def test_a_sweep_that_ended_before_another_of_the_same_host_is_refused_and_others_are_not(history):
    history.add(sweep(5, host("a")))
    with pytest.raises(HistoryError, match=r"a later sweep of a already: s5 .*in the order"):
        history.add(sweep(4, host("a"), host("b")))
    history.add(sweep(3, host("c")))
    assert [each.name for each in history.machines()] == ["a", "c"]


def test_a_renamed_host_is_the_same_machine(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")], sights=[sight()])))
    history.add(sweep(2, host("z", seats=[machine("MXQ1")])))
    (only,) = history.machines()
    assert (only.name, only.serial) == ("z", "MXQ1")
    assert kinds(history) == ["renamed"]
    assert spans(history) == [("fail", 1, None, 2)]


def test_a_fault_of_a_renamed_host_goes_on_under_the_id_that_it_has_now(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")], sights=[sight(host="a")])))
    history.add(sweep(2, host("z", seats=[machine("MXQ1")], sights=[sight(host="z")])))
    assert spans(history) == [("fail", 1, None, None)]
    assert history.findings()[0].id == sight(host="z").id


def test_the_same_fault_of_another_part_in_the_same_place_is_another_span(history):
    slot = "gpu 0000:01:00"
    history.add(sweep(1, host(seats=[seat(slot, "1601")], sights=[sight(part=slot)])))
    history.add(sweep(2, host(seats=[seat(slot, "1602")], sights=[sight(part=slot)])))
    assert spans(history) == [("fail", 1, None, 2), ("fail", 2, None, None)]
    assert [each.serial for each in history.findings()] == ["1601", "1602"]


def test_two_hosts_that_change_names_change_nothing_else(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")]), host("b", seats=[machine("MXQ2")])))
    history.add(sweep(2, host("a", seats=[machine("MXQ2")]), host("b", seats=[machine("MXQ1")])))
    assert [(each.name, each.serial, each.is_named) for each in history.machines()] == [
        ("b", "MXQ1", True),
        ("a", "MXQ2", True),
    ]


@pytest.mark.parametrize("silent_from", [2, 3])
def test_a_name_whose_machine_has_moved_on_is_another_machine(history, silent_from):
    """``silent_from``: the sweep from which on "a" says no serial number; if 2, sweep 3 finds it as before."""
    history.add(sweep(1, host("a", seats=[machine("MXQ1")])))
    history.add(sweep(2, host("a", seats=[] if silent_from == 2 else [machine("MXQ1")])))
    history.add(sweep(3, host("a"), host("b", seats=[machine("MXQ1")])))
    assert [(each.name, each.serial) for each in history.machines()] == [("b", "MXQ1"), ("a", "")]
    assert kinds(history) == ["renamed"]
    assert history.add(sweep(4, host("a"), host("b", seats=[machine("MXQ1")]))).changed == 0


def test_another_machine_under_an_old_name_has_a_history_of_its_own(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")], sights=[sight()])))
    history.add(sweep(2, host("a", seats=[machine("MXQ2")])))
    old, new = history.machines()
    assert (old.serial, old.is_named, new.serial, new.is_named) == ("MXQ1", False, "MXQ2", True)
    assert history.findings(new.id) == []
    assert len(history.findings(old.id)) == 1
    assert kinds(history) == ["displaced"]


def test_a_machine_gets_its_serial_number_when_it_first_says_it_and_keeps_it_when_it_does_not(history):
    for at, seats in ((1, ()), (2, [machine("MXQ1")]), (3, ())):
        history.add(sweep(at, host("a", seats=seats)))
    assert [(each.name, each.serial) for each in history.machines()] == [("a", "MXQ1")]
    assert kinds(history) == []


def test_gpus_that_two_hosts_exchanged_are_told_by_both(history):
    slot = "gpu 0000:01:00"
    history.add(sweep(1, host("a", seats=[seat(slot, "1601")]), host("b", seats=[seat(slot, "1602")])))
    history.add(sweep(2, host("a", seats=[seat(slot, "1602")]), host("b", seats=[seat(slot, "1601")])))
    told = [each.says for each in history.events() if each.kind == "part_moved"]
    assert told == [f"gpu 1602, before in b {slot}, is in a {slot}", f"gpu 1601, before in a {slot}, is in b {slot}"]
    assert sorted(each.serial for each in history.seats() if each.gone is None) == ["1601", "1602"]


def test_a_new_part_a_new_installation_and_drives_that_the_kernel_renamed(history):
    before = [seat("gpu 0000:01:00", "1601"), seat("host installation", "abcdef"), seat("drive /dev/nvme0", "S64A")]
    after = [seat("gpu 0000:01:00", "1699"), seat("host installation", "fedcba"), seat("drive /dev/nvme1", "S64A")]
    history.add(sweep(1, host(seats=before)))
    history.add(sweep(2, host(seats=after)))
    assert sorted(kinds(history)) == ["part_replaced", "reinstalled"]


def test_a_part_that_is_not_read_keeps_its_seat_and_a_version_that_is_not_read_its_value(history):
    history.add(sweep(1, host(seats=[seat("gpu 0000:01:00", "1601")], facts=[fact("gpu.driver", "535")])))
    history.add(sweep(2, host()))
    assert [each.gone for each in (*history.seats(), *history.facts())] == [None, None]


def test_another_version_ends_the_one_before_also_where_parts_begin_to_differ(history):
    history.add(sweep(1, host(facts=[fact("gpu.vbios", "96.1")])))
    history.add(sweep(2, host(facts=[fact("gpu.vbios", "96.1", "gpu 1"), fact("gpu.vbios", "96.2", "gpu 2")])))
    assert [(each.part, each.value, each.gone) for each in history.facts()] == [
        ("", "96.1", 2 * HOUR),
        ("gpu 1", "96.1", None),
        ("gpu 2", "96.2", None),
    ]


def test_a_serial_number_that_two_machines_have_tells_neither(history):
    history.add(sweep(1, host("a", seats=[machine("MXQ1")]), host("b", seats=[machine("MXQ1")])))
    assert [each.serial for each in history.machines()] == ["", ""]


def test_hosts_that_are_as_they_were_cost_one_row_for_all(history):
    """4,096 hosts with 20 parts and 20 facts each; counted in rows and in statements that write."""

    def look(at, changed=()):
        return sweep(at, *(
            host(
                f"n{n}",
                facts=[fact("host.rack", f"r{n // 16}"), *(fact(f"f{i}", str(n in changed)) for i in range(19))],
                seats=[seat(f"dimm {i}", f"S{n}-{i}") for i in range(20)],
                sights=[sight(host=n)] if n % 10 == 0 else [],
            )
            for n in range(4096)
        ))  # fmt: skip

    history.add(look(1))
    connection = history._connection
    rows, writes = connection.total_changes, []
    connection.set_trace_callback(
        lambda statement: writes.append(statement) if statement.startswith(("INSERT", "UPDATE", "DELETE")) else None
    )
    added = history.add(look(2))
    assert (added.changed, connection.total_changes - rows, len(writes)) == (0, 1, 1)
    rows = connection.total_changes
    assert history.add(look(3, changed={7})).changed == 1
    assert connection.total_changes - rows == 1 + 1 + 2 * 19  # the sweep, the host, 19 facts that end and begin


names = st.sampled_from(["a", "b", "c"])
host_states = st.fixed_dictionaries(
    {
        "sights": st.sets(st.tuples(st.sampled_from(["gpu.ecc", "gpu.board"]), st.sampled_from(["warn", "fail"]))),
        "blind": st.sets(st.sampled_from(CHECKS)),
        "driver": st.sampled_from([None, "1", "2"]),
    }
)
stories = st.lists(st.dictionaries(names, host_states, min_size=1), min_size=1, max_size=12)


def drawn(name, state):
    by_check = dict(sorted(state["sights"]))
    judged = set(CHECKS) - state["blind"]
    sights = [sight(check, status=status, host=name) for check, status in by_check.items() if check in judged]
    facts = [fact("gpu.driver", state["driver"])] if state["driver"] else []
    return host(name, facts=facts, sights=sights, judged=judged)


def copied(story):
    """The oracle: keep every look whole, and read each Finding's spans off the row of all looks at its host."""
    found = []
    for name in ("a", "b", "c"):
        looks = [(at, drawn(name, hosts[name])) for at, hosts in enumerate(story, 1) if name in hosts]
        for check in CHECKS:
            row = [
                (at, {s.check: s.status for s in look.sights}.get(check), check in look.judged) for at, look in looks
            ]
            row = [(at, status if is_judged else "blind") for at, status, is_judged in row]
            at = 0
            while at < len(row):
                first, status = row[at]
                end = at
                if status in ("warn", "fail"):
                    while end + 1 < len(row) and row[end + 1][1] in (status, "blind"):
                        end += 1
                    gone = row[end + 1][0] if end + 1 < len(row) else None
                    found.append((name, check, status, first, gone))
                at = end + 1
    return sorted(found, key=str)


@settings(max_examples=150, deadline=None)
@given(stories)
def test_spans_say_what_a_copy_of_every_look_would_say(tmp_path_factory, story):
    folder = tmp_path_factory.mktemp("oracle")
    with History(folder / "h.sqlite", write=True) as history:
        for at, hosts in enumerate(story, 1):
            history.add(sweep(at, *(drawn(name, state) for name, state in sorted(hosts.items()))))
        named = {each.id: each.name for each in history.machines()}
        kept = [
            (named[each.host], each.check, each.status, each.first / HOUR, each.gone and each.gone / HOUR)
            for each in history.findings()
        ]
        assert sorted(kept, key=str) == copied(story)
        last_read = {
            name: hosts[name]["driver"] for hosts in story for name in hosts if hosts[name]["driver"] is not None
        }
        assert {named[each.host]: each.value for each in history.facts() if each.gone is None} == last_read
        asked = {name: [at * HOUR for at, hosts in enumerate(story, 1) if name in hosts] for name in named.values()}
        sweeps = history.sweeps()
        assert {named[id_]: list(sweeps.of(id_).times) for id_ in named} == asked
        unseen = [each for each in history.findings() if each.gone is None and each.seen is not None]
        for each in unseen:
            row = [(at, drawn(named[each.host], hosts[named[each.host]])) for at, hosts in enumerate(story, 1)
                   if named[each.host] in hosts]  # fmt: skip
            assert each.seen == max(at for at, look in row if each.check in {s.check for s in look.sights}) * HOUR
    shutil.rmtree(folder)


def test_a_file_of_the_version_before_is_brought_up_and_what_it_holds_is_not_taken_for_a_look_in_full(tmp_path):
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as opened:
        opened.add(sweep(1, host("a")))
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE plan DROP COLUMN in_full")
        connection.execute("UPDATE plan SET digest = ?", (digest(CHECKS, (1,)),))
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(HistoryError, match=r"is of version 1.*history add"):
        History(path)
    with History(path, write=True) as opened:
        assert opened.sweeps().in_full(1) is None
        opened.add(sweep(2, host("a")))
        line = opened.sweeps().in_full(1)
        assert line is not None
        assert line.times == (2 * HOUR,)
        assert opened.sweeps().of(1).times == (HOUR, 2 * HOUR)
    with History(path) as opened:
        assert opened.sweeps().count == 2


def test_a_file_of_a_later_version_is_refused_in_one_line(tmp_path):
    path = tmp_path / "h.sqlite"
    History(path, write=True).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    for write in (False, True):
        with pytest.raises(HistoryError, match=f"is of version {VERSION + 1}, this one reads {VERSION}"):
            History(path, write=write)


@pytest.mark.parametrize("content", [b"not SQLite, but long enough to be taken for a file of its own" * 20, b"x"])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for write in (False, True):
        with pytest.raises(HistoryError, match=r"notes\.txt: is no history of health"):
            History(path, write=write)
    assert path.read_bytes() == content


def test_a_database_of_somebody_else_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(HistoryError, match="is no history of health"):
        History(path, write=True)


def test_where_there_is_no_history_a_reader_is_told_how_to_begin_one(tmp_path):
    with pytest.raises(HistoryError, match=r"no history yet .*health history add"):
        History(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_a_writer_that_finds_another_at_work_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("wholestack.health.history.database.PATIENCE_S", 0.05)
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as mine, History(path, write=True) as theirs:
        theirs._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(HistoryError, match="another process writes it"):
            mine.add(sweep(1, host()))
        with History(path) as reader:
            assert reader.machines() == []
        theirs._connection.execute("ROLLBACK")
        assert mine.add(sweep(1, host())).is_new


def test_two_writers_in_turn_see_what_the_other_wrote(tmp_path):
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as one, History(path, write=True) as two:
        one.add(sweep(1, host("a", seats=[machine("MXQ1")])))
        two.add(sweep(2, host("a", seats=[machine("MXQ1")], sights=[sight()])))
        one.add(sweep(3, host("a", seats=[machine("MXQ1")])))
        assert len(one.machines()) == 1
        assert spans(two) == [("fail", 2, None, 3)]


def test_a_full_disk_is_one_line_and_what_was_added_before_is_whole(tmp_path):
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as history:
        history.add(sweep(1, host("a")))
        (pages,) = history._connection.execute("PRAGMA page_count").fetchone()
        history._connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "disk is full"
        many = [host(f"n{n}", seats=[seat(f"dimm {i}", f"S{n}-{i}") for i in range(20)]) for n in range(300)]
        with pytest.raises(HistoryError, match=r"disk is full .*make room"):
            history.add(sweep(2, *many))
        assert [each.name for each in history.machines()] == ["a"]
        history._connection.execute("PRAGMA max_page_count = 1000000")
        history.add(sweep(2, *many))
        assert len(history.machines()) == 301


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_can_be_read_and_not_written(tmp_path):
    folder = tmp_path / "kept"
    path = folder / "h.sqlite"
    with History(path, write=True) as history:
        history.add(sweep(1, host("a")))
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        with History(path) as history:
            assert len(history.machines()) == 1
        with pytest.raises(HistoryError, match="writable, or name another file"), History(path, write=True) as history:
            history.add(sweep(2, host("a")))
    finally:
        folder.chmod(0o755)


def test_a_history_in_a_folder_that_cannot_be_written_is_read_as_it_is(tmp_path, monkeypatch):
    with History(tmp_path / "h.sqlite", write=True) as history:
        history.add(sweep(1, host("a")))
    monkeypatch.setattr("wholestack.health.history.database.os.access", lambda *_: False)
    before = sorted(tmp_path.iterdir())
    with History(tmp_path / "h.sqlite") as history:
        assert [each.name for each in history.machines()] == ["a"]
        assert sorted(tmp_path.iterdir()) == before  # no list of readers beside it


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="name another file with --history"):
        History(tmp_path / "file" / "h.sqlite", write=True)


def test_killed_at_any_moment_nothing_that_was_acknowledged_is_lost(tmp_path):
    """A process adds sweeps and says so; it is killed in the middle, again and again, and each goes on."""
    path = tmp_path / "h.sqlite"
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tests.health.history.looks import host, seat, sight, sweep
        from wholestack.health.history.store import History
        at = int(sys.argv[2])
        with History(Path(sys.argv[1]), write=True) as history:
            while True:
                at += 1
                history.add(sweep(at, *(host(f"n{n}", sights=[sight(host=n)] if at % 2 else []) for n in range(20))))
                print(at, flush=True)
        """
    )
    said = 0
    for lines in (1, 4, 9):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(said)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(lines):
            said = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait()
        said = int(rest[-1]) if rest else said
        with History(path) as history:
            sweeps, findings = history.sweeps(), history.findings()
        there = sweeps.count
        assert there >= said
        assert len(findings) == 20 * ((there + 1) // 2)  # no sweep is there by half
        said = there


def test_events_cannot_be_changed(history):
    history.add(sweep(1, host()))
    for statement in ("UPDATE event SET says = ''", "DELETE FROM event"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            history._connection.execute(statement)


def test_facts_in_groups_and_those_that_changed_are_the_facts(history):
    """Beside them: a host that was displaced, parts that differ, a value that came back."""
    for at, driver in ((1, "535"), (2, "550"), (3, "535")):
        hosts = [host(f"n{n}", seats=[machine(f"MX{n}{at if n == 3 else ''}")],
                      facts=[fact("gpu.driver", driver if n < 2 else "535"), fact("host.rack", f"r{n // 2}"),
                             fact("gpu.vbios", "96", "gpu 1"), fact("gpu.vbios", f"9{at}", "gpu 2")])
                 for n in range(4)]  # fmt: skip
        history.add(sweep(at, *hosts))
    facts, named = history.facts(), {each.id for each in history.machines() if each.is_named}
    assert len(named) == 4 < len(history.machines())
    grouped = [
        (group.name, group.value, group.first, group.gone, machine_id)
        for group in history.fact_groups()
        for machine_id in group.hosts
    ]
    plain = [(each.name, each.value, each.first, each.gone, each.host) for each in facts if each.host in named]
    assert sorted(map(repr, grouped)) == sorted(map(repr, plain))
    assert len(history.fact_groups()) < len(plain)
    changed = {(each.host, each.name) for each in facts if each.gone is not None and not each.part}
    assert len(changed) == 2
    assert history.changed_facts() == [each for each in facts if (each.host, each.name) in changed]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE finding SET evidence = 'no JSON['",
        "UPDATE finding SET evidence = '[1]'",
        "UPDATE finding SET status = 'fbil'",
        "UPDATE finding SET first = x'00ff'",
        "UPDATE host SET first = 'soon'",
        "UPDATE fact SET value = x'80'",
        "UPDATE seat SET first = 'now'",
        "UPDATE silence SET until = 'never'",
        "INSERT INTO event (at, kind, subject, says, by, why) VALUES ('x', '', '', '', '', '')",
    ],
)
def test_a_flipped_bit_is_said_in_one_line_and_no_value_is_made_of_it(tmp_path, damage):
    """Found by hand: a damaged evidence was a traceback; SQLite checks neither values nor their types."""
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as history:
        history.add(sweep(1, host(sights=[sight()], seats=[seat("gpu 0", "1")], facts=[fact("gpu.driver", "1")])))
        history.silence(silence(check="gpu.*", reason="why", by="ann", since=1.0, until=2.0))
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
        assert connection.total_changes
    connection.close()
    with History(path) as history, pytest.raises(HistoryError, match="the file is damaged"):
        _ = (history.machines(), history.findings(), history.facts(), history.seats(), history.silences())
        history.events()
