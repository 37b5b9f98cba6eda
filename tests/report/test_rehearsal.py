"""The page says what the run directory says, at every stage, and nothing in a run can break or extend it."""

import re

import pytest

from wholestack.errors import RunDirectoryError
from wholestack.report import rehearsal
from wholestack.report.rehearsal import SECTIONS, write_report

from .reading import read
from .synthetic_run import END, STAGES, write_run

# fmt: off
TAGS = {
    "root", "#text", "html", "head", "meta", "title", "style", "body", "div", "nav", "ol", "li", "a", "main",
    "header", "h1", "h2", "h3", "h4", "p", "section", "span", "ul", "dl", "dt", "dd", "small", "strong",
    "code", "pre", "figure", "figcaption", "details", "summary", "table", "caption", "thead", "tbody", "tr",
    "th", "td", "footer", "script",
}
# fmt: on
DRAWN_TAGS = {"svg", "g", "path", "text", "tspan", "use", "defs", "clippath", "rect", "line"}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_gives_a_well_formed_page_with_all_sections_in_order(drawn, stage):
    page = read(drawn(stage).html)
    assert [each.attributes["id"] for each in page.all("section")] == [anchor for anchor, _, _ in SECTIONS]
    assert [each.words() for each in page.all("h2")] == [title for _, title, _ in SECTIONS]
    assert all(section.words() != heading.words() for section in page.all("section") for heading in section.all("h2"))


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_on_the_page_is_fetched(drawn, stage):
    html = drawn(stage).html
    assert "http://" not in html
    assert "https://" not in html
    page = read(html)
    for node in page.every():
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            assert node.attributes.get(name, "#").startswith("#"), node.attributes
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html


@pytest.mark.parametrize("stage", STAGES)
def test_every_picture_has_a_label_and_every_figure_a_caption_and_a_table(drawn, stage):
    page = read(drawn(stage).html)
    assert all(svg.attributes["aria-label"] and svg.attributes["role"] == "img" for svg in page.all("svg"))
    figures = page.all("figure")
    assert sum(len(figure.all("svg")) for figure in figures) == len(page.all("svg"))
    for figure in figures:
        assert figure.all("figcaption")[0].words()
        assert figure.all("table")


@pytest.mark.parametrize("stage", STAGES)
def test_ids_are_unique_and_every_reference_on_the_page_leads_somewhere(drawn, stage):
    html = drawn(stage).html
    ids = [node.attributes["id"] for node in read(html).every() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', html)) <= {(each, "") for each in ids} | {
        ("", each) for each in ids
    }


@pytest.mark.parametrize("stage", STAGES)
def test_every_claim_is_named_with_its_status(drawn, stage):
    run = drawn(stage)
    rows = [row.words() for row in read(run.html).all("section")[0].all("tr")]
    for view in run.evidence.claims:
        assert any(view.claim.name in row and view.claim.statement in row and view.status in row for row in rows)


def test_only_held_looks_ok(drawn):
    claims = read(drawn("outside").html).all("section")[0]
    looks = {
        badge.words(): badge.attributes["class"]
        for badge in claims.all("span")
        if badge.attributes["class"].startswith("badge")
    }
    assert {word for word, look in looks.items() if look == "badge ok"} == {"✓ held", "✓ ok"}
    assert looks["✕ broken"] == "badge fail"
    assert looks["? unknown"] == "badge unknown"
    assert looks["? expired"] == "badge unknown"


def test_a_broken_claim_says_what_is_suspect_and_what_is_ruled_out(drawn):
    cases = [
        each.words() for each in read(drawn("outside").html).all("div") if each.attributes.get("class") == "case fail"
    ]
    case = next(each for each in cases if "large.metric" in each)
    assert "Suspect below it: no claim that it rests on broke" in case
    assert "Not ruled out: evaluation.items" in case
    assert "machine.rate" in case.partition("Ruled out:")[2]
    assert "data.sources" in case.partition("Ruled out:")[2]


def test_numbers_of_the_outcome_are_on_the_page(drawn):
    run = drawn("outside")
    words = read(run.html).all("section")[0].words()
    assert run.evidence.outcome.predicted == pytest.approx(1.687, abs=5e-4)
    assert run.evidence.outcome.actual == pytest.approx(1.846, abs=5e-4)
    assert "predicted at 1.687 (1.640 to 1.734) and came to 1.846 bits per byte, above the interval" in words
    assert "9.4 % worse than predicted" in words


def test_logarithmic_axes_say_so(drawn):
    page = read(drawn("inside").html)
    front = next(svg for svg in page.all("svg") if "Pareto front" in svg.attributes["aria-label"])
    assert "training FLOPs (logarithmic axis)" in [text.words() for text in front.all("text")]
    panels = [svg for svg in page.all("svg") if "of the Pareto trials" in svg.attributes["aria-label"]]
    shown = {panel.attributes["aria-label"].split()[0]: panel.words() for panel in panels}
    assert len(shown) == 9
    assert all("FLOPs (logarithmic)" in words for words in shown.values())
    assert "logarithmic axis" in shown["lr"]
    assert "logit axis" in shown["prose_weight"]
    assert "linear axis" in shown["layers"]


def test_every_trial_and_every_failure_with_its_reason_is_in_a_table(drawn):
    run = drawn("inside")
    sections = {each.attributes["id"]: each.words() for each in read(run.html).all("section")}
    for trial in run.evidence.trials:
        assert trial.name in sections["everything"]
        if trial.outcome != "ok":
            assert f"{trial.name} {trial.role}" in sections["findings"]
    assert "loss is not finite at step 41" in sections["findings"]


def test_text_of_a_run_is_never_markup(drawn):
    html = drawn("outside", hostile=True).html
    page = read(html)
    assert {node.tag for node in page.every()} <= TAGS | DRAWN_TAGS
    assert len(page.all("script")) == 1
    assert not [name for node in page.every() for name in node.attributes if name.startswith("on")]
    words = page.words()
    assert words.count("<script>alert(1)</script>") > 20
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_hostile_names_of_settings_are_drawn_as_they_are(drawn):
    page = read(drawn("outside", hostile=True).html)
    texts = [text.words() for svg in page.all("svg") for text in svg.all("text")]
    assert any(text.startswith("activation<script>") for text in texts)


def test_the_policy_of_the_page_allows_our_script_alone(drawn):
    import base64
    import hashlib

    page = read(drawn("inside").html)
    script = page.all("script")[0].children[0].text
    policy = next(each.attributes["content"] for each in page.all("meta") if "http-equiv" in each.attributes)
    assert "default-src 'none'" in policy
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_the_same_run_gives_the_same_bytes_and_leaves_nothing_beside(drawn):
    run = drawn("interrupted")
    before = sorted(path.name for path in run.folder.iterdir())
    assert write_report(run.folder, now=END).read_text(encoding="utf-8") == run.html
    assert sorted(path.name for path in run.folder.iterdir()) == before


def test_a_page_that_cannot_be_drawn_leaves_the_old_one(drawn, monkeypatch):
    run = drawn("interrupted")

    def broken(_):
        raise KeyError("broken")

    monkeypatch.setattr(rehearsal, "SECTIONS", (("x", "X", broken),))
    with pytest.raises(KeyError):
        write_report(run.folder, now=END)
    assert (run.folder / "report.html").read_text(encoding="utf-8") == run.html


def test_a_run_of_many_trials_stays_small_and_says_what_was_cut(tmp_path):
    folder = write_run(tmp_path / "many", "interrupted", trials=0)
    line = (folder / "trials.jsonl").read_text().splitlines()[0]
    many = [line.replace("search-0000", f"search-{number:05d}") for number in range(1500)]
    (folder / "trials.jsonl").write_text("\n".join(many) + "\n")
    page = write_report(folder, now=END)
    assert page.stat().st_size < 5_000_000
    assert "1,200 more rows are not shown. trials.jsonl holds them all." in page.read_text()


def test_a_folder_that_is_no_run_is_refused_by_name(tmp_path):
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        write_report(tmp_path)


def test_a_damaged_file_is_named_and_the_verdict_is_not_good(tmp_path):
    folder = write_run(tmp_path / "run", "inside", trials=8)
    with (folder / "findings.jsonl").open("a") as file:
        file.write("{not json}\n")
    words = read(write_report(folder, now=END).read_text()).all("section")[0]
    assert "Could not be read: findings.jsonl:" in words.words()
    assert next(each for each in words.all("div") if "verdict" in each.attributes["class"]).attributes["class"] != (
        "verdict ok"
    )
