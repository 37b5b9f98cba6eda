"""More than is allowed: memory seen and unseen, files, output. All are small outside, the caps inside are smaller."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.sandbox.attacks.attack import LIMITS, Attack, in_work_folder, links, marked
from tests.sandbox.attacks.scene import Scene, shared_memory
from wholestack.processes import proportional_bytes

_MB = 1 << 20
_WAIT = "\nimport time; time.sleep(1)\n"
_PACED = "    if number % 50 == 0: __import__('time').sleep(0.02)"
"""Names are counted twenty times a second: what is faster than that is bounded by the speed of the machine."""
_FOUR = "for _ in range(3):\n    if os.fork() == 0: break\n"
"""Each alone stays below the caps of one process."""
_GIVEN_UP = (
    "for place in range(0, 50 << 20, 1 << 20):\n    held[place:place + (1 << 20)] = b'1' * (1 << 20)\n"
    "    held.madvise(mmap.MADV_DONTNEED, place, 1 << 20)"
)


def _memory(scene: Scene) -> bool:
    return sum(proportional_bytes(int(process.name)) for process in marked(scene)) > 300 * _MB


def _shared_memory(scene: Scene) -> bool:
    return shared_memory() - scene.shared_before > 100 * _MB


def _output(scene: Scene) -> bool:
    return max(len(scene.output), len(scene.result)) > 10 * LIMITS.output_bytes


def _queued(scene: Scene) -> bool:
    """The bytes that the kernel took are in nobody's account: the program's word is all there is."""
    words = scene.output.split()
    return bool(words) and words[-1].isdigit() and int(words[-1]) > 50 * _MB


def _wide_pipe(scene: Scene) -> bool:
    import fcntl

    for process in marked(scene):
        for number in (process / "fd").iterdir():
            if str(number.readlink()).startswith("pipe:"):
                pipe = os.open(number, os.O_RDONLY | os.O_NONBLOCK)
                size = fcntl.fcntl(pipe, 1032)  # F_GETPIPE_SZ
                os.close(pipe)
                if size > 1 << 16:
                    return True
    return False


def _locks(scene: Scene) -> bool:
    pids = {process.name for process in marked(scene)}
    return sum(line.split()[4] in pids for line in Path("/proc/locks").read_text().splitlines()) > 1000


def _many_descriptors(scene: Scene) -> bool:
    return any(len(links(process)) > 500 for process in marked(scene))


def _uses(name: str, tries: str, program: str, effect: Callable[[Scene], bool]) -> Attack:
    return Attack(name=name, tries=tries, program=f"mark()\nimport mmap, os\n{program}{_WAIT}", effect=effect)


def _entries(work: Path) -> bool:
    return len(os.listdir(work)) > 2000


def _bytes(work: Path) -> bool:
    return sum((work / name).stat().st_blocks * 512 for name in os.listdir(work)) > 12 * _MB


def _one_file(work: Path) -> bool:
    return (work / "f").stat().st_size > 12 * _MB


def _deep(work: Path) -> bool:
    """Long paths are walked by descriptors."""
    depth, place = 0, os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while depth < 300:
            above, place = place, os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=place)
            os.close(above)
            depth += 1
    except FileNotFoundError:
        return False
    finally:
        os.close(place)
    return True


ATTACKS = [
    _uses("memory", "much memory", "held = b'1' * (400 << 20)", _memory),
    _uses("memory_of_many", "much memory, a little in each process",
          "for _ in range(7):\n    if os.fork() == 0: break\nheld = b'1' * (60 << 20)", _memory),
    _uses("memory_unmapped", "shared memory that no process is seen to hold",
          _FOUR + "held = mmap.mmap(-1, 50 << 20)\n" + _GIVEN_UP, _shared_memory),
    _uses("memory_of_zero", "the same by a mapping of /dev/zero",
          _FOUR + "held = mmap.mmap(os.open('/dev/zero', os.O_RDWR), 50 << 20)\n" + _GIVEN_UP, _shared_memory),
    _uses("memory_without_name", "files in memory without a name",
          _FOUR + "held = [os.memfd_create('held') for _ in range(20)]\n"
          "for each in held: os.write(each, bytes(3 << 20))", _shared_memory),
    _uses("memory_as_file", "files in shared memory, removed and held",
          _FOUR + "held = []\nfor number in range(20):\n"
          "    held.append(open(f'/dev/shm/{os.getpid()}-{number}-' + ARGUMENT['mark'], 'wb'))\n"
          "    os.unlink(held[-1].name); held[-1].write(bytes(3 << 20))", _shared_memory),
    _uses("memory_system_v", "System V memory that nobody is seen to hold",
          _FOUR + "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\n"
          "held = call('shmget', 0, 50 << 20, 0o1600)\nplace = ctypes.c_void_p(libc.shmat(held, None, 0))\n"
          "libc.shmctl(held, 0, None)\nfor _ in range(50):\n    ctypes.memset(place, 1, 1 << 20)\n"
          "    libc.madvise(place, 1 << 20, 4)\n    place = ctypes.c_void_p(place.value + (1 << 20))",
          _shared_memory),
    _uses("socket_buffers", "bytes that wait in sockets",
          "import socket\nheld, total = [], 0\ntry:\n    for _ in range(4):\n"
          "        for each in socket.socketpair():\n            held.append(each)\n"
          "            each.setblocking(False)\n            for option in (7, 32):\n"
          "                try: each.setsockopt(1, option, 8 << 20)\n                except OSError: pass\n"
          "        for each in held[-2:]:\n            try:\n"
          "                while True: total += each.send(bytes(1 << 17))\n"
          "            except BlockingIOError: pass\nexcept OSError: pass\nprint(total, flush=True)",
          _queued),
    _uses("pipe_buffers", "bytes that wait in pipes",
          "import fcntl\nheld = os.pipe()\nfcntl.fcntl(held[1], fcntl.F_SETPIPE_SZ, 1 << 20)", _wide_pipe),
    _uses("locks", "locks on more byte ranges than anybody counts",
          "import fcntl\nheld = open('f', 'w+')\nfor place in range(2000):\n"
          "    fcntl.lockf(held, fcntl.LOCK_EX, 1, 2 * place)", _locks),
    _uses("descriptors", "very many open files",
          "held = []\nimport resource\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
          "resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 900), hard))\n"
          "for _ in range(600): held.append(os.open('/dev/null', 0))", _many_descriptors),
    _uses("large_file", "a large file", "held = open('f', 'wb')\nfor _ in range(16): held.write(bytes(1 << 20))",
          in_work_folder(_one_file)),
    _uses("many_bytes", "many files, large together",
          "for number in range(8): open(str(number), 'wb').write(bytes(2 << 20))", in_work_folder(_bytes)),
    _uses("sparse_file", "a file without end, of nothing", "held = open('f', 'wb'); held.truncate(1 << 40)",
          in_work_folder(_one_file)),
    _uses("many_files", "files without number",
          "for number in range(2500):\n    open(str(number), 'w').close()\n" + _PACED,
          in_work_folder(_entries)),
    _uses("many_links", "names without number",
          "open('f', 'w').close()\nfor number in range(2500):\n    os.link('f', str(number))\n" + _PACED,
          in_work_folder(_entries)),
    _uses("deep_folders", "a path without end",
          "import time\ntop = os.getcwd()\nfor number in range(400):\n"
          "    os.mkdir('d'); os.chdir('d')\n    if number % 10 == 0: time.sleep(0.02)\nos.chdir(top)",
          in_work_folder(_deep)),
    *(
        Attack(name=f"flood_{name}", tries=f"output without end to {name}", effect=_output,
               program=f"import sys\nfor _ in range(400): {stream}.write('x' * 10_000)")
        for name, stream in (("stdout", "sys.stdout"), ("stderr", "sys.stderr"), ("result", "RESULT"))
    ),
    Attack(
        name="flood_by_children", tries="output without end from several at once", effect=_output,
        program="import os\nfor _ in range(3): os.fork()\nfor _ in range(100): os.write(1, b'x' * 10_000)",
    ),
]  # fmt: skip
