"""A run as text, markdown, JSON and a plot. Every figure comes from the run's own dictionary."""

import math
import statistics
from pathlib import Path
from typing import Any

import tables
from measure import last_line
from peers import PEERS

REFERENCES = ("layerc", "stand-in")
PASSES, KEPT = "(Forward + all gradients) / forward", "Kept from forward to backward"
IN_A_ROW = 8  # cases of the plot


def write(run: dict, directory: Path, name: str) -> list[Path]:
    """name.txt, name.md, name.json and, with matplotlib, name.png."""
    paths = tables.write(sections(run), run, directory, name)
    if plot(run, directory / f"{name}.png"):
        paths.append(directory / f"{name}.png")
    return paths


def reference(run: dict) -> str | None:
    return next((name for name in REFERENCES if name in run["peers"]), None)


def columns(run: dict) -> list[str]:
    return [name for name in PEERS if name in run["peers"] and name != "stream"]


def sections(run: dict) -> list[tables.Block]:
    """The report in order: a block is a title, a paragraph or None, and a table or None."""
    blocks = [tables.Block("Machine", machine_lines(run))]
    if run["failures"]:
        blocks.append(tables.Block("FAILED", [f"{case}: {why}" for case, why in run["failures"].items()]))
    if reference(run):
        blocks.append(ratio_block(run))
    blocks += [
        time_block(run, "gradient", "Forward and all gradients"),
        time_block(run, "forward", "Forward only"),
        passes_block(run),
        kept_block(run),
        memory_block(run),
        first_call_block(run),
        variant_block(run),
    ]
    return [block for block in blocks if block.lines or block.rows]


def machine_lines(run: dict) -> list[str]:
    lines = [f"{key}: {value}" for key, value in run["machine"].items()]
    lines += [f"{PEERS[name].title}: {_facts(facts)}" for name, facts in run["peers"].items()]
    lines += [f"{PEERS[name].title}: absent ({last_line(why)})" for name, why in run["absent"].items()]
    turns = run["turns"]
    lines.append(f"turns: {_facts(turns)}")
    if turns.get("kept, though disturbed", 0) > 0.1 * turns.get("kept", 0):
        lines.append("DISTURBED: the machine was not ours; do not quote these figures")
    return lines


def _facts(facts: dict) -> str:
    return ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in facts.items())


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:#.3g} {unit}".replace(". ", " ")
    return f"{seconds * 1e9:.0f} ns"


def time_block(run: dict, what: str, title: str) -> tables.Block:
    names = columns(run)
    rows = []
    for case_name, case in run["cases"].items():
        cells = [_time_cell(case["peers"].get(name), what) for name in names]
        rows.append([case_name, case["shapes"], *cells])
    return tables.Block(
        title,
        ["Median [quartiles] of a call, float32."],
        ["case", "shapes", *(PEERS[n].title for n in names)],
        rows,
    )


def _time_cell(entry: dict | None, what: str) -> str:
    if entry is None:
        return ""
    if what not in entry:
        return "; ".join({facts["failed"] for facts in entry["tried"].values()})
    figures = entry[what]
    return f"{duration(figures['median'])} [{duration(figures['q1'])}, {duration(figures['q3'])}]"


def ratio_block(run: dict) -> tables.Block:
    """Peer's time over the reference's: above 1 the reference is faster. 'fastest': best peer of a case."""
    base = reference(run)
    names = [n for n in columns(run) if n != base]
    rows, taken = [], {n: {} for n in (*names, "fastest")}
    for case_name, case in run["cases"].items():
        found = {n: r["median"] for n, r in case.get("ratios", {}).get("gradient", {}).items() if n in names}
        if found:
            found["fastest"] = min(found.values())
        for name, value in found.items():
            taken[name][case_name] = value
        rows.append([case_name, *(f"{found[n]:.2f}" if n in found else "" for n in taken)])
    summaries = {"geometric mean": geometric_mean, "worst case": lambda values: min(values.values())}
    for label, of in summaries.items():
        rows.append([label, *(f"{of(v):.2f}" if v else "" for v in taken.values())])
    return tables.Block(
        f"Times {PEERS[base].title} is faster, forward and all gradients",
        ["Median over rounds of the ratio within a round.", _worst_line(taken["fastest"])],
        ["case", *(PEERS[n].title for n in names), "fastest peer"],
        rows,
    )


def _worst_line(fastest: dict[str, float]) -> str:
    if not fastest:
        return "No case could be compared."
    worst = min(fastest, key=fastest.get)
    return f"Worst case against the fastest peer: {worst}, {fastest[worst]:.2f}."


def passes_block(run: dict) -> tables.Block:
    """Of each peer, its own time over that of its own forward."""
    names, taken, rows = columns(run), {}, []
    for case_name, case in run["cases"].items():
        for name in names:
            if ratio := _passes(case["peers"].get(name, {})):
                taken.setdefault(name, {})[case_name] = ratio
        rows.append([case_name, *(_two(taken.get(n, {}).get(case_name)) for n in names)])
    if not taken:
        return tables.Block(PASSES)
    for label, of in {"median": statistics.median, "worst case": max}.items():
        rows.append([label, *(_two(of(taken[n].values()) if n in taken else None) for n in names)])
    lines = ["Median over rounds of the ratio within a round."]
    if own := taken.get(reference(run)):
        worst = max(own, key=own.get)
        middle = statistics.median(own.values())
        lines.append(f"{PEERS[reference(run)].title}: median {middle:.2f}, worst {worst}, {own[worst]:.2f}.")
    return tables.Block(PASSES, lines, ["case", *(PEERS[n].title for n in names)], rows)


def _passes(entry: dict) -> float | None:
    if "gradient" not in entry or "forward" not in entry:
        return None
    pairs = zip(entry["gradient"]["round medians"], entry["forward"]["round medians"], strict=True)
    return statistics.median(both / forward for both, forward in pairs)


def _two(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def kept_block(run: dict) -> tables.Block:
    """Bytes that cross from a forward to its backward, of a peer's twins the least."""
    names = [n for n in columns(run) if any(_least(c, n) for c in run["cases"].values())]
    base, rows, more = reference(run), [], {"in all": {}, "own": {}}  # bytes above the least peer
    for case_name, case in run["cases"].items():
        found = {n: least for n in names if (least := _least(case, n))}
        cells = [size(found[n][what]) if n in found else "" for n in names for what in more]
        for what, taken in more.items():
            peers = [found[n][what] for n in found if n != base]
            if base in found and peers and found[base][what] > min(peers):
                taken[case_name] = found[base][what] - min(peers)
        rows.append([case_name, *cells])
    if not names:
        return tables.Block(KEPT)
    lines = [
        "In all: arguments, outputs and whatever else is held until the backward runs, each allocation once.",
        "Own: what is neither an argument nor an output. Of a peer's twins the one that keeps least.",
    ]
    if base in names and len(names) > 1:
        lines += [f"{PEERS[base].title} keeps more than a peer, {what}: {_cases(t)}." for what, t in more.items()]
    header = ["case", *(f"{PEERS[n].title}, {what}" for n in names for what in more)]
    return tables.Block(KEPT, lines, header, rows)


def _least(case: dict, name: str) -> dict[str, int] | None:
    tried = case["peers"].get(name, {"tried": {}})["tried"].values()
    found = [facts["kept"] for facts in tried if "kept" in facts]
    return min(found, key=lambda kept: (kept["in all"], kept["own"]), default=None)


def _cases(taken: dict[str, int]) -> str:
    return ", ".join(f"{case} (+{size(count)})" for case, count in taken.items()) or "in no case"


def size(count: int) -> str:
    """Three digits and a unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:#.3g} {unit}".replace(". ", " ")
    return f"{count} B"


def geometric_mean(values: dict[str, float]) -> float:
    return math.exp(sum(map(math.log, values.values())) / len(values))


def first_call_block(run: dict) -> tables.Block:
    names = columns(run)
    rows = []
    for case_name, case in run["cases"].items():
        rows.append([case_name, *(_first_cell(case["peers"].get(n)) for n in names)])
    lines = ["Binding and first call, compilation included; the compilers themselves are loaded before."]
    for source, seconds in run["peers"].get("layerc", {}).get("build seconds", {}).items():
        lines.append(f"layerc compiles beforehand: {source}, all its layers: {duration(seconds)}.")
    return tables.Block("First call", lines, ["case", *(PEERS[n].title for n in names)], rows)


def _first_cell(entry: dict | None) -> str:
    return duration(entry["first call"]) if entry and "first call" in entry else ""


def variant_block(run: dict) -> tables.Block:
    """Every twin tried: the fastest of a peer, marked, is the one in the tables."""
    rows = []
    for case_name, case in run["cases"].items():
        for name in columns(run):
            entry = case["peers"].get(name, {"tried": {}})
            for variant, facts in entry["tried"].items():
                mark = "*" if variant == entry.get("variant") else ""
                distance = f"{facts['distance']:.3f}" if "distance" in facts else ""
                speed = duration(facts["probe"]) if "probe" in facts else facts["failed"]
                first = duration(facts["first call"]) if "first call" in facts else ""
                rows.append([case_name, PEERS[name].title, variant + mark, speed, first, distance])
    return tables.Block(
        "Twins tried",
        [
            "* the fastest, used above. Best of a few turns; distance from the "
            "reference in tolerances (above 1 the run fails)."
        ],
        ["case", "peer", "twin", "forward + gradients", "first call", "distance"],
        rows,
    )


def memory_block(run: dict) -> tables.Block:
    """Bytes a case must move over its time, beside a STREAM triad of as many bytes in the same rounds."""
    rows = []
    for case_name, case in run["cases"].items():
        if "forward" not in case["peers"].get("stream", {}):
            continue
        for what in ("forward", "gradient"):
            arrays, size = case["traffic"][what], case["first argument bytes"]
            stream = arrays * size / case["peers"]["stream"][what]["median"]
            for name in columns(run):
                figures = case["peers"].get(name, {}).get(what)
                if figures:
                    rate = arrays * size / figures["median"]
                    rows.append(
                        [
                            case_name,
                            what,
                            PEERS[name].title,
                            f"{arrays} x {size / 1e6:.1f} MB",
                            f"{rate / 1e9:.1f}",
                            f"{stream / 1e9:.1f}",
                            f"{rate / stream:.0%}",
                        ]
                    )
    lines = ["Arrays that must be read or written, each once a pass; a triad of as many bytes."] if rows else []
    header = ["case", "pass", "peer", "moved", "GB/s", "triad GB/s", "share"]
    return tables.Block("Memory", lines, header, rows)


def plot(run: dict, path: Path) -> bool:
    """Bars on a log scale, a group a case: seconds of forward and gradients, quartiles as whiskers."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names, cases = columns(run), list(run["cases"])
    rows = [cases[k : k + IN_A_ROW] for k in range(0, len(cases), IN_A_ROW)] or [[]]
    size = (2 + 1.6 * min(IN_A_ROW, max(len(cases), 1)), 1 + 3.5 * len(rows))
    figure, axes = plt.subplots(len(rows), figsize=size, layout="constrained", sharey=True, squeeze=False)
    for row, those in zip(axes[:, 0], rows):
        _bars(row, run, names, those)
    facts = run["machine"]
    where = f"{facts['cpu']}, {facts['threads']} threads, {facts['date'][:10]}"
    figure.suptitle(f"Forward and all gradients\n{where}")
    axes[0, 0].legend(fontsize="small", ncols=2)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True


def _bars(axes: Any, run: dict, names: list[str], cases: list[str]) -> None:
    width = 0.8 / max(len(names), 1)
    for i, name in enumerate(names):
        entries = [run["cases"][c]["peers"].get(name, {}).get("gradient") for c in cases]
        places = [k + (i - (len(names) - 1) / 2) * width for k, e in enumerate(entries) if e]
        entries = [e for e in entries if e]
        middle = [1e3 * e["median"] for e in entries]
        whiskers = [[1e3 * abs(e[q] - e["median"]) for e in entries] for q in ("q1", "q3")]
        axes.bar(places, middle, width, yerr=whiskers, label=PEERS[name].title, error_kw={"linewidth": 0.8})
    axes.set(yscale="log", ylabel="ms a call (log)")
    axes.set_xticks(range(len(cases)), cases)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
