"""A probe finds what is injected into the result path, names the device, and says nothing of sound ones."""

import itertools
import math

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.health.active import causes
from wholestack.health.active.cores import cores_here
from wholestack.health.active.operands import PATTERNS
from wholestack.health.active.probing import probe, read_measured
from wholestack.health.active.records import DEVICES, KIND, ROUNDS, DeviceOutcome, Plan, Round
from wholestack.health.active.speed import bounds_for, learn
from wholestack.health.claim_causes import CHANGED, COMPUTES
from wholestack.health.settlement import settle, standing
from wholestack.runs import RunDirectory, RunManifest, RunReader
from wholestack.testing.devices import FaultyDevice, OneElement, OnOperands, StuckBit, WrongLane, turns_over


@pytest.fixture
def core():
    with cores_here() as cores:
        yield cores[0]


@pytest.fixture
def looking(tmp_path, monkeypatch):
    """Probe devices in a run directory of its own, by a clock that stands still unless told otherwise."""

    monkeypatch.setattr("wholestack.health.active.pacing.COPY_BYTES", 65536)

    def look(devices, *, rounds=2, seconds=1e9, side=32, reference=None, clock=lambda: 0.0, seed=5, **more):
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        plan = Plan(rounds=rounds, seconds=seconds, side=side, room_bytes=4096, seed=seed, **more)
        manifest = RunManifest(kind=KIND, created_at=0.0, seed=seed, config={}, versions={})
        with RunDirectory.create(folder, manifest) as run:
            return probe(devices, plan, run=run, host="h1", reference=reference, clock=clock, now=lambda: 9.0), run

    return look


def paced(inner, name, rng, *, slower=0.0, level=1.0, spread=0.003, serial="", **more):
    def seconds():
        return level * float(np.exp(rng.normal(0, spread)))

    return FaultyDevice(
        inner=inner, name=name, seconds=seconds, slower=slower, busy_with="", serial_number=serial or name, **more
    )


def worst_of(found, check):
    return {each.part.split(" (")[0]: each for each in found.judgement.findings if each.check == check}


@pytest.mark.parametrize(
    "fault",
    [
        OneElement(at=40_000),
        WrongLane(lane=5, width=16, bit=22),
        OnOperands(meets=turns_over, column=7, bit=20),
    ],
    ids=["one element", "lane", "pattern"],
)
def test_a_fault_is_named_with_its_device_and_only_with_it(core, looking, fault):
    rng = np.random.default_rng(0)
    devices = [paced(core, f"d{place}", rng) for place in range(3)]
    devices[1].fault = fault
    found, run = looking(devices, rounds=8)
    findings = worst_of(found, causes.EXACT)
    assert {name: each.status for name, each in findings.items()} == {"cpu d0": "ok", "cpu d1": "fail", "cpu d2": "ok"}
    assert findings["cpu d1"].cause == causes.WRONG_PRODUCT.says
    assert [each.sound for each in found.outcomes] == [True, False, True]
    assert len(run.journal(ROUNDS, Round)) == 24
    assert run.findings()[0].status == "fail"


def test_the_evidence_names_pattern_lane_and_element(core, looking):
    rng = np.random.default_rng(0)
    found, _ = looking([paced(core, "d0", rng, fault=WrongLane(lane=5, width=16, bit=22))])
    said = "\n".join(worst_of(found, causes.EXACT)["cpu d0"].evidence)
    assert "a lane: every 16th column from 5" in said
    assert "a value computed elsewhere" in said
    assert "bit 22" in said
    found, _ = looking([paced(core, "d0", rng, fault=OnOperands(meets=turns_over, column=7, bit=20))])
    said = worst_of(found, causes.EXACT)["cpu d0"].evidence
    assert said[0].endswith("patterns: toggle")


def test_memory_with_a_stuck_bit_is_its_own_finding(core, looking):
    found, _ = looking([paced(core, "d0", np.random.default_rng(0), stuck=StuckBit(word=3, bit=9))], rounds=5)
    assert worst_of(found, causes.MEMORY)["cpu d0"].cause == causes.WRONG_MEMORY.says
    assert worst_of(found, causes.EXACT)["cpu d0"].status == "ok"


def test_every_round_multiplies_every_pattern_in_every_precision(core, looking):
    found, run = looking([paced(core, "d0", np.random.default_rng(0))], rounds=3)
    for each in run.journal(ROUNDS, Round):
        assert each.complete
        assert each.products == len(PATTERNS) * len(core.precisions)
    assert found.outcomes[0].rounds == 3


def test_results_are_held_until_the_given_memory_is_full(core, tmp_path):
    plan = Plan(rounds=1, seconds=1e9, side=32, room_bytes=400_000, seed=1)
    manifest = RunManifest(kind=KIND, created_at=0.0, seed=1, config={}, versions={})
    with RunDirectory.create(tmp_path / "run", manifest) as run:
        probe([paced(core, "d0", np.random.default_rng(0))], plan, run=run, host="h", clock=lambda: 0.0)
        (only,) = run.journal(ROUNDS, Round)
    assert 400_000 <= only.held_bytes <= 450_000
    assert only.tested_bytes >= 390_000


def fleet(core, rng, count=60, spread=0.004):
    levels = np.exp(rng.normal(0, spread, count))
    return [paced(core, f"s{place}", rng, level=level) for place, level in enumerate(levels)]


@pytest.fixture
def reference(core, looking):
    rng = np.random.default_rng(2)
    _, run = looking(fleet(core, rng), rounds=1)
    learnt, left_out = learn(read_measured([run.path]))
    assert not left_out
    assert {len(levels) for levels in learnt.levels.values()} == {60}
    return learnt


def test_a_device_that_is_slower_than_its_kind_is_named_within_20_samples(core, looking, reference):
    rng = np.random.default_rng(3)
    found, _ = looking([paced(core, "new", rng), paced(core, "bad", rng, slower=0.025)], reference=reference)
    slow = worst_of(found, causes.PACE)
    assert slow["cpu new"].status == "ok"
    assert (slow["cpu bad"].status, slow["cpu bad"].cause) == ("warn", causes.SLOW.says)
    assert "60 devices of its kind; decided with sample 1" in slow["cpu bad"].evidence[0]
    assert slow["cpu bad"].evidence[0].startswith("product.float32_32_flop_s: 2.")
    found, _ = looking([paced(core, "bad", rng, slower=0.06)], reference=reference)
    assert worst_of(found, causes.PACE)["cpu bad"].status == "fail"


def test_a_device_that_was_repaired_and_is_slow_is_still_a_finding(core, looking, reference):
    rng = np.random.default_rng(4)
    repaired = paced(core, "bad", rng, slower=0.025, repaired=("remapped rows 2",))
    found, _ = looking([repaired], reference=reference)
    slow = worst_of(found, causes.PACE)["cpu bad"]
    assert (slow.cause, slow.owner) == (causes.SLOW_AFTER_REPAIR.says, "vendor")
    assert "remapped rows 2" in slow.evidence
    assert worst_of(found, causes.EXACT)["cpu bad"].status == "ok"
    healthy = paced(core, "fine", rng, repaired=("remapped rows 2",))
    assert looking([healthy], reference=reference)[0].judgement.status == "ok"


def test_without_a_reference_siblings_are_compared_and_a_lone_device_is_not(core, looking):
    rng = np.random.default_rng(5)
    eight = [paced(core, f"d{place}", rng, slower=0.1 if place == 6 else 0.0) for place in range(8)]
    found, _ = looking(eight)
    assert [name for name, each in worst_of(found, causes.PACE).items() if each.status == "fail"] == ["cpu d6"]
    alone, _ = looking([paced(core, "d0", rng)])
    assert [each.check for each in alone.judgement.skipped] == [causes.PACE]


def test_a_device_in_use_is_left_alone_unless_told_so(core, looking):
    rng = np.random.default_rng(6)

    class Untouched(FaultyDevice):
        def multiply(self, left, right, precision):
            raise AssertionError("a device in use was probed")

    busy = Untouched(inner=core, name="d0", busy_with="process 7 computes on it")
    found, _ = looking([busy])
    assert [(each.check, each.status) for each in found.judgement.findings] == [(causes.FREE, "unknown")]
    assert not found.outcomes[0].sound
    told = paced(core, "d0", rng, slower=0.5)
    told.busy_with = "process 7 computes on it"
    found, _ = looking([told], even_if_busy=True)
    assert worst_of(found, causes.EXACT)["cpu d0"].status == "ok"
    assert not worst_of(found, causes.PACE)


class Silent(FaultyDevice):
    """Its driver does not say who uses it."""

    def in_use(self):
        return None


def test_a_device_whose_users_cannot_be_told_is_unknown_and_left_alone_unless_named(core, looking):
    class Untouched(Silent):
        def multiply(self, left, right, precision):
            raise AssertionError("it was probed")

    untouched = Untouched(inner=core, name="d0", serial_number="S7")
    for more in ({}, {"even_if_busy": True}, {"idle": ("d1", "S8")}):
        found, _ = looking([untouched], **more)
        (only,) = found.judgement.findings
        assert (only.check, only.status, only.cause) == (causes.FREE, "unknown", causes.USERS_UNKNOWN.says)
        assert not found.outcomes[0].sound
    for name in ("d0", "cpu d0", "S7"):
        told = Silent(inner=core, name="d0", serial_number="S7", slower=0.5, seconds=lambda: 1.0)
        found, _ = looking([told], idle=(name,))
        assert worst_of(found, causes.EXACT)["cpu d0"].status == "ok"
        assert not worst_of(found, causes.PACE)


def test_a_slow_device_whose_users_cannot_be_told_any_more_is_unknown(core, looking, reference):
    answers = iter(["", None])

    class Fallen(FaultyDevice):
        def in_use(self):
            return next(answers)

    found, _ = looking([Fallen(inner=core, name="d0", seconds=lambda: 2.0)], reference=reference)
    pace = worst_of(found, causes.PACE)["cpu d0"]
    assert (pace.status, pace.cause) == ("unknown", causes.USERS_UNKNOWN.says)


@pytest.mark.parametrize("seconds", [10, 60, 300])
def test_a_probe_ends_within_its_time_however_slow_its_devices(core, looking, seconds):
    """Every piece of work takes a second by the clock, and there is no bound on rounds."""
    passed = [0.0]

    class Slow(FaultyDevice):
        def multiply(self, left, right, precision):
            passed[0] += 1
            return FaultyDevice.multiply(self, left, right, precision)

        def write(self, words):
            passed[0] += 1
            return FaultyDevice.write(self, words)

        def timed(self, work):
            passed[0] += 1
            return 1.0

    devices = [Slow(inner=core, name=f"d{place}", busy_with="") for place in range(4)]
    looking(devices, rounds=None, seconds=seconds, side=8, clock=lambda: passed[0])
    # What was begun is ended: a sample of a pace is five timings, a round writes one block at least.
    assert passed[0] <= seconds + 8
    assert passed[0] >= seconds


def test_a_device_that_becomes_busy_is_unknown_not_slow(core, looking, reference):
    answers = iter(["", "process 7 computes on it"])

    class Taken(FaultyDevice):
        def in_use(self):
            return next(answers)

    found, _ = looking([Taken(inner=core, name="d0", seconds=lambda: 2.0)], reference=reference)
    assert (worst_of(found, causes.PACE)["cpu d0"].status, found.judgement.status) == ("unknown", "unknown")


def test_a_device_whose_library_fails_is_unknown_and_the_others_are_judged(core, looking):
    rng = np.random.default_rng(7)

    class Broken(FaultyDevice):
        def multiply(self, left, right, precision):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    found, _ = looking([Broken(inner=core, name="d0", busy_with=""), paced(core, "d1", rng)])
    exact = worst_of(found, causes.EXACT)
    assert (exact["cpu d0"].status, exact["cpu d0"].cause) == ("unknown", causes.GAVE_UP.says)
    assert "illegal memory access" in exact["cpu d0"].evidence[0]
    assert exact["cpu d1"].status == "ok"


def test_when_time_is_short_nothing_is_called_ok(core, looking):
    ticks = iter(range(10**9))
    found, _ = looking([paced(core, "d0", np.random.default_rng(8))], seconds=12, clock=lambda: float(next(ticks)))
    assert found.judgement.status == "unknown"
    assert not any(each.status == "ok" and each.check == causes.EXACT for each in found.judgement.findings)


def test_only_sound_devices_are_learnt_and_only_from_probes(core, looking, tmp_path):
    rng = np.random.default_rng(9)
    _, run = looking([paced(core, "good", rng), paced(core, "bad", rng, fault=WrongLane(lane=1, width=4))])
    assert {serial for _, serial, _ in read_measured([run.path])} == {"good"}
    assert len(run.journal(DEVICES, DeviceOutcome)) == 2
    other = tmp_path / "other"
    RunDirectory.create(other, RunManifest(kind="sweep", created_at=0.0, seed=0, config={}, versions={})).close()
    with pytest.raises(InputError, match="not a probe"):
        list(read_measured([other]))


def test_a_real_core_is_timed_and_sound(core, looking):
    found, _ = looking([FaultyDevice(inner=core, busy_with="")], rounds=1)
    paces = {pace.measure: pace.rates for pace in found.outcomes[0].paces}
    assert set(paces) == {"product.float32_32_flop_s", "copy.bytes_s"}
    assert min(paces["copy.bytes_s"]) > 1e6
    assert worst_of(found, causes.EXACT)[core.part.identity].status == "ok"


def test_a_sound_device_near_the_bound_is_not_unknown_unless_time_was_up(core, looking, reference):
    bound, _ = bounds_for(core.kind, "product.float32_32_flop_s", "x", reference=reference)
    level = math.exp(bound.usual - bound.log_rate) * 1.0
    draws = itertools.cycle([level * 0.99, level * 1.01])
    near = FaultyDevice(inner=core, name="x", busy_with="", seconds=lambda: next(draws))
    found, _ = looking([near], reference=reference)
    assert worst_of(found, causes.PACE)["cpu x"].status == "ok"
    ticks = itertools.count()
    found, _ = looking([near], reference=reference, seconds=120.0, clock=lambda: float(next(ticks)))
    assert worst_of(found, causes.PACE)["cpu x"].cause == causes.UNDECIDED.says


def test_the_claim_is_sealed_before_the_first_product_and_settled_by_what_was_found(core, looking):
    rng = np.random.default_rng(0)
    sound, run = looking([paced(core, "d0", rng, serial="s0")])
    (claim,) = run.claims()
    assert (claim.name, claim.subject) == (COMPUTES, "h1")
    assert "cpu d0" in claim.statement
    assert standing(claim, run.findings(), now=10.0) == "held"
    assert standing(claim, run.findings(), now=9.0 + 25 * 3600) == "expired"
    assert [each.status for each in settle(run, at=11.0)] == ["ok"]
    assert sound.judgement.status == "ok"

    broken = [paced(core, "d0", rng), paced(core, "d1", rng, fault=WrongLane(lane=5, width=16, bit=22))]
    _, run = looking(broken)
    (claim,) = run.claims()
    assert standing(claim, run.findings(), now=10.0) == "broken"
    assert {each.part.split(" (")[0] for each in run.findings() if each.settles} == {"cpu d1"}

    _, run = looking([FaultyDevice(inner=core, name="d0", busy_with="a job")])
    (claim,) = run.claims()
    assert standing(claim, run.findings(), now=10.0) == "unknown"

    _, run = looking([])
    assert standing(run.claims()[0], run.findings(), now=10.0) == "unknown"


def test_a_claim_of_a_probe_that_was_killed_stays_open_and_one_on_other_devices_is_changed(core, looking):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    rng = np.random.default_rng(0)
    with pytest.raises(Killed):
        looking([paced(core, "d0", rng, fault=killed)])
    _, run = looking([paced(core, "d0", rng)])
    killed_run = RunReader(run.path.with_name("run-0"))
    assert settle(killed_run, at=11.0) == []
    assert standing(killed_run.claims()[0], killed_run.findings(), now=10.0) == "open"
    (run.path / DEVICES).write_bytes(b"")
    assert [each.cause for each in settle(run, at=11.0)] == [CHANGED.says]
