"""What stays on this machine, or changes it, or waits for the next run."""

import stat
from collections.abc import Callable
from pathlib import Path

from tests.sandbox.attacks.attack import Attack
from tests.sandbox.attacks.scene import Scene


def _changed(scene: Scene) -> bool:
    path = scene.folder / "secret"
    return not path.exists() or path.read_text() != scene.secret


def _made(name: str) -> Callable[[Scene], bool]:
    return lambda scene: (scene.folder / name).exists()


def _privileged(scene: Scene) -> bool:
    return bool((scene.folder / "secret").stat().st_mode & stat.S_ISUID)


def _in_shared_memory(scene: Scene) -> bool:
    return Path("/dev/shm", scene.mark).exists()


def _kernel_object(table: str) -> Callable[[Scene], bool]:
    def effect(scene: Scene) -> bool:
        words = Path("/proc/sysvipc", table).read_text().split()
        return str(int(scene.mark[1:8], 16)) in words

    return effect


def _hijacked(scene: Scene) -> bool:
    return b"hijacked" in scene.seen.get("after", b"")


def _adjusted(scene: Scene) -> bool:
    return Path(f"/proc/{scene.victim.pid}/oom_score_adj").read_text().strip() == "777"


def _other_limit(scene: Scene) -> bool:
    return "4321" in Path(f"/proc/{scene.victim.pid}/limits").read_text()


def _writes(name: str, tries: str, program: str, effect: Callable[[Scene], bool] = _changed) -> Attack:
    return Attack(
        name=name, tries=tries, effect=effect,
        program="import os\nfolder, secret = ARGUMENT['folder'], ARGUMENT['folder'] + '/secret'\n" + program,
    )  # fmt: skip


def _for_the_next(name: str, tries: str, program: str) -> Attack:
    return Attack(
        name=name, tries=tries, effect=_hijacked, program="import os\n" + program,
        after="import colorsys, sys\nprint(getattr(sys, 'changed', 'clean'), getattr(colorsys, 'changed', ''))",
    )  # fmt: skip


_SYSTEM_V = "mark()\nkey = int(ARGUMENT['mark'][1:8], 16)\n"

ATTACKS = [
    _writes("overwrite", "to change a file", "open(secret, 'w').write('changed')"),
    _writes("remove", "to remove a file", "os.unlink(secret)"),
    _writes("rename", "to move a file", "os.rename(secret, folder + '/moved')"),
    _writes("above", "a file above its folder", "open('../' * 9 + folder + '/planted', 'w')", _made("planted")),
    _writes("by_symbolic_link", "to change a file by a link",
            "os.symlink(secret, 'own'); open('own', 'w').write('changed')"),
    _writes("by_hard_link", "to change a file by another name",
            "os.link(secret, folder + '/inner/own'); open(folder + '/inner/own', 'w').write('changed')"),
    _writes("setuid", "a file that runs as its owner", "os.chmod(secret, 0o4777)", _privileged),
    _writes("library", "a module in the interpreter's library",
            "open(ARGUMENT['library'] + '/planted.py', 'w')", _made("library/planted.py")),
    _writes("of_another_run", "the folder of another run",
            "open(folder + '/inner/planted', 'w').write('planted')", _made("inner/planted")),
    _writes("shared_memory", "a file in shared memory that outlives it",
            "open('/dev/shm/' + ARGUMENT['mark'], 'w')", _in_shared_memory),
    _writes("kernel_settings", "a setting of another process",
            "open(f'/proc/{ARGUMENT[\"victim\"]}/oom_score_adj', 'w').write('777')", _adjusted),
    _writes("limits_of_process", "the limits of another process",
            "import resource; resource.prlimit(ARGUMENT['victim'], resource.RLIMIT_NOFILE, (1234, 4321))",
            _other_limit),
    Attack(name="system_v_memory", tries="memory that outlives it", effect=_kernel_object("shm"),
           program=_SYSTEM_V + "call('shmget', key, 4096, 0o1666)"),
    Attack(name="system_v_queue", tries="a queue that outlives it", effect=_kernel_object("msg"),
           program=_SYSTEM_V + "call('msgget', key, 0o1666)"),
    Attack(name="system_v_semaphores", tries="semaphores that outlive it", effect=_kernel_object("sem"),
           program=_SYSTEM_V + "call('semget', key, 4, 0o1666)"),
    _for_the_next("shadow_module", "to stand in for a module of the next run",
                  "open('colorsys.py', 'w').write('changed = \"hijacked\"')"),
    _for_the_next("sitecustomize", "to be run when the next interpreter starts",
                  "open('sitecustomize.py', 'w').write('import sys; sys.changed = \"hijacked\"')"),
    _for_the_next(
        "usercustomize", "to be run from the home",
        "import site\nplace = os.path.expanduser('~/.local/lib/python%d.%d/site-packages' % "
        "__import__('sys').version_info[:2])\nos.makedirs(place)\n"
        "open(place + '/own.pth', 'w').write('import sys; sys.changed = \"hijacked\"\\n')",
    ),
]  # fmt: skip
