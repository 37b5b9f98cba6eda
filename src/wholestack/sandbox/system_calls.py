"""The system call filter: a classic BPF program that the kernel runs before every call of the untrusted program.

Namespaces already take the objects away; the filter takes away the parts of the kernel that untrusted Python has no
use for: what namespaces do not cover (vsock, kernel keys), what makes new namespaces, and what holds memory of the
kernel that counts as no process's (semaphores, watches, locks, buffers, memory that is mapped by nobody). Everything
else is allowed, since the list of what Python needs differs between versions; calls newer than the list are not there.

Sources: seccomp(2), linux/filter.h, linux/audit.h; numbers from arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h. The aarch64 column is compared with the headers, but has not been run.
"""

import errno
import struct
from dataclasses import dataclass

from wholestack.errors import SandboxError

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER_EQUAL = 0x35
_JUMP_ANY_BIT = 0x45
_AND = 0x54
_RETURN = 0x06

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000

# Offsets in struct seccomp_data. Arguments are 64 bits wide; what is looked at is a 32-bit int of the callee, which
# the kernel takes from the low half whatever stands in the high one.
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16

NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
SOCKET_FAMILIES = (1,)
"""AF_UNIX. vsock would reach the host; AF_INET reaches nobody, but each of its sockets may hold megabytes."""
SOCKET_OPTIONS = (7, 26, 50)
"""SO_SNDBUF (what a socket may hold), SO_ATTACH_FILTER and SO_ATTACH_BPF (programs that the kernel keeps)."""
FILE_REQUESTS = (6, 7, 37, 38, 1024, 1026, 1031)
"""F_SETLK, F_SETLKW and their OFD twins (any number of byte ranges a file), F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ."""
MEMORY_ADVICE = (21,)
"""MADV_PAGEOUT moves memory to the machine's swap, where it counts as no process's."""
SHARED_ANONYMOUS, _MAPPING_KIND, HUGE_PAGES = 0x21, 0x2F, 0x40000
"""A shared mapping of no file keeps its pages when a process gives them up (MADV_DONTNEED), and then they count as
nobody's. Huge pages come from a pool of the machine that counts as no process's either."""
TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put characters into somebody's terminal."""

# name: (x86_64, aarch64); None where the architecture lacks it.
DENIED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_create_ruleset": (444, 444),
    "lookup_dcookie": (212, 18),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
LOOKED_AT: dict[str, tuple[int, int]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "socketpair": (53, 199),
}
"""Calls that depend on their arguments. clone3 keeps its flags in memory, where a filter cannot look: it is answered
as "not in this kernel", upon which the C library takes clone."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Machine name: column and AUDIT_ARCH value."""
FIRST_UNKNOWN = 463
"""Calls from here on are younger than Linux 6.12; with x86_64's x32 variants, which would pass by the list too."""


@dataclass(slots=True)
class _Program:
    """Instructions, each 8 bytes: code, jump if true, jump if false, constant."""

    code: bytes = b""

    def add(self, code: int, constant: int, *, true: int = 0, false: int = 0) -> None:
        self.code += struct.pack("=HBBI", code, true, false, constant)

    def answer_if(self, number: int, answer: int) -> None:
        """With a call's number in the register: give this answer if it is that call."""
        self.add(_JUMP_EQUAL, number, false=1)
        self.add(_RETURN, answer)


def filter_program(machine: str) -> bytes:
    """The filter for this kind of processor, as bubblewrap's ``--seccomp`` reads it.

    Args:
        machine: As ``os.uname().machine`` says it.

    Raises:
        SandboxError: no table for this processor.
    """
    if machine not in _ARCHITECTURES:
        raise SandboxError(f"no system call filter for processor {machine!r}: known are {', '.join(_ARCHITECTURES)}")
    column, architecture = _ARCHITECTURES[machine]
    program = _Program()
    program.add(_LOAD_WORD, _ARCHITECTURE)
    program.add(_JUMP_EQUAL, architecture, true=1)
    program.add(_RETURN, _KILL_PROCESS)
    program.add(_LOAD_WORD, _NUMBER)
    program.add(_JUMP_GREATER_EQUAL, FIRST_UNKNOWN, false=1)
    program.add(_RETURN, _ERRNO | errno.ENOSYS)
    for numbers in DENIED.values():
        number = numbers[column]
        if number is not None:
            program.answer_if(number, _ERRNO | errno.EPERM)
    program.answer_if(LOOKED_AT["clone3"][column], _ERRNO | errno.ENOSYS)
    _refuse_argument(program, LOOKED_AT["clone"][column], 0, any_bit=NEW_NAMESPACES)
    _refuse_argument(program, LOOKED_AT["ioctl"][column], 1, values=TERMINAL_REQUESTS)
    _refuse_argument(program, LOOKED_AT["fcntl"][column], 1, values=FILE_REQUESTS)
    _refuse_argument(program, LOOKED_AT["madvise"][column], 2, values=MEMORY_ADVICE)
    _refuse_argument(program, LOOKED_AT["setsockopt"][column], 2, values=SOCKET_OPTIONS)
    _refuse_mappings(program, LOOKED_AT["mmap"][column])
    for name in ("socket", "socketpair"):
        _allow_argument(program, LOOKED_AT[name][column], 0, SOCKET_FAMILIES, _ERRNO | errno.EAFNOSUPPORT)
    program.add(_RETURN, _ALLOW)
    return program.code


def _refuse_argument(
    program: _Program, number: int, argument: int, *, any_bit: int = 0, values: tuple[int, ...] = ()
) -> None:
    """EPERM if the call's argument has one of the bits or is one of the values, else allow."""
    tests = [(_JUMP_ANY_BIT, any_bit)] if any_bit else [(_JUMP_EQUAL, value) for value in values]
    program.add(_JUMP_EQUAL, number, false=3 + len(tests))
    program.add(_LOAD_WORD, _ARGUMENT + 8 * argument)
    for index, (code, constant) in enumerate(tests):
        program.add(code, constant, true=len(tests) - index)
    program.add(_RETURN, _ALLOW)
    program.add(_RETURN, _ERRNO | errno.EPERM)


def _refuse_mappings(program: _Program, number: int) -> None:
    """EPERM for a mapping that is shared and of no file, or of huge pages."""
    program.add(_JUMP_EQUAL, number, false=6)
    program.add(_LOAD_WORD, _ARGUMENT + 8 * 3)
    program.add(_JUMP_ANY_BIT, HUGE_PAGES, true=3)
    program.add(_AND, _MAPPING_KIND)
    program.add(_JUMP_EQUAL, SHARED_ANONYMOUS, true=1)
    program.add(_RETURN, _ALLOW)
    program.add(_RETURN, _ERRNO | errno.EPERM)


def _allow_argument(program: _Program, number: int, argument: int, values: tuple[int, ...], otherwise: int) -> None:
    """Allow the call only with one of these values."""
    program.add(_JUMP_EQUAL, number, false=3 + len(values))
    program.add(_LOAD_WORD, _ARGUMENT + 8 * argument)
    for index, value in enumerate(values):
        program.add(_JUMP_EQUAL, value, true=len(values) - index)
    program.add(_RETURN, otherwise)
    program.add(_RETURN, _ALLOW)
