"""The page of curves: every metric, a table beside every plot, nothing fetched, nothing unescaped."""

import re
import shutil

import pytest

from tests.evals.test_curves import WAYS, checkpoints
from wholestack.evals.curves import judge_curves
from wholestack.evals.measured import Numbers
from wholestack.report.metric_curves import page, write_curves

from .reading import read
from .test_browser import _open

VERSIONS = {"Wholestack": "0.0"}


@pytest.fixture(scope="module")
def report():
    return judge_curves(checkpoints(), WAYS, x="tokens")


@pytest.fixture(scope="module")
def html(report):
    return page(report, notes={"answer_bpb": "ranks as 'accepted' does in 0.86 of pairs"}, versions=VERSIONS).decode()


def test_every_metric_has_its_section_with_pictures_and_tables(html):
    found = read(html)
    assert [each.words() for each in found.all("h2")] == ["What these curves show", *WAYS, "How it was judged"]
    for figure in found.all("figure"):
        assert figure.all("svg")
        assert figure.all("table")


def test_a_curve_is_drawn_on_linear_and_logarithmic_axes(html):
    labels = [each.attributes["aria-label"] for each in read(html).all("svg")]
    for axes in ("linear", "logarithmic x", "logarithmic both"):
        assert any(label.startswith("answer_bpb") and label.endswith(axes) for label in labels)
    # Exact match of zero has no logarithm.
    assert not any(label.startswith("exact_match") and label.endswith("both") for label in labels)


def test_the_conclusions_and_the_note_stand_on_the_page(html, report):
    words = " ".join(read(html).all("main")[0].words().split())
    for each in report.conclusions:
        assert each[1:] in words
    assert "ranks as 'accepted' does in 0.86 of pairs" in words


def test_all_points_are_in_the_tables(html, report):
    rows = read(html).all("tr")
    assert len(rows) >= sum(len(curve.points) for curve in report.curves)


def test_nothing_is_fetched_and_no_script_but_ours_runs(html):
    found = read(html)
    assert len(found.all("script")) == 1
    assert not re.findall(r"(?:src|href)=\"(?!#)", html)


def test_hostile_names_stay_text():
    bad = "<script>alert(1)</script>$x^2$"
    rows = [
        Numbers(
            model="", values={"tokens": row.values["tokens"], bad: row.values["answer_bpb"]}, errors={}, where=row.where
        )
        for row in checkpoints()
    ]
    drawn = page(judge_curves(rows, {bad: "lower"}, x="tokens"), notes={bad: bad}, versions=VERSIONS).decode()
    assert len(read(drawn).all("script")) == 1
    assert "alert(1)" in read(drawn).all("h2")[1].words()


def test_the_same_report_gives_the_same_bytes(report):
    assert page(report, notes={}, versions=VERSIONS) == page(report, notes={}, versions=VERSIONS)


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
def test_the_browser_complains_of_nothing(report, tmp_path):
    write_curves(tmp_path / "report.html", report, notes={}, versions=VERSIONS)
    done = _open(tmp_path, tmp_path, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    assert len(read(done.stdout.replace("\ufeff", "")).all("svg")) == 2 + 2 + 3 + 3
