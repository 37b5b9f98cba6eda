"""Claims: sealed content cannot change unseen; the walk from a broken claim clears what held."""

import dataclasses

import pytest

from wholestack.claim import Claim, exit_code, explain, is_genuine, seal, status_of
from wholestack.errors import InputError
from wholestack.finding import finding


def sealed(name: str, *rests_on: Claim, valid_until: float | None = None) -> Claim:
    return seal(
        name, "run", f"{name} is so", quantity="bits per byte", predicted=1.5, interval=(1.0, 2.0), level=0.9,
        rests_on=[claim.id for claim in rests_on], sealed_at=100.0, valid_until=valid_until,
    )  # fmt: skip


def settle(claim: Claim, status: str):
    return finding("run", "settle", status, evidence=["1.7"], settles=claim.id)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [{"predicted": 1.6}, {"interval": (1.0, 2.1)}, {"rests_on": ("x",)}, {"sealed_at": 99.0}, {"statement": "other"}],
)
def test_a_changed_claim_is_not_genuine(change: dict) -> None:
    claim = sealed("a")
    assert is_genuine(claim)
    assert not is_genuine(dataclasses.replace(claim, **change))


def test_status_comes_from_the_last_settling_finding_alone() -> None:
    claim, other = sealed("a", valid_until=200.0), sealed("b")
    assert status_of(claim, [settle(other, "fail")], now=150.0) == "open"
    assert status_of(claim, [], now=201.0) == "expired"
    for status, expected in {"ok": "held", "warn": "broken", "fail": "broken", "unknown": "unknown"}.items():
        assert status_of(claim, [settle(claim, status)], now=201.0) == expected
    assert status_of(claim, [settle(claim, "fail"), settle(claim, "ok")], now=150.0) == "held"


@pytest.mark.parametrize(
    ("statuses", "code"),
    [([], 0), (["held"], 0), (["held", "open"], 3), (["expired"], 3), (["unknown"], 3), (["unknown", "broken"], 1)],
)
def test_only_held_claims_give_exit_code_0(statuses: list, code: int) -> None:
    assert exit_code(statuses) == code


def test_explain_sorts_everything_below_into_suspects_and_ruled_out() -> None:
    machine = sealed("machine")
    data = sealed("data", machine)
    settings = sealed("settings", data)
    large = sealed("large", settings, data, machine)
    findings = [settle(machine, "ok"), settle(data, "fail"), settle(large, "fail")]
    why = explain(large.id, [machine, data, settings, large], findings, now=150.0)
    assert [claim.name for claim in why.suspects] == ["data"]
    assert [claim.name for claim in why.ruled_out] == ["machine"]
    assert [claim.name for claim in why.undecided] == ["settings"]
    assert why.findings == (findings[2],)


def test_the_deepest_suspect_comes_first_and_each_claim_once() -> None:
    bottom = sealed("bottom")
    left, right = sealed("left", bottom), sealed("right", bottom)
    top = sealed("top", left, right)
    findings = [settle(claim, "fail") for claim in (bottom, left, right, top)]
    why = explain(top.id, [bottom, left, right, top], findings, now=150.0)
    assert [claim.name for claim in why.suspects] == ["bottom", "left", "right"]


def test_an_unknown_claim_is_an_input_error_that_lists_the_known_ones() -> None:
    claim = sealed("a")
    with pytest.raises(InputError, match=claim.id):
        explain("0" * 16, [claim], [], now=0.0)
