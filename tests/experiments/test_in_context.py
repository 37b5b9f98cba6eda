"""The comparison of context and fine-tuning: its verdicts on known numbers, and a small one for real."""

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.evals.models.material import byte_tokenizer, save_llama
from wholestack.errors import InputError, RunDirectoryError
from wholestack.evals.backend import Backend, Opening
from wholestack.evals.memory import open_memory
from wholestack.evals.models.local import LocalBackend
from wholestack.evals.models.opening import open_backend
from wholestack.experiments import in_context
from wholestack.experiments.in_context_plan import (
    ARMS,
    CONTEXT,
    MODEL,
    TRIED,
    TUNING,
    Arm,
    ContextOutcome,
    Tuning,
    Way,
)
from wholestack.experiments.in_context_results import summed_up
from wholestack.experiments.in_context_task import TableTask, demonstrated, items_of, make_episode, shortened
from wholestack.experiments.table_model import config_of, table_model
from wholestack.experiments.tuning import tuned
from wholestack.pretrain.model import Transformer
from wholestack.report.context import page
from wholestack.runs import RunReader

SMALL = TableTask(keys=5, labels=3, noise=0.1)


def arm(way: Way, episode: int, loss: float, *, demonstrations: int = 10) -> Arm:
    return Arm(
        way=way,
        demonstrations=demonstrations,
        episode=episode,
        loss_nats=loss,
        accuracy=0.5,
        best_loss_nats=None if way == "needle" else 0.4,
        best_accuracy=None if way == "needle" else 0.8,
        questions=16,
        unscorable={},
        truncated=0,
        seconds=1.0,
    )


def plan(**changes: object) -> in_context.ContextPlan:
    values: dict[str, object] = {"demonstrations": (10,), "episodes": 6, "task": SMALL}
    return in_context.plan_for("tiny", **{**values, **changes})  # type: ignore[arg-type]


def outcome_of(differences: list[float]) -> ContextOutcome:
    arms = [
        each
        for number, difference in enumerate(differences)
        for each in (
            arm("in context", number, 1.0 + 0.3 * number + difference),
            arm("fine-tuned", number, 1.0 + 0.3 * number),
            arm("needle", number, 0.2),
        )
    ]
    return summed_up(plan(), arms[::-1], model="m", not_tuned="", seconds=1.0)


def test_the_contrast_is_paired_so_that_hard_episodes_do_not_hide_it() -> None:
    outcome = outcome_of([-0.2, -0.21, -0.19, -0.2, -0.18, -0.22])
    (contrast,) = outcome.contrasts
    assert contrast.loss_nats.value == pytest.approx(-0.2)
    assert "the context is better than fine-tuning by 0.200" in contrast.sentence
    assert outcome.exit_code == 0
    spread = outcome.points[0].loss_nats.interval
    assert spread is not None
    assert spread.high - spread.low > 1.0


def test_an_interval_that_holds_zero_is_no_verdict() -> None:
    outcome = outcome_of([-0.5, 0.4, -0.3, 0.6, 0.1, -0.2])
    assert "cannot be told" in outcome.contrasts[0].sentence
    assert outcome.exit_code == 3


def test_fine_tuning_that_wins_is_said_to_win() -> None:
    assert (
        "fine-tuning is better than the context" in outcome_of([0.3, 0.31, 0.29, 0.3, 0.3, 0.32]).contrasts[0].sentence
    )


def test_a_model_from_elsewhere_is_only_read_and_that_is_said() -> None:
    arms = [arm(way, number, 1.0) for number in range(3) for way in ("in context", "needle")]  # type: ignore[arg-type]
    outcome = summed_up(plan(), arms, model="m", not_tuned="not ours", seconds=1.0)
    assert outcome.contrasts == ()
    assert b"Nothing was fine-tuned: not ours" in page(outcome)


def test_the_page_fetches_nothing_and_calls_the_needle_what_it_is() -> None:
    drawn = page(outcome_of([-0.2, -0.21, -0.19, -0.2, -0.18, -0.22])).decode()
    assert "fragment retrieval" in drawn
    assert drawn.count("<svg") == 4
    needle = drawn[drawn.index("Beside it: fragment retrieval") : drawn.index("<figcaption")]
    assert needle.count("loss, nats a question by number of demonstrations: needle") == 1
    assert needle.count("accuracy, share answered right by number of demonstrations: needle") == 1
    assert "http://" not in drawn.replace("http://www.w3.org", "")
    assert "https://" not in drawn


@pytest.mark.parametrize("wrong", [{"demonstrations": ()}, {"demonstrations": (0,)}, {"episodes": 1}, {"questions": 0}])
def test_a_comparison_that_says_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        plan(**wrong)


@pytest.mark.parametrize(
    "template",
    ["{foo}", "{label}={key};", "{key}", "{label}", "{key}{label}{label}", "{key}{key}{label}", "{key!r}: {label}",
     "{key}: {label", "{key}: {label} is what it says\n", "{}", "{key}{0}{label}"],
)  # fmt: skip
def test_a_template_that_asks_for_nothing_is_refused(template: str) -> None:
    with pytest.raises(InputError, match="--template"):
        plan(template=template)


@pytest.mark.parametrize("template", ["{key}{label}", "{key}: {label}\n", "Of {key} the label is ({label}).\n"])
def test_a_template_with_the_label_behind_its_key_is_taken(template: str) -> None:
    assert plan(template=template).template == template


def interrupted(folder: Path, model: Backend) -> None:
    """A run whose last arm is missing."""
    asked = in_context.plan_for("memory", demonstrations=(3,), episodes=2, questions=2, task=SMALL)
    with in_context.create(folder, asked, seed=0, at=0.0) as run:
        in_context.compare(run, backend=model)
    lines = (folder / ARMS).read_bytes().splitlines(keepends=True)
    (folder / ARMS).write_bytes(b"".join(lines[:-1]))


def test_a_run_goes_on_with_the_model_that_it_began_with_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abcabd" * 50)
    first, other = (open_memory(name, Opening()) for name in ("memory", f"memory:{tmp_path / 'text'}"))
    folder = tmp_path / "run"
    interrupted(folder, first)
    before = (folder / ARMS).read_bytes()
    with in_context.resume(folder) as run, pytest.raises(InputError, match=first.identity.digest):
        in_context.compare(run, backend=other)
    assert (folder / ARMS).read_bytes() == before
    with in_context.resume(folder) as run:
        assert in_context.compare(run, backend=first).model == first.identity.digest
    assert len((folder / ARMS).read_bytes().splitlines()) == 4


def test_arms_of_a_model_that_nobody_wrote_down_are_not_gone_on_with(tmp_path: Path) -> None:
    model = open_memory("memory", Opening())
    interrupted(tmp_path / "run", model)
    (tmp_path / "run" / MODEL).unlink()
    with in_context.resume(tmp_path / "run") as run, pytest.raises(InputError, match="does not name"):
        in_context.compare(run, backend=model)


def test_pretraining_takes_its_part_of_the_budget_and_never_more_than_it_needs() -> None:
    short, long = (in_context.effort_within(budget_s, step_s=0.01) for budget_s in (30.0, 60.0))
    assert long == pytest.approx(2 * short)
    assert in_context.effort_within(1e6, step_s=0.01) == in_context.effort_within(1e7, step_s=0.01)
    steps = [sum(stage.steps for stage in plan(effort=effort).stages) for effort in (0.5, 1.0)]
    assert steps[1] == pytest.approx(2 * steps[0], rel=0.01)


def untrained(task: TableTask = SMALL, context: int = 64) -> LocalBackend:
    shape = in_context.TinyModel(layers=1, width=16, head_size=8)
    return table_model(task, Transformer(config_of(task, shape, context)))


def test_the_tiny_model_is_a_backend_whose_identity_covers_its_weights() -> None:
    model = untrained()
    episode = make_episode(SMALL, demonstrations=5, questions=4, rng=np.random.default_rng(0))
    items = items_of(SMALL, episode, name="e")
    assert isinstance(model, Backend)
    scores = list(model.score(items))
    assert [score.id for score in scores] == [item.id for item in items]
    alone = [next(iter(model.score([item]))) for item in reversed(items)][::-1]
    for score, single in zip(scores, alone, strict=True):
        assert score.nll_nats == pytest.approx(single.nll_nats, abs=1e-5)
    assert untrained().identity == model.identity
    assert model.identity.kind == "table"
    shorter = Transformer(replace(model.module.config, context=32))
    shorter.load_state_dict(model.module.state_dict())
    assert table_model(SMALL, shorter).identity.digest != model.identity.digest
    with torch.no_grad():
        model.module.embedding[0, 0] += 1
    assert table_model(SMALL, model.module).identity.digest != model.identity.digest


def hub_model(folder: Path) -> LocalBackend:
    """A Hugging Face folder of a random Llama, as a user has one."""
    name = save_llama(folder, byte_tokenizer(), initializer_range=0.05)
    model = open_backend(name, Opening())
    assert isinstance(model, LocalBackend)
    return model


@pytest.fixture(params=["tiny", "folder"])
def trainable(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[LocalBackend, str]:
    """A model whose weights are here, and how demonstrations are written for it."""
    if request.param == "tiny":
        return untrained(), "{key}{label}"
    return hub_model(tmp_path), "{key}: {label}\n"


def test_tuning_learns_its_demonstrations_and_leaves_the_weights_as_they_were(
    trainable: tuple[LocalBackend, str],
) -> None:
    """The same loop for our own transformer and for one of transformers."""
    task = replace(SMALL, noise=0.0)
    model, template = trainable
    episode = make_episode(task, demonstrations=40, questions=30, rng=np.random.default_rng(0))
    shown = items_of(task, demonstrated(episode), name="shown", template=template)
    bare = items_of(task, shortened(episode, 0), name="bare", template=template)
    before = list(model.score(bare))
    with tuned(model, shown, Tuning(lr=1.6e-2, steps=80), seed=0) as learnt:
        answers = in_context._ask(learnt, bare)
        assert learnt.identity.digest != model.identity.digest
    assert (answers.accuracy, answers.scored) == (1.0, 30)
    assert answers.loss_nats < 0.2 < in_context._ask(model, bare).loss_nats
    assert list(model.score(bare)) == before


def test_tuning_answers_as_its_demonstrations_say_and_depends_on_their_order(
    trainable: tuple[LocalBackend, str],
) -> None:
    task = replace(SMALL, noise=0.0)
    model, template = trainable
    episode = make_episode(task, demonstrations=40, questions=8, rng=np.random.default_rng(0))
    shown = items_of(task, demonstrated(episode), name="shown", template=template)
    turned = replace(episode, labels=(episode.labels + 1) % task.labels)
    other = items_of(task, demonstrated(turned), name="other", template=template)
    bare = items_of(task, shortened(episode, 0), name="bare", template=template)
    found = []
    for seed in (0, 0, 1):
        with tuned(model, shown, Tuning(lr=1.6e-2, steps=80), seed=seed) as learnt:
            found.append(list(learnt.score(bare)))
    assert found[0] == found[1] != found[2]
    with tuned(model, other, Tuning(lr=1.6e-2, steps=80), seed=0) as learnt:
        assert in_context._ask(learnt, bare).accuracy == 0


def test_a_rate_that_breaks_the_model_leaves_it_as_it_was(trainable: tuple[LocalBackend, str]) -> None:
    model, template = trainable
    episode = make_episode(SMALL, demonstrations=6, questions=4, rng=np.random.default_rng(0))
    shown = items_of(SMALL, demonstrated(episode), name="shown", template=template)
    bare = items_of(SMALL, shortened(episode, 0), name="bare", template=template)
    before = list(model.score(bare))
    with tuned(model, shown, Tuning(lr=1e30, steps=5), seed=0) as learnt:
        assert list(learnt.score(bare)) == before


def test_a_folder_from_elsewhere_is_read_and_tuned_and_an_interrupted_choice_goes_on(tmp_path: Path) -> None:
    model = hub_model(tmp_path / "model")
    asked = in_context.plan_for("folder", demonstrations=(2, 6), episodes=2, questions=4, task=SMALL)
    asked = replace(asked, tried=(Tuning(lr=1e-4, steps=2), Tuning(lr=1e-2, steps=20)), tuning_episodes=2)
    with in_context.create(tmp_path / "run", asked, seed=0, at=0.0) as run:
        whole = in_context.compare(run, backend=model)
    assert {(point.way, point.demonstrations) for point in whole.points} == {
        (way, count) for way in ("in context", "fine-tuned", "needle") for count in (2, 6)
    }
    assert (len(whole.contrasts), whole.not_tuned) == (2, "")
    lines = (tmp_path / "run" / TRIED).read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    for name in (TUNING, ARMS, CONTEXT):
        (tmp_path / "again" / name).unlink()
    (tmp_path / "again" / TRIED).write_bytes(b"".join(lines[:5]))
    with in_context.resume(tmp_path / "again") as run:
        again = in_context.compare(run, backend=model)
    assert (again.points, again.contrasts) == (whole.points, whole.contrasts)
    assert (tmp_path / "again" / TRIED).read_bytes() == b"".join(lines)
    assert (tmp_path / "again" / TUNING).read_bytes() == (tmp_path / "run" / TUNING).read_bytes()


def test_what_was_asked_only_to_read_is_not_tuned(tmp_path: Path) -> None:
    asked = in_context.plan_for("folder", demonstrations=(2,), episodes=2, questions=2, task=SMALL, tune=False)
    with in_context.create(tmp_path / "run", asked, seed=0, at=0.0) as run:
        outcome = in_context.compare(run, backend=hub_model(tmp_path / "model"))
    assert outcome.not_tuned == "it was asked only to read"
    assert {point.way for point in outcome.points} == {"in context", "needle"}


def test_the_loss_is_among_the_choices_and_a_tie_counts_its_share() -> None:
    episode = make_episode(SMALL, demonstrations=1, questions=1, rng=np.random.default_rng(0))
    (item,) = items_of(SMALL, episode, name="e")
    even = in_context.ItemScore(id=item.id, nll_nats=(2.0, 2.0, 2.0), tokens=(1, 1, 1))
    assert in_context._outcome(item, even) == (pytest.approx(math.log(3)), pytest.approx(1 / 3))


def test_demonstrations_that_do_not_fit_are_counted() -> None:
    episode = make_episode(SMALL, demonstrations=40, questions=4, rng=np.random.default_rng(0))
    answers = in_context._ask(untrained(context=16), items_of(SMALL, episode, name="e"))
    assert (answers.scored, answers.truncated) == (4, 4)


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small comparison that ran to its end: pretrained, tuned, read."""
    folder = tmp_path_factory.mktemp("context") / "run"
    asked = plan(demonstrations=(3, 16), episodes=6, questions=12, effort=0.75)
    asked = replace(asked, tried=(Tuning(lr=4e-3, steps=20), Tuning(lr=1.6e-2, steps=80)), tuning_episodes=2)
    with in_context.create(folder, asked, seed=0, at=0.0) as run:
        in_context.compare(run)
    return folder


@pytest.mark.heavy
def test_a_pretrained_model_learns_in_its_context_nearly_what_can_be_learnt(compared: Path) -> None:
    outcome = read(compared)
    few, many = (point for point in outcome.points if point.way == "in context")
    assert many.best_loss_nats is not None
    assert many.loss_nats.value < few.loss_nats.value < outcome.chance_loss_nats
    assert many.loss_nats.value < many.best_loss_nats + 0.35
    assert many.accuracy.value > outcome.chance_accuracy + 0.2


@pytest.mark.heavy
def test_an_interrupted_comparison_goes_on_and_comes_to_the_same(compared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(compared, folder)
    (folder / CONTEXT).unlink()
    lines = (folder / ARMS).read_bytes().splitlines(keepends=True)
    (folder / ARMS).write_bytes(b"".join(lines[:7]) + lines[7][:20])
    with in_context.resume(folder) as run:
        again = in_context.compare(run)
    whole = read(compared)
    assert (again.points, again.contrasts, again.model) == (whole.points, whole.contrasts, whole.model)
    assert len((folder / ARMS).read_bytes().splitlines()) == len(lines)


@pytest.mark.heavy
def test_another_run_directory_is_no_context_comparison(finished: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not a 'context' run"):
        in_context.resume(finished)


def read(folder: Path) -> ContextOutcome:
    return RunReader(folder).read(CONTEXT, ContextOutcome)
