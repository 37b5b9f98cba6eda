"""Something in the result that acts on whoever reads it. Outside it is read as carelessly as each attack needs."""

import json
import pickle
from collections.abc import Callable
from typing import Any

from tests.sandbox.attacks.attack import Attack
from tests.sandbox.attacks.scene import Scene


def _made(scene: Scene) -> bool:
    return (scene.folder / "by_reader").exists()


def _read(wanted: str) -> Callable[[Scene], bool]:
    return lambda scene: repr(scene.seen.get("value")) == wanted


def _last_line(result: bytes) -> Any:
    return json.loads(result.splitlines()[-1])


def _attack(
    name: str, tries: str, program: str, reader: Callable[[bytes], Any], effect: Callable[[Scene], bool]
) -> Attack:
    return Attack(name=name, tries=tries, program=program, reader=reader, effect=effect)


ATTACKS = [
    _attack("pickle", "an object that acts when it is unpacked",
            "import os, pickle\nclass Act:\n    def __reduce__(self):\n"
            "        return os.mkdir, (ARGUMENT['folder'] + '/by_reader',)\n"
            "RESULT.buffer.write(pickle.dumps(Act()))", pickle.loads, _made),
    _attack("expression", "an expression that acts when it is evaluated",
            "RESULT.write(f\"__import__('os').mkdir('{ARGUMENT['folder']}/by_reader')\")",
            lambda result: eval(result.decode()), _made),
    _attack("not_a_number", "a score that compares with nothing", "RESULT.write('NaN')", json.loads, _read("nan")),
    _attack("infinite", "a score above all", "RESULT.write('1e999')", json.loads, _read("inf")),
    _attack("two_documents", "a second document behind the first", "RESULT.write('0\\n1')", _last_line, _read("1")),
    _attack("from_a_child", "a document of a child that comes last",
            "import os\nRESULT.write('0\\n'); RESULT.flush()\nif os.fork() == 0:\n    os.setsid()\n"
            "    RESULT.write('1')\n    RESULT.flush()\n    os._exit(0)\nos.wait()", _last_line, _read("1")),
    _attack("nested", "a document so deep that its reader breaks",
            "RESULT.write('[' * 90_000 + ']' * 9)", json.loads, _read("<class 'RecursionError'>")),
]  # fmt: skip
