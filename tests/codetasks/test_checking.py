"""``codetasks check``: what is proved, what is refused and why."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from wholestack.codetasks.checking import check_file
from wholestack.codetasks.item import CodeItem, content_hash, item_line, seal
from wholestack.errors import InputError


@pytest.fixture(scope="module")
def few(items) -> list[CodeItem]:
    """One of every kind at three levels."""
    first = {(item.kind, item.difficulty): item for item in items if item.difficulty in (1, 5, 10)}
    return list(first.values())


@pytest.fixture
def check(tmp_path, sandbox):
    def run(lines: list[bytes]):
        path: Path = tmp_path / "items.jsonl"
        path.write_bytes(b"".join(lines))
        return check_file(path, sandbox.run)

    return run


def test_what_was_generated_is_proved(few, check):
    found = check([item_line(item) for item in few])
    assert (found.items, found.proved, found.refused, found.findings) == (len(few), len(few), 0, ())


def test_one_changed_byte_anywhere_is_named_by_its_line(few, check):
    lines = [item_line(item) for item in few]
    for place in range(10, len(lines[1]) - 2, 97):
        changed = bytearray(lines[1])
        changed[place] = ord("x") if changed[place] != ord("x") else ord("y")
        found = check([lines[0], bytes(changed), lines[2]])
        assert found.proved == 2
        assert [each.part for each in found.findings] == ["line 2"]
        assert found.findings[0].status == "fail"


def test_a_wrong_answer_is_refused_although_its_hash_is_right(few, check):
    wrong = seal(replace(few[0], gold=(few[0].gold + 1) % 4))
    (finding,) = check([item_line(wrong)]).findings
    assert finding.cause == "foreign"
    assert "other gold" in finding.evidence[0]


def test_a_program_that_its_seed_does_not_give_is_refused(few, check):
    item = next(each for each in few if each.kind == "eval")
    (finding,) = check([item_line(seal(replace(item, program="print(1)", context="print(1)")))]).findings
    assert "its seed gives another question" in finding.evidence[0]
    assert "its program prints '1'" in finding.evidence[1]


def test_a_wrong_answer_is_not_hidden_by_many_unknown_lines(few, check, monkeypatch):
    monkeypatch.setattr("wholestack.codetasks.checking.MOST_SHOWN", 3)
    old = [item_line(seal(replace(few[0], version="0", context=str(n)))) for n in range(9)]
    wrong = seal(replace(few[0], gold=(few[0].gold + 1) % 4))
    found = check([*old, item_line(wrong)])
    assert (found.refused, found.unknown) == (1, 9)
    assert [each.status for each in found.findings] == ["unknown"] * 3 + ["fail"]


def test_every_cause_has_one_remedy_and_no_cause_hides_another(few, check, monkeypatch):
    monkeypatch.setattr("wholestack.codetasks.checking.MOST_SHOWN", 3)
    cannot_be = item_line(seal(replace(few[0], difficulty=11, context="?")))
    wrong = seal(replace(few[1], gold=(few[1].gold + 1) % 4))
    found = check([b"{}\n", cannot_be, item_line(wrong), b"[]\n", b"x\n", b"y\n", b"z\n", item_line(few[2])[:-3]])
    assert [(each.part, each.cause) for each in found.findings] == [
        ("line 1", "changed"), ("line 2", "foreign"), ("line 3", "foreign"), ("line 4", "changed"),
        ("line 5", "changed"),
    ]  # fmt: skip
    assert found.refused == 8
    assert len({(each.cause, each.remedy) for each in found.findings}) == 2


def test_line_ends_of_others_change_nothing(few, check):
    lines = [item_line(item) for item in few[:3]]
    found = check([lines[0].replace(b"\n", b"\r\n"), lines[1], lines[2].rstrip()])
    assert found.proved == 3


def test_another_schema_is_unknown(few, check):
    plain = msgspec.json.decode(item_line(few[0])) | {"schema": "code-item/9", "more": 1}
    found = check([msgspec.json.encode(plain) + b"\n"])
    assert (found.refused, found.unknown) == (0, 1)


def test_the_same_question_with_other_choices_in_another_order_is_a_repeat(few, check):
    turned = seal(replace(few[0], id="other", choices=few[0].choices[::-1], gold=3 - few[0].gold))
    assert check([item_line(few[0]), item_line(turned)]).findings[0].cause == "repeated"


@pytest.mark.parametrize("processes", [0, -1])
def test_no_process_is_refused(few, tmp_path, sandbox, processes):
    with pytest.raises(InputError, match="processes"):
        check_file(tmp_path / "items.jsonl", sandbox.run, processes=processes)


def test_what_would_keep_us_for_ever_is_no_file(tmp_path, sandbox):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            check_file(place, sandbox.run)


@pytest.mark.parametrize(
    "change", [{"gold": 4}, {"gold": -1}, {"choices": ("a",), "gold": 0}, {"choices": ("a", "a"), "gold": 0}]
)
def test_choices_of_which_none_can_be_right_are_refused(few, check, change):
    found = check([item_line(seal(replace(few[0], **change)))])
    assert (found.refused, found.findings[0].cause) == (1, "changed")


def test_a_line_nested_a_thousand_deep_is_refused(few, check):
    for depth in range(980, 1001):
        line = item_line(few[0]).replace(b'"trace":{', b'"trace":{"deep":' + b"[" * depth + b"]" * depth + b",")
        assert check([line]).refused == 1


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("while True: pass", "does not end"),
        ("while True: print('x' * 1000)", "prints more than"),
        ("1 / 0", "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", "fails"),
        ("held = []\nwhile True: held.append(bytearray(10 ** 7))", "MemoryError"),
        ("def", "SyntaxError"),
    ],
)
def test_a_strange_program_is_refused_with_what_it_does(few, check, program, reason):
    ours = item_line(few[1])
    found = check([item_line(seal(replace(few[0], program=program, context=program))), ours])
    assert (found.refused, found.proved) == (1, 1)
    assert reason in " ".join(found.findings[0].evidence)


def test_a_repeated_question_is_refused(few, check):
    found = check([item_line(few[0]), item_line(few[1]), item_line(few[0])])
    assert found.proved == 2
    assert (found.findings[0].part, found.findings[0].cause) == ("line 3", "repeated")


def test_another_version_is_unknown_and_never_proved(few, check):
    found = check([item_line(seal(replace(few[0], version="0")))])
    assert (found.proved, found.refused, found.unknown) == (0, 0, 1)
    assert found.findings[0].status == "unknown"
    assert "version '0'" in found.findings[0].evidence[0]
    assert "neither proved nor refuted" in found.findings[0].evidence[0]
    assert "generate a new file" in found.findings[0].remedy


@pytest.mark.parametrize("change", [{"difficulty": 11}, {"difficulty": 0}, {"seed": -1}, {"seed": 1 << 80}])
def test_a_question_that_cannot_be_is_refused(few, check, change):
    found = check([item_line(seal(replace(few[0], **change)))])
    assert found.refused == 1


def test_a_kind_that_is_not_installed_is_unknown(few, check):
    found = check([item_line(seal(replace(few[0], kind="riddle"))), item_line(few[1])])
    assert (found.proved, found.refused, found.unknown) == (1, 0, 1)
    assert "'riddle' is not installed" in found.findings[0].evidence[0]


@pytest.mark.parametrize(
    "line", [b"{", b"[]\n", b"\xff\xfe\n", b"{}\n", b'"' + b"x" * (1 << 21) + b'"\n', b"[" * 9999 + b"\n"]
)
def test_a_line_that_is_no_question_is_refused(few, check, line):
    found = check([item_line(few[0]), line])
    assert (found.proved, found.refused) == (1, 1)
    assert found.findings[0].part == "line 2"


def test_the_same_content_written_in_another_way_is_told_apart(few, check):
    plain = msgspec.json.decode(item_line(few[0]))
    (finding,) = check([msgspec.json.encode(dict(sorted(plain.items()))) + b"\n"]).findings
    assert "written in another way" in " ".join(finding.evidence)


def test_a_file_that_is_not_there_or_empty_is_an_error(tmp_path, sandbox):
    with pytest.raises(InputError, match=r"none\.jsonl"):
        check_file(tmp_path / "none.jsonl", sandbox.run)
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(InputError, match="no question"):
        check_file(tmp_path / "empty.jsonl", sandbox.run)


def test_the_hash_covers_every_field(few):
    item = few[0]
    assert content_hash(item) == item.hash
    for change in (
        {"gold": item.gold ^ 1},
        {"seed": item.seed + 1},
        {"trace": {}},
        {"question": "?"},
        {"version": "x"},
    ):
        assert content_hash(replace(item, **change)) != item.hash


def test_strange_programs_run_beside_each_other_and_are_told_in_the_order_of_the_file(few, tmp_path, sandbox):
    path = tmp_path / "items.jsonl"
    programs = [f"while {n}: pass" if n % 2 else f"print({n})" for n in range(1, 7)]
    path.write_bytes(b"".join(item_line(seal(replace(few[0], program=each, context=each))) for each in programs))
    inside = threading.Barrier(3, timeout=60)

    def run(program, **options):
        if program in programs:
            inside.wait()
        return sandbox.run(program, **options)

    told = [each.evidence[1] for each in check_file(path, run, processes=3).findings]
    assert told == check_evidence(path, sandbox)
    assert ["does not end" in each for each in told] == [True, False] * 3
    assert [f"prints '{n}'" in told[n - 1] for n in (2, 4, 6)] == [True] * 3


def check_evidence(path, sandbox):
    return [each.evidence[1] for each in check_file(path, sandbox.run).findings]


def test_no_more_strange_programs_run_than_are_allowed(few, tmp_path, sandbox, monkeypatch):
    monkeypatch.setattr("wholestack.codetasks.checking.MOST_FOREIGN", 3)
    monkeypatch.setattr("wholestack.codetasks.checking.BATCH", 2)
    path = tmp_path / "items.jsonl"
    lines = [item_line(seal(replace(few[0], program=f"print({n})", context=f"print({n})"))) for n in range(5)]
    path.write_bytes(b"".join(lines))
    findings = check_file(path, sandbox.run).findings
    assert [len(each.evidence) for each in findings] == [2, 2, 2, 1, 1]


def test_every_question_that_is_whole_is_handed_out(few, tmp_path, sandbox):
    path = tmp_path / "items.jsonl"
    old = seal(replace(few[1], version="0"))
    path.write_bytes(item_line(few[0]) + b"{}\n" + item_line(old) + item_line(few[0]))
    handed = []
    found = check_file(path, sandbox.run, decoded=handed.append)
    assert handed == [few[0], old, few[0]]
    assert (found.items, found.proved) == (4, 1)
