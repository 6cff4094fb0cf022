"""Measuring a case: prepare every peer, check that they agree, then time them in interleaved rounds."""

import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import quiet
from agree import catches_scaling, compare
from case import Case
from cases import CASES
from peers import PEERS, Absent
from progress import Progress
from worker import PeerFailed, Worker

WHAT = ("gradient", "forward")  # gradient: forward and every gradient; forward: the value only
QUIET = 0.04  # seconds between turns: an idle OpenMP pool spins on its core for up to 20 ms
LOOKS = 3  # turns by which a peer's fastest twin is chosen
TRIES = 6  # of a turn, while it is disturbed


@dataclass(frozen=True)
class Options:
    rounds: int = 15
    turn: float = 0.06  # seconds of timed calls
    samples: int = 400  # at most, in a turn
    limit: float = 60.0  # seconds for a twin's first call
    patience: float = 120.0  # seconds of a run to wait in while other processes are busy


class Disagreement(Exception):
    """A peer computes something else: no timing of the case may count."""


@dataclass
class Bench:
    """A run: its workers, its reference peer (layerc where it is there), and what came out."""

    names: list[str]  # peers, the reference first
    options: Options
    progress: Progress
    workers: dict[str, Worker] = field(default_factory=dict)
    facts: dict[str, dict] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    turns: Counter = field(default_factory=Counter)

    def start(self) -> None:
        for name in self.names:
            worker = Worker(name)
            try:
                self.facts[name] = worker.ask("facts")
                self.workers[name] = worker
            except (Absent, PeerFailed) as reason:
                worker.stop()
                self.absent[name] = str(reason)
                self.progress.say(f"{PEERS[name].title}: absent ({last_line(reason)})")
        self.patience = self.options.patience
        self._wait()
        self.pace = quiet.usual_pace()

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()

    def case(self, case: Case) -> dict:
        """Everything about one case, ready for JSON."""
        peers = self._prepare(case)
        running = [name for name, entry in peers.items() if "variant" in entry]
        result = {"shapes": case.shape_text, "first argument bytes": case.nbytes, "peers": peers}
        if case.traffic:
            result["traffic"] = case.traffic._asdict()
        samples = self._rounds(case, {name: peers[name]["variant"] for name in running})
        for name in running:
            for what in WHAT:
                peers[name][what] = summary(samples[what][name])
        if self.names[0] in running:
            result["ratios"] = {what: ratios(samples[what], self.names[0]) for what in WHAT}
        return result

    def _prepare(self, case: Case) -> dict[str, dict]:
        """First calls, agreement, each peer's fastest twin: {peer: entry}; one without 'variant' failed."""
        peers, reference = {}, None
        for name, worker in self.workers.items():
            variants = PEERS[name]().variants(case)
            if not variants:
                continue
            tried = {}
            for variant in variants:
                self.progress.step(f"{case.name}: {PEERS[name].title} {variant}")
                tried[variant], results = self._try(worker, case, variant)
                if results is not None and name != "stream":
                    reference = reference or (name, results, worker.ask("exact", case.name))
                    tried[variant]["distance"] = self._guard(case, name, variant, results, reference)
            peers[name] = self._choose(worker, case, tried)
        return peers

    def _try(self, worker: Worker, case: Case, variant: str) -> tuple[dict, list | None]:
        """One twin's first call, a short look at its speed, what it keeps: ({..}, its results)."""
        self._wait()
        try:
            worker.ask("ready", case.name)
            seconds, y, gradients = worker.ask("prepare", case.name, variant, limit=self.options.limit)
            looks = [np.median(self._turn(worker.peer, variant, WHAT[0])) for _ in range(LOOKS)]
            kept = worker.ask("kept", variant)
        except PeerFailed as reason:
            self.progress.say(f"{case.name}: {PEERS[worker.peer].title} {variant}: {last_line(reason)}")
            return {"failed": last_line(reason), "detail": str(reason)}, None
        facts = {"first call": seconds, "probe": float(min(looks))} | ({} if kept is None else {"kept": kept})
        return facts, [*y, *gradients]

    def _guard(self, case, name, variant, results, reference) -> float:
        outputs = len(results) - len(case.arguments)
        labels = [f"output {i}" for i in range(outputs)] + [f"gradient of {a}" for a in case.arguments]
        verdict = compare(labels, results, *reference[1:])
        who = f"{case.name}: {PEERS[name].title} ({variant})"
        if not verdict.agrees:
            far = f"{verdict.worst:.3g} tolerances from {PEERS[reference[0]].title}"
            raise Disagreement(f"{who} is {far}: {verdict.where}")
        if not catches_scaling(labels, *reference[1:]):
            raise Disagreement(f"{who}: the guard would let a result scaled by 1.001 pass")
        return verdict.worst

    def _choose(self, worker: Worker, case: Case, tried: dict[str, dict]) -> dict:
        """The fastest twin by the look taken; prepared again if the worker was restarted since."""
        entry = {"tried": tried}
        good = [v for v, facts in tried.items() if "probe" in facts]
        if not good:
            return entry
        entry["variant"] = best = min(good, key=lambda v: tried[v]["probe"])
        entry["first call"] = tried[best]["first call"]
        try:
            worker.ask("keep", best)
        except PeerFailed:
            worker.ask("prepare", case.name, best, limit=2 * self.options.limit)
        return entry

    def _rounds(self, case: Case, variants: dict[str, str]) -> dict:
        """Rounds A B C, B C A, ...: {what: {peer: [samples, a list a round]}}."""
        names = list(variants)
        samples: dict = {what: {name: [] for name in names} for what in WHAT}
        for turn in range(self.options.rounds):
            self.progress.step(f"{case.name}: round {turn + 1} of {self.options.rounds}", minor=True)
            start = turn % max(len(names), 1)
            for name in names[start:] + names[:start]:
                for what in WHAT:
                    samples[what][name].append(self._turn(name, variants[name], what))
        return samples

    def _turn(self, name: str, variant: str, what: str) -> list[float]:
        """A peer's samples: the first undisturbed turn of some, or else the least disturbed."""
        made = []
        for _ in range(TRIES):
            time.sleep(QUIET)
            limits = self.options.turn, self.options.samples
            samples, disturbance = self.workers[name].ask("turn", variant, what, *limits)
            made.append((disturbance.score(self.pace), samples, disturbance))
            self.turns["made"] += 1
            if made[-1][0] <= 1:
                break
            self._wait()
        score, samples, disturbance = min(made, key=lambda turn: turn[0])
        self.turns["kept"] += 1
        self.turns["kept, though disturbed"] += score > 1
        worst = "most of the cores that others took in a kept one"
        self.turns[worst] = max(self.turns[worst], round(disturbance.foreign, 3))
        return samples

    def _wait(self) -> None:
        """Until other processes are done, while the run's patience lasts."""
        if self.patience > 0:
            self.progress.step("waiting for other processes", minor=True)
            self.patience -= quiet.wait(self.patience)


def summary(rounds: list[list[float]]) -> dict:
    """Seconds a call: quartiles over the samples of all rounds, and the median of every round."""
    q1, median, q3 = np.quantile(np.concatenate(rounds), (0.25, 0.5, 0.75))
    return {
        "median": float(median),
        "q1": float(q1),
        "q3": float(q3),
        "samples": sum(map(len, rounds)),
        "round medians": [float(np.median(r)) for r in rounds],
    }


def ratios(rounds: dict[str, list[list[float]]], reference: str) -> dict[str, dict]:
    """Peer's time over the reference's, formed round by round: slow spells of the machine cancel."""
    base = np.array([np.median(r) for r in rounds[reference]])
    found = {}
    for name, samples in rounds.items():
        q1, median, q3 = np.quantile(np.array([np.median(r) for r in samples]) / base, (0.25, 0.5, 0.75))
        found[name] = {"median": float(median), "q1": float(q1), "q3": float(q3)}
    return found


def last_line(reason: Exception | str) -> str:
    return (str(reason).strip().splitlines() or ["failed"])[-1]


def run(names: list[str], case_names: list[str], options: Options, progress: Progress) -> dict:
    """Measure the cases with the peers; the reference is the first. Failures are kept per case."""
    bench = Bench(names, options, progress)
    cases, failures = {}, {}
    try:
        bench.start()
        for name in case_names:
            try:
                cases[name] = bench.case(CASES[name])
            except (Disagreement, PeerFailed) as reason:
                failures[name] = str(reason)
                progress.say(f"{name}: FAILED: {reason}")
        for name, worker in bench.workers.items():
            bench.facts[name] = worker.ask("facts") if worker.process else bench.facts[name]
    finally:
        bench.stop()
        progress.close()
    return {
        "peers": bench.facts,
        "absent": bench.absent,
        "cases": cases,
        "failures": failures,
        "turns": dict(bench.turns),
    }
