"""``trace``: what value has a variable when a line is reached, and how often does a line run?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import Family, make_family
from wholestack.codetasks.grammar.chain import write_counting, write_program
from wholestack.codetasks.grammar.writer import Writer
from wholestack.codetasks.kinds.forward import NO_RESULT, show, unlike
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import Level
from wholestack.codetasks.running import Job, Run, Watch

COUNTING = 0.4
"""Share of drafts whose program is made for asking how often a line runs."""
MOST_VISITS = 40
"""Of a line whose visits are asked for; nobody counts further in the head."""
TIMES = {0: "for the last time", 1: "for the first time", 2: "for the second time", 3: "for the third time"}


@dataclass(frozen=True, slots=True)
class Trace:
    """See the module.

    All lines that the grammar has tagged are watched in all four programs at once; the question is drawn among those
    whose four answers can be choices.
    """

    name: str = "trace"
    scouts: bool = False

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        """A program of a chain, with tagged lines."""
        counting = draws.chance(COUNTING)
        written = write_counting(draws, level) if counting else write_program(draws, level)
        family = make_family(written.template(), written.sites, draws)
        if family is None:
            return None
        watches = _watches(written, family, level)
        jobs = tuple(Job(member.source, watches=watches) for member in family.members)

        def ask(runs: Sequence[Sequence[Run]]) -> Question | str:
            answers = [tuple(run.watched[place] for (run,) in runs) for place in range(len(watches))]
            found = [
                (watch, tuple(map(str, four)))
                for watch, four in zip(watches, answers, strict=True)
                if all(four) and unlike(tuple(map(str, four))) is None and _can_be_counted(watch, four)
            ]
            if not found or any(run.error for (run,) in runs):
                return NO_RESULT
            last = found[-1][0].line
            watch, results = draws.weighted(found, [_weight(watch, last, level) for watch, _ in found])
            asked = [replace(job, watches=(watch,)) for job in jobs]
            return show(family, asked, results, draws, _text(watch, family))

        return Draft(jobs, ask)

    def read(self, run: Run) -> str | None:
        """What was watched."""
        return run.watched[0] if run.error is None else None


def _watches(written: Writer, family: Family, level: Level) -> tuple[Watch, ...]:
    """Whatever may be asked: lines that stand at one place with one text in all members."""
    texts = [member.source.split("\n") for member in family.members]
    watches = []
    for tag, name in written.tagged.items():
        lines = {member.tags.get(tag) for member in family.members}
        line = lines.pop()
        if lines or line is None or len({text[line - 1] for text in texts}) > 1:
            continue
        if name:
            watches += [Watch(line, name, time) for time in (TIMES if level.number > 4 else (0, 1))]
        watches.append(Watch(line))
    return tuple(watches)


def _can_be_counted(watch: Watch, answers: Sequence[str | None]) -> bool:
    return bool(watch.name) or all(int(each or 0) <= MOST_VISITS for each in answers)


def _weight(watch: Watch, last: int, level: Level) -> float:
    """Counts and visits within loops rather than the value at the end, which ``eval`` asks for."""
    if not watch.name:
        return 6.0
    return 0.3 if watch.line == last else 2.0 if watch.time > 1 else 1.0


def _text(watch: Watch, family: Family) -> str:
    line = family.members[0].source.split("\n")[watch.line - 1].strip()
    shown = f"line {watch.line} ({line})"
    if not watch.name:
        return f"How often does {shown} run?"
    return f"What is the value of {watch.name} just before {shown} runs {TIMES[watch.time]}?"
