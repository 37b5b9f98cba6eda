"""Tables are bounded, say what they cut, and set numbers to the right."""

from wholestack.report.page import element
from wholestack.report.tables import MAX_ROWS, Table, draw

from .reading import read


def _rows(count):
    return [(f"trial-{number}", str(number)) for number in range(count)]


def test_a_table_of_the_largest_size_is_whole():
    page = read(draw(Table(caption="c", columns=("a", "b"), rows=_rows(MAX_ROWS), source="x.jsonl")))
    assert len(page.all("tbody")[0].all("tr")) == MAX_ROWS
    assert "not shown" not in page.words()


def test_one_row_more_is_cut_and_counted():
    page = read(draw(Table(caption="c", columns=("a", "b"), rows=_rows(MAX_ROWS + 1), source="x.jsonl")))
    assert len(page.all("tbody")[0].all("tr")) == MAX_ROWS
    assert "1 more rows are not shown. x.jsonl holds them all." in page.words()


def test_columns_of_numbers_stand_to_the_right_and_text_does_not():
    rows = [("a", "1.2e11 FLOPs", "3", "–"), ("b", "4.0e9 FLOPs", "x", "–")]
    page = read(draw(Table(caption="c", columns=("name", "cost", "mixed", "none"), rows=rows)))
    assert [cell.attributes.get("class", "") for cell in page.all("th")] == ["", "n", "", ""]
    assert [cell.attributes.get("class", "") for cell in page.all("td")][:4] == ["", "n", "", ""]


def test_cells_are_escaped_unless_they_are_markup():
    page = read(draw(Table(caption="<c>", columns=("<a>", "b"), rows=[("<i>x</i>", element("code", "<y>"))])))
    assert not page.all("i")
    assert [cell.words() for cell in page.all("td")] == ["<i>x</i>", "<y>"]
    assert page.all("caption")[0].words() == "<c>"


def test_an_empty_table_says_so():
    assert "none" in read(draw(Table(caption="c", columns=("a", "b"), rows=[]))).all("td")[0].words()
