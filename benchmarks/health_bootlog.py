"""Boot logs: how many planted faults are found, how many findings are about none, and how many lines go a second.

* ``simulated``: boots of the simulator, which may not import what judges (a linter contract); per kind of host a model
  from 20 good boots of 10 hosts, judged on boots of 60 hosts with none to three faults each.
* ``real``: recorded logs and this machine's ``dmesg``, from each of which good boots are made by changing numbers,
  neighbours and a few lines that not every boot has; then lines are deleted, inserted (from the other logs) or moved.
* ``speed``: lines a second of one core by CPU time, reading included: learning, and judging as many other boots.

A fault is found if one finding of its kind names one of its lines; a finding is right if it is the first one about a
fault, else false: a second finding about the same fault is false too. Texts are compared without what holds a digit.

Usage: ``python benchmarks/health_bootlog.py simulated|real|speed [--seed S] [--boots N] [--log FILE ...]``.
"""

import argparse
import io
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from wholestack.health.bootlog.boots import read_boots
from wholestack.health.bootlog.expecting import Expectations
from wholestack.health.bootlog.judging import judge_boot
from wholestack.health.bootlog.learning import Learner
from wholestack.health.simulator.boot_logs import BootLog, Planted, Said, boot_log, plant, sometimes_of
from wholestack.health.simulator.kinds import build, kind_named

KINDS = ("h100-8-ndr", "h200-8-roce", "a100-8-hdr", "l40s-8", "storage-amd")
GOOD = 20
REPEATS = 5
"""Of a timing; the least counts, since others work beside."""
STYLES = ("seconds", "ctime", "short", "short-iso", "short-monotonic", "kern.log")


@dataclass(slots=True)
class Score:
    """Counts over boots."""

    found: int = 0
    missed: int = 0
    false: int = 0
    boots: int = 0
    alarms: int = 0
    """Boots without a fault that have a finding."""
    healthy: int = 0
    by_name: Counter[str] = field(default_factory=Counter)

    def take(self, faults: Sequence[Planted], findings: Sequence[tuple[str, list[tuple[str, str]]]]) -> None:
        """One boot: its faults, and of each finding its check and the kind and text of its lines."""
        seen: set[int] = set()
        false = 0
        for check, lines in findings:
            hit = {
                place
                for place, fault in enumerate(faults)
                if any(kind == fault.kind and text in {bare(line) for line in fault.lines} for kind, text in lines)
            }
            if hit - seen:
                seen |= hit
            else:
                false += 1
                self.by_name[f"false {check}"] += 1
        self.boots += 1
        self.healthy += not faults
        self.alarms += bool(not faults and findings)
        self.false += false
        for place, fault in enumerate(faults):
            self.found += place in seen
            self.missed += place not in seen
            self.by_name[f"{'found' if place in seen else 'missed'} {fault.kind}: {fault.name}"] += 1

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.found / max(1, 2 * self.found + self.missed + self.false)

    def __str__(self) -> str:
        precision = self.found / max(1, self.found + self.false)
        recall = self.found / max(1, self.found + self.missed)
        return (
            f"F1 {self.f1:.3f} (precision {precision:.3f}, recall {recall:.3f}), {self.boots} boots,"
            f" {self.found + self.missed} faults; {self.alarms} of {self.healthy} boots without fault have a finding"
        )


def bare(text: str) -> str:
    """The letters of a text, without words that hold a digit or stand for one."""
    words = re.sub(r"(?:\w|<#>)*(?:\d|<#>)(?:\w|<#>)*", " ", text)
    return " ".join(re.findall(r"[A-Za-z]+", words))


def judged(expectations: Expectations, log: BootLog, style: str, host: str, score: Score) -> None:
    """Judge one boot and count."""
    (boot,) = read_boots(io.BytesIO(log.render(style, host=host).encode()))
    found = judge_boot(boot, expectations, subject=host, now=0.0)
    score.take(
        log.faults,
        [
            (each.check, [(line.kind, bare(line.line)) for line in found.lines if line.finding == each.id])
            for each in found.findings
            if each.status != "ok"
        ],
    )


def learnt(logs: Iterable[tuple[BootLog, str]], rng: Random) -> Expectations:
    """From good boots in all formats."""
    learner = Learner()
    for log, host in logs:
        for boot in read_boots(io.BytesIO(log.render(rng.choice(STYLES), host=host).encode())):
            learner.add(boot, host=host)
    return Expectations(learner.model())


def simulated(seed: int, boots: int) -> None:
    """See the module."""
    total = Score()
    for name in KINDS:
        rng = Random(f"{seed} {name}")
        kind = kind_named(name)
        if kind is None:
            raise SystemExit(f"no kind {name}")
        hosts = [build(kind, f"node{place:03d}", Random(rng.random()), now=0.0) for place in range(60)]
        sometimes = sometimes_of(rng)
        good = [(boot_log(hosts[n % 10], rng, sometimes=sometimes), hosts[n % 10].name) for n in range(GOOD)]
        expectations = learnt(good, rng)
        score = Score()
        for _ in range(boots // len(KINDS)):
            host = rng.choice(hosts)
            log = plant(boot_log(host, rng, sometimes=sometimes), rng, rng.choice((0, 1, 1, 2, 3)))
            judged(expectations, log, rng.choice(STYLES), host.name, score)
        print(f"{name:<18} {score}")
        total = _sum(total, score)
    print(f"{'all':<18} {total}")
    for what, count in sorted(total.by_name.items()):
        print(f"  {count:5d} {what}")


def _sum(one: Score, other: Score) -> Score:
    return Score(
        found=one.found + other.found,
        missed=one.missed + other.missed,
        false=one.false + other.false,
        boots=one.boots + other.boots,
        alarms=one.alarms + other.alarms,
        healthy=one.healthy + other.healthy,
        by_name=one.by_name + other.by_name,
    )


@dataclass(frozen=True, slots=True)
class Original:
    """A recorded log, and which of its lines vary how."""

    name: str
    lines: tuple[str, ...]
    varying: frozenset[int]
    """Whose last number is another one in every boot."""
    sometimes: frozenset[int]
    """That four of five boots have."""
    loose: frozenset[int]
    """That may change places with the next one."""


def original(file: Path, rng: Random) -> Original:
    """A log as it was recorded, ten minutes or 400 lines of it, and a draw of what varies in it."""
    head = re.compile(
        r"(?:kern +:\w+ *: )?(?:\d+,\d+,\d+,-;|\[ *(\d+)\.\d+\] ?|\[[^\]]*\] ?|\d{4}-\d\d-\d\dT[\d:,.]+[+-]\d\d:\d\d )?"
    )
    lines = []
    for line in file.read_text(errors="replace").splitlines():
        found = head.match(line)
        if found is not None and found[1] is not None and int(found[1]) >= 600:
            break
        lines.append(line[found.end() if found is not None else 0 :].rstrip())
    lines = [line for line in lines if line][:400]
    places = range(len(lines))
    return Original(
        name=file.name,
        lines=tuple(lines),
        varying=frozenset(place for place in places if rng.random() < 0.15 and re.search(r"\d", lines[place])),
        sometimes=frozenset(place for place in places if rng.random() < 0.02),
        loose=frozenset(place for place in places if rng.random() < 0.1),
    )


def boot_of(log: Original, rng: Random) -> BootLog:
    """A boot as it may have been another time."""
    order = list(range(len(log.lines)))
    for place in range(len(order) - 1):
        if order[place] in log.loose and rng.random() < 0.5:
            order[place], order[place + 1] = order[place + 1], order[place]
    said: list[Said] = []
    for place in order:
        if place in log.sometimes and rng.random() < 0.2:
            continue
        text = log.lines[place]
        if place in log.varying:
            text = re.sub(r"\d+(?=\D*$)", lambda found: str(rng.randrange(10 ** len(found[0]))), text)
        fixed = place not in log.sometimes and place not in log.loose
        said.append(Said(at_s=0.002 * len(said), text=text, thread="main" if fixed else "", always=fixed))
    return BootLog(said=tuple(said), booted_s=rng.uniform(1.7e9, 1.76e9))


def mutated(log: BootLog, others: Sequence[str], rng: Random) -> BootLog:
    """With one line deleted, inserted or moved past ten others."""
    said = list(log.said)
    sure = [place for place, each in enumerate(said) if each.always][1:]
    kind = rng.choice(("missing", "unknown", "order"))
    place = rng.choice(sure)
    if kind == "missing":
        line = said.pop(place).text
    elif kind == "unknown":
        line = rng.choice(others)
        said.insert(place, Said(at_s=said[place].at_s, text=line, thread=""))
    else:
        moved = said.pop(place)
        line = moved.text
        far = rng.randrange(10, len(said)) if len(said) > 20 else 10
        said.insert((place + far) % len(said) or 1, moved)
    fault = Planted(kind="missing" if kind == "missing" else "unknown" if kind == "unknown" else "order", name="line",
                    lines=(line,))  # fmt: skip
    said = [replace(each, at_s=0.002 * number) for number, each in enumerate(said)]
    return replace(log, said=tuple(said), faults=(fault,))


def real(seed: int, boots: int, files: Sequence[Path]) -> None:
    """See the module."""
    rng = Random(f"{seed} real")
    logs = [original(file, rng) for file in files]
    total = Score()
    for log in logs:
        known = {bare(line) for line in log.lines}
        others = [line for each in logs for line in each.lines if bare(line) not in known and bare(line).strip()]
        others = [line for line in others if not line.startswith("Linux version ")]  # it begins another boot
        expectations = learnt([(boot_of(log, rng), f"node{place % 5}") for place in range(GOOD)], rng)
        score = Score()
        for _ in range(boots // len(logs)):
            boot = boot_of(log, rng)
            boot = mutated(boot, others, rng) if rng.random() < 0.75 else boot
            judged(expectations, boot, rng.choice(STYLES), "node9", score)
        print(f"{log.name:<26} {len(log.lines):4d} lines  {score}")
        total = _sum(total, score)
    print(f"{'all':<26}             {total}")
    for what, count in sorted(total.by_name.items()):
        print(f"  {count:5d} {what}")


def speed(seed: int, boots: int, files: Sequence[Path]) -> None:
    """See the module."""
    start = time.perf_counter()
    sum(range(10**7))
    print(f"sum(range(10**7)) {time.perf_counter() - start:.2f} s")
    rng = Random(f"{seed} speed")
    kind = kind_named(KINDS[0])
    if kind is None:
        raise SystemExit(f"no kind {KINDS[0]}")
    hosts = [build(kind, f"node{place:03d}", Random(rng.random()), now=0.0) for place in range(10)]
    sometimes = sometimes_of(rng)
    logs = [original(file, rng) for file in files]
    kinds: dict[str, Callable[[int], BootLog]] = {
        "simulated": lambda place: boot_log(hosts[place % 10], rng, sometimes=sometimes),
        **{log.name: lambda _, log=log: boot_of(log, rng) for log in logs},  # type: ignore[misc]
        "all lines new": lambda place: _new_lines(place, rng),
    }
    for name, make in kinds.items():
        texts = [make(place).render("seconds").encode() for place in range(boots)]
        fresh = [make(boots + place).render("seconds").encode() for place in range(boots)]
        lines = sum(text.count(b"\n") for text in texts)
        judged_lines = sum(text.count(b"\n") for text in fresh)
        learnt_s, judged_s = (min(each) for each in zip(*(_timed(texts, fresh) for _ in range(REPEATS)), strict=True))
        rates = f"learns {lines / learnt_s:9,.0f} a second, judges {judged_lines / judged_s:9,.0f}"
        print(f"{name:<26} {lines:8d} lines: {rates}")


def _timed(texts: Sequence[bytes], fresh: Sequence[bytes]) -> tuple[float, float]:
    """CPU seconds to read and learn some boots, and to read and judge others."""
    learner = Learner()
    start = time.process_time()
    for place, text in enumerate(texts):
        for boot in read_boots(io.BytesIO(text)):
            learner.add(boot, host=f"node{place % 10}")
    learnt_s = time.process_time() - start
    expectations = Expectations(learner.model())
    start = time.process_time()
    for text in fresh:
        for boot in read_boots(io.BytesIO(text)):
            judge_boot(boot, expectations, subject="node", now=0.0)
    return learnt_s, time.process_time() - start


def _new_lines(place: int, rng: Random) -> BootLog:
    """Every line differs in its numbers from all others: nothing is looked up twice."""
    said = [
        Said(
            at_s=0.002 * line,
            text=f"dev{line % 50} {rng.getrandbits(40):#x}: value {place}.{line} of {line}",
            thread="",
        )
        for line in range(1_000)
    ]
    return BootLog(said=(Said(at_s=0.0, text="Linux version 6.1.0", thread=""), *said))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("simulated", "real", "speed"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--boots", type=int, default=500)
    parser.add_argument("--log", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    if given.what == "simulated":
        simulated(given.seed, given.boots)
    else:
        (real if given.what == "real" else speed)(given.seed, given.boots, given.log)


if __name__ == "__main__":
    main()
