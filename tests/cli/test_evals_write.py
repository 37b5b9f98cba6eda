"""``wholestack evals write`` as a user runs it: a server on loopback, a real file, text that fits the screen."""

import json
from pathlib import Path

import pytest

from wholestack.cli.main import main
from wholestack.testing.endpoint import Dialect, Fault, NgramModel, loopback_endpoint

KEY = "sk-a-secret-of-tests"
GSM8K = Path(__file__).parents[3] / "shared" / "data" / "evals" / "gsm8k_test.jsonl"
MODEL = NgramModel.of_bytes()


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "sums.jsonl"
    rows = [{"id": n, "question": f"What is {n} + {n}?", "answer": f"{n} + {n}\n#### {2 * n}"} for n in range(12)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["evals", "write", *map(str, arguments)])
    return ended.value.code, *capsys.readouterr()


def options(tmp_path, *more):
    tokens = () if "--max-tokens" in more else ("--max-tokens", 8)
    return ["--extract", "marker:####", "--check", "number", "--gold", "marker:####", *tokens,
            "--out", tmp_path / "results", *more]  # fmt: skip


def test_an_endpoint_is_asked_and_judged_and_its_key_is_nowhere(tmp_path, capsys, monkeypatch, questions):
    monkeypatch.setenv("MY_KEY", KEY)
    with loopback_endpoint(MODEL, dialect=Dialect(chat_only=True), api_key=KEY) as server:
        code, out, err = run(
            capsys, questions, "--model", server.url, *options(tmp_path, "--api-key-variable", "MY_KEY", "--json")
        )
        prompts = [request["messages"][0]["content"] for request in server.requests if "messages" in request]
    document = json.loads(out)
    assert code == 0
    assert (document["items"], document["scored"]) == (12, 12)
    assert document["metrics"]["share_right"] == 0
    assert document["scores"]["unparsable"] == {"holds no '####'": 12}
    assert document["controls"]["reference"]["times"] == 12
    assert "12 questions, 12 texts" in err
    assert "What is 3 + 3?" in prompts
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert files
    assert not any(KEY.encode() in path.read_bytes() for path in files)
    assert KEY not in out + err


def test_the_page_fits_the_screen_and_names_what_matters(tmp_path, capsys, questions):
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text('{"id": 1, "text": "#### 2", "right": true}\n{"id": 1, "text": "2", "right": true}\n')
    with loopback_endpoint(MODEL) as server:
        code, out, _ = run(capsys, questions, "--model", server.url, *options(tmp_path, "--labelled", labelled))
    lines = out.splitlines()
    assert code == 0
    assert all(len(line) <= 80 for line in lines if not line.startswith("kept in"))
    for text in (
        "reasoning inside a loop: written, then the answer is extracted",
        "right: 0 of 12, 0.0%",
        "no answer in the text, counted as not right: 12",
        "  12 of these were cut at 8 tokens; try a larger --max-tokens",
        "wrong accepts: 0 of 0, nothing to count",
        "wrong rejects: 1 of 2, 50.0% (95 % interval 1.3% to 98.7%)",
    ):
        assert text in lines
    assert any(line.startswith("the right answer") and "12 of 12" in line for line in lines)


def test_the_same_command_again_asks_for_nothing(tmp_path, capsys, questions):
    with loopback_endpoint(MODEL) as server:
        arguments = (questions, "--model", server.url, *options(tmp_path, "--json"))
        _, first, _ = run(capsys, *arguments)
        before = len(server.requests)
        _, second, err = run(capsys, *arguments)
        again = [request for request in server.requests[before:] if request["prompt"].startswith("What is")]
        code, estimate, said = run(capsys, *arguments, "--estimate")
        asked = [request for request in server.requests[before:] if request["prompt"].startswith("What is")]
    assert second == first
    assert "12 of 12 items are there from before" in err
    assert again == asked == []  # not even for an estimate
    assert "every text is there from before, nothing is asked for" in said
    assert (code, json.loads(estimate)["expense"]) == (0, None)


def test_waits_are_said_while_they_last(tmp_path, capsys, caplog, questions):
    with loopback_endpoint(MODEL) as server:
        server.faults.append(Fault(trouble="status", status=429, retry_after="0"))
        code, _, _ = run(capsys, questions, "--model", server.url, *options(tmp_path))
    assert code == 0
    assert "HTTP 429; waits 0 s (try 1 of 6)" in caplog.text


def test_a_task_from_a_file_says_it_all(tmp_path, capsys, questions):
    task = tmp_path / "sums.toml"
    task.write_text(
        'name = "sums"\npurpose = "usefulness"\ntemplate = "Q: {prompt} A:"\nextraction = "last_number"\n'
        'checker = "number"\n[writing]\nmax_tokens = 4\nstop = ["Q:"]\n'
    )
    with loopback_endpoint(MODEL) as server:
        code, out, _ = run(
            capsys, questions, "--model", server.url, "--task", task, "--gold", "marker:####", "--json",
            "--out", tmp_path / "r",
        )  # fmt: skip
        asked = server.requests[-1]
    document = json.loads(out)
    assert code == 0
    assert (document["task"], document["purpose"]) == ("sums", "usefulness")
    assert (asked["prompt"][:2], asked["max_tokens"], asked["stop"]) == ("Q:", 4, ["Q:"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--check", "exact"], "say --extract"),
        (["--extract", "text"], "say --check"),
        (["--extract", "guess", "--check", "exact"], "no extraction 'guess'"),
        (["--extract", "text", "--check", "code"], "no sandbox yet"),
        (["--extract", "text", "--check", "exact", "--template", "none"], "holds no {prompt}"),
        (["--task", "mmlu-letters"], "wholestack evals score"),
    ],
)
def test_what_cannot_be_done_is_one_line(capsys, questions, arguments, says):
    code, out, err = run(capsys, questions, "--model", "memory", *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_without_a_verdict_it_could_not_tell(tmp_path, capsys):
    path = tmp_path / "q.jsonl"
    path.write_text('{"prompt": "?", "answer": "no number"}')
    judge = ("--extract", "text", "--check", "number")
    code, out, _ = run(capsys, path, "--model", "memory", *judge, "--out", tmp_path, "--max-tokens", 2)
    assert code == 3
    assert "right: no text has a verdict" in out
    assert "the grader refuses 1 right answers" in out


@pytest.mark.skipif(not GSM8K.exists(), reason="shared data are not here")
def test_gsm8k_has_a_gold_number_everywhere_and_its_grader_passes_its_controls(tmp_path, capsys):
    code, out, _ = run(capsys, GSM8K, "--model", "memory", *options(tmp_path, "--json", "--max-tokens", 1))
    document = json.loads(out)
    assert code == 0
    assert document["items"] == 878
    assert document["controls"]["reference"]["times"] == 878
    cheats = document["controls"]["cheats"]
    assert {cheats[name]["times"] for name in ("nothing", "the prompt again", "the answer among many")} == {0}
    constant = next(rate for name, rate in cheats.items() if name.startswith("always"))
    assert 0 < constant["times"] / constant["of"] < 0.05


def test_examples_stand_in_front_with_their_worked_answers_and_compare_matches_by_id(tmp_path, capsys, questions):
    examples = tmp_path / "examples.jsonl"
    rows = [json.loads(line) for line in questions.read_text().splitlines()[:3]]
    more = [{"id": f"e{n}", "question": f"What is {n} + 1?", "answer": f"{n} + 1\n#### {n + 1}"} for n in range(50, 53)]
    examples.write_text("\n".join(map(json.dumps, [*rows, *more])))
    template = ("--template", "Q: {prompt}\\nA:", "--stop", "\\nQ:")
    shown = (*template, "--shots", 2, "--shots-from", examples, "--shots-seed", 3)
    folders = []
    with loopback_endpoint(MODEL) as server:
        for chosen in (template, shown):
            code, out, err = run(capsys, questions, "--model", server.url, *options(tmp_path, "--json", *chosen))
            assert code == 0
            folders.append(json.loads(out)["folder"])
        asked = [request for request in server.requests if request.get("stop") == ["\nQ:"]]
    assert "12 questions, 2 examples in front of each, seed 3, 12 texts" in err
    prompts = {request["prompt"] for request in asked if request["prompt"].count("Q:") == 3}
    assert len(prompts) == 12
    for prompt in prompts:
        *before, last = prompt.split("\n\n")
        assert len(before) == 2
        assert last.startswith("Q: What is ")
        assert last.endswith("?\nA:")
        assert all(each.partition("\nA:")[0] != last.partition("\nA:")[0] for each in before)
        assert all("\nA: " in each and "\n#### " in each for each in before)
    with pytest.raises(SystemExit) as ended:
        main(["evals", "compare", *folders])
    assert ended.value.code == 2
    assert "--by id" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["evals", "compare", *folders, "--by", "id"])
    assert ended.value.code in (0, 3)
    assert "the prompts of 12 items differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--check", "number", "--shots", 2), "say --shots-from"),
        (("--check", "regex", "--shots", 2, "--shots-from", "EXAMPLES"), "holds patterns and no answers to show"),
        (("--check", "json_schema", "--shots", 2, "--shots-from", "EXAMPLES"), "holds schemas and no answers"),
        (("--check", "number", "--shots", 12, "--shots-from", "EXAMPLES"), "11 examples are not item"),
        (("--check", "number", "--shots", -1, "--shots-from", "EXAMPLES"), "must not be negative"),
    ],
)
def test_examples_that_cannot_be_shown_are_one_line(capsys, tmp_path, questions, arguments, says):
    named = [questions if each == "EXAMPLES" else each for each in arguments]
    code, out, err = run(
        capsys, questions, "--model", "memory", "--extract", "last_number", *named, "--out", tmp_path / "r"
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
