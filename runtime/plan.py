"""From a record to a plan: copies that need not be made are left out, and every temporary gets its place in one arena.

`data(schedule)` is the whole as plain dictionaries, lists and numbers: the contract with `layerc.build.net`, which
makes C of it. Integers that depend on the batch are [a, b], for a N + b; a view is
{"buffer": number, "offset", "shape", "strides"}; numbers are expressions, ["mul", x, y].
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from layerc.runtime.arena import Lifetime, pack
from layerc.runtime.schedules import Draws, Function, Port, Schedule
from layerc.runtime.symbolic import parts
from layerc.runtime.tape import Buffer, Hold, Kernel, Let, Map, Op, Range, Sum, Trap, View

ALIGN = 64  # bytes: a cache line


# -- copies that need not be made ---------------------------------------------------------------------------


def tidied(ops: Sequence[Op]) -> list[int]:
    """Drop copies, in place; the positions of the operations that stay.

    A copy's target may be read where its source lies; and what is made only to be copied may be made in its place.
    """
    found = list(ops)
    kept = set(range(len(found)))
    _accumulate_first(found)
    for k in range(len(found)):
        op = found[k]
        if (
            isinstance(op, Map)
            and _is_plain_copy(op)
            and (_read_at_source(found, kept, k) or _made_in_place(found, kept, k))
        ):
            kept.discard(k)
    _drop_dead(found, kept)
    if isinstance(ops, list):
        ops[:] = found
    return sorted(kept)


def _is_plain_copy(op: Map) -> bool:
    (source,) = op.args if len(op.args) == 1 else (None,)
    return (
        op.function == "copy"
        and isinstance(source, View)
        and source.buffer.dtype == op.write.buffer.dtype
        and source.contiguous
        and op.write.contiguous
        and source.shape == op.write.shape
    )


def _touches(op: Op, buffer: Buffer, writes: bool) -> bool:
    return any(v.buffer is buffer for v in (op.writes if writes else (*op.reads, *op.writes)))


def _read_at_source(ops: list[Op], kept: set[int], k: int) -> bool:
    """Let all readers of the target read the source, if neither is written to while it is read."""
    op = ops[k]
    assert isinstance(op, Map)
    source, target = op.args[0], op.write
    assert isinstance(source, View)
    buffer = target.buffer
    if buffer.kind != "arena" or not target.whole or source.buffer is buffer:
        return False
    uses = [i for i in sorted(kept) if i != k and _touches(ops[i], buffer, False)]
    if any(i < k or _touches(ops[i], buffer, True) for i in uses):
        return False
    if any(_touches(ops[i], source.buffer, True) for i in sorted(kept) if k < i <= max(uses, default=k)):
        return False
    for i in uses:
        ops[i] = mapped(ops[i], lambda v: _moved(v, buffer, source.buffer, source.offset))
    return True


def _made_in_place(ops: list[Op], kept: set[int], k: int) -> bool:
    """Let the one kernel that makes the source make the target, if nobody else has to do with either meanwhile."""
    op = ops[k]
    assert isinstance(op, Map)
    source, target = op.args[0], op.write
    assert isinstance(source, View)
    if source.buffer.kind != "arena" or not source.whole or target.buffer is source.buffer:
        return False
    uses = [i for i in sorted(kept) if i != k and _touches(ops[i], source.buffer, False)]
    makers = [i for i in uses if _touches(ops[i], source.buffer, True)]
    if len(makers) != 1 or min(uses) != makers[0] or makers[0] > k:
        return False
    maker = ops[makers[0]]
    made = [v for v in maker.writes if v.buffer is source.buffer]
    if isinstance(maker, Sum) or len(made) != 1 or not made[0].whole:
        return False
    last = max(uses)
    for i in sorted(kept):
        if makers[0] <= i <= max(last, k) and i != k and _touches(ops[i], target.buffer, i > k):
            if not (i == makers[0] and _apart(ops[i], target)):
                return False
    for i in uses:
        ops[i] = mapped(ops[i], lambda v: _moved(v, source.buffer, target.buffer, target.offset))
    return True


def _apart(op: Op, target: View) -> bool:
    """Whether an operation only writes to other parts of the target's buffer."""
    end = target.offset + math.prod(target.shape)
    mine = [v for v in (*op.reads, *op.writes) if v.buffer is target.buffer]
    return isinstance(op, Kernel) and all(
        v.contiguous and (v.offset >= end or v.offset + math.prod(v.shape) <= target.offset) for v in mine
    )


def _accumulate_first(ops: list[Op]) -> None:
    """The first of the sums into a buffer of zeros is a copy; where there is one for every element, zeros are not
    needed."""
    for k, op in enumerate(ops):
        if not (isinstance(op, Map) and op.function == "copy" and op.args == (("const", 0),) and op.write.whole):
            continue
        buffer, covered = op.write.buffer, 0
        first: list[View] = []
        for i in range(k + 1, len(ops)):
            if not _touches(ops[i], buffer, False):
                continue
            sum_ = ops[i]
            if not isinstance(sum_, Map) or sum_.function != "add" or len(sum_.args) != 2:
                break
            own, other = sum_.args
            same = isinstance(own, View) and _place(own) == _place(sum_.write) and own.contiguous
            if not same or not isinstance(other, View) or other.buffer is buffer or sum_.write.buffer is not buffer:
                break
            if any(_overlap(sum_.write, w) for w in first):
                continue
            first.append(sum_.write)
            ops[i] = Map("copy", (other,), (other.buffer.dtype, buffer.dtype), sum_.write)
            covered += math.prod(sum_.write.shape)
        if covered == buffer.size:
            ops[k] = replace(op, args=(), function="nothing")


def _place(v: View) -> tuple[Any, ...]:
    return v.buffer, v.offset, v.shape, v.strides


def _overlap(a: View, b: View) -> bool:
    return a.offset < b.offset + math.prod(b.shape) and b.offset < a.offset + math.prod(a.shape)


def _drop_dead(ops: list[Op], kept: set[int]) -> None:
    """Operations whose results nobody reads."""
    changed = True
    while changed:
        changed = False
        read = {v.buffer for i in kept for v in ops[i].reads}
        for i in sorted(kept):
            op = ops[i]
            useless = isinstance(op, Map | Sum) and op.write.buffer.kind == "arena" and op.write.buffer not in read
            if useless or (isinstance(op, Map) and op.function == "nothing"):
                kept.discard(i)
                changed = True


def _moved(v: View, old: Buffer, new: Buffer, offset: int) -> View:
    return View(new, v.offset + offset, v.shape, v.strides) if v.buffer is old else v


def mapped(op: Op, change: Callable[[View], View]) -> Op:
    """The operation on other views."""
    match op:
        case Kernel():
            return replace(op, reads=tuple(map(change, op.reads)), writes=tuple(map(change, op.writes)))
        case Map():
            args = tuple(change(a) if isinstance(a, View) else a for a in op.args)
            return replace(op, args=args, write=change(op.write))
        case Sum():
            return replace(op, arg=change(op.arg), write=change(op.write))
        case Let():
            return replace(op, value=change(op.value)) if isinstance(op.value, View) else op
        case Range():
            return replace(op, view=change(op.view))
        case Hold():
            return replace(op, reads=tuple(map(change, op.reads)))
        case Trap():
            return op


# -- places in the arena ------------------------------------------------------------------------------------


def places(ops: Sequence[Op]) -> tuple[dict[Buffer, tuple[bool, int]], tuple[int, int]]:
    """Where each buffer lies, and the bytes (a, b) of an arena of a N + b.

    What grows with the batch lies in the first part, at N times its place, the rest behind it at its place: so one plan
    serves every batch size. A place is (whether it grows, bytes).
    """
    spans: dict[Buffer, list[int]] = {}
    for k, op in enumerate(ops):
        for view in (*op.reads, *op.writes):
            if view.buffer.kind == "arena":
                spans.setdefault(view.buffer, [k, k])[1] = k
    found: dict[Buffer, tuple[bool, int]] = {}
    totals = []
    for grows in (True, False):
        mine = [b for b in spans if (parts(b.size)[0] > 0) is grows]
        lives = [Lifetime(_bytes(b), *spans[b]) for b in mine]
        at, total = pack(lives)
        found |= {b: (grows, place) for b, place in zip(mine, at)}
        totals.append(total)
    return found, (totals[0], totals[1])


def _bytes(buffer: Buffer) -> int:
    """In whole cache lines: of one example where it grows with the batch (a N + b <= (a + b) N), else of all."""
    times, plus = parts(buffer.size)
    size = (times + max(plus, 0) if times else plus) * buffer.dtype.itemsize
    return -(-size // ALIGN) * ALIGN


# -- as data ------------------------------------------------------------------------------------------------


def data(schedule: Schedule) -> dict[str, Any]:
    """The schedule as plain data."""
    packages: dict[Any, int] = {}
    functions = {
        "predict": _function(schedule.predict, packages),
        "train": schedule.train and _function(schedule.train, packages),
    }
    held = [{**vars(h), "shape": list(map(int, h.shape)), "dtype": h.dtype.name} for h in schedule.held]
    return {
        "name": schedule.name,
        "dtype": schedule.dtype.name,
        "solver": schedule.solver,
        "left_out": schedule.left_out,
        "held": held,
        "kept": {name: [int(size), dtype.name] for name, (size, dtype) in schedule.buffers.items()},
        "packages": [_package(p) for p in packages],
        **functions,
    }


def _package(package: Any) -> dict[str, Any]:
    manifest = package.manifest
    stem = Path(manifest["source"]).stem
    return {"stem": stem, "layerc": manifest["layerc"], "errors": manifest["errors"], "c": package.c_text()}


def _function(function: Function, packages: dict[Any, int]) -> dict[str, Any]:
    ops = list(function.ops)
    kept = tidied(ops)
    makers = [function.makers[k] for k in kept]
    ops = [ops[k] for k in kept]
    at, arena = places(ops)
    numbers: dict[Buffer, int] = {}
    for op in ops:
        for view in (*op.reads, *op.writes):
            numbers.setdefault(view.buffer, len(numbers))
    streams = {id(d): k for k, d in enumerate(function.draws)}
    return {
        "inputs": list(map(_port, function.inputs)),
        "outputs": list(map(_port, function.outputs)),
        "buffers": [_buffer(b, at.get(b)) for b in numbers],
        "ops": [{**_op(op, numbers, packages, streams), "where": maker} for op, maker in zip(ops, makers)],
        "arena": list(arena),
        "least": function.least,
        "is_per_example": function.is_per_example,
        "why": function.why,
        "result": None if function.result is None else _node(function.result, streams),
        "draws": [vars(d) for d in function.draws],
    }


def _port(port: Port) -> dict[str, Any]:
    return {"name": port.name, "shape": list(map(int, port.shape)), "dtype": port.dtype.name}


def _buffer(buffer: Buffer, place: tuple[bool, int] | None) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": buffer.kind, "name": buffer.name, "dtype": buffer.dtype.name}
    made["size"] = _integer(buffer.size)
    if place is not None:
        made["place"] = list(place)
    if buffer.data is not None:
        made["data"] = buffer.data.reshape(-1).tolist()
    return made


def _op(op: Op, numbers: dict[Buffer, int], packages: dict[Any, int], streams: dict[int, int]) -> dict[str, Any]:
    def view(v: View) -> dict[str, Any]:
        sizes = {"shape": list(map(_integer, v.shape)), "strides": list(map(_integer, v.strides))}
        return {"buffer": numbers[v.buffer], "offset": _integer(v.offset), **sizes}

    def node(n: Any) -> Any:
        return _node(n, streams)

    match op:
        case Kernel():
            number = packages.setdefault(op.package, len(packages))
            scalars = list(map(node, op.scalars))
            ends = {"reads": list(map(view, op.reads)), "writes": list(map(view, op.writes))}
            return {"op": "kernel", "package": number, "symbol": op.symbol, "scalars": scalars, **ends}
        case Map():
            args = [view(a) if isinstance(a, View) else node(a) for a in op.args]
            types = [t.name for t in op.types]
            return {"op": "map", "function": op.function, "args": args, "types": types, "write": view(op.write)}
        case Sum():
            return {"op": "sum", "arg": view(op.arg), "write": view(op.write)}
        case Let():
            value = view(op.value) if isinstance(op.value, View) else node(op.value)
            return {"op": "let", "name": op.name, "kind": op.kind, "value": value}
        case Range():
            bounds = {"low": _integer(op.low), "high": _integer(op.high), "skip": op.skip}
            return {"op": "range", "view": view(op.view), **bounds, "message": op.message}
        case Trap():
            return {"op": "trap", "condition": node(op.condition), "code": op.code, "message": op.message}
    raise AssertionError(op)


def _node(node: Any, streams: dict[int, int]) -> Any:
    if isinstance(node, Draws):
        return streams[id(node)]
    return [_node(n, streams) for n in node] if isinstance(node, tuple) else node


def _integer(n: int) -> Any:
    times, plus = parts(n)
    return [times, plus] if times else plus
