"""``trace``: what value has a variable when a line is reached, and how often does a line run?"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import Family, make_family
from wholestack.codetasks.grammar.chain import write_counting, write_program
from wholestack.codetasks.grammar.writer import Writer
from wholestack.codetasks.kinds.forward import NO_RESULT, show, unlike
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import LOOKED_UP, Level
from wholestack.codetasks.running import Job, Run, Watch

COUNTING = 0.4
"""Share of drafts whose program is made for asking how often a line runs."""
MOST_VISITS = 40
"""Of a line whose visits are asked for; nobody counts further in the head."""
FINAL_VALUES = LOOKED_UP + 1
"""Up to this level the value at the last line is asked for, which ``eval`` asks for too: there is no other."""
HEADS = ("for ", "while ")
"""Whether the head of a loop runs once or with every turn is a matter of words: only its first time is asked for."""
NOTHING = "no line has four different answers"
TIMES = {1: "for the first time", 0: "for the last time", 2: "for the second time", 3: "for the third time"}


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
        beyond = level.number > FINAL_VALUES
        written = write_counting(draws, level) if counting else write_program(draws, level, beyond=beyond)
        family = make_family(written.template(), written.sites, draws, may_open=_may_open(written))
        if family is None:
            return None
        watches = _watches(written, family, level)
        last = family.members[0].source.count("\n")
        jobs = tuple(Job(member.source, watches=watches) for member in family.members)

        def ask(runs: Sequence[Sequence[Run]]) -> Question | str:
            if any(run.error for (run,) in runs):
                return NO_RESULT
            answers = {watch: [run.watched[place] for (run,) in runs] for place, watch in enumerate(watches)}
            once = {watch.line for watch, four in answers.items() if not watch.name and set(four) == {"1"}}
            options = [watch for watch in watches if _can_be_asked(watch, answers[watch], once)]
            if level.number > FINAL_VALUES:
                options = [watch for watch in options if not watch.name or watch.line < last]
            if not options:
                return NOTHING
            watch = draws.weighted(options, [_weight(each, once) for each in options])
            asked = [replace(job, watches=(watch,)) for job in jobs]
            results = tuple(map(str, answers[watch]))
            return show(family, asked, results, draws, _text(watch, family, once))

        return Draft(jobs, ask)

    def read(self, run: Run) -> str | None:
        """What was watched."""
        return run.watched[0] if run.error is None else None


def _may_open(written: Writer) -> list[int]:
    """Sites whose forms have the same number of lines, so that every line stands at the same place in all members."""
    return [
        number
        for number in range(len(written.sites))[written.may_open]
        if len({sum(text.count("\n") for text in form) for form in written.sites[number].forms}) == 1
    ]


def _watches(written: Writer, family: Family, level: Level) -> tuple[Watch, ...]:
    """Whatever may be asked: lines that stand at one place with one text in all members."""
    texts = [member.source.split("\n") for member in family.members]
    watches = []
    for tag, name in written.tagged.items():
        lines = {member.tags.get(tag) for member in family.members}
        line = lines.pop()
        if lines or line is None or len({text[line - 1] for text in texts}) > 1:
            continue
        if texts[0][line - 1].lstrip().startswith(HEADS):
            watches += [Watch(line, name, 1)] if name else []
            continue
        if name:
            watches += [Watch(line, name, time) for time in (TIMES if level.number > FINAL_VALUES + 1 else (1, 0))]
        watches.append(Watch(line))
    return tuple(watches)


def _can_be_asked(watch: Watch, answers: Sequence[str | None], once: Collection[int]) -> bool:
    """Whether the four answers can be choices; of a line that runs once there is one question, not three."""
    known = [each for each in answers if each is not None]
    if len(known) < len(answers) or unlike(known) or (watch.line in once and watch.time != 1):
        return False
    return bool(watch.name) or all(int(each) <= MOST_VISITS for each in known)


def _weight(watch: Watch, once: Collection[int]) -> float:
    """Counts, and values within loops, are seldom possible and are taken where they are."""
    return 6.0 if not watch.name else 1.0 if watch.line in once else 2.0


def _text(watch: Watch, family: Family, once: Collection[int]) -> str:
    line = family.members[0].source.split("\n")[watch.line - 1].strip()
    shown = f"line {watch.line} ({line})"
    if not watch.name:
        return f"How often does {shown} run?"
    time = "" if watch.line in once else f" {TIMES[watch.time]}"
    return f"What is the value of {watch.name} just before {shown} runs{time}?"
