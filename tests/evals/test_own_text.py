"""Items from one's own text: sealed, the same for the same text and seed, and from nothing else."""

import json
from pathlib import Path

import pytest

from tests.experiments.tiny import write_text
from wholestack.cli.main import main
from wholestack.errors import InputError
from wholestack.evals.items import read_items
from wholestack.evals.own_text import items_from_text, own_sources


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_text(tmp_path_factory.mktemp("own") / "notes", kind="notes", documents=30)


def test_items_are_cut_from_the_folder_s_text_alone_and_come_back_from_the_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "picture.bin").write_bytes(b"\x00\x01" * 50)
    with pytest.raises(SystemExit) as ended:
        main(["evals", "items", str(folder), "--out", str(tmp_path / "items.jsonl"), "--count", "40", "--json"])
    assert ended.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["items"], said["sources"]) == (40, {"notes": 40})
    assert sum(said["refused"].values()) == 1
    text = " ".join(" ".join(file.read_text().split()) for file in sorted(folder.glob("*.txt")))
    items = read_items(tmp_path / "items.jsonl").items
    assert len(items) == 40
    for item in items:
        assert " ".join(f"{item.context}{item.delimiter}{item.answer}".split()) in text
        assert all(" ".join(choice.split()) in text for choice in item.choices)


def test_the_seed_alone_decides(folder: Path) -> None:
    first, again, other = (items_from_text(own_sources(folder), count=20, seed=seed).items for seed in (1, 1, 2))
    assert first.digest == again.digest != other.digest


def test_json_lines_with_a_licence_are_text_too_and_lines_without_are_counted(folder: Path, tmp_path: Path) -> None:
    texts = [file.read_text() for file in sorted(folder.glob("*.txt"))]
    lines = [json.dumps({"text": text, "licence": "CC0-1.0"}) for text in texts] + [json.dumps({"text": texts[0]})]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    made = items_from_text(own_sources(tmp_path / "own.jsonl"), count=20, seed=0)
    assert len(made.items.items) == 20
    assert made.refused == {"no_licence": 1}


def test_without_a_path_it_is_the_library_of_this_python() -> None:
    assert {source.name for source in own_sources(None)} == {"python-code", "python-prose"}


def test_a_path_that_is_nothing_and_text_that_is_too_little_are_one_clear_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder or file"):
        own_sources(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"100000 items were asked for.*give more text, or a smaller --count"):
        items_from_text(own_sources(folder), count=100_000, seed=0)
