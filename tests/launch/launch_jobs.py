"""Jobs for the tests: well-behaved ones and nasty ones. Each nasty process writes its pid into a fifo when it is up."""

import os
import signal
import subprocess
import sys
import threading
import time


def tell(fifo: str) -> None:
    with open(fifo, "a") as file:
        file.write(f"{os.getpid()}\n")


def wait() -> None:
    threading.Event().wait()


def up(fifo: str) -> None:
    tell(fifo)
    wait()


def ignore_sigterm(fifo: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    up(fifo)


def daemonise(fifo: str, stay: bool = True) -> None:
    """Fork twice into a session of its own, close everything, ignore every polite signal."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            os.closerange(0, 1024)
            ignore_sigterm(fifo)
        os._exit(0)
    os.wait()
    if stay:
        up(fifo)


def spawn(fifo: str) -> None:
    """An executed grandchild in a session of its own, without our environment."""
    code = f"import os; open({fifo!r}, 'a').write(f'{{os.getpid()}}\\n'); os.execvp('sleep', ['sleep', '1000'])"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True, env={"PATH": os.environ["PATH"]})
    up(fifo)


def kill_own(number: int) -> None:
    os.kill(os.getpid(), number)
    wait()


def stop_self() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def close_stdout_then(code: int) -> None:
    os.close(1)
    sys.stderr.write("still here\n")
    raise SystemExit(code)


def flood(lines: int) -> None:
    for number in range(lines):
        sys.stdout.write(f"line {number}\n")


def report_world(path: str) -> None:
    import json

    torch = sys.modules.get("torch")
    world = {
        "threads": {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")},
        "extra": os.environ.get("EXTRA"),
        "mark": os.environ.get("WHOLESTACK_JOB"),
        "torch_threads": torch.get_num_threads() if torch else None,
        "is_leader": os.getsid(0) == os.getpid(),
        "files": [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3, 200) if os.path.lexists(f"/proc/self/fd/{fd}")],
    }
    with open(path, "w") as file:
        json.dump(world, file)


def multiply(size: int, path: str) -> None:
    """A torch op with several threads, in a fork of a process that has imported torch."""
    import torch

    product = torch.ones(size, size) @ torch.ones(size, size)
    with open(path, "w") as file:
        file.write(f"{int(product.sum())} {torch.get_num_threads()}")


def fork_holding(size_bytes: int, children: int, seconds: float) -> None:
    """Children that share their parent's memory: resident sizes add up to far more than there is."""
    pages = [bytearray(b"x" * (1 << 20)) for _ in range(size_bytes >> 20)]
    pids = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            time.sleep(seconds)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    del pages


def hog_in_child(size_bytes: int) -> None:
    if os.fork() == 0:
        pages = [bytearray(b"x" * (1 << 20)) for _ in range(size_bytes >> 20)]
        wait()
        del pages
    wait()


def burn(seconds: float) -> None:
    """CPU time in a child that is waited for."""
    code = f"import time\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-c", code], check=True)


def thread_then_file(path: str) -> None:
    """A thread and an exit function that outlive the entry, as Python allows."""
    import atexit

    def late() -> None:
        threading.Event().wait(0.1)
        with open(path, "a") as file:
            file.write("thread ")

    def last() -> None:
        with open(path, "a") as file:
            file.write("atexit")

    atexit.register(last)
    threading.Thread(target=late).start()
