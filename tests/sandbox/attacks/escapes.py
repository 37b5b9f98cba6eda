"""Out of the namespaces, past the filter, into other processes."""

from pathlib import Path

from tests.sandbox.attacks.attack import (
    Attack,
    holds_descriptor,
    holds_socket,
    in_work_folder,
    left_namespace,
    marked,
    told,
)
from tests.sandbox.attacks.scene import Scene

_WAIT = "\nimport time; time.sleep(1)\n"
_CLONE3 = """
mark()
import ctypes, os
what = (ctypes.c_ulonglong * 11)(0x10000000, 0, 0, 0, 17)
if call("clone3", ctypes.byref(what), ctypes.sizeof(what)) == 0:
    import time; time.sleep(1); os._exit(0)
os.wait()
"""
_CLONE = """
mark()
import os
if call("clone", 0x10000000 | 17, 0, 0, 0, 0) == 0:
    import time; time.sleep(1); os._exit(0)
os.wait()
"""
_INT80 = """
mark()
import ctypes, mmap, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(ctypes.c_void_p(0), ctypes.c_size_t(4096), 7, 0x62, -1, ctypes.c_long(0))  # MAP_32BIT
name = page + 2048
ctypes.memmove(name, b"from-int80\\0", 11)
code = b"\\x53\\xb8" + (356).to_bytes(4, "little") + b"\\xbb" + name.to_bytes(4, "little")
code += b"\\x31\\xc9\\xcd\\x80\\x5b\\xc3"
ctypes.memmove(page, code, len(code))
ctypes.CFUNCTYPE(ctypes.c_int)(page)()
time.sleep(1)
"""
_HANDLE = """
import ctypes, os
kind, handle = ARGUMENT["handle"]
handle = bytes.fromhex(handle)
wanted = len(handle).to_bytes(4, "little") + kind.to_bytes(4, "little") + handle
for place in ("/", "/tmp", "/python"):
    try:
        mount = os.open(place, os.O_RDONLY)
        print(os.read(call("open_by_handle_at", mount, wanted, os.O_RDONLY), 100))
    except OSError as error:
        print(error)
"""
_READ_MEMORY = """
import ctypes
space = ctypes.create_string_buffer(ARGUMENT["length"])
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
own, other = Part(ctypes.addressof(space), len(space)), Part(ARGUMENT["address"], len(space))
call("process_vm_readv", ARGUMENT["victim"], ctypes.byref(own), 1, ctypes.byref(other), 1, 0)
print(space.raw)
"""
_WRITE_MEMORY = """
with open(f"/proc/{ARGUMENT['victim']}/mem", "r+b", buffering=0) as memory:
    memory.seek(ARGUMENT["address"])
    memory.write(b"changed")
"""
_MOUNT = (
    """
mark()
import ctypes, os
call("unshare", 0x20000)
call("mount", b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
os.makedirs("there", exist_ok=True)
call("mount", b"of-attack", b"there", b"tmpfs", 0, None)
"""
    + _WAIT
)
_CHROOT = "mark()\nimport os\nos.mkdir('root'); os.chroot('root')" + _WAIT
_PIVOT = (
    """
mark()
import os
call("unshare", 0x20000)
call("mount", b"none", b"/", None, 0x44000, None)
os.makedirs("new/old")
call("mount", b"of-attack", b"new", b"tmpfs", 0, None)
os.mkdir("new/old")
call("pivot_root", b"new", b"new/old")
"""
    + _WAIT
)
_NAMES = """
mark()
import os
libc = __import__("ctypes").CDLL(None)
for name in ("user", "net", "mnt"):
    namespace = os.open(f"/proc/{ARGUMENT['victim']}/ns/{name}", os.O_RDONLY)
    if name == "mnt":
        call("setns", namespace, 0)
print(open(f"/proc/{ARGUMENT['victim']}/root" + ARGUMENT["folder"] + "/secret").read())
"""
_KEY = (
    """
mark()
import ctypes
call("add_key", b"user", ARGUMENT["mark"].encode(), b"x", 1, ctypes.c_long(-4))
"""
    + _WAIT
)
_STATUS = """
import os
for number in range(3, 300):
    try:
        os.write(number, b'{"exit-code": 0, "child-pid": 1}\\n')
    except OSError:
        pass
os._exit(7)
"""
_DESCRIPTORS = """
import os
for number in range(3, 3000):
    try:
        print(os.pread(number, 100, 0))
    except OSError:
        pass
"""
_TERMINAL = """
import fcntl, os, pty, termios
leader, follower = pty.openpty()
os.set_blocking(follower, False)
mode = termios.tcgetattr(follower); mode[3] &= ~termios.ICANON; termios.tcsetattr(follower, termios.TCSANOW, mode)
open(ARGUMENT["folder"] + "/typed", "w").write("")
for letter in b"typed":
    fcntl.ioctl(follower, termios.TIOCSTI, bytes([letter]))
open(ARGUMENT["folder"] + "/typed", "wb").write(os.read(follower, 9))
"""


def _traced(scene: Scene) -> bool:
    return "TracerPid:\t0" not in Path(f"/proc/{scene.victim.pid}/status").read_text()


def _memory_changed(scene: Scene) -> bool:
    with Path(f"/proc/{scene.victim.pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(scene.address)
        return memory.read(7) == b"changed"


def _mounted(scene: Scene) -> bool:
    return any("of-attack" in (process / "mountinfo").read_text() for process in marked(scene))


def _root_moved(scene: Scene) -> bool:
    return any((process / "root").readlink() != Path("/") for process in marked(scene))


def _key_kept(scene: Scene) -> bool:
    return scene.mark in Path("/proc/keys").read_text() or "18790481" in Path("/proc/key-users").read_text()


def _status_forged(scene: Scene) -> bool:
    return b'"child-pid": 1' in scene.seen.get("status", b"")


def _opens(name: str, tries: str, program: str, kind: str, *, root: bool = False) -> Attack:
    return Attack(name=name, tries=tries, program=f"mark()\n{program}{_WAIT}", effect=holds_descriptor(kind), root=root)


def _connects(name: str, tries: str, arguments: str, table: str, *, more: str = "", root: bool = False) -> Attack:
    program = f"mark()\nimport socket\nheld = socket.socket({arguments}){more}{_WAIT}"
    return Attack(name=name, tries=tries, program=program, effect=holds_socket(table), root=root)


def _namespace(name: str, flag: int, kind: str, *, root: bool = True) -> Attack:
    return Attack(
        name=f"unshare_{name}", tries=f"a {name} namespace of its own, to be root in or to hide in",
        program=f"mark()\ncall('unshare', {flag})" + _WAIT, effect=left_namespace(kind), root=root,
    )  # fmt: skip


ATTACKS = [
    _namespace("user", 0x10000000, "user", root=False),
    _namespace("mount", 0x20000, "mnt"),
    _namespace("network", 0x40000000, "net"),
    _namespace("ipc", 0x8000000, "ipc"),
    Attack(
        name="clone_user",
        tries="a nested user namespace by clone",
        program=_CLONE,
        effect=left_namespace("user"),
        x86_64=True,
    ),
    Attack(
        name="clone3_user",
        tries="the same by clone3, whose flags no filter sees",
        program=_CLONE3,
        effect=left_namespace("user"),
    ),
    Attack(name="mount", tries="a file system mounted", program=_MOUNT, effect=_mounted, root=True),
    Attack(name="chroot", tries="another root", program=_CHROOT, effect=_root_moved, root=True),
    Attack(name="pivot_root", tries="another root by pivot_root", program=_PIVOT, effect=_mounted, root=True),
    Attack(
        name="setns", tries="the namespaces and the root of another process", program=_NAMES, effect=told, root=True
    ),
    Attack(
        name="ptrace",
        tries="to hold another process as its debugger",
        program="call('ptrace', 16, ARGUMENT['victim'], 0, 0)" + _WAIT,
        effect=_traced,
    ),
    Attack(name="read_memory", tries="another process' memory", program=_READ_MEMORY, effect=told),
    Attack(
        name="write_memory", tries="to change another process' memory", program=_WRITE_MEMORY, effect=_memory_changed
    ),
    Attack(
        name="root_of_process",
        tries="this machine's files by way of a process that sees them",
        program='print(open(f\'/proc/{ARGUMENT["victim"]}/root{ARGUMENT["folder"]}/secret\').read())',
        effect=told,
    ),
    Attack(
        name="descriptor_of_process",
        tries="the open file of another process",
        program=(
            "held = call('pidfd_open', ARGUMENT['owner'], 0)\n"
            "import os\nfor number in range(3, 300):\n"
            "    try: print(os.pread(call('pidfd_getfd', held, number, 0), 100, 0))\n    except OSError: pass"
        ),
        effect=told,
        root=True,
    ),
    Attack(
        name="file_handle", tries="a file without its path, past all mounts", program=_HANDLE, effect=told, root=True
    ),
    Attack(name="key", tries="a key that the kernel keeps", program=_KEY, effect=_key_kept),
    Attack(
        name="int80",
        tries="calls by the 32-bit door",
        program=_INT80,
        effect=holds_descriptor("from-int80"),
        x86_64=True,
    ),
    Attack(
        name="terminal",
        tries="to type into a terminal (TIOCSTI)",
        program=_TERMINAL,
        root=True,
        effect=lambda scene: (scene.folder / "typed").exists() and (scene.folder / "typed").read_text() == "typed",
    ),
    Attack(name="inherited_files", tries="what its starter had open", program=_DESCRIPTORS, effect=told),
    Attack(
        name="forged_status", tries="to write what the container should say", program=_STATUS, effect=_status_forged
    ),
    Attack(
        name="device_node",
        tries="a device of its own making",
        root=True,
        program="mark()\nimport os, stat\nos.mknod('device', 0o666 | stat.S_IFCHR, os.makedev(1, 5))" + _WAIT,
        effect=in_work_folder(lambda work: (work / "device").is_char_device()),
    ),
    _opens("memfd", "memory without a file name", "import os\nheld = os.memfd_create('of-attack')", "of-attack"),
    _opens("io_uring", "calls that no filter sees", "held = call('io_uring_setup', 1, bytes(120))", "io_uring"),
    _opens(
        "bpf",
        "a map in the kernel",
        "held = call('bpf', 0, bytes([2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1]) + bytes(59), 72)",
        "bpf-map",
        root=True,
    ),
    _opens(
        "userfaultfd", "to hold the kernel in a page fault", "held = call('userfaultfd', 0)", "userfaultfd", root=True
    ),
    _opens("fanotify", "to see what others open", "held = call('fanotify_init', 0, 0)", "fanotify", root=True),
    _opens("inotify", "events that the kernel piles up", "held = call('inotify_init1', 0)", "inotify"),
    _connects("netlink", "to speak to the kernel's network", "16, 3, 0", "netlink", more="; held.bind((0, 0))"),
    _connects("packet", "to see every packet", "17, 3, 768", "packet", root=True),
    _connects("raw", "to send packets of its own making", "2, 3, 1", "raw", root=True),
]
