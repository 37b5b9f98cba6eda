"""A process that owns an engine and is there to be killed: ``launch_owner.py FOLDER TOKEN FIFO FUNCTION...``.

It starts one job a function, polls for ever, and on Ctrl-C closes the engine and prints the last states.
"""

import os
import signal
import sys
from pathlib import Path

from wholestack.launch import Job
from wholestack.launch.local import LocalEngine
from wholestack.record import to_json


def main(folder: Path, token: str, fifo: str, functions: list[str]) -> None:
    with LocalEngine(folder, token=token) as engine:
        if os.fork() == 0:
            # A copy of the owner (multiprocessing makes such) holds the engine's socket open: its end cannot count.
            sys.stdin.read()
            os._exit(0)
        try:
            for function in functions:
                entry = f"launch_jobs:{function}"
                engine.start(Job(name=function, entry=entry, arguments={"fifo": fifo}, folder=folder / function))
            while True:
                engine.poll(10.0)
        except KeyboardInterrupt:
            engine.close()
            for state in engine.poll(0.0):
                sys.stdout.write(to_json(state).decode() + "\n")


if __name__ == "__main__":
    # Whoever starts the tests in the background has them ignore SIGINT, and a child inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
