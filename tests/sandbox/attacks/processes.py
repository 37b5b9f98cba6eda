"""To stay, to be many, to hurt other processes."""

import os
import signal
from pathlib import Path

from tests.sandbox.attacks.attack import Attack, marked, more_processes_than, stays
from tests.sandbox.attacks.scene import Scene


def _state(scene: Scene) -> str:
    return Path(f"/proc/{scene.victim.pid}/stat").read_text().rpartition(")")[2].split()[0]


def _stopped(scene: Scene) -> bool:
    stopped = _state(scene) == "T"
    if stopped:
        os.kill(scene.victim.pid, signal.SIGCONT)
    return stopped


def _slowed(scene: Scene) -> bool:
    return os.getpriority(os.PRIO_PROCESS, scene.victim.pid) != os.getpriority(os.PRIO_PROCESS, 0)


def _many_threads(scene: Scene) -> bool:
    return any(len(list((process / "task").iterdir())) > 20 for process in marked(scene))


def _stays(name: str, tries: str, program: str) -> Attack:
    return Attack(
        name=name, tries=tries, effect=stays, program=f"mark()\nimport os, signal, sys, time\n{program}"
    )  # fmt: skip


def _hurts(name: str, tries: str, program: str, effect) -> Attack:
    return Attack(name=name, tries=tries, program=f"import os, signal\nvictim = ARGUMENT['victim']\n{program}",
                  effect=effect)  # fmt: skip


_LIVE = "time.sleep(30)"

ATTACKS = [
    _stays("daemon", "a daemon of two forks and a session of its own",
           f"if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        {_LIVE}\n    os._exit(0)\nos.wait()"),
    _stays("deaf_daemon", "a child that ignores every signal",
           "if os.fork() == 0:\n    for number in {*range(1, 65)} - {9, 19, 32, 33}:\n"
           f"        signal.signal(number, signal.SIG_IGN)\n    {_LIVE}"),
    _stays("silent_daemon", "a child that holds no pipe",
           f"if os.fork() == 0:\n    os.closerange(0, 1000)\n    os.setpgid(0, 0)\n    {_LIVE}"),
    _stays("holds_the_pipe", "a child that keeps the output open",
           f"if os.fork() == 0:\n    {_LIVE}\nprint('over', flush=True)\nos._exit(0)"),
    _stays("at_exit", "work that starts when the program ends",
           f"import atexit\n@atexit.register\ndef go():\n    if os.fork() == 0:\n        {_LIVE}"),
    _stays("finalizer", "work in a __del__ at the end",
           "class Late:\n    def __del__(self, fork=os.fork, sleep=time.sleep):\n        if fork() == 0:\n"
           "            sleep(30)\nlate = Late()"),
    _stays("timer", "work in an alarm's handler",
           f"def go(*_):\n    if os.fork() == 0:\n        {_LIVE}\nsignal.signal(signal.SIGALRM, go)\n"
           "signal.setitimer(signal.ITIMER_REAL, 0.1)\ntime.sleep(0.3)"),
    _stays("deaf", "to ignore that it shall end", f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{_LIVE}"),
    _stays("at_the_signal", "to go on in the handler of its end",
           f"signal.signal(signal.SIGTERM, lambda *_: {_LIVE})\n{_LIVE}"),
    _stays("stops_itself", "to stand still, and hear of nothing", "os.kill(os.getpid(), signal.SIGSTOP)"),
    _stays("blocks_signals", "to block them all",
           f"signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n{_LIVE}"),
    _stays("closes_everything", "to seem over, with all pipes closed, and go on",
           f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.closerange(0, 1000)\n{_LIVE}"),
    _stays("in_a_thread", "a thread that goes on when the program has ended",
           "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nimport threading\n"
           "threading.Thread(target=time.sleep, args=(30,)).start()"),
    _stays("deaf_parent", "a chain of processes, each new, none for long",
           "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nend = time.time() + 10\nwhile time.time() < end:\n"
           "    if os.fork():\n        os._exit(0)\n    time.sleep(0.5)"),
    Attack(
        name="forks", tries="a hundred processes", effect=more_processes_than(40),
        program="mark()\nimport os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        time.sleep(2)\n"
                "        os._exit(0)\ntime.sleep(2)",
    ),
    Attack(
        name="doubling_forks", tries="twice as many each time", effect=more_processes_than(40),
        program="mark()\nimport os, time\nfor _ in range(7):\n    try: os.fork()\n    except OSError: pass\n"
                "time.sleep(2)",
    ),
    Attack(
        name="threads", tries="a hundred threads", effect=_many_threads,
        program="mark()\nimport threading, time\nfor _ in range(100):\n"
                "    threading.Thread(target=time.sleep, args=(2,), daemon=True).start()\ntime.sleep(2)",
    ),
    _hurts("kill", "to end another process", "os.kill(victim, signal.SIGKILL)", lambda scene: _state(scene) in "ZX"),
    _hurts("kill_group", "to end a group of processes", "os.killpg(victim, signal.SIGKILL)",
           lambda scene: _state(scene) in "ZX"),
    _hurts("stop", "to halt another process", "os.kill(victim, signal.SIGSTOP)", _stopped),
    _hurts("handle", "to end a process by its handle",
           "signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL)", lambda scene: _state(scene) in "ZX"),
    _hurts("slow", "to take another process' turn", "os.setpriority(os.PRIO_PROCESS, victim, 19)", _slowed),
]  # fmt: skip
