"""Texts are kept by everything that reaches the model, gone on with after a kill, and judged as often as one likes."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from tests.evals.written.material import grader, question
from wholestack.errors import InputError, RecordError, RunBusyError
from wholestack.evals.backend import Opening, Writing
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.models.endpoint import open_endpoint
from wholestack.evals.written.answering import (
    TEXTS_FILE,
    prompts_left,
    read_written,
    write_into,
    writing_key,
)
from wholestack.evals.written.controls import try_controls
from wholestack.evals.written.judging import graded_path, judge_into, read_judged
from wholestack.evals.written.questions import QuestionSet
from wholestack.testing.endpoint import NgramModel, loopback_endpoint

QUESTIONS = QuestionSet(
    questions=tuple(question(str(n), prompt=f"{n} and #### {n}. Again: ####", id=str(n)) for n in range(6)), sha256=""
)
MODEL = MemoryBackend(b"".join(b"#### %d. Again: #### %d\n" % (n, n) for n in range(6)), order=16)
WRITING = Writing(max_tokens=4, stop=("\n",))
NUMBER = grader("last_number", "number")


def judged(written, judge=NUMBER):
    return judge_into(
        written, QUESTIONS, judge, task="t", purpose="reasoning", controls=try_controls(QUESTIONS.questions, judge)
    )


def test_what_a_model_wrote_is_judged_end_to_end(tmp_path):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    found = judged(written)
    assert written.complete
    assert [line.written.text.strip() for line in written.texts] == [str(n) for n in range(6)]
    assert (found.scores.right, found.metrics["share_right"]) == (6, 1.0)
    lines = [json.loads(line) for line in graded_path(written.folder, found).read_text().splitlines()]
    assert [line["answer"] for line in lines] == [str(n) for n in range(6)]


def test_two_runs_give_the_same_files_to_the_bit(tmp_path):
    for name in ("one", "two"):
        judged(write_into(MODEL, QUESTIONS, WRITING, tmp_path / name))
    ones, twos = (sorted((tmp_path / name).rglob("*.json*")) for name in ("one", "two"))
    assert [path.name for path in ones] == [path.name for path in twos]
    assert [path.read_bytes() for path in ones] == [path.read_bytes() for path in twos]


def test_the_folder_holds_its_questions_and_sealed_verdicts_and_is_read_without_the_file(tmp_path):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    found = judged(written)
    again = read_judged(written.folder)
    assert again.questions.questions == tuple(replace(each, row={}) for each in QUESTIONS.questions)
    assert again.metrics == found
    assert again == read_judged(written.folder / f"metrics-{found.grading_key[:8]}.json")
    assert [each.grade for each in again.graded] == ["right"] * 6
    judged(written, grader("marker:=", "number"))
    with pytest.raises(InputError, match="was judged in 2 ways"):
        read_judged(written.folder)


def test_no_changed_byte_of_verdicts_or_questions_is_trusted(tmp_path):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    expected = read_judged(written.folder) if judged(written) else None
    for path in (*written.folder.glob("graded-*"), *written.folder.glob("questions-*")):
        whole = path.read_bytes()
        for at in range(0, len(whole), 7):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            try:
                found = read_judged(written.folder)
            except (RecordError, InputError) as error:
                assert path.name in str(error) or "not judged" in str(error)  # noqa: PT017
            else:
                assert (found.graded, found.questions.questions) == (expected.graded, expected.questions.questions)
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["purpose", "checker", "extraction", "questions"])
def test_a_way_to_judge_that_was_changed_is_refused(tmp_path, name):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    path = written.folder / f"metrics-{judged(written).grading_key[:8]}.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps(plan | {name: plan[name] + "x"}))
    with pytest.raises((RecordError, InputError), match=r"belong together|was changed|Invalid enum value"):
        read_judged(written.folder)


def test_verdicts_of_another_folder_are_not_taken_and_a_missing_one_is_said(tmp_path):
    other = write_into(MODEL, QUESTIONS, replace(WRITING, max_tokens=5), tmp_path)
    theirs = graded_path(other.folder, judged(other)).read_bytes()
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    path = graded_path(written.folder, judged(written))
    own = path.read_bytes()
    path.write_bytes(theirs)
    with pytest.raises(RecordError, match=r"graded-.*:1: is damaged, doubled, or from another judging"):
        read_judged(written.folder)
    path.write_bytes(own[: own[:-1].rfind(b"\n") + 1])
    with pytest.raises(InputError, match="some of its texts are not judged"):
        read_judged(written.folder)


def test_what_is_left_to_ask_is_known_before_anything_is_asked(tmp_path):
    where = (tmp_path, "questions", MODEL.identity, QUESTIONS, WRITING)
    everything = tuple(each.prompt for each in QUESTIONS.questions)
    assert prompts_left(*where) == everything
    with pytest.raises(KeyboardInterrupt):
        write_into(Counting(most=2), QUESTIONS, WRITING, tmp_path)
    assert prompts_left(*where) == everything[2:]
    write_into(Counting(), QUESTIONS, WRITING, tmp_path)
    assert prompts_left(*where) == ()


def test_another_grader_judges_the_same_texts_again_beside_the_first(tmp_path):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    first, second = judged(written), judged(written, grader("marker:=", "number"))
    assert first.key == second.key
    assert first.grading_key != second.grading_key
    assert second.scores.unparsable == {"holds no '='": 6}
    assert len(list(tmp_path.rglob("metrics-*.json"))) == 2


def test_everything_that_reaches_the_model_is_in_the_key():
    other = MemoryBackend(b"else", order=16)
    renamed = QuestionSet(questions=(replace(QUESTIONS.questions[0], prompt="?"), *QUESTIONS.questions[1:]), sha256="")
    keys = {
        writing_key(MODEL.identity, QUESTIONS, WRITING, 1),
        writing_key(other.identity, QUESTIONS, WRITING, 1),
        writing_key(MODEL.identity, renamed, WRITING, 1),
        writing_key(MODEL.identity, QuestionSet(questions=QUESTIONS.questions[::-1], sha256=""), WRITING, 1),
        writing_key(MODEL.identity, QUESTIONS, replace(WRITING, max_tokens=5), 1),
        writing_key(MODEL.identity, QUESTIONS, replace(WRITING, stop=()), 1),
        writing_key(MODEL.identity, QUESTIONS, replace(WRITING, temperature=0.1), 1),
        writing_key(MODEL.identity, QUESTIONS, replace(WRITING, seed=1), 1),
        writing_key(MODEL.identity, QUESTIONS, WRITING, 2),
    }
    assert len(keys) == 9


class Counting(MemoryBackend):
    """Counts prompts, and breaks off after some."""

    def __init__(self, *, most=10**9):
        super().__init__(b"".join(b"#### %d. Again: #### %d\n" % (n, n) for n in range(6)), order=16)
        self.most, self.asked = most, 0

    def generate(self, prompts, writing):
        for written in super().generate(prompts, writing):
            if self.asked == self.most:
                raise KeyboardInterrupt
            self.asked += 1
            yield written


def test_an_interrupted_writing_goes_on_where_it_was(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_into(Counting(most=2), QUESTIONS, WRITING, tmp_path)
    second, seen = Counting(), []
    written = write_into(second, QUESTIONS, WRITING, tmp_path, watch=lambda done, total: seen.append((done, total)))
    assert second.asked == 4
    assert seen == [(n, 6) for n in range(2, 7)]
    whole = write_into(MODEL, QUESTIONS, WRITING, tmp_path / "whole")
    assert written.texts == whole.texts
    third = Counting()
    write_into(third, QUESTIONS, WRITING, tmp_path)
    assert third.asked == 0


def test_a_line_that_was_changed_is_never_counted(tmp_path):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    path = written.folder / TEXTS_FILE
    raw = path.read_text()
    path.write_text(raw.replace('"text":" 3', '"text":" 8'))
    with pytest.raises(RecordError, match=r"written\.jsonl:4: is damaged"):
        read_written(written.folder, QUESTIONS)
    path.write_text(raw + raw.splitlines()[0] + "\n")
    with pytest.raises(RecordError, match="doubled"):
        write_into(MODEL, QUESTIONS, WRITING, tmp_path)


def test_texts_behind_other_prompts_are_not_taken(tmp_path):
    written = write_into(MODEL, QUESTIONS, WRITING, tmp_path)
    others = QuestionSet(questions=QUESTIONS.questions[:3], sha256="")
    with pytest.raises(InputError, match="other prompts"):
        read_written(written.folder, others)


def test_a_folder_has_one_writer(tmp_path):
    class Curious(Counting):
        def generate(self, prompts, writing):
            with pytest.raises(RunBusyError):
                write_into(MODEL, QUESTIONS, WRITING, tmp_path)
            return super().generate(prompts, writing)

    assert write_into(Curious(), QUESTIONS, WRITING, tmp_path).complete


def test_several_texts_a_question_have_seeds_of_their_own(tmp_path):
    warm = Writing(max_tokens=8, temperature=1.0, seed=5)
    written = write_into(MODEL, QUESTIONS, warm, tmp_path, samples=3)
    alone = write_into(MODEL, QUESTIONS, replace(warm, seed=6), tmp_path)
    assert [line.sample for line in written.texts[:3]] == [0, 1, 2]
    assert [line.written for line in written.texts if line.sample == 1] == [line.written for line in alone.texts]
    assert len({line.written.text for line in written.texts[:3]}) > 1
    assert set(judged(written).scores.pass_at) == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("writing", "samples"),
    [
        (Writing(max_tokens=0), 1),
        (Writing(max_tokens=1, temperature=-1), 1),
        (Writing(max_tokens=1, stop=("",)), 1),
        (Writing(max_tokens=1), 0),
        (Writing(max_tokens=1), 2),
    ],
)
def test_a_writing_that_makes_no_sense_is_refused(tmp_path, writing, samples):
    with pytest.raises(InputError):
        write_into(MODEL, QUESTIONS, writing, tmp_path, samples=samples)


PROGRAM = """
import sys
from pathlib import Path
from tests.evals.written.test_answering import QUESTIONS, WRITING, write_into
from wholestack.evals.backend import Opening
from wholestack.evals.models.endpoint import open_endpoint
write_into(open_endpoint(sys.argv[1], Opening(requests_at_a_time=1)), QUESTIONS, WRITING, Path(sys.argv[2]))
"""


def test_killed_in_the_middle_it_loses_nothing_and_asks_for_the_rest_only(tmp_path):
    """The server holds the fourth prompt until the process that asked was killed with SIGKILL."""
    reached, release = threading.Event(), threading.Event()

    class Holding(NgramModel):
        def write(self, tokens, count):
            if not release.is_set() and bytes(tokens).startswith(b"3 and"):
                reached.set()
                release.wait()
            return super().write(tokens, count)

    with loopback_endpoint(Holding.of_bytes()) as server:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, server.url, str(tmp_path)], env=dict(os.environ))
        assert reached.wait(120)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        release.set()
        kept = len(next(tmp_path.rglob(TEXTS_FILE)).read_text().splitlines())
        assert 0 < kept < 6
        before = len(server.requests)
        backend = open_endpoint(server.url, Opening(requests_at_a_time=1))
        opening = len(server.requests) - before
        written = write_into(backend, QUESTIONS, WRITING, tmp_path)
        assert len(server.requests) - before - opening == 6 - kept
        whole = write_into(backend, QUESTIONS, WRITING, tmp_path / "whole")
    assert written.texts == whole.texts
