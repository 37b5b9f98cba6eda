"""The catalogue holds together: names are unique, what checks say is declared, and a sweep sends each command once."""

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.health import catalog, checks
from wholestack.health.check import Expectation, Owner
from wholestack.health.examine import examine
from wholestack.health.parts import PartKind
from wholestack.health.sending import commands_for
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.remote import FleetRemote

PASSIVE = catalog.chosen()


def test_there_are_as_many_checks_as_promised_and_no_two_of_one_name():
    names = [check.name for check in catalog.CHECKS]
    assert len(names) >= 45
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)?", name) for name in names)


@pytest.mark.parametrize("check", catalog.CHECKS, ids=lambda check: check.name)
def test_every_check_says_what_it_is_and_who_acts(check):
    assert check.about
    assert check.probes
    assert check.probes[0].formats
    assert set(check.parts) <= set(PartKind.__args__), "kinds of part: health/parts.py"
    for cause in check.causes:
        assert cause.owner in Owner.__args__
        assert cause.says
        assert cause.remedy
        assert cause.status in ("fail", "warn", "unknown")


def test_every_file_of_checks_is_in_the_catalogue():
    folder = Path(checks.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if re.search(r"^CHECKS\b", path.read_text(), re.MULTILINE)}
    missing = files - set(catalog.MODULES)
    assert not missing, f"add {sorted(missing)} to MODULES in src/wholestack/health/catalog.py"
    assert len(catalog.MODULES) == len(set(catalog.MODULES)) == len(files)


def test_a_code_means_one_thing():
    by_code = {}
    for check in catalog.CHECKS:
        for cause in check.causes:
            plain = replace(cause, explains=())  # what it explains may depend on who sees it
            assert by_code.setdefault(cause.code, plain) == plain, cause.code


def test_what_a_cause_explains_exists():
    known = catalog.causes()
    for code, (cause, _) in known.items():
        # "code" or "code key-of-the-part"
        assert not {each.split()[0] for each in cause.explains} - set(known), code


def test_probes_of_one_name_are_one_command():
    by_name = {}
    for check in catalog.CHECKS:
        for probe in check.probes:
            assert by_name.setdefault(probe.name, probe.command) == probe.command


def test_limits_of_one_name_are_one_limit():
    by_name = {}
    for check in catalog.CHECKS:
        for limit in check.limits:
            assert by_name.setdefault(limit.name, limit) == limit


def test_whatever_simulated_hosts_show_is_declared_in_the_catalogue():
    """An undeclared cause could not be explained, an undeclared trait not be put into a profile."""
    fleet = Fleet(40, seed=11)
    fleet.inject_mixture(share=0.9)
    remote, commands = FleetRemote(fleet), commands_for(catalog.probes_of(PASSIVE), Expectation())
    known = catalog.causes()
    declared = {name for check in catalog.CHECKS for name in check.trait_names}
    for host in fleet.hosts():
        found = examine(remote.reply(host, commands, deadline_s=60.0).outputs, PASSIVE, now=fleet.now)
        said = {each.symptom.cause.code for each in found.symptoms}
        said |= {trait.differs.code for trait in found.traits} | {measure.outlies.code for measure in found.measures}
        assert not said - set(known)
        names = {trait.name for trait in found.traits}
        assert not {name for name in names if not any(fnmatchcase(name, each) for each in declared)}


def test_checks_are_chosen_by_name_or_noun():
    assert {check.name for check in catalog.chosen(["filesystem"])} == {"filesystem.bytes", "filesystem.inodes"}
    assert [check.name for check in catalog.chosen(["filesystem.bytes"])] == ["filesystem.bytes"]
    assert len(catalog.chosen(skip=["filesystem"])) == len(PASSIVE) - 2
    assert all(check.passive for check in PASSIVE)
    assert {check.name for check in catalog.chosen(["pci"])} >= {"pci.links"}
    with pytest.raises(InputError, match=r"filesystem\.bytes"):
        catalog.chosen(["filesystem.bites"])


@pytest.mark.parametrize("name", ["bench", *(check.name for check in catalog.CHECKS if not check.passive)])
def test_a_check_that_only_judges_saved_outputs_is_never_sent(name):
    with pytest.raises(InputError, match=r"only judges saved outputs[^$]*wholestack health judge"):
        catalog.chosen([name])
    assert all(check.passive for check in catalog.chosen(skip=[name]))
    assert all(check.passive for noun in ("pci", "gpu") for check in catalog.chosen([noun]))
