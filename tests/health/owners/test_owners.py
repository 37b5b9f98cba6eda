"""Owners: the table is sound, an added one is one file, and the words of Findings have somebody behind them."""

import re
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from wholestack.errors import InputError
from wholestack.health import catalog as checks
from wholestack.health.check import Owner as Word
from wholestack.health.owners import catalog
from wholestack.health.owners.owner import SAYS, Item, Wants
from wholestack.testing.owners import broken_rules

DOCS = Path(__file__).parents[3] / "docs" / "adding" / "owner.md"


@pytest.mark.parametrize("owner", catalog.all_owners(), ids=lambda owner: owner.about.name)
def test_every_owner_keeps_the_rules(owner):
    assert broken_rules(owner) == []


def test_every_owner_that_a_cause_names_is_somebody():
    words = {cause.owner for cause, _ in checks.causes().values()} | set(get_args(Word))
    assert {catalog.owner_for(word, ()).about.acts_for for word in words} == words


def test_every_item_is_said_and_wanted_by_somebody():
    assert set(SAYS) == set(get_args(Item))
    owners = catalog.all_owners()
    rows = [owner.wants(kind) for owner in owners for kind in ("gpu", "drive", "hca_port", "host")]
    assert {item for row in rows for item in row.items} == set(SAYS)


def test_nobody_who_is_not_there_is_invented():
    with pytest.raises(InputError, match="nobody is known who acts for 'the moon'"):
        catalog.owner_for("the moon", ())


def broken(**changes):
    good = catalog.owner_for("vendor", ())
    wants = changes.pop("otherwise", good.otherwise)
    return broken_rules(replace(good, about=replace(good.about, **changes), otherwise=wants, rows={}))


def test_the_rules_find_what_is_wrong():
    everything = ("evidence", "history", "remedy")
    assert broken() == []
    assert "source is ''" in broken(source="")[0]
    assert "fits every model" in broken(models=("*",))[0]
    assert "wants 'moon'" in broken(otherwise=Wants(items=(*everything, "moon")))[0]
    assert "twice" in broken(otherwise=Wants(items=(*everything, "evidence")))[0]
    assert "does not want evidence" in broken(otherwise=Wants(items=("history", "remedy")))[0]
    assert "one line" in broken(otherwise=Wants(items=everything, asks=("a\nb",)))[0]


@pytest.fixture
def followed(monkeypatch):
    """The example of the page, as if its package were installed."""
    space = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(textwrap.dedent(block), "owner.md", "exec", dont_inherit=True), space)
    install(monkeypatch, space["OWNERS"])
    return space


def install(monkeypatch, owners):
    from wholestack.plugins import Plugin

    entry = SimpleNamespace(load=lambda: owners, value="x:OWNERS", dist=None, name="x", group=catalog.ENTRY_POINTS)
    monkeypatch.setattr(catalog, "installed", lambda group: [Plugin(entry=entry)])


def test_the_example_of_the_page_works(followed):
    """Its own test passes, its drives are its own, all else is the vendor's as before."""
    tests = [value for name, value in followed.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()
    (owner,) = followed["OWNERS"]
    pattern = owner.about.models[0]
    assert catalog.owner_for("vendor", [pattern.replace("*", "X1").upper()]) is owner
    assert catalog.owner_for("vendor", ["another"]).about.name == "vendor"
    assert catalog.owner_for("data centre", [pattern.replace("*", "X1")]).about.name == "data centre"


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"name": "vendor"}, "the name vendor is taken"), ({"items": ("moon",)}, "wants 'moon', which no ticket holds")],
)
def test_a_wrong_plug_in_is_named(monkeypatch, changes, says):
    good = catalog.owner_for("vendor", ())
    about = replace(good.about, name=changes.get("name", "other"))
    install(
        monkeypatch, (replace(good, about=about, otherwise=Wants(items=changes.get("items", ("evidence",))), rows={}),)
    )
    with pytest.raises(InputError, match=says):
        catalog.all_owners()
