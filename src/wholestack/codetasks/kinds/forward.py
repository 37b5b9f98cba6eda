"""What the forward kinds share: four programs are run, one is shown, its result is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import Family
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.running import STEPS_KEPT, Job, Run

LONGEST_RESULT = 40
NO_RESULT = "a member has no result"
SAME = "two members have the same result"
UNLIKE = "results of unlike type or length"


def forward_draft(family: Family, draws: Draws, text: str, read: Callable[[Run], str | None]) -> Draft:
    """Run the four members; show one of them.

    Args:
        family: The four programs.
        draws: Draws which one is shown, after they were run.
        text: What is asked, the same for all four.
        read: Reads the result of a run.
    """
    jobs = tuple(Job(member.source) for member in family.members)

    def ask(runs: Sequence[Sequence[Run]]) -> Question | str:
        results = [read(run) for (run,) in runs]
        known = tuple(each for each in results if each is not None)
        problem = NO_RESULT if len(known) < len(results) else unlike(known)
        return problem or show(family, jobs, known, draws, text)

    return Draft(jobs, ask)


def show(family: Family, jobs: Sequence[Job], results: tuple[str, ...], draws: Draws, text: str) -> Question:
    """Draw the member that is shown and the order of the choices, evenly and after everything else."""
    shown = draws.below(len(results))
    order = draws.shuffled(range(len(results)))
    return Question(
        program=jobs[shown].source,
        text=text,
        choices=tuple(results[each] for each in order),
        gold=order.index(shown),
        misreadings=tuple(None if each == shown else family.misreading(shown, each) for each in order),
        jobs=tuple(replace(job, steps=STEPS_KEPT) if each == shown else job for each, job in enumerate(jobs)),
        results=results,
        shown=shown,
    )


def unlike(results: Sequence[str]) -> str | None:
    """Why these cannot be the choices of one question, whichever of them is gold; ``None`` if they can."""
    if len(set(results)) < len(results):
        return SAME
    lengths = [len(each) for each in results]
    if not min(lengths) or max(lengths) > LONGEST_RESULT or max(lengths) - min(lengths) > 2 + min(lengths) // 3:
        return UNLIKE
    return None if len({_type(each) for each in results}) == 1 else UNLIKE


def _type(result: str) -> str:
    return "number" if result.lstrip("-").isdigit() else "text" if result[0].isalnum() else result[0]
