import subprocess
import sys

import pytest

from wholestack.errors import InputError
from wholestack.evals.backend import Opening
from wholestack.evals.models.opening import KINDS, BackendKind, open_backend


def test_an_unknown_name_lists_what_is_possible_in_one_line(tmp_path):
    for name, says in (("gpt-7", "there is no model 'gpt-7'"), (str(tmp_path), "holds no model")):
        with pytest.raises(InputError, match=says) as caught:
            open_backend(name, Opening())
        text = str(caught.value)
        assert "\n" not in text
        for kind in KINDS:
            assert kind.says in text


@pytest.mark.parametrize("name", ["none.gguf", "step-00000001.pt"])
def test_a_file_that_is_not_there_is_named(name):
    with pytest.raises(InputError, match=f"{name}: there is no such file"):
        open_backend(name, Opening())


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 64, b"something else entirely" * 9])
def test_a_damaged_gguf_is_one_line(tmp_path, content):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"m\.gguf: is damaged or no GGUF file"):
        open_backend(str(path), Opening())


def test_a_library_that_is_missing_is_named_with_its_remedy():
    kind = BackendKind(says="x", takes=lambda name: True, opens="wholestack.evals.models.nowhere:open_it")
    with pytest.raises(InputError, match=r"needs wholestack\.evals\.models\.nowhere, which is not installed"):
        open_backend("x", Opening(), kinds=(kind,))


def test_another_kind_is_one_line_in_the_table():
    kind = BackendKind(says="echo", takes=lambda name: name == "echo", opens="tests.evals.models.test_opening:opened")
    assert open_backend("echo", Opening(), kinds=(kind, *KINDS)) == ("echo", Opening())


def opened(name, opening):
    return name, opening


def test_the_table_loads_neither_torch_nor_transformers():
    code = "import sys, wholestack.evals.models.opening; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
