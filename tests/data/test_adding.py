import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "adding" / "data-source.md"


def test_the_guide_to_adding_a_source_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    program = compile("\n".join(blocks), str(GUIDE), "exec")
    exec(program, {"__name__": "guide"})
    assert "Source mail" in capsys.readouterr().out
