"""Tickets of simulated faults: complete, or they say what is missing; the same again; nothing hostile breaks out."""

import asyncio
import io
import json
import shutil
import tarfile
from dataclasses import replace

import pytest

from wholestack.errors import InputError
from wholestack.finding import Finding
from wholestack.health.history.spans import Event
from wholestack.health.history.store import History
from wholestack.health.history.taking import look_at
from wholestack.health.operations.draining import host_stories
from wholestack.health.owners.owner import SAYS
from wholestack.health.result import HostResult
from wholestack.health.simulation import simulate
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.plan import PlannedFault
from wholestack.health.tickets import gathering
from wholestack.health.tickets.gathering import MOST, ticket_for
from wholestack.health.tickets.packing import archive, files_of, write_pack
from wholestack.health.tickets.page import page
from wholestack.journal import read_journal
from wholestack.record import to_json

GPU, DIMM, MOUNT, HOT = "node0001", "node0002", "node0003", "node0004"
FAULTS = (
    PlannedFault(host=GPU, kind="gpu_off_bus_xid", severity=0.8, part=2),
    PlannedFault(host=DIMM, kind="memory_corrected_storm", severity=0.8),
    PlannedFault(host=MOUNT, kind="mount_missing", severity=0.8),
    PlannedFault(host=HOT, kind="gpu_hw_slowdown", severity=0.8, part=1),
)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tickets")
    asyncio.run(simulate(8, seed=5, folder=folder, planned=FAULTS))
    return folder


@pytest.fixture(scope="module")
def machines():
    """The same fleet again, whole: what its parts are called is the truth."""
    return Fleet(8, seed=5)


@pytest.fixture
def sweeps(simulated, tmp_path):
    """A copy that a test may spoil."""
    for name in ("before", "after"):
        shutil.copytree(simulated / name, tmp_path / name)
    rewrite(tmp_path / "after" / "plan.json", str(simulated / "before"), str(tmp_path / "before"))
    return tmp_path


@pytest.fixture
def history(sweeps):
    with History(sweeps / "h.sqlite", write=True) as opened:
        opened.add(look_at(sweeps / "before"))
        opened.add(look_at(sweeps / "after"))
        yield opened


def rewrite(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def found_on(sweeps, host, *words):
    """Id of the Finding of a host whose cause has these words."""
    findings = read_journal(sweeps / "after" / "findings.jsonl", Finding)
    return next(
        each.id
        for each in findings
        if each.subject == host and each.status != "ok" and all(word in each.cause for word in words)
    )


def item(ticket, name):
    return next(each for each in ticket.data if each.item == name)


def test_what_the_broken_part_cannot_say_any_more_is_from_before(sweeps, history, machines):
    ticket = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"), history)
    gpu = machines[GPU].gpus[2]
    assert ticket.to == "vendor"
    assert (item(ticket, "serial").value, item(ticket, "serial").source) == (gpu.serial, "the sweep before")
    assert item(ticket, "machine_serial").value == machines[GPU].serial
    assert gpu.pci.lower()[:10] in item(ticket, "slot").value
    assert any("Xid" in line for line in ticket.log_lines)
    assert ticket.is_complete, ticket.missing
    shutil.rmtree(sweeps / "before")
    later = ticket_for(sweeps / "after", ticket.finding, history)
    assert (item(later, "serial").value, item(later, "serial").source) == (gpu.serial, "the history")


def test_without_a_history_it_says_what_is_missing_and_how_to_get_it(sweeps):
    shutil.rmtree(sweeps / "before")
    ticket = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"))
    missing = {each.item: each.missing for each in ticket.missing}
    assert not ticket.is_complete
    assert ticket.exit_code == 1
    assert {"serial", "history"} <= set(missing)
    assert "history add" in missing["history"]
    text = page(ticket)
    assert "**This ticket is not complete.** Missing:" in text
    assert all(f"- {SAYS[name]}: " in text for name in missing)


def test_a_counter_that_was_not_read_again_has_no_after(sweeps, history):
    """Found by hand: a GPU that fell off the bus had the counters of the sweep before as those of after."""
    ticket = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"), history)
    lost = [row for row in ticket.counters if row.part == ticket.part.partition(" (")[0]]
    assert lost
    assert {row.after for row in lost} == {None}
    assert all(row.before is not None and row.before_at is not None for row in lost)
    assert all(row.before_at < row.after_at for row in ticket.counters if row.before_at and row.after_at)


def test_counters_stand_beside_those_of_before(sweeps, history):
    ticket = ticket_for(sweeps / "after", found_on(sweeps, DIMM, "corrected"), history)
    grown = [
        row for row in ticket.counters if row.before is not None and row.after is not None and row.after > row.before
    ]
    assert grown, ticket.counters
    assert all(row.before_at < row.after_at for row in grown)
    assert f"{grown[0].before:>20} {grown[0].after:>20}  {grown[0].name}" in page(ticket)


def test_the_data_centre_wants_to_know_where_it_stands(sweeps, history):
    id_ = found_on(sweeps, HOT, "GPU")
    ticket = ticket_for(sweeps / "after", id_, history)
    assert ticket.to == "data centre"
    assert [each.item for each in ticket.missing] == ["place"]
    plan = json.loads((sweeps / "after" / "plan.json").read_text())
    for host in plan["hosts"]:
        host["rack"] = "r7"
    (sweeps / "after" / "plan.json").write_text(json.dumps(plan))
    assert item(ticket_for(sweeps / "after", id_, history), "place").value == "rack r7"
    assert ticket_for(sweeps / "after", id_, history).is_complete


def test_it_tells_the_history_and_what_was_tried(sweeps, history):
    id_ = found_on(sweeps, MOUNT, "mount")
    before = ticket_for(sweeps / "after", id_, history)
    assert (before.past.returns, before.past.tried, before.past.gone) == (0, (), None)
    assert "nothing was tried" in page(before)
    machine = next(each for each in history.machines() if each.name == MOUNT)
    story = next(each for each in host_stories(history, machine.id, now=before.at) if id_ in each.findings)
    for place, (kind, says) in enumerate(
        (("fix_begun", "mount -a"), ("fix_ended", "mount -a"), ("proof_broken", "still sees it"))
    ):
        history.tell(
            Event(at=before.at + place, host=machine.id, kind=kind, subject=story.id, says=says, by="ann", why="x")
        )
    history.tell(Event(at=before.at, host=machine.id, kind="fix_begun", subject="another story", says="not this"))
    after = ticket_for(sweeps / "after", id_, history)
    assert [(each.kind, each.says, each.by) for each in after.past.tried] == [
        ("fix_begun", "mount -a", "ann"), ("fix_ended", "mount -a", "ann"), ("proof_broken", "still sees it", "ann"),
    ]  # fmt: skip
    assert "fix begun by ann: mount -a (x)" in page(after)
    assert after.past.repeat == 1


def test_the_same_input_gives_the_same_bytes_wherever_it_lies(sweeps, history, monkeypatch):
    id_ = found_on(sweeps, GPU, "bus")
    first = archive(ticket_for(sweeps / "after", id_, history))
    monkeypatch.setattr("time.time", lambda: 4e9)
    assert archive(ticket_for(sweeps / "after", id_[:8], history)) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        members = tar.getmembers()
        assert [each.name for each in members] == [
            f"ticket-{id_}/log.txt", f"ticket-{id_}/ticket.json", f"ticket-{id_}/ticket.md",
        ]  # fmt: skip
        assert {(each.uid, each.gid, each.uname, each.mode) for each in members} == {(0, 0, "", 0o644)}
    assert str(sweeps).encode() not in b"".join(files_of(ticket_for(sweeps / "after", id_, history)).values())


@pytest.mark.parametrize("name", ["pack", "pack.tar.gz"])
def test_a_pack_is_there_whole_and_never_over_another(sweeps, history, tmp_path, name):
    one = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"), history)
    out = tmp_path / "out" / name
    write_pack(one, out)
    write_pack(one, out)
    other = ticket_for(sweeps / "after", found_on(sweeps, MOUNT, "mount"), history)
    with pytest.raises(InputError, match="is there already and is another"):
        write_pack(other, out)
    assert [each.name for each in out.parent.iterdir()] == [name]
    if name == "pack":
        assert json.loads((out / "ticket.json").read_text())["finding"] == one.finding
        assert (out / "log.txt").read_text().splitlines() == list(one.log_lines)
        (out / "log.txt").write_text("changed")
        with pytest.raises(InputError):
            write_pack(one, out)


def test_a_pack_that_cannot_be_written_is_one_line(sweeps, history, tmp_path):
    ticket = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"), history)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name a place that can be written"):
        write_pack(ticket, tmp_path / "file" / "pack")


HOSTILE = (
    "password=hunter2",
    "\x1b[2J\x1b]0;owned\x07 \u202e gnp",
    "``` \n# Forged heading\n```",
    "`````",
    "<script>alert(1)</script>",
)


def hostile(sweeps, host):
    """Evidence and log lines of a host, as a hostile one would have them."""
    findings = read_journal(sweeps / "after" / "findings.jsonl", Finding)
    lines = [
        to_json(replace(each, evidence=HOSTILE) if each.subject == host and each.status != "ok" else each)
        for each in findings
    ]
    (sweeps / "after" / "findings.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def test_what_a_hostile_host_says_is_printable_harmless_and_without_secrets(sweeps, history):
    hostile(sweeps, GPU)
    ticket = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"), history)
    for content in files_of(ticket).values():
        text = content.decode()
        assert "hunter2" not in text
        assert all(each.isprintable() or each == "\n" for each in text)
    text = page(ticket)
    fence = "``````text"  # longer than what the host tries to close it with
    assert fence in text
    assert "\n# Forged heading" not in text
    inside = text.split(fence)[1].split("\n``````\n")[0]
    assert "<script>" in inside
    assert "<script>" not in text.replace(inside, "")
    assert ticket.masked == 2  # in the evidence and in the log lines
    assert "2 texts" in text


def test_persons_texts_are_masked_too(sweeps, history):
    id_ = found_on(sweeps, MOUNT, "mount")
    machine = next(each for each in history.machines() if each.name == MOUNT)
    at = ticket_for(sweeps / "after", id_, history).at
    story = next(each for each in host_stories(history, machine.id, now=at) if id_ in each.findings)
    event = Event(
        at=at, host=machine.id, kind="fix_begun", subject=story.id, says="mount -o password=hunter2 /x", by="ann"
    )
    history.tell(event)
    assert b"hunter2" not in b"".join(files_of(ticket_for(sweeps / "after", id_, history)).values())


def test_lines_of_a_log_beside_it_are_those_of_the_part(sweeps, history, machines):
    id_ = found_on(sweeps, GPU, "bus")
    address = machines[GPU].gpus[2].pci.lower()[5:12]
    other = machines[GPU].gpus[3].pci.lower()[5:12]
    log = sweeps / "dmesg"
    key = f"-----BEGIN PRIVATE KEY-----\n{address} QUJD\n-----END PRIVATE KEY-----\n"
    mine, theirs = f"NVRM: x 0000:{address} y token=hunter2", f"NVRM: x 0000:{other} y"
    log.write_text(f"{theirs}\n{key}{mine}\n" + f"again 0000:{address}\n" * (2 * MOST), encoding="utf-8")
    lines = ticket_for(sweeps / "after", id_, history, log=log).log_lines
    assert len(lines) <= MOST
    assert lines[-1] == f"again 0000:{address}"
    assert theirs not in lines
    log.write_text(f"{theirs}\n{key}{mine}\n", encoding="utf-8")
    lines = ticket_for(sweeps / "after", id_, history, log=log).log_lines
    assert lines[-1] == f"NVRM: x 0000:{address} y token=[masked]"
    assert not any("QUJD" in line for line in lines)
    with pytest.raises(InputError, match="name a file that can be read"):
        ticket_for(sweeps / "after", id_, history, log=sweeps / "nothing")


def test_it_is_bounded_and_says_what_was_cut(sweeps, history, monkeypatch):
    monkeypatch.setattr(gathering, "MOST", 2)
    ticket = ticket_for(sweeps / "after", found_on(sweeps, DIMM, "corrected"), history)
    longest = max(map(len, (ticket.evidence, ticket.log_lines, ticket.counters, ticket.parts, ticket.versions)))
    assert longest == 2
    assert ticket.cut
    assert ticket.cut[0] in page(ticket)


def test_a_finding_that_is_none_is_one_line(sweeps, history):
    with pytest.raises(InputError, match="no finding"):
        ticket_for(sweeps / "after", "0123456789", history)


def test_a_host_that_did_not_answer_has_a_ticket(sweeps, history):
    """Of all that it did not say, the history knows some."""
    results = read_journal(sweeps / "after" / "results.jsonl", HostResult)
    silent = [
        replace(each, identities=(), traits=(), measures=(), symptoms=(), after=None) if each.host == GPU else each
        for each in results
    ]
    (sweeps / "after" / "results.jsonl").write_bytes(b"".join(to_json(each) + b"\n" for each in silent))
    shutil.rmtree(sweeps / "before")
    ticket = ticket_for(sweeps / "after", found_on(sweeps, GPU, "bus"), history)
    assert item(ticket, "serial").source == "the history"
    assert item(ticket, "driver").value.startswith("gpu.driver ")
