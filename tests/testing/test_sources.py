from dataclasses import dataclass

import pytest

from wholestack.data import MemorySource, Refusal, SourceDocument
from wholestack.testing.sources import broken_rules


@dataclass
class Fake:
    items: list
    name: str = "fake"
    licence: str = "MIT"

    def documents(self):
        yield from self.items


def doc(path="a", text="x", licence="MIT"):
    return SourceDocument(path=path, text=text, licence=licence)


def test_a_good_source_breaks_no_rule():
    assert broken_rules(lambda: MemorySource("good", {"a": "x", "b": "y"}, given="MIT")) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Fake([doc()], name="a b"), "not usable"),
        (Fake([doc()], licence=" "), "one line"),
        (Fake([doc()], licence="MIT\nor so"), "one line"),
        (Fake([]), "no document"),
        (Fake([doc(), doc()]), "two documents have the path 'a'"),
        (Fake([doc(licence="unknown")]), "has no licence"),
        (Fake([doc(text="\ud800")]), "surrogate"),
        (Fake([doc(), Refusal(source="other", path="b", reason="binary")]), "in the name of 'other'"),
        (Fake([doc(), Refusal(source="fake", path="b", reason="dull")]), "refused for 'dull'"),
        (Fake([doc(), Refusal(source="fake", path="", reason="binary")]), "does not say what"),
        (Fake([doc(), "text"]), "str is neither"),
    ],
)
def test_each_broken_rule_is_named(source, said):
    assert any(said in each for each in broken_rules(lambda: source))


def test_answers_that_change_are_noticed():
    items = [[doc()], [doc(), doc("b")], [doc()]]

    class Moody(Fake):
        def documents(self):
            yield from items.pop(0)

    assert broken_rules(lambda: Moody([])) == ["documents() called twice gives two answers"]
