"""The first code that runs inside: it caps itself, unpacks what it was sent, and becomes the program.

Nothing imports it: its text is given to the inner interpreter with ``-c``. Standard library only, and as few modules
as possible, since every run pays for them.

The command line holds the numbers of the pipe that it reads and of the result channel, and how many processes count as
the user's that are not the program's. The pipe holds a line of integers, then the bytes that they announce: name and
content of every file, the program, the argument. On the result channel a first byte asks for what is to come, a second
says that the sandbox stands: what is on standard error without it are complaints of the sandbox.
"""

import posix
import resource
import sys


def start() -> tuple[bytes, dict[str, object]]:
    """Cap, unpack; source text of the program and the names that it finds."""
    letter, channel, others = map(int, sys.argv[1:])
    most_open = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    posix.write(channel, b"?")
    with open(letter, "rb") as sent:
        memory, processes, file_bytes, open_files, cpu_s, *sizes = map(int, sent.readline().split())
        *files, source, argument = map(sent.read, sizes)
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, processes + others),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 64),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_NICE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        cap = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (cap, cap))
    if channel != 3:
        posix.dup2(channel, 3)
    posix.set_inheritable(3, False)
    posix.closerange(4, most_open)
    for name, content in zip([*files[::2], b"main.py"], [*files[1::2], source], strict=True):
        make_folders(name)
        with open(name, "xb") as file:
            file.write(content)
    for variable in list(posix.environ):
        posix.unsetenv(variable)
        del posix.environ[variable]
    result = open(3, "w", encoding="utf-8")  # noqa: SIM115  the program's, to its end
    names: dict[str, object] = {"__name__": "__main__", "__file__": "main.py", "RESULT": result}
    if argument:
        import json

        names["ARGUMENT"] = json.loads(argument)
    sys.argv = ["main.py"]
    sys.path.insert(0, posix.getcwd())
    posix.write(3, b"!")
    return source, names


def make_folders(name: bytes) -> None:
    """The folders above a file, of which some may be there."""
    above = b""
    for part in name.split(b"/")[:-1]:
        above += part + b"/"
        try:  # noqa: SIM105  contextlib would cost every run its import
            posix.mkdir(above)
        except FileExistsError:
            pass


def run() -> None:
    """Be the program: its names replace ours in ``__main__``."""
    source, names = start()
    leave, place = sys.exit, globals()
    place.clear()
    place.update(names)
    try:
        exec(compile(source, "main.py", "exec"), place)
    except Exception as error:  # noqa: BLE001  whatever the program raises
        import traceback

        frames = error.__traceback__ and error.__traceback__.tb_next  # ours is not the user's concern
        traceback.print_exception(error.with_traceback(frames))
        leave(1)


run()
