"""What is on this machine and is none of the program's business."""

from pathlib import Path

from tests.sandbox.attacks.attack import Attack, told
from tests.sandbox.attacks.scene import Scene


def _accounts(scene: Scene) -> bool:
    return Path("/etc/passwd").read_bytes().splitlines()[0] in scene.output


def _own_package(scene: Scene) -> bool:
    return b"untrusted python with limits" in scene.output.lower()


def _reads(name: str, tries: str, place: str) -> Attack:
    return Attack(name=name, tries=tries, program=f"print(open({place}).read())", effect=told)


ATTACKS = [
    _reads("file", "a file by its path", "ARGUMENT['folder'] + '/secret'"),
    _reads("file_above", "the same from below", "'../' * 9 + ARGUMENT['folder'] + '/inner/../secret'"),
    _reads("home", "keys in the home", "ARGUMENT['folder'] + '/home/.netrc'"),
    _reads("git", "the answer in the history", "ARGUMENT['folder'] + '/.git/HEAD'"),
    Attack(
        name="link", tries="a file through a link of its own",
        program="import os\nos.symlink(ARGUMENT['folder'] + '/secret', 'own'); print(open('own').read())", effect=told,
    ),
    Attack(
        name="search", tries="the file wherever it lies",
        program="import glob\nfor name in glob.glob('/tmp/*/secret') + glob.glob('/*/*/secret'):\n"
                "    try: print(open(name).read())\n    except OSError: pass",
        effect=told,
    ),
    Attack(name="accounts", tries="who has an account", program="print(open('/etc/passwd').read())", effect=_accounts),
    Attack(name="environment", tries="keys in the environment", program="import os; print(os.environ)", effect=told),
    Attack(
        name="environment_of_process", tries="keys in the environment of others",
        program="print(open(f'/proc/{ARGUMENT[\"victim\"]}/environ').read())", effect=told,
    ),
    Attack(
        name="command_of_process", tries="keys in the command lines of others",
        program="print(open(f'/proc/{ARGUMENT[\"victim\"]}/cmdline').read())", effect=told,
    ),
    Attack(name="command", tries="what its own command line says",
           program="import sys; print(sys.orig_argv, sys.argv)", effect=told),
    Attack(name="installed", tries="the answer in an installed package", program="import answer; print(answer.ANSWER)",
           effect=told),
    Attack(
        name="compiled", tries="the answer in compiled caches", effect=told,
        program="import glob, sys\nfor place in [*sys.path, ARGUMENT['folder'] + '/library']:\n"
                "    for name in glob.glob(place + '/__pycache__/answer*.pyc'): print(open(name, 'rb').read())",
    ),
    Attack(
        name="own_package", tries="the sandbox's own source, by import",
        program="import inspect, wholestack.sandbox as found; print(inspect.getsource(found))", effect=_own_package,
    ),
    Attack(
        name="frames", tries="what its starter holds in its frames", effect=told,
        program="import gc, sys\nframe = sys._getframe()\nwhile frame:\n"
                "    print({name: value for name, value in frame.f_locals.items() if name != 'gc'}); "
                "frame = frame.f_back\n"
                "print([each for each in gc.get_objects() if isinstance(each, dict) and 'kept' in each])",
    ),
]  # fmt: skip
