"""``wholestack evals score`` as a user calls it."""

import io
import json
import subprocess
import sys

import pytest

from wholestack.cli.evals_progress import ScoringWatcher
from wholestack.cli.main import main
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import read_result


def question(number, **changes):
    return {
        "id": f"q{number}",
        "context": f"The number {number} and one more make",
        "choices": [f"{number + 1}", f"{number + 2}", "none"],
        "gold": 0,
        "group": f"g{number // 2}",
    } | changes


GOOD = [question(number) for number in range(10)]
BAD = [
    {key: value for key, value in question(20).items() if key != "gold"},
    question(21, gold=7),
    question(22, choices=["a", "a"]),
    question(23, choices=["a"], gold=0),
    question(24, choices=["a", " "]),
    question(25, context="half \ud800"),
    "not json",
    question(26, choices="abc"),
]
REASONS = {
    "a blank choice": 1,
    "fewer than two choices": 1,
    "half of a surrogate pair, which is not text": 1,
    "no gold answer": 2,
    "the line is not a JSON object": 1,
    "the row does not follow the layout": 1,
    "two choices are the same": 1,
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def write(rows, name="sums.jsonl"):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return name

    return write


@pytest.fixture
def command(capsys):
    def command(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["evals", "score", *map(str, arguments)])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return command


def test_json_is_what_is_promised(write, command, tmp_path):
    code, out, err = command(write([*GOOD, *BAD]), "--model", "memory", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["items"], document["scored"]) == (18, 10)
    assert document["unscorable"] == REASONS
    assert document["items"] == document["scored"] + sum(document["unscorable"].values())
    assert all(isinstance(value, int | float) for value in document["metrics"].values())
    assert document["metrics"]["answer_bpb"] == pytest.approx(8.0)
    per_item = [json.loads(line) for line in (tmp_path / document["per_item"]).read_text().splitlines()]
    assert [line["id"] for line in per_item] == [f"q{number}" for number in range(10)]
    assert "10 items in 5 groups, layout own; 8 unscorable" in err


def test_what_these_items_can_show_is_said_before_anything_runs(write, command, tmp_path):
    code, out, err = command(write(GOOD), "--model", "memory", "--estimate")
    assert (code, out) == (0, "")
    assert "smallest difference between two models to be seen (power 80%, level 0.05):" in err
    assert "answer_bpb" in err
    assert "expense: 10 requests" in err
    assert not (tmp_path / "results").exists()


def test_the_report_says_the_purpose_and_fits_80_columns(write, command):
    _, out, err = command(write([*GOOD, *BAD]), "--model", "memory")
    assert "base competence: a direct answer, no reasoning text" in out
    assert "10 of 18 items scored" in out
    assert "unscorable: 2  no gold answer" in out
    for metric in ("answer_bpb", "choice_nll_raw", "accuracy_per_byte", "brier_per_token"):
        assert metric in out
    assert max(map(len, (out + err).splitlines())) <= 80


def test_a_second_call_scores_nothing_again_and_says_the_same(write, command):
    first = command(write(GOOD), "--model", "memory", "--json")[1]
    _, second, err = command("sums.jsonl", "--model", "memory", "--json")
    assert first == second
    assert "expense: none, every item has its score from before" in err
    assert "10 of 10 items are there from before" in err


def test_the_order_of_the_file_changes_no_metric(write, command):
    forward = json.loads(command(write(GOOD), "--model", "memory", "--json")[1])
    backward = json.loads(command(write(GOOD[::-1], "turned.jsonl"), "--model", "memory", "--json")[1])
    assert forward["metrics"] == backward["metrics"]
    assert forward["key"] != backward["key"]


def test_nothing_that_can_be_scored_is_exit_code_3(write, command):
    long = "x" * (1 << 20)
    code, out, _ = command(write([question(1, choices=[long + "a", long + "b"])]), "--model", "memory", "--json")
    document = json.loads(out)
    assert code == 3
    assert (document["scored"], document["metrics"]) == (0, {})
    assert document["unscorable"] == {"a choice is longer than the model's context": 1}


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (None, (), "absent.jsonl: cannot be read"),
        ([], (), "holds no item"),
        (["context,choices", "a,b"], (), "is no JSONL file"),
        (BAD, (), "no item can be used as layout own"),
        ([{"prompt": "p"}], (), "has the fields of no known layout"),
        (GOOD, ("--layout", "nonsense"), "no layout 'nonsense'"),
        (GOOD, ("--layout", "boolq"), "no item can be used as layout boolq"),
        (GOOD, ("--task", "nonsense"), "no task 'nonsense'"),
        (GOOD, ("--template", "{passage}"), "names {passage}"),
        (GOOD, ("--shots", "2"), "--shots-from"),
        (GOOD, ("--shots", "99", "--shots-from", "sums.jsonl"), "99 are asked for"),
        (GOOD, ("--limit", "0"), "limit is 0"),
        (GOOD, ("--model", "nonsense"), "no model 'nonsense'"),
        (GOOD, ("--model", "memory:absent"), "absent: cannot be read"),
        (GOOD, ("--out", "sums.jsonl"), "cannot be made"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(write, command, rows, options, said):
    name = "absent.jsonl" if rows is None else write(rows)
    model = () if "--model" in options else ("--model", "memory")
    code, out, err = command(name, *model, *options)
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("wholestack: ")


def test_examples_and_wording_reach_the_items(write, command, tmp_path):
    write([question(number) for number in range(50, 60)], "pool.jsonl")
    options = ("--shots", "2", "--shots-from", "pool.jsonl", "--shots-seed", "4", "--delimiter", ": ", "--json")
    document = json.loads(command(write(GOOD), "--model", "memory", *options)[1])
    result = read_result(tmp_path / document["folder"])
    assert all(item.context.count("\n\n") == 2 and item.delimiter == ": " for item in result.items)
    assert (result.task.shots.count, result.task.shots.seed) == (2, 4)


def test_a_new_line_is_typed_as_in_the_help(write, command, tmp_path):
    options = ("--template", r"Q: {context}\nA:", "--delimiter", r"\n", "--json")
    document = json.loads(command(write(GOOD), "--model", "memory", *options)[1])
    item = read_result(tmp_path / document["folder"]).items[0]
    assert (item.context, item.delimiter) == ("Q: The number 0 and one more make\nA:", "\n")


def test_letters_are_scored_instead_of_texts(write, command, tmp_path):
    options = ("--letters", "--template", "{context}\n{options}\nAnswer:", "--json")
    document = json.loads(command(write(GOOD), "--model", "memory", *options)[1])
    result = read_result(tmp_path / document["folder"])
    assert {item.choices for item in result.items} == {("A", "B", "C")}


def test_a_task_that_writes_is_sent_to_its_own_command(write, command, tmp_path):
    (tmp_path / "t.toml").write_text('name = "t"\npurpose = "reasoning"\n[writing]\nmax_tokens = 5\n')
    code, _, err = command(write(GOOD), "--model", "memory", "--task", "t.toml")
    assert code == 2
    assert "wholestack evals write" in err


def test_a_context_of_100000_tokens_and_an_empty_one_are_scored(write, command):
    rows = [*GOOD, question(30, context="word " * 100_000), question(31, context="")]
    document = json.loads(command(write(rows), "--model", "memory", "--json")[1])
    assert (document["items"], document["scored"]) == (12, 12)


def test_a_context_that_is_cut_is_counted(write, command):
    rows = [*GOOD, question(30, context="word " * 300_000)]
    document = json.loads(command(write(rows), "--model", "memory", "--json")[1])
    assert document["truncated"] == 1


def test_help_imports_no_numerics_and_scoring_in_memory_no_torch(write):
    name = write(GOOD)
    for arguments, absent in (
        (["evals", "--help"], ("numpy", "scipy", "torch")),
        (["evals", "score", name, "--model", "memory"], ("torch", "transformers")),
    ):
        code = (
            f"import sys\nfrom wholestack.cli.main import main\ntry: main({arguments!r})\nexcept SystemExit: pass\n"
            f"print([m for m in {absent} if m in sys.modules], file=sys.stderr)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr.strip().splitlines()[-1] == "[]"


def test_rows_without_choices_are_sent_to_their_own_command(write, command):
    code, _, err = command(write([{"id": 3, "question": "2 and 3?", "answer": "#### 5"}]), "--model", "memory")
    assert code == 2
    assert "wholestack evals write" in err


def test_an_interrupted_scoring_says_what_is_kept_and_goes_on(write, command, monkeypatch):
    score = MemoryBackend.score

    def interrupted(self, items, *, done=()):
        for number, each in enumerate(score(self, items, done=done)):
            if number == 4:
                raise KeyboardInterrupt
            yield each

    with monkeypatch.context() as patch:
        patch.setattr(MemoryBackend, "score", interrupted)
        code, out, err = command(write(GOOD), "--model", "memory", "--json")
    assert (code, out) == (130, "")
    assert "4 of 10 items are kept; the same command goes on with the rest" in err
    _, out, err = command("sums.jsonl", "--model", "memory", "--json")
    assert "expense: 6 requests" in err
    assert json.loads(out)["scored"] == 10


def test_the_time_left_counts_only_what_this_session_did():
    now = [0.0]
    stream = io.StringIO()
    with ScoringWatcher(stream, clock=lambda: now[0]) as watch:
        watch(50, 100)
        for done in range(51, 76):
            now[0] += 1.0
            watch(done, 100)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "50 of 100 items are there from before"
    assert lines[1] == "65 of 100 items, 15 s, about 35 s left"


def test_beside_the_numbers_stands_what_they_stand_for(write, command, tmp_path):
    _, out, _ = command(write(GOOD), "--model", "memory")
    assert "nobody knows what this number stands for" in " ".join(out.split())
    rows = ["model,answer_bpb", *(f"m{n},{2 - n / 10}" for n in range(8))]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    for arguments in (
        ["goal", "set", "wanted", "--measure", "share accepted", "--better", "higher", "--matters", "0.01",
         "--by", "two reviewers", "--how", "blind"],
        *(["goal", "measure", "wanted", f"m{n}", str(n / 10), "--n", "4000"] for n in range(8)),
        ["proxy", "table.csv"],
    ):  # fmt: skip
        with pytest.raises(SystemExit):
            main(["evals", *arguments])
    _, out, _ = command("sums.jsonl", "--model", "memory")
    assert "answer_bpb: ranks as 'wanted' does in 1.00 of pairs" in " ".join(out.split())
    assert "the others: how it ranks beside the goal 'wanted' was never measured" in out
    assert max(map(len, out.splitlines())) <= 80
    document = json.loads(command("sums.jsonl", "--model", "memory", "--json")[1])
    assert "was never measured" in document["stands_for"]["accuracy_raw"]


def test_what_is_refused_is_named_by_its_line(write, command):
    name = write([*GOOD, {"id": "x", "context": "c", "choices": ["a", "b"], "gold": "B"}, *BAD])
    _, out, err = command(name, "--model", "memory", "--estimate", "--json")
    assert "line 11: gold 'B' is no choice" in err
    assert "more (--estimate --json lists all)" in err
    document = json.loads(out)
    assert len(document["refused"]) == sum(document["unscorable"].values())
    assert {"line": 11, "reason": "no gold answer"}.items() <= document["refused"][0].items()
    assert document["detectable"][0]["metric"].startswith("answer_bpb")
    assert document["expense"]["requests"] == 10


def test_it_says_what_it_is_doing_before_anything_that_takes_long(write, command, monkeypatch):
    """A large model takes minutes to open, and again minutes to be timed."""
    said = []
    expense = MemoryBackend.expense

    def timed(self, items):
        said.append(sys.stderr.getvalue())
        return expense(self, items)

    monkeypatch.setattr(MemoryBackend, "expense", timed)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    command(write(GOOD), "--model", "memory", "--estimate")
    assert said[0].splitlines() == [
        "opening the model ...",
        "counting tokens and timing some items, for the estimate ...",
    ]


def test_a_file_that_changes_while_it_is_scored_is_named_and_the_scores_are_of_what_was_read(
    write, command, monkeypatch
):
    name = write(GOOD)
    score = MemoryBackend.score

    def changing(self, items, *, done=()):
        write(GOOD[:3])
        return score(self, items, done=done)

    monkeypatch.setattr(MemoryBackend, "score", changing)
    code, out, err = command(name, "--model", "memory", "--json")
    assert (code, json.loads(out)["scored"]) == (0, 10)
    assert json.loads(out)["changed_since_read"] == [name]
    assert f"{name}: was changed since it was read; the scores are of the items as they were" in err


def test_every_column_of_the_calibration_table_is_explained_below_it(write, command):
    _, out, _ = command(write(GOOD), "--model", "memory:sums.jsonl")
    lines = out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("calibration"))
    below = " ".join(" ".join(lines[at + 4 : at + 9]).split())
    for column in ("error:", "if calibrated:", "temperature:", "loss before and after it:", "area:"):
        assert column in below
    assert all(len(line) <= 80 for line in lines)
