"""What a check declares is what it says, of every recorded output; what it says can be acted on."""

import pytest

from tests.health.checks.test_hostile import TEXTS, checks_of
from tests.health.looking import judged_file, look
from wholestack.health import catalog
from wholestack.health.telemetry import CHECK_WRONG


@pytest.mark.parametrize(("path", "text"), TEXTS, ids=lambda each: getattr(each, "stem", ""))
def test_every_cause_trait_and_kind_of_part_is_declared(path, text):
    """A live check tells it as ``unknown``; here it is a defect of ours."""
    for check in checks_of(text):
        alone = judged_file(check, text)
        dated = look([check], **{check.probes[0].name: text})
        for found in (alone, dated):
            wrong = [each.symptom.evidence for each in found.symptoms if each.check == CHECK_WRONG.code]
            assert wrong == [], "name it in the check's causes, parts or trait_names"


@pytest.mark.parametrize("check", catalog.CHECKS, ids=lambda check: check.name)
def test_every_remedy_says_what_to_do(check):
    for cause in check.causes:
        assert len(cause.remedy) > 20
