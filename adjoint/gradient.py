"""The gradient of a layer: a typed function d_<layer>, and its text."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from ..transpile import construct
from ..transpile.backwards import backward_inputs, cotangents_of
from ..transpile.clean import clean
from ..transpile.construct import value_of
from ..transpile.dims import ANY, Dim, Facts, maximum, minimum
from ..transpile.lines import lines_of
from ..transpile.merge import merged_block
from ..transpile.node import remembered
from ..transpile.primal import primal_block
from ..transpile.printer import print_function
from ..transpile.program import (
    Assign,
    Call,
    Comment,
    Expr,
    For,
    Function,
    Layer,
    Module,
    Name,
    Parameter,
    Pop,
    Push,
    Result,
    Return,
    Stmt,
    Store,
    Type,
    map_children,
    names,
    read,
    stored,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_block
from ..transpile.values import Fresh
from .activity import active_names, chosen_names, flows, varied_names
from .aliases import unaliased
from .anew import with_anew
from .before import by_outputs
from .blocks import taken
from .contractions import by_contractions
from .cotangents import Cotangents
from .early import without_saved
from .extremes import by_ties
from .finality import LASTING, final_when_read, settled_stores, written_once
from .found import by_places
from .in_hand import with_in_hand
from .keep import Kept, keep
from .leftover import with_lengths
from .operands import by_operands
from .outputs import given_outputs, is_part_of
from .overwritten import without_overwritten
from .parts import named_parts
from .phases import by_phases
from .point import Point
from .preaccumulate import preaccumulated
from .quotients import by_quotients
from .reductions import named_reductions
from .reverse import Reverser
from .rules import asks_which
from .shifts import without_shifts
from .sizes import extents_of, with_sizes
from .tidy import tidy
from .undo import CannotUndo, is_lost
from .unread import without_unread
from .values import cost
from .versions import name_types, with_versions


def gradient(layer: Layer, source: str, path: str) -> Function:
    """The reverse of a layer's forward: from its arguments and `dy` to the cotangents of its inputs and params.

    Raises Mistake, with the place in the user's file, where something has no derivative.
    """
    return _whole(layer, source, path)[0]


def kept(layer: Layer, source: str, path: str) -> Kept | None:
    """The same gradient in two parts for training: a forward that keeps, a pullback that does not run it again."""
    primal = layer.forward or layer.predict
    ahead = preaccumulated(_prepared(primal))
    if ahead and (made := keep(primal, *_derived(layer, ahead.function, source, path, ahead.idle), ahead.slopes)):
        return made
    return keep(primal, *_whole(layer, source, path))


def _prepared(primal: Function) -> Function:
    return without_overwritten(_with_one_name(_with_named_extents(_without_clashes(primal))))


@remembered
def _whole(layer: Layer, source: str, path: str) -> tuple[Function, tuple[Stmt, ...]]:
    return _derived(layer, _prepared(layer.forward or layer.predict), source, path)


def _derived(
    layer: Layer, function: Function, source: str, path: str, idle: Set[str] = frozenset()
) -> tuple[Function, tuple[Stmt, ...]]:
    """The gradient of a layer, as this function says it, and the forward sweep. `idle`: names that no derivative flows
    through."""
    sweep, body = _settled(function, f"d_{layer.name}", {path: lines_of(source)}, idle=idle)
    sweep, body = by_operands(function, sweep, body, _facts(function))
    body = by_outputs(function, sweep, body)
    body = without_saved(function, given_outputs(function, sweep[-1], body))
    return with_sizes(_finished(function, f"d_{layer.name}", body, layer.predict.doc)), tuple(sweep)


def _settled(
    function: Function,
    name: str,
    lines: dict[str, list[str]],
    given: bool = True,
    idle: Set[str] = frozenset(),
) -> tuple[list[Stmt], tuple[Stmt, ...]]:
    """The forward sweep and the body of the gradient. `given`: the gradient may take the outputs; `idle`: names that no
    derivative flows through.

    An array whose earlier content the gradient needs has its writes taken back, or, where that cannot be, versions.
    """
    fresh = Fresh(taken(function))
    written, left = with_lengths(named_reductions(function, fresh), fresh, _facts(function))
    function, still = _without_extremes(written, idle)
    versioned: set[str] = set()
    undone: set[str] = set()
    while True:
        try:
            sweep, body, origins = _reversed(function, name, versioned, undone, lines, given, still, left)
            lost = is_lost(body)
        except CannotUndo:
            lost = True
        if lost:
            versioned, undone = versioned | undone, set()
            continue
        more = _overwritten(function, body, origins) - versioned - undone
        if not more:
            return sweep, _unmarked(body)
        if not versioned and (spelled := _spelled(written, more, fresh)) is not written:
            written, undone = spelled, set()
            function, still = _without_extremes(written, idle)
        elif versioned:
            versioned |= more
        else:
            undone |= more


def _spelled(function: Function, arrays: Set[str], fresh: Fresh) -> Function:
    """Without having these arrays change, where they can be told in other words."""
    held = with_in_hand(with_anew(function, arrays, fresh), arrays, fresh, _facts(function))
    return held if held is not function else by_phases(function, arrays, fresh)


def _without_extremes(function: Function, idle: Set[str]) -> tuple[Function, Set[str]]:
    """Where no derivative flows through what is only the largest so far, or kept among the largest; and the names
    through which none does."""
    function, shifts = without_shifts(function)
    function, extremes = by_ties(function, idle | shifts)
    function, kept = by_places(function, idle | shifts | extremes)
    return function, idle | shifts | extremes | kept


def _unmarked(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    def plain(expr: Expr) -> Expr:
        if isinstance(expr, Name) and expr.value == LASTING:
            return replace(expr, value=None)
        return map_children(expr, plain)

    return tuple(map_stmt(s, plain, _unmarked, lambda n: n) for s in body)


def _without_clashes(function: Function) -> Function:
    """A variable called dy makes way for the cotangent; one called y for the output, if it is not what is returned."""
    own = {
        s.var if isinstance(s, For) else s.name for s in walk_stmts(function.body) if isinstance(s, (Assign, For, Pop))
    }
    final = function.body[-1]
    values = final.values if isinstance(final, Return) else ()
    returned = zip(function.results, values)
    outputs = {r.name for r, value in returned if r.role == "output" and not _is_name(value, r.name)}
    clashes = own & ({cotangent.name for _, cotangent in cotangents_of(function)} | outputs)
    other = own | {p.name for p in function.params} | {r.name for r in function.results}
    fresh = {n: next(f"{n}_{k}" for k in itertools.count(2) if f"{n}_{k}" not in other) for n in clashes}
    return replace(function, body=tuple(rename_block(function.body, fresh)))


def _is_name(expr: Expr, name: str) -> bool:
    return isinstance(expr, Name) and expr.id == name


def _with_named_extents(function: Function) -> Function:
    """The extents that the user wrote as `_` get their names: a cotangent has that of its output."""

    def named(typed: Any) -> Any:
        words = typed.shape_text.split()
        dims = [str(d) if w == "_" else w for w, d in zip(words, typed.type.shape, strict=True)]
        return replace(typed, shape_text=" ".join(dims))

    return replace(
        function,
        params=tuple(named(p) for p in function.params),
        results=tuple(named(r) for r in function.results),
    )


def _with_one_name(function: Function) -> Function:
    """`H = x.shape[1]` of an x: real["C H W"] is the extent H itself, not a variable H_2 beside it."""
    extents = {s for p in function.params for d in p.type.shape for s in d.symbols()}
    known: dict[str, Expr] = {}
    for stmt in function.body:
        if isinstance(stmt, Assign) and (value := value_of(stmt.value)) is not None and value.symbol in extents:
            if re.fullmatch(rf"{value.symbol}_\d+", stmt.name) and stmt.value.type == Type("int"):
                known[stmt.name] = construct.dim(value)
    assignments = Counter(s.name for s in walk_stmts(function.body) if isinstance(s, Assign))
    once = {name for name in known if assignments[name] == 1}
    written = stored(function.body)

    def named(expr: Expr) -> Expr:
        match expr:
            case Name(id=id) if id in once:
                return known[id]
            case Call(op="extent" | "size", args=[Name(id=id)], value=Dim() as value) if id in written:
                return construct.dim(value)  # the content is not needed for that
        return map_children(expr, named)

    def block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        left = [s for s in body if not (isinstance(s, Assign) and s.name in once)]
        return tuple(map_stmt(s, named, block, lambda n: n) for s in left)

    return replace(function, body=block(function.body))


def _overwritten(function: Function, body: Sequence[Stmt], origins: dict[str, str]) -> set[str]:
    """Arrays written in place whose earlier content the gradient would need. `origins`: what its names were called."""
    needed: dict[str, set[str]] = {}
    for name in read(tuple(body)):
        needed.setdefault(origins.get(name, name), set()).add(name)
    found = stored(function.body) & needed.keys()
    return {a for a in found if not final_when_read(a, function.body, needed[a], body)}


def _reversed(
    function: Function,
    name: str,
    versioned: set[str],
    undone: set[str],
    lines: dict[str, list[str]],
    given: bool,
    idle: Set[str],
    left: Mapping[str, Expr],
) -> tuple[list[Stmt], tuple[Stmt, ...], dict[str, str]]:
    """The forward sweep, with all that might be saved in it and the return; the body of the gradient; and for the names
    that are versions of the function's, which one's."""
    *statements, final = function.body
    assert isinstance(final, Return)
    known = _arguments(function, function.body)
    own = {s.name for s in walk_stmts(function.body) if isinstance(s, Assign)}
    types = name_types(
        function.body, {p.name: p.type for p in known.values() if p.role != "output" or p.name not in own}
    )
    inputs = {p.name for p in function.params if p.role in ("input", "param") and p.type.is_float}
    reverser = Reverser(
        active=active_names(function, function.body, idle),
        types=types,
        used={
            *types,
            *known,
            name,
            *read(function.body),
            *(s for t in types.values() for d in t.shape for s in d.symbols()),
        },
        like={p.name for p in function.params},
        lines=lines,
        facts=_facts(function),
        versioned=set(versioned),
        undone=set(undone),
        written=stored(function.body),
        chosen=chosen_names(function.body),
        written_once=written_once(function.body, varied_names(inputs, function.body)) - versioned - undone,
        outputs=_outputs(function, final) if given else {},
        settled=frozenset(key for key in settled_stores(function.body) if key[0] not in versioned | undone),
        derive=lambda inner: _settled(inner, name, lines, given=False)[1],
        lists={s.list.id for s in walk_stmts(function.body) if isinstance(s, Push)},
        left=left,
    )
    flowing = set().union(*(flows(s.value) for s in walk_stmts(function.body) if isinstance(s, (Assign, Store, Push))))
    reverser.only_written = reverser.written_once - flowing
    inside, leaving = with_versions(statements, set(), reverser.versioned, types, reverser.version)
    returned = Return(tuple(_renamed(v, leaving) for v in final.values), final.span)
    cotangents = Cotangents(types, reverser.new, reverser.like, reverser.lists, reverser.left, reverser.facts, [])
    seeds, final = _seed(function, returned, reverser, cotangents)
    forward = reverser.block(inside, cotangents, {p.name for p in function.params})
    ends = _results(function, cotangents)
    sweep = list(primal_block([*forward, *seeds, final]))
    held = {n.id: n for n in reverser.outputs.values()}
    given_values = {v: held[r.name] for r, v in zip(function.results, final.values, strict=True) if r.name in held}
    back = by_quotients([*sweep[:-1], *primal_block(cotangents.out), *ends], given_values)
    back = by_contractions(back, given_values)
    body = unaliased(clean(tidy(clean(without_unread(clean(back))))))
    body = merged_block(named_parts(body, reverser.fresh), in_gradient=True)
    return sweep, body, reverser.origins


def _facts(function: Function) -> Facts:
    """The ranges of what may be negative: configuration, and the loop counters, outer ones first."""
    facts = {p.name: ANY for p in function.params if p.role == "config" and p.type.dtype == "int"}
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, For):
            start, stop = value_of(stmt.start), value_of(stmt.stop)
            low, high = (start, stop) if stmt.step > 0 else (stop, start)
            inside = (0, -1) if stmt.step > 0 else (1, 0)
            first = low + inside[0] if low is not None else ANY[0]
            last = high + inside[1] if high is not None else ANY[1]
            others = facts.get(stmt.var, (first, last))  # another loop may have the same counter
            facts[stmt.var] = (minimum(first, others[0], facts), maximum(last, others[1], facts))
    return facts


def _arguments(function: Function, body: Sequence[Stmt]) -> dict[str, Parameter]:
    """What the gradient may take: an output only if its name does not mean something else inside the body."""
    own = {s.name for s in walk_stmts(tuple(body)) if isinstance(s, (Assign, Pop))}
    return {k: p for k, p in backward_inputs(function).items() if p.role != "output" or k not in own}


def _renamed(expr: Expr, names: dict[str, str]) -> Expr:
    from ..transpile.renaming import rename_expr

    return rename_expr(expr, names)


def _outputs(function: Function, final: Return) -> dict[Expr, Name]:
    """Returned values that are costly to compute again: the backward is given them.

    Not the largest of what is computed again: the gradient asks which element that was, and rounding must not tell
    another story in the forward (math.sinh there, np.sinh here).
    """
    taken = {s.name for s in walk_stmts(function.body) if isinstance(s, Assign)} | {p.name for p in function.params}
    written = stored(function.body)
    makers = {s.name: s.value for s in function.body if isinstance(s, Assign)}
    bound = Counter(s.name for s in walk_stmts(function.body) if isinstance(s, (Assign, Pop)))
    # Those that mean one thing from their line on, in loops and branches too.
    lasting = {n for n in makers if bound[n] == 1} | {p.name for p in function.params if p.name not in bound}
    lasting -= written
    arguments = {p.name for p in function.params} - written
    found: dict[Expr, Name] = {}
    for result, value in zip(function.results, final.values, strict=True):
        if result.role != "output" or (
            result.name in taken and not (isinstance(value, Name) and value.id == result.name)
        ):
            continue
        if isinstance(value, Name):
            if value.id not in lasting & makers.keys():
                continue
            value = makers[value.id]
        if not names(value) <= lasting:
            continue
        if isinstance(value, Call) and asks_which(value) and not is_part_of(value.args[0], arguments):
            continue
        if cost(value) > 8 and value.type == result.type and result.name not in taken:
            found[value] = Name(result.name, result.type)
    return found


def _seed(function: Function, final: Return, reverser: Reverser, cotangents: Cotangents) -> tuple[list[Stmt], Return]:
    """Pulls dy through the returned expressions: what they name for the reverse sweep, and the return over it."""
    kept: list[Stmt] = []
    values = dict(zip(function.results, final.values, strict=True))
    for result, cotangent in cotangents_of(function):
        if result.type.is_float:
            point = Point(reverser, cotangents, final.span)
            values[result] = point.pull(values[result], Name(cotangent.name, result.type), None)
            kept += point.kept
    return kept, replace(final, values=tuple(values.values()))


def _results(function: Function, cotangents: Cotangents) -> list[Stmt]:
    """d_x = ... for every differentiable argument, and the return of them all."""
    ends: list[Stmt] = []
    values: list[Expr] = []
    for param in function.params:
        if param.role not in ("input", "param") or not param.type.is_float:
            continue
        total = cotangents.sum(param.name)
        if total is None:
            total = cotangents.zeros(param.name)
        if param.name in cotangents.variables or total in cotangents.settled:
            values.append(total)
            continue
        total = construct.convert(total, param.type) if param.type.rank else total
        gradient = cotangents.new(f"d_{param.name}", param.type)
        ends.append(Assign(gradient.id, total))
        values.append(gradient)
    return [*ends, Return(tuple(values))]


def _finished(function: Function, name: str, body: tuple[Stmt, ...], doc: str) -> Function:
    known = _arguments(function, body)
    needed = read(body) | extents_of(body)
    owners = [p for p in function.params if p.role in ("input", "param") and p.type.is_float]
    sizes = {
        s for one in walk_stmts(body) if isinstance(one, Assign) for d in one.value.type.shape for s in d.symbols()
    }
    # A configuration may be read in the shape of an array alone.
    taken = [p for p in known.values() if p.name in needed or (p.role == "config" and p.name in sizes)]
    covered = {d.symbol for p in taken for d in p.type.shape}
    # A shape must be read off some argument: those of the gradients first, then any that the body speaks of.
    spoken, config = extents_of(body), {p.name for p in function.params if p.role == "config"}
    for one in [*owners, *known.values()]:
        said = {s for d in one.type.shape for s in d.symbols()}
        if said - covered - config and (one in owners or said & spoken - covered):
            taken.append(one)
            covered |= {d.symbol for d in one.type.shape}
    order = list(known.values())
    taken = sorted({p.name: p for p in taken}.values(), key=order.index)
    results = tuple(Result(f"d_{p.name}", p.role, p.type, p.shape_text, of=p.name) for p in owners)
    return Function(name, tuple(_as_argument(p) for p in taken), body, results, function.batched, doc, function.span)


def _as_argument(param: Parameter) -> Parameter:
    return replace(param, init=None)


# -- text ------------------------------------------------------------------------------------------------------
@remembered
def gradient_text(layer: Layer, source: str, path: str) -> str:
    """The gradient of a layer as source a person can read, run under NumPy, edit and give back as `backward`."""
    function = gradient(layer, source, path)
    owners = ", ".join(f"d_{r.of} {_shape(r.shape_text)}" for r in function.results)
    seeds = {cotangent.name for _, cotangent in cotangents_of(layer.forward or layer.predict)}
    inputs = ", ".join(f"{p.name} {_shape(p.shape_text)}" for p in function.params if p.name in seeds)
    return print_function(function, [f"Gradient of {layer.name}: {inputs or 'any cotangent'} -> {owners}."])


def _shape(text: str) -> str:
    axes = text.split()
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


_TYPES = ("Memory", "Param", "Random", "State", "bool_", "f32", "f64", "i32", "i64", "real")


# A gradient file runs with NumPy alone; where layerc is at hand, its own gradient stops there, too.
_STOP_GRADIENT = """\
try:
    from layerc import stop_gradient
except ImportError:

    def stop_gradient(x):
        return x

""".split("\n")


def gradient_file(module: Module) -> str:
    """A gradient file: every layer's gradient, importable with NumPy alone."""
    layers = [layer for layer in module.layers if layer.backward == "auto"]
    functions = [gradient_text(layer, module.source, module.path) for layer in layers]
    special = any("special." in f for f in functions)
    signatures = " ".join(f[: f.index(":\n")] for f in functions)
    types = [name for name in _TYPES if re.search(rf"\b{name}\b", signatures)]
    batched = [f"d_{layer.name}" for layer in layers if layer.predict.batched]
    head = [
        f'"""Gradients of {module.path}, written by layerc. They run under plain NumPy;'
        ' edit one and give it back as `backward`."""',
        "",
        "from __future__ import annotations",
        "",
        *(["from typing import TYPE_CHECKING", ""] if types else []),
        "import numpy as np",
        *(["from scipy import special"] if special else []),
        "",
        *(_STOP_GRADIENT if any("stop_gradient(" in f for f in functions) else []),
        *(["if TYPE_CHECKING:", f"    from layerc import {', '.join(types)}", ""] if types else []),
        f"__layers__ = {_names([f'd_{layer.name}' for layer in layers])}",
        *([f"__batched__ = {_names(batched)}"] if batched else []),
    ]
    return "\n".join(head) + "\n" + "".join(f"\n\n{f}" for f in functions)


def _names(names: list[str]) -> str:
    quoted = [f'"{n}"' for n in names]
    return "(" + ", ".join(quoted) + ("," if len(quoted) == 1 else "") + ")"


__all__ = ["Comment", "Store", "gradient", "gradient_file", "gradient_text", "walk"]
