"""One process a peer: its thread pools, memory and crashes stay its own, and a time limit can be kept."""

import gc
import multiprocessing
import os
import signal
import time
import traceback
from dataclasses import dataclass

import numpy as np
from case import Bound
from cases import CASES
from peers import PEERS, Absent, Peer
from quiet import Disturbance, Foreign, pace
from settings import pin_threads

SETTLE = 0.002  # seconds of untimed calls at the head of a turn
BATCH = 50e-6  # a timed sample is as many calls as take this long: the clock's own cost is below 1 %


class PeerFailed(Exception):
    """The peer raised, crashed or took longer than the limit; the text says which."""


class Server:
    """What runs in the process: answers the commands of Worker below."""

    def __init__(self, peer: Peer):
        self.peer, self.case, self.bound, self.known = peer, None, {}, None

    def facts(self) -> dict:
        """Starts the peer at the first call."""
        if self.known is None:
            self.known = self.peer.start()
        return self.known

    def ready(self, case: str) -> None:
        """What a case needs beforehand and no first call counts: layerc builds its file once."""
        self.peer.ready(CASES[case])

    def prepare(self, case: str, variant: str) -> tuple[float, list, list]:
        """Bind a twin and call it once: (seconds of binding and first call, outputs, gradients) as NumPy."""
        if case != self.case:
            self.peer.clear()
            self.case, self.bound = case, {}
        if not self.bound:
            self.dy = self.peer.native(CASES[case].cotangents())
        begin = time.perf_counter()
        bound = self.peer.bind(CASES[case], variant)
        y, gradients = bound.gradient(*self.dy)
        seconds = time.perf_counter() - begin
        self.bound[variant] = bound
        return seconds, *([self.peer.numpy(a) for a in arrays] for arrays in (y, gradients))

    def kept(self, variant: str) -> dict[str, int] | None:
        """Bytes that a prepared twin's forward leaves for its backward; None where that cannot be seen."""
        kept = self.bound[variant].kept
        return None if kept is None else kept()

    def exact(self, case: str) -> list:
        """The reference's outputs and gradients in float64."""
        y, gradients = self.peer.bind_exact(CASES[case]).gradient(
            *(dy.astype(np.float64) for dy in CASES[case].cotangents())
        )
        return [None if a is None else np.asarray(a) for a in (*y, *gradients)]

    def keep(self, variant: str) -> None:
        """Let the other twins go; the forward alone gets its first call, which no figure counts."""
        self.bound[variant].forward()
        self.bound = {variant: self.bound[variant]}

    def turn(self, variant: str, what: str, seconds: float, limit: int) -> tuple[list[float], Disturbance]:
        """(seconds a call, 3 to `limit` samples in about the given time; what disturbed them)."""
        before = pace()
        call = _call(self.bound[variant], what, self.dy)
        once = _settle(call)
        batch = max(1, round(BATCH / once))
        count = int(min(max(3, seconds / (once * batch)), limit))
        samples, foreign = np.empty(count), Foreign()
        gc.disable()
        for i in range(count):
            samples[i] = _timed(call, batch)
        gc.enable()
        share = foreign.share()
        return samples.tolist(), Disturbance(max(before, pace()), share)


def _call(bound: Bound, what: str, dy: list):
    if what == "forward":
        return bound.forward
    return lambda: bound.gradient(*dy)


def _settle(call) -> float:
    """Calls until caches and pools are the peer's again; returns the fastest call seen."""
    end, once = time.perf_counter() + SETTLE, float("inf")
    while True:
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        once = min(once, now - begin)
        if now > end:
            return once


def _timed(call, batch: int) -> float:
    """Seconds a call. The last result is let go outside the clock, the others inside, as a loop would."""
    if batch == 1:
        begin = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - begin
        del result
        return seconds
    begin = time.perf_counter()
    for _ in range(batch):
        call()
    return (time.perf_counter() - begin) / batch


def serve(pipe, peer_name: str) -> None:
    os.setsid()  # so that what the peer starts (compilers) ends with it
    pin_threads()
    server = Server(PEERS[peer_name]())
    while True:
        try:
            command, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            pipe.send(("done", getattr(server, command)(*arguments)))
        except Absent as missing:
            pipe.send(("absent", str(missing)))
        except Exception:  # a peer's failure is a line in the report, whatever it is
            pipe.send(("failed", traceback.format_exc()))


@dataclass
class Worker:
    """The parent's end. Started at the first command, and again after a crash or a kill."""

    peer: str
    process: multiprocessing.Process | None = None
    pipe: object = None

    def ask(self, command: str, *arguments, limit: float = 600.0):
        if self.process is None:
            self._start()
        self.pipe.send((command, arguments))
        if not self.pipe.poll(limit):
            self.stop()
            raise PeerFailed(f"over {limit:g} s")
        try:
            status, answer = self.pipe.recv()
        except EOFError:
            code = self.process.exitcode
            self.stop()
            raise PeerFailed(f"its process ended (exit code {code})") from None
        if status == "absent":
            raise Absent(answer)
        if status == "failed":
            raise PeerFailed(answer)
        return answer

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.peer))
        self.process.start()
        theirs.close()
        self.ask("facts", limit=300)

    def stop(self) -> None:
        """End the process and what it started: a session of its own, made by this object."""
        if self.process is None:
            return
        self.pipe.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            self.process.kill()  # not yet a leader, or gone
        self.process.join()
        self.process = None
