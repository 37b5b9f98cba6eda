"""Questions and graders for the tests of written evaluation."""

import dataclasses

from wholestack.evals.backend import Generation, ModelIdentity, Writing
from wholestack.evals.written.answering import write_into
from wholestack.evals.written.checkers import checker_named
from wholestack.evals.written.controls import try_controls
from wholestack.evals.written.extraction import extraction_named
from wholestack.evals.written.grading import Grader
from wholestack.evals.written.judging import judge_into
from wholestack.evals.written.questions import OpenQuestion, QuestionSet
from wholestack.record import digest


def question(gold, *, prompt="How many?", choices=(), id="q", group="", **row):
    return OpenQuestion(
        id=id, group=group or id, prompt=prompt, gold=gold, choices=tuple(choices), row={"answer": gold, **row}
    )


def grader(extract, check):
    return Grader(extraction=extraction_named(extract), checker=checker_named(check))


def even(answer, gold, row):
    """A user's checker: three kinds of answer, and one that breaks."""
    if answer == "break":
        raise ZeroDivisionError("on purpose")
    if answer == "hm":
        return None
    return int(answer) % 2 == row.get("rest", 0), f"{answer} % 2"


NOT_CALLABLE = 3


@dataclasses.dataclass
class Writer:
    """A model whose texts are known beforehand: by prompt, one for every seed; ``None`` where nothing comes."""

    name: str
    texts: dict

    @property
    def identity(self):
        return ModelIdentity(kind="synthetic", name=self.name, parts={"weights": digest(self.name)})

    def generate(self, prompts, writing):
        for prompt in prompts:
            text = self.texts[prompt][writing.seed]
            if text is None:
                yield Generation(text="", tokens=0, finish="none", reason="the endpoint was silent")
            else:
                yield Generation(text=text, tokens=len(text), finish="stop")


def sums(count, *, prompt="{n} and {n} are", group="{n}", gold="{twice}"):
    """Questions with the right answer 2 n."""
    return QuestionSet(
        questions=tuple(
            question(
                gold.format(twice=2 * n), prompt=prompt.format(n=n), id=f"s{n:03}", group=group.format(n=n, half=n // 2)
            )
            for n in range(count)
        ),
        sha256="",
    )


def written_folder(
    out, name, questions, right, *, purpose="reasoning", judge=None, max_tokens=8, wrong="{n} no", silent=()
):
    """The folder of a model that is right as told.

    Args:
        right: For every question whether it is right, or a list of that for several texts.
        silent: Places of questions behind which nothing comes.
    """
    judge = judge or grader("last_number", "number")
    verdicts = [each if isinstance(each, list) else [each] for each in right]
    texts = {}
    for place, asked in enumerate(questions.questions):
        said = [f"it is {asked.gold}" if each else wrong.format(n=-1) for each in verdicts[place]]
        texts[asked.prompt] = [None] * len(said) if place in silent else said
    samples = len(verdicts[0])
    writing = Writing(max_tokens=max_tokens, temperature=0.8 if samples > 1 else 0.0)
    written = write_into(Writer(name, texts), questions, writing, out, samples=samples)
    judge_into(
        written, questions, judge, task="sums", purpose=purpose, controls=try_controls(questions.questions, judge)
    )
    return written.folder
