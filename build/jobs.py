"""Commands that run side by side, the longest first, while more of them are still being found.

    with Jobs() as jobs:
        jobs.start(lambda: jobs.run(["cc", "-c", "a.c"], folder), size=100)
        jobs.wait()

Whoever leaves early, by an exception or an interrupt, leaves nothing running.
"""

import contextlib
import heapq
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

Work = Callable[[], None]


class CompilerFailed(Exception):
    """The C compiler refused generated code: a defect of layerc. Holds `command` and `output`."""

    def __init__(self, command: Sequence[str], output: str) -> None:
        self.command, self.output = list(command), output
        super().__init__(f"the C compiler failed: {shlex.join(command)}\n{output.strip()}")


class Jobs:
    """As many at a time as there are processors."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._begun: list[Future[None]] = []
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int, Work]] = []  # a heap
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __enter__(self) -> "Jobs":
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                # A compiler's driver does not take along what it has started itself: the whole group ends.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
        self._pool.shutdown(cancel_futures=True)

    def start(self, work: Work, size: int = 0) -> None:
        """Do it when a processor is free, and nothing larger waits."""
        with self._lock:
            heapq.heappush(self._waiting, (-size, len(self._begun), work))
        self._begun.append(self._pool.submit(self._largest))

    def _largest(self) -> None:
        with self._lock:
            _, _, work = heapq.heappop(self._waiting)
        work()

    def wait(self) -> None:
        """Until all is done; the first failure is raised as soon as it is known."""
        wait(self._begun, return_when=FIRST_EXCEPTION)
        for future in self._begun:
            if future.done():
                future.result()
        self._begun.clear()

    def run(self, command: Sequence[str], directory: Path) -> None:
        """Run a command; CompilerFailed, with what it says, where it cannot be run or fails."""
        with self._lock:
            if self._stopped:
                return
            process = _process(command, directory)
            self._running.add(process)
        said, _ = process.communicate()
        with self._lock:
            self._running.discard(process)
        if process.returncode:
            raise CompilerFailed(command, said or f"exit status {process.returncode}")


def _process(command: Sequence[str], directory: Path) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        )
    except OSError as error:
        raise CompilerFailed(command, str(error)) from None
