"""What a name means, for somebody who was just woken up."""

import ast
import importlib
import pkgutil
from pathlib import Path

import msgspec
import pytest

import wholestack.health as health
from tests.health import fleets
from tests.health.fleets import Answers, df
from wholestack.cli.output import findings_document
from wholestack.errors import InputError, RecordError
from wholestack.health import catalog
from wholestack.health.bootlog import causes as bootlog
from wholestack.health.check import Cause
from wholestack.health.explaining import check_fits, describe_meaning, explain, findings_in
from wholestack.health.sources import SOURCES, every_cause
from wholestack.remote.batch import Output

FULL = {"df": Output(name="df", stdout=df(99))}


@pytest.fixture
def findings(tmp_path):
    swept = fleets.run(tmp_path / "s", ["a", "b", "c"], Answers({"a": FULL, "b": FULL, "c": "unreachable"}))
    return [each for verdict in swept.verdicts for each in verdict.findings]


def test_a_finding_is_found_by_the_beginning_of_its_id(findings):
    wanted = findings[0]
    meaning = explain(wanted.id[:8], findings)
    assert (meaning.finding, meaning.cause.code, meaning.check.name) == (wanted, "filesystem.full", "filesystem.bytes")
    assert meaning.same_elsewhere == 1
    text = describe_meaning(meaning)
    for words in (wanted.evidence[0], wanted.owner, "1 other host", "filesystem.full_share", "on a"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_lost_telemetry_is_explained_as_neither_healthy_nor_broken(findings):
    lost = next(each for each in findings if each.subject == "c")
    assert "neither healthy nor broken" in describe_meaning(explain(lost.id, findings))


def test_a_beginning_that_fits_several_or_none_is_refused(findings):
    with pytest.raises(InputError, match="no finding"):
        explain("0000", findings)
    with pytest.raises(InputError, match="no finding"):
        explain(findings[0].id[:3], findings)
    with pytest.raises(InputError, match=r"--in DIR"):
        explain("abcdef")


def _causes_of_the_package():
    """Every Cause that a module of health holds, alone or in a collection, by where it is."""
    found = {}
    for module in pkgutil.walk_packages(health.__path__, f"{health.__name__}."):
        if module.name.endswith("torch_device"):  # needs torch, and judges nothing
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            held = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else [value]
            found |= {f"{module.name}.{name}: {each.code}": each for each in held if isinstance(each, Cause)}
    return found


def test_every_cause_in_the_package_can_be_explained_by_its_code_and_by_a_finding():
    found = _causes_of_the_package()
    assert {cause.code.partition(".")[0] for cause in found.values()} >= {"bootlog", "device", "cabling", "telemetry"}
    for where, cause in found.items():
        made = cause.finding("a", cause.code, evidence=("line",))
        for name in (cause.code, made.id[:8]):
            meaning = explain(name, [made])
            assert meaning.cause is not None, where
            assert (meaning.cause.code, meaning.cause.remedy) == (cause.code, cause.remedy), where
            text = " ".join(describe_meaning(meaning).split())
            for words in (cause.says, cause.owner, " ".join(cause.remedy.split())):
                assert words in text, where


def test_every_finding_that_is_not_ok_comes_from_a_cause():
    """What is made with a text of its own could not be explained."""
    for file in sorted(Path(health.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "finding":
                status = node.args[2] if len(node.args) > 2 else None
                ok = isinstance(status, ast.Constant) and status.value == "ok"
                copied = ast.unparse(status) in ("each.status", "status or self.status", "status") if status else False
                says = [ast.unparse(each.value) for each in node.keywords if each.arg == "cause"]
                assert ok or (copied and says in ([], ["each.cause"], ["self.says"])), f"{file}:{node.lineno}"


def test_what_no_check_says_is_explained_with_the_command_that_says_it():
    text = describe_meaning(explain("device.slow"))
    assert "wholestack health probe: whether each device multiplies right" in text
    assert explain("device.slow").document()["source"]["command"] == "wholestack health probe"
    for name in ("device", "device.pace"):
        text = " ".join(describe_meaning(explain(name)).split())
        assert "device.pace: whether it is as fast as its kind" in text
        assert "device.slow: slower than it should be" in text


def test_a_name_that_findings_carry_as_their_check_is_known():
    """Of those that sources declare, and each that belongs to their causes."""
    for source in SOURCES:
        assert all(cause.code.startswith(f"{source.noun}.") for cause in source.causes)
        for check in source.checks:
            assert explain(check).source is source or explain(check).check is not None


def id_of(found):
    return found.id


def test_findings_are_read_from_what_json_printed(tmp_path):
    made = [cause.finding("a", cause.code, evidence=("line",)) for cause in bootlog.CAUSES]
    saved = tmp_path / "judged.json"
    saved.write_bytes(msgspec.json.encode(findings_document(made)))
    assert sorted(findings_in(saved), key=id_of) == sorted(made, key=id_of)
    for broken in ("[]", "{}", "no json", '{"findings": 3}'):
        saved.write_text(broken)
        with pytest.raises(InputError, match=r"judged\.json.*--json"):
            findings_in(saved)
    saved.write_text('{"findings": [{"id": 3}]}')
    with pytest.raises(RecordError, match="finding 1"):
        findings_in(saved)


def test_every_check_of_the_catalogue_can_be_explained():
    for check in catalog.CHECKS:
        assert check.about.split()[0] in describe_meaning(explain(check.name))


@pytest.mark.parametrize("pattern", ["gpu.*", "bmc.clock", "cabling.*", "plugin.own"])
def test_a_pattern_that_fits_a_check_or_what_was_seen_is_taken(pattern):
    check_fits(pattern, lambda: ["plugin.own"])


def test_a_mistyped_check_is_refused_with_the_nearest():
    """Found by hand: a silence of a check that does not exist was kept, and silenced nothing."""
    with pytest.raises(InputError, match=r"no check is called 'bmc.clok' \(did you mean bmc.clock"):
        check_fits("bmc.clok", lambda: [])


def test_what_a_finding_explains_is_no_wall_of_words():
    broad = max(every_cause().values(), key=lambda each: len(each.cause.explains)).cause
    found = broad.finding("a", broad.code, evidence=("line",))
    lines = describe_meaning(explain(id_of(found)[:8], [found]))
    assert f"more (explain {broad.code} has them)" in " ".join(lines.split())
    assert lines.count("\n") < 40
