"""Pictures are SVG that fits into any page: unique ids, theme colours, text as text."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.report.canvas import legend, log_axis, paint, picture, text

from .reading import read


def _two_lines(axes, title="title"):
    axes.plot([1e9, 1e10, 1e11], [3, 2, 1], color=paint("predicted"), label=text(title))
    axes.fill_between([1e9, 1e11], [1, 1], [2, 2], color=paint("fail"), alpha=0.2)
    axes.plot([1e9, 1e11], [1, 1], "o", color=paint("ink"))
    log_axis(axes, "x")
    axes.set_xlabel(text(title))
    legend(axes)


def test_colours_are_names_of_the_style_sheet():
    drawn = picture(_two_lines, name="a", label="l")
    assert {"var(--predicted)", "var(--fail)", "var(--ink)", "var(--muted)", "var(--grid)"} <= set(
        re.findall(r"var\(--[a-z]+\)", drawn)
    )
    assert "#fe00" not in drawn
    assert "#000000" not in drawn


def test_ids_of_two_pictures_do_not_meet_and_all_references_hold():
    first, second = (picture(_two_lines, name=name, label="l") for name in ("a", "b"))
    ids = [re.findall(r' id="([^"]+)"', each) for each in (first, second)]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])
    for drawn, own in zip((first, second), ids, strict=True):
        used = set(re.findall(r'href="#([^"]+)"', drawn)) | set(re.findall(r"url\(#([^)]+)\)", drawn))
        assert used == set(own)


def test_the_same_picture_twice_is_the_same_text():
    assert picture(_two_lines, name="a", label="l") == picture(_two_lines, name="a", label="l")


@settings(max_examples=12, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_can_stand_in_a_picture_and_stays_text(title):
    drawn = picture(lambda axes: _two_lines(axes, title), name="a", label=title, width=200, height=120)
    assert ET.fromstring(drawn).attrib["role"] == "img"
    assert {node.tag for node in read(drawn).all("svg")[0].every()} <= {
        "svg",
        "g",
        "path",
        "text",
        "tspan",
        "use",
        "defs",
        "clippath",
        "rect",
        "line",
        "#text",
    }


@pytest.mark.parametrize("title", ["$\\frac{1$", "$x^2$", "<script>alert(1)</script>", 'a" onload="x', "]]>"])
def test_what_looks_like_mathematics_or_markup_is_drawn_as_it_is(title):
    drawn = read(picture(lambda axes: _two_lines(axes, title), name="a", label=title))
    assert title in [node.words() for node in drawn.all("text")]
    assert drawn.children[0].attributes["aria-label"] == title


def test_ticks_of_a_logarithmic_axis_are_plain_numbers():
    words = [node.words() for node in read(picture(_two_lines, name="a", label="l")).all("text")]
    assert {"1e9", "1e10", "1e11"} <= set(words)


def test_labels_stay_inside_the_picture():
    drawn = ET.fromstring(picture(lambda axes: _two_lines(axes, "x" * 40), name="a", label="l", width=400, height=200))
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    assert (width, height) == (400, 200)
    for node in drawn.iter("text"):
        if "x" in node.attrib:
            assert 0 <= float(node.attrib["x"]) <= width
            assert 0 <= float(node.attrib["y"]) <= height


def test_drawing_changes_no_setting_of_the_process():
    before = dict(mpl.rcParams)
    picture(_two_lines, name="a", label="l")
    assert dict(mpl.rcParams) == before


def test_drawing_does_not_load_pyplot_and_the_terminal_version_does_not_load_matplotlib():
    code = (
        "import sys, wholestack.report.terminal; assert 'matplotlib' not in sys.modules;"
        "import wholestack.report.rehearsal; assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""
