"""Injected faults, for real: `why` names the one that was injected and clears the other two."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.claim import Explanation, status_of
from wholestack.errors import InputError
from wholestack.experiments import rehearsal
from wholestack.experiments.progress import Progress
from wholestack.experiments.why import broken_first
from wholestack.processes import marked_processes
from wholestack.runs import RunDirectory, RunReader
from wholestack.testing.throttle import throttled

LONG = {"max_trial_cost_flops": 6e9, "max_trials": 12, "random_share": 0.0}
"""Long enough that a slow stretch can be told from start-up."""


def rehearse_with(folder: Path, fault: Callable[[RunDirectory, Progress], None], **changes: object) -> RunReader:
    """A rehearsal during which ``fault`` is called with every moment of progress."""
    recipe = tiny_recipe(folder / "text", **{**LONG, **changes})
    with rehearsal.create(folder / "run", recipe, budget_s=900, seed=1, at=time.time()) as run:
        rehearsal.rehearse(run, watch=lambda moment: fault(run, moment))
    return RunReader(folder / "run")


def explained(run: RunReader) -> dict[str, Explanation]:
    """What is not held, by name of the claim."""
    return {each.claim.name: each for each in broken_first(run, now=time.time())}


def broken(run: RunReader) -> set[str]:
    findings = run.findings()
    return {claim.name for claim in run.claims() if status_of(claim, findings, now=time.time()) == "broken"}


def names(claims: tuple) -> set[str]:
    return {claim.name for claim in claims}


@pytest.mark.heavy
def test_a_worker_slowed_to_a_third_is_named_and_data_and_settings_are_cleared(tmp_path: Path) -> None:
    with ExitStack() as stack:

        def slow_down(run: RunDirectory, moment: Progress) -> None:
            if moment.phase == "large" and moment.done > 0 and not stack_is_used:
                stack_is_used.append(True)
                stack.enter_context(throttled(youngest(rehearsal.token_of(run)), share=1 / 4))

        stack_is_used: list[bool] = []
        run = rehearse_with(tmp_path, slow_down)
    assert stack_is_used
    assert "machine.pace" in broken(run)
    assert not broken(run) & {"data.sources", "large.settings", "machine.exact", "evaluation.fixed"}
    pace = broken_first(run, now=time.time(), only="machine.pace")[0]
    assert "large-0000" in pace.findings[-1].evidence[0]
    assert "stopped or waited for something else than a processor" in pace.findings[-1].evidence[0]
    assert {"data.sources", "large.settings"} <= names(pace.ruled_out)


@pytest.mark.heavy
def test_a_corrupted_shard_is_named_and_machine_and_settings_are_cleared(tmp_path: Path) -> None:
    flipped: list[str] = []

    def corrupt(run: RunDirectory, moment: Progress) -> None:
        if moment.phase == "large" and moment.done > 0 and not flipped:
            shard = max((run.path / "data" / "shards").rglob("*.bin"), key=lambda path: path.stat().st_size)
            with shard.open("r+b") as file:
                file.seek(1000)
                byte = file.read(1)
                file.seek(1000)
                file.write(bytes([byte[0] ^ 1]))
            flipped.append(shard.name)

    run = rehearse_with(tmp_path, corrupt)
    assert flipped
    assert "data.sources" in broken(run)
    assert not broken(run) & {"machine.pace", "machine.exact", "large.settings", "evaluation.fixed"}
    data = broken_first(run, now=time.time(), only="data.sources")[0]
    assert flipped[0] in data.findings[-1].cause
    assert {"machine.pace", "large.settings"} <= names(data.ruled_out)
    large = broken_first(run, now=time.time(), only="large.metric")
    assert "data.sources" in names(large[0].suspects)


@pytest.mark.heavy
def test_shards_corrupted_before_the_rung_stop_it_before_it_costs_anything(tmp_path: Path) -> None:
    def corrupt(run: RunDirectory, moment: Progress) -> None:
        if moment.phase == "scaling":
            for shard in (run.path / "data" / "shards").rglob("*.bin"):
                shard.write_bytes(b"\0" * shard.stat().st_size)

    run = rehearse_with(tmp_path, corrupt)
    assert broken(run) == {"data.sources"}
    assert not (run.path / "jobs" / "rung-0000").exists()
    assert not (run.path / "jobs" / "large-0000").exists()


@pytest.mark.heavy
def test_a_learning_rate_ten_times_too_high_is_named_and_machine_and_data_are_cleared(tmp_path: Path) -> None:
    run = rehearse_with(tmp_path, lambda run, moment: None, large_overrides={"lr": 0.3})
    assert "large.settings" in broken(run)
    assert not broken(run) & {"machine.pace", "machine.exact", "data.sources", "evaluation.fixed"}
    settings = broken_first(run, now=time.time(), only="large.settings")[0]
    assert "lr" in settings.findings[-1].cause
    assert {"machine.pace", "data.sources"} <= names(settings.ruled_out)
    if "large.metric" in explained(run):
        assert names(explained(run)["large.metric"].suspects) == {"large.settings"}


def test_of_a_finished_run_only_what_is_not_held_is_explained(finished: Path) -> None:
    run = RunReader(finished)
    findings = run.findings()
    not_held = {c.name for c in run.claims() if status_of(c, findings, now=time.time()) != "held"}
    assert set(explained(run)) <= not_held
    below = {lower for each in explained(run).values() for lower in each.claim.rests_on}
    assert not {each.claim.id for each in explained(run).values()} & below
    with pytest.raises(InputError, match=r"large\.settings"):
        broken_first(run, now=time.time(), only="large.setings")


def youngest(token: str) -> int:
    """The worker of a rehearsal: the process that started last."""
    return max(marked_processes(token), key=lambda pid: (started(pid), pid))


def started(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return -1
