"""HTML escapes by default; only what says that it is markup is markup."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.report.page import Markup, Section, badge, document, element, escape, join
from wholestack.report.quantities import printable

from .reading import read


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_comes_back_as_text_and_any_attribute_as_attribute(inside, attribute):
    root = read(element("p", inside, title=attribute))
    (node,) = root.children
    assert [child.tag for child in node.children] in (["#text"], [])
    assert "".join(child.text for child in node.children) == printable(inside)
    assert node.attributes == {"title": printable(attribute)}


def test_markup_is_kept_and_is_escaped_as_an_attribute_all_the_same():
    assert element("p", Markup("<b>x</b>")) == "<p><b>x</b></p>"
    assert element("p", title=Markup('"><script>')) == '<p title="&quot;&gt;&lt;script&gt;"></p>'


def test_joining_escapes_what_is_not_markup():
    assert join(["<", Markup("<br>")]) == "&lt;<br>"
    assert escape(escape("<")) == "&lt;"


def test_names_of_attributes_come_out_in_html():
    assert element("p", "x", class_="a", aria_label="b") == '<p class="a" aria-label="b">x</p>'


@pytest.mark.parametrize("word", ["fine", "OK", "expired", "unknown", "", "held?"])
def test_a_status_that_is_not_known_never_looks_ok(word):
    node = read(badge(word)).children[0]
    assert node.attributes["class"] == "badge unknown"
    assert node.words() == f"? {word}".strip()


def test_the_document_holds_what_it_is_given():
    section = Section(anchor="one", title="A & B", body=Markup("<p>body</p>"))
    page = document("T<", Markup("<header>h</header>"), [section], "foot & more").decode()
    assert page.startswith("<!DOCTYPE html>\n")
    root = read(page)
    assert root.all("title")[0].words() == "T<"
    assert [(link.attributes["href"], link.words()) for link in root.all("a")] == [("#one", "A & B")]
    assert root.all("section")[0].words() == "A & B body"
    assert html.escape("foot & more") in page
