"""``evals context`` with a model that is not its own: asked through the interface of every model, never fine-tuned."""

import json
from pathlib import Path

import pytest

from wholestack.cli.main import main


def test_any_model_is_shown_demonstrations_and_the_needle_stands_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evals", "context", "--model", "memory", "--out", str(tmp_path / "run"), "--json"])
    assert ended.value.code == 0
    document = json.loads(capsys.readouterr().out)
    shown = {(point["way"], point["demonstrations"]) for point in document["points"]}
    assert shown == {(way, count) for way in ("in context", "needle") for count in (10, 100, 1000)}
    for point in document["points"]:
        assert point["accuracy"]["value"] == pytest.approx(0.25)
    assert "fragment retrieval" in (tmp_path / "run" / "context.html").read_text()


def test_a_model_that_is_none_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evals", "context", "--model", "nowhere", "--out", str(tmp_path / "run")])
    assert ended.value.code == 2
    assert "nowhere" in capsys.readouterr().err
