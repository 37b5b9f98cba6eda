"""The filter's numbers against the kernel's headers, and its program against an interpreter of BPF."""

import errno
import platform
import re
import struct
from pathlib import Path

import pytest

from wholestack.errors import SandboxError
from wholestack.sandbox.system_calls import (
    DENIED,
    FILE_REQUESTS,
    FIRST_UNKNOWN,
    LOOKED_AT,
    MEMORY_ADVICE,
    NEW_NAMESPACES,
    SOCKET_OPTIONS,
    filter_program,
)

ALLOW, KILL = 0x7FFF0000, 0x80000000
HEADERS = {
    0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    1: Path("/usr/include/asm-generic/unistd.h"),
}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def answer(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the kernel would say: an interpreter of the few instructions that classic BPF has here."""
    seen = struct.pack(
        "=IIQ6Q", number, architecture or ARCHITECTURE[machine], 0, *arguments, *[0] * (6 - len(arguments))
    )
    program = [struct.unpack("=HBBI", chunk) for chunk in chunks(filter_program(machine))]
    place, register = 0, 0
    while True:
        code, true, false, constant = program[place]
        place += 1
        if code == 0x06:
            return constant
        if code == 0x20:
            register = struct.unpack_from("=I", seen, constant)[0]
            continue
        if code == 0x54:
            register &= constant
            continue
        holds = {0x15: register == constant, 0x35: register >= constant, 0x45: bool(register & constant)}[code]
        place += true if holds else false


def chunks(code: bytes) -> list[bytes]:
    return [code[start : start + 8] for start in range(0, len(code), 8)]


@pytest.mark.parametrize(("column", "machine"), [(0, "x86_64"), (1, "aarch64")])
def test_every_number_is_the_kernels(column, machine):
    if not HEADERS[column].exists():
        pytest.skip(f"no {HEADERS[column]} on this machine")
    header = HEADERS[column].read_text()
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header)}
    for name, numbers in {**DENIED, **LOOKED_AT}.items():
        if name in known or numbers[column] is not None:
            assert known.get(name, numbers[column]) == numbers[column], name


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_denied_calls_are_refused_and_all_others_allowed(machine):
    column = ["x86_64", "aarch64"].index(machine)
    denied = {numbers[column] for numbers in DENIED.values()} - {None}
    special = {numbers[column] for numbers in LOOKED_AT.values()}
    for number in range(FIRST_UNKNOWN):
        if number not in special:
            assert answer(machine, number) == (0x50000 | errno.EPERM if number in denied else ALLOW)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_that_depend_on_their_arguments(machine):
    number = {name: numbers[["x86_64", "aarch64"].index(machine)] for name, numbers in LOOKED_AT.items()}
    refused = 0x50000 | errno.EPERM
    threads = 0x3D0F00
    assert answer(machine, number["clone"], threads) == ALLOW
    assert answer(machine, number["clone"], 17) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert NEW_NAMESPACES & bit
        assert answer(machine, number["clone"], 17 | bit) == refused
        assert answer(machine, number["clone"], 1 << 40 | 17 | bit) == refused
    assert answer(machine, number["clone3"]) == 0x50000 | errno.ENOSYS
    assert answer(machine, number["ioctl"], 0, 0x5401) == ALLOW
    for request in (0x5412, 0x541C, 1 << 32 | 0x5412):
        assert answer(machine, number["ioctl"], 0, request) == refused
    for call in ("socket", "socketpair"):
        for family in range(50):
            assert answer(machine, number[call], family) == (ALLOW if family == 1 else 0x50000 | errno.EAFNOSUPPORT)
    for call, place, values in (
        ("fcntl", 1, FILE_REQUESTS),
        ("madvise", 2, MEMORY_ADVICE),
        ("setsockopt", 2, SOCKET_OPTIONS),
    ):
        for value in {*range(60), *values, *(each + 1 for each in values)}:
            expected = refused if value in values else ALLOW
            assert answer(machine, number[call], *[0] * place, value) == expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_mappings_that_count_as_nobodys_are_refused(machine):
    number = LOOKED_AT["mmap"][["x86_64", "aarch64"].index(machine)]
    shared, private, anonymous, huge, no_reserve = 1, 2, 0x20, 0x40000, 0x4000
    for flags, expected in (
        (private | anonymous, ALLOW),
        (private, ALLOW),
        (shared, ALLOW),
        (shared | anonymous, 0x50000 | errno.EPERM),
        (shared | anonymous | no_reserve, 0x50000 | errno.EPERM),
        (private | anonymous | huge, 0x50000 | errno.EPERM),
    ):
        assert answer(machine, number, 0, 4096, 3, flags) == expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_younger_than_the_list_are_not_there(machine):
    assert {answer(machine, number) for number in range(FIRST_UNKNOWN, 600)} == {0x50000 | errno.ENOSYS}


def test_calls_of_another_architecture_end_the_process_and_x32_is_not_there():
    assert answer("x86_64", 1, architecture=0x40000003) == KILL
    assert answer("x86_64", 0x40000000 | 101) == 0x50000 | errno.ENOSYS
    assert answer("x86_64", 0xFFFFFFFF) == 0x50000 | errno.ENOSYS


def test_an_unknown_processor_is_refused_by_name():
    with pytest.raises(SandboxError, match="riscv64"):
        filter_program("riscv64")


def test_this_processor_is_known():
    assert filter_program(platform.machine())
