"""What a check declares is what it says: causes, parts, limits; nothing twice."""

from fnmatch import fnmatchcase

import pytest

from tests.health.checks.test_hostile import CHECKS, TEXTS, checks_of
from tests.health.looking import NOW, moment
from wholestack.health import telemetry
from wholestack.health.check import Seen, Trait
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.remote.batch import Output


def answers(check, text):
    """All that a check says of a text."""
    name = check.probes[0].name
    outputs = {name: Output(name=name, stdout=text.encode())}
    outputs.setdefault("moment", Output(name="moment", stdout=moment().encode()))
    seen = Seen(outputs, now=NOW, boot_id="b", uptime_s=3600.0)
    for question in (check.judge, check.traits, check.measures):
        try:
            yield from question(seen)
        except (NotThereError, UnreadableError):
            continue


def cause_of(answer):
    return getattr(answer, "cause", None) or getattr(answer, "differs", None) or answer.outlies


@pytest.mark.parametrize("name", CHECKS)
def test_every_cause_and_kind_of_part_is_declared(name):
    check = CHECKS[name]
    declared = {cause.code for cause in (*check.causes, *telemetry.CAUSES)}
    for path, text in TEXTS:
        if check in checks_of(path):
            for answer in answers(check, text):
                assert cause_of(answer).code in declared
                assert not isinstance(answer, Trait) or any(
                    fnmatchcase(answer.name, each) for each in check.trait_names
                )
                assert answer.part.kind in check.parts


def test_a_code_and_a_limit_mean_one_thing_each():
    codes, limits = {}, {}
    for check in CHECKS.values():
        for cause in check.causes:
            assert codes.setdefault(cause.code, cause) == cause
        for limit in check.limits:
            assert limits.setdefault(limit.name, limit) == limit


def test_every_remedy_says_what_to_do_and_no_cause_explains_itself():
    for check in CHECKS.values():
        assert check.about
        for cause in check.causes:
            assert len(cause.remedy) > 20
            assert cause.code not in cause.explains


def test_what_is_explained_exists_here_or_belongs_to_the_kernel_log_or_the_pci_bus():
    known = {cause.code for check in CHECKS.values() for cause in check.causes} | {c.code for c in telemetry.CAUSES}
    explained = {code for check in CHECKS.values() for cause in check.causes for code in cause.explains}
    assert all(code.startswith(("kernel.", "pci.")) for code in explained - known)
