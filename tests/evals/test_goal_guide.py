"""The guide from a goal to a proxy runs as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "goal-and-proxy.md"


def test_the_commands_of_the_guide_do_what_it_says(tmp_path):
    text = GUIDE.read_text(encoding="utf-8")
    (table,) = re.findall(r"```csv\n(.*?)```", text, re.S)
    (tmp_path / "table.csv").write_text(table)
    command = tmp_path / "wholestack"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wholestack "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for place, block in enumerate(re.findall(r"```sh\n(.*?)```", text, re.S)):
        done = subprocess.run(
            ["sh", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        assert done.returncode == (3 if place == 2 else 0)
    words = " ".join(done.stdout.split())
    assert "answer_bpb: ranks as 'accepted' does in 1.00 of pairs (0.37 to 1.00, 5 models)" in words
    assert "too few models: about" in words
    assert "cannot be told apart from answer_bpb: accuracy_raw" in words
