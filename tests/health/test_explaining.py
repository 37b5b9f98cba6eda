"""What a name means, for somebody who was just woken up."""

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df
from wholestack.errors import InputError
from wholestack.health import catalog
from wholestack.health.explaining import describe_meaning, explain
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


def test_every_cause_and_check_of_the_catalogue_can_be_explained():
    for code, (cause, _) in catalog.causes().items():
        text = describe_meaning(explain(code))
        assert code in text
        assert " ".join(cause.remedy.split()) in " ".join(text.split())
    for check in catalog.CHECKS:
        assert check.about.split()[0] in describe_meaning(explain(check.name))
