"""Keep or recompute: what a training forward leaves for its pullback, so that the pullback need not run it again.

The gradient source is whole: it computes again what it reads of the forward. Compiled for training, the same
statements are cut in two at the end of the forward sweep. A value that is costly to compute again (a reduction, a
product, what a loop leaves) crosses the cut as a `memory` array; a cheap one is computed again from what crosses. Of
`x - np.mean(x)` the mean crosses, which is smaller. What arithmetic alone makes, in loops, does not cross where it
would be more than what the layer takes and gives: it is made in a cache as soon as it comes from memory.

    before:  d_rbf(x, centers, gamma, y, dy):  d = x - c; total = sum(d * d); ...
    after:   rbf(x, centers, gamma) -> y, total      d_rbf(x, centers, gamma, y, total, dy):  d = x - c; ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from ..transpile import construct
from ..transpile.annotations import groups_of, shape_string
from ..transpile.backwards import cotangents_of
from ..transpile.clean import clean, live_before
from ..transpile.construct import trips, value_of
from ..transpile.merge import merged_block
from ..transpile.operations import ROWS
from ..transpile.program import (
    Assign,
    Call,
    Comment,
    Expr,
    For,
    Function,
    Index,
    Name,
    Parameter,
    Pop,
    Push,
    Result,
    Return,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    blocks,
    children,
    item_exprs,
    map_children,
    names,
    read,
    stmt_exprs,
    walk,
    walk_stmts,
)
from ..transpile.renaming import rename_block
from ..transpile.values import Fresh
from .aliases import unaliased
from .exchange import elements, exchanged
from .loops import DEAR, costs, is_product
from .outputs import cut
from .residuals import with_residuals
from .sizes import degree, extents_of, most_axes
from .tape import Taped, lists, taped
from .values import CHEAP, cost
from .versions import name_types

MOST_SHEETS = 8  # of a stack that is not kept
FEW = 64  # numbers: a small matrix
_MORE = ("compose", "body")  # kinds of rows that are more than arithmetic, as are products that add up


@dataclass(frozen=True)
class Kept:
    """A training forward, with memory outputs, and the pullback that takes them."""

    forward: Function
    pullback: Function

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.forward.results if r.role == "memory")


def keep(primal: Function, gradient: Function, sweep: Sequence[Stmt], slopes: Set[str] = frozenset()) -> Kept | None:
    """`sweep`: the forward sweep with all that could be saved in it, ending in the primal's return; `slopes`: what it
    makes to be kept. None where nothing is worth keeping."""
    body = [s for s in gradient.body if not isinstance(s, Comment)]
    head, rest = cut(body, {p.name for _, p in cotangents_of(primal)})
    *before, final = sweep
    assert isinstance(final, Return)
    used = {p.name for p in (*primal.params, *gradient.params)} | {r.name for r in primal.results}
    apart = _Apart(Fresh(used | assigned((*before, *gradient.body))))
    before, head = apart.of(before), apart.of(head)
    rest = _own_names(rest, assigned(tuple(head)), apart.fresh)
    copies, on_copies = _on_copies(rest, assigned(tuple(head)), apart.fresh)
    made_of = partial(_kept, primal, gradient=gradient, head=head, fresh=apart.fresh, slopes=slopes)
    if copies and (made := made_of(sweep=[*before, final], rest=on_copies)):
        if not copies & assigned(made.pullback.body):
            return made
    tape = None if _is_small(primal, sweep, FEW) else taped(before, rest, apart.fresh)
    if tape is not None and (made := made_of(sweep=[*tape.forward, final], rest=rest, tape=tape)):
        return made
    config = {p.name for p in primal.params if p.role == "config"}
    *merged, end = merged_block([*before, final])  # as the gradient is
    if not copies and (left := with_residuals(merged, head, rest, config, apart.fresh)):
        back = _own_names(left.rest, assigned(tuple(left.head)), apart.fresh)
        made = made_of(sweep=[*left.before, end], head=left.head, rest=back)
        if made and left.names >= set(made.names) - assigned(tuple(head)) and left.names & set(made.names):
            return made
    return made_of(sweep=[*before, final], rest=rest)


def _kept(
    primal: Function,
    sweep: list[Stmt],
    gradient: Function,
    head: list[Stmt],
    rest: list[Stmt],
    fresh: Fresh,
    slopes: Set[str],
    tape: Taped | None = None,
) -> Kept | None:
    """`head` and `rest`: the gradient before the cut and behind it. With a tape: None where what it stands for is
    needed nevertheless."""
    *before, final = sweep
    assert isinstance(final, Return)
    after = tape.read if tape else rest
    types = name_types(before, {p.name: p.type for p in gradient.params})
    made = {n for s in before for n in assigned((s,))}
    taken = {r.name for r in primal.results} | {p.name for p in (*primal.params, *gradient.params)}
    groups = groups_of([p.shape_text for p in primal.params])
    told = {n for n in made & set(types) if sum(d.symbol in groups for d in types[n].shape) < 2}
    if _is_small(primal, sweep, 1):
        told = {n for n in told if not types[n].rank}
    allowed = told - assigned(tuple(after)) - taken - _counters(before)
    earlier = _earlier(head, _left_out(before, head))

    def pullback(crossing: set[str]) -> tuple[Stmt, ...]:
        again = [s for s in head if not assigned((s,)) & crossing]
        return clean([*again, *_without_outputs(primal, sweep, again, after, Fresh(set(fresh.used)))])

    while True:
        may = {n: types[n] for n in allowed}
        found = _Choice(head, may, most_axes(primal), earlier, _alike(primal, head), slopes).of(live_before(after))
        found |= tape.names if tape else set()
        found -= _made_anyhow(head, after, found)
        if not tape:
            found = exchanged(primal, head, found, {n: types[n] for n in allowed}, pullback)
        if not found:
            return None
        again = [s for s in head if not assigned((s,)) & found]
        needed = read(clean([*again, *after]))
        missed = {n for s in again if assigned((s,)) & needed for n in earlier[id(s)] & found}
        if not missed:
            break
        allowed -= missed
    if not tape and _is_more(primal, [types[n] for n in found]) and not any(_is_dear(s) for s in head):
        return None
    own = assigned((*before, *head, *rest)) | {p.name for p in primal.params}
    given = {n: r for n, r in _outputs(primal, final).items() if r.name not in own}
    memory = {n: Type(_strong(types[n].dtype), types[n].shape) for n in sorted(found - given.keys())}
    texts = {n: shape_string(t, groups) for n, t in memory.items()}
    values = tuple(construct.cast(Name(n, types[n]), t.dtype) for n, t in memory.items())
    forward = replace(
        primal,
        body=unaliased(clean([*before, replace(final, values=(*final.values, *values))], checks=True)),
        results=(*primal.results, *(Result(n, "memory", t, texts[n]) for n, t in memory.items())),
    )
    if not tape:
        after = _without_outputs(primal, sweep, again, after, fresh)
    body = clean([*again, *after])
    if tape:
        if tape.lists.keys() & assigned(body):
            return None
        body = clean([*again, lists(tape, head, fresh), *tape.rest])
    given = {n: r for n, r in given.items() if n in found & read(body)}
    body = tuple(rename_block(body, {n: r.name for n, r in given.items()}))
    used = read(body) | extents_of(body)
    owners = {d.symbol for p in gradient.params if p.name in used for d in p.type.shape}
    params = [p for p in gradient.params if p.name in used or not {d.symbol for d in p.type.shape} <= owners]
    outputs = {r.name: Parameter(r.name, "output", r.type, r.shape_text) for r in given.values()}
    params += [p for p in outputs.values() if p.name not in {q.name for q in params}]
    kept = [Parameter(n, "memory", t, texts[n]) for n, t in memory.items() if n in used]
    return Kept(forward, replace(gradient, params=(*params, *kept), body=body))


def _is_small(primal: Function, sweep: Sequence[Stmt], most: int) -> bool:
    """Whether an example is a number, or as few as are known, and all that is made of it: then many walk through the
    loops together (see transpile/passes/lanes.py), and run them again in less time than each takes to leave a row of
    memory of its own."""
    exprs = [e for s in walk_stmts(tuple(sweep)) if not _makes_room(s) for e in stmt_exprs(s)]
    types = [*(p.type for p in primal.params), *(r.type for r in primal.results)]
    return all(_has_few(t, most) for t in types) and all(_makes_few(e, most) for e in exprs)


def _has_few(type: Type, most: int) -> bool:
    sizes = [d.value for d in type.shape]
    return not type.rank or (most > 1 and prod(n if n is not None else most + 1 for n in sizes) <= most)


def _makes_room(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.op in ("empty", "zeros")


def _makes_few(expr: Expr, most: int) -> bool:
    inside = children(expr)
    if isinstance(expr, Index) and isinstance(expr.base, Name):
        inside = tuple(e for item in expr.items for e in item_exprs(item))
    return _has_few(expr.type, most) and all(_makes_few(e, most) for e in inside)


def _is_more(primal: Function, kept: Sequence[Type]) -> bool:
    """Whether it is more than all that the layer takes and gives, where all extents are alike."""
    return elements(kept) > elements([p.type for p in primal.params] + [r.type for r in primal.results])


def _is_dear(stmt: Stmt) -> bool:
    """Whether there is more to it than arithmetic, which costs less than the memory for what it makes."""
    exprs = [e for s in walk_stmts((stmt,)) for e in stmt_exprs(s)]
    return any(costs(e) >= DEAR for e in exprs) or any(
        isinstance(part, Call) and _is_more_than_arithmetic(part) for e in exprs for part in walk(e)
    )


def _outputs(primal: Function, final: Return) -> dict[str, Result]:
    """The names that are outputs as they stand: the pullback is given those anyway."""
    return {
        value.id: result
        for result, value in zip(primal.results, final.values, strict=False)
        if result.role == "output" and isinstance(value, Name) and value.type == result.type
    }


def _without_outputs(
    primal: Function, sweep: Sequence[Stmt], again: Sequence[Stmt], after: list[Stmt], fresh: Fresh
) -> list[Stmt]:
    """What comes after the cut, without outputs that cost little to make of what it is given and makes anyway: they
    need not live until then.

    before:  c = x - mean; d_x = (dy - np.sum(dy * y) / s * c) / s       y is c / s
    after:   c = x - mean; y_2 = c / s; d_x = (dy - np.sum(dy * y_2) / s * c) / s
    """
    final = sweep[-1]
    assert isinstance(final, Return)
    body = clean([*again, *after])
    held = read(body)
    params = {p.name for p in primal.params}
    times = Counter(n for s in walk_stmts(tuple(sweep)) if not blocks(s) for n in assigned((s,)))
    once = {s.name for s in sweep if isinstance(s, Assign) and times[s.name] == 1}
    known = held & (once | {n for n in params if not times[n]}) - assigned(tuple(after))
    for result, value in zip(primal.results, final.values, strict=False):
        if result.role == "output" and result.name in held - assigned(body) - params and value.type == result.type:
            if isinstance(value, Call) and not _costly(value) and cost(value) <= CHEAP and names(value) <= known:
                name = fresh(result.name)
                after = [Assign(name, value), *rename_block(after, {result.name: name})]
    return after


def _own_names(rest: Sequence[Stmt], crossing: set[str], fresh: Fresh) -> list[Stmt]:
    """Each loop with names of its own for what it alone makes and reads: what the pullback assigns cannot cross.

    before:  for t in ...: alpha = alpha_saved[t]; ...     after:  for t in ...: alpha_2 = alpha_saved[t]; ...
    """
    found: list[Stmt] = []
    for position, stmt in enumerate(rest):
        if isinstance(stmt, (For, While)):
            after = rest[position + 1 :]
            taken = live_before(after) | live_before([stmt, *after])
            own = assigned(stmt.body) & crossing - taken - _counters([stmt])
            (stmt,) = rename_block([stmt], {n: fresh(n) for n in sorted(own)})
        found.append(stmt)
    return found


def _on_copies(rest: Sequence[Stmt], crossing: set[str], fresh: Fresh) -> tuple[set[str], list[Stmt]]:
    """Arrays whose writes the reverse takes back cross as they are left, and it goes back on copies."""
    back = {s.base.id for s in walk_stmts(tuple(rest)) if isinstance(s, Store) and s.undoes} & crossing
    types = name_types(rest, {})
    copies = {n: fresh(n) for n in sorted(back)}
    made = [Assign(copy, construct.call("copy", Name(n, types[n]))) for n, copy in copies.items()]
    return back, [*made, *rename_block(rest, copies)]


def _left_out(before: Sequence[Stmt], head: Sequence[Stmt]) -> set[str]:
    """Arrays that the forward goes on to write into where the gradient does not, as it reads them no more."""
    done = {(s.base.id, s.span) for s in walk_stmts(tuple(head)) if isinstance(s, Store)}
    return {s.base.id for s in walk_stmts(tuple(before)) if isinstance(s, Store) and (s.base.id, s.span) not in done}


def _earlier(head: Sequence[Stmt], later: set[str]) -> dict[int, set[str]]:
    """What each statement reads and a later one changes, or one behind the head (`later`): where that crosses, it is
    not what was read."""
    found: dict[int, set[str]] = {}
    later = set(later)
    for stmt in reversed(head):
        found[id(stmt)] = read((stmt,)) & later
        later |= assigned((stmt,))
    return found


def _strong(dtype: str) -> str:
    """What a Python number is kept as: all of it."""
    return {"float": "f64", "int": "i64"}.get(dtype, dtype)


@dataclass
class _Apart:
    """Names for the reductions within larger expressions: the same in both sweeps, for the same part of the same
    statement.

    before:  centred = x - np.mean(x)            after:  centred_mean = np.mean(x); centred = x - centred_mean
    """

    fresh: Fresh
    names: dict[tuple[str, Expr], str] = field(default_factory=dict)

    def of(self, body: Sequence[Stmt]) -> list[Stmt]:
        written = Counter(s.name for s in walk_stmts(tuple(body)) if isinstance(s, Assign))
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Assign) and written[stmt.name] == 1:
                parts: list[Stmt] = []
                stmt = replace(stmt, value=self._without(stmt.value, stmt, parts))
                found += parts
            found.append(stmt)
        return found

    def _without(self, expr: Expr, stmt: Assign, parts: list[Stmt]) -> Expr:
        if isinstance(expr, Call) and _is_costly(expr) and degree(expr.type) < degree(stmt.value.type):
            name = self._name(stmt.name, expr)
            parts.append(Assign(name, expr, stmt.span))
            return Name(name, expr.type)
        return map_children(expr, lambda e: self._without(e, stmt, parts))

    def _name(self, target: str, expr: Call) -> str:
        if (target, expr) not in self.names:
            self.names[target, expr] = self.fresh(f"{target}_{expr.op}")
        return self.names[target, expr]


@dataclass
class _Choice:
    """Which names of the head cross the cut."""

    head: Sequence[Stmt]
    types: dict[str, Type]  # of the names that may
    degree: int
    earlier: dict[int, set[str]]
    alike: set[str]  # what is the same for all examples
    slopes: Set[str]  # what is made to cross

    def of(self, needed: set[str]) -> set[str]:
        found: set[str] = set()
        todo, seen = list(needed), set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            makers = [s for s in self.head if name in assigned((s,))]
            if not makers:
                continue
            if name not in self.slopes and all(self._is_cheap(s) for s in makers):
                todo += [n for s in makers for n in read((s,))]
            elif name in self.types and self._whole(makers, needed):
                found.add(name)
            else:
                todo += [n for s in makers for n in read((s,))]
        return found

    def _is_cheap(self, stmt: Stmt) -> bool:
        cheap = assigned((stmt,)) <= self.alike or (isinstance(stmt, Assign) and not _costly(stmt.value))
        return (cheap or _is_stack(stmt)) and not self.earlier[id(stmt)]

    def _whole(self, makers: Sequence[Stmt], needed: set[str]) -> bool:
        """Whether all that is needed of these statements can be kept: else they run again anyway."""
        wanted = needed | {n for s in self.head if s not in makers for n in read((s,))}
        left = {n for s in makers for n in _leaves(s)} & wanted
        return all(n in self.types and degree(self.types[n]) <= self.degree for n in left)


def _alike(primal: Function, head: Sequence[Stmt]) -> set[str]:
    """Names of what parameters alone tell: a pullback makes it once, not one for each example."""
    if primal.batched:
        return set()
    told = {p.name for p in primal.params if p.role in ("param", "config")}
    found = {n for s in head for n in assigned((s,))}
    while True:
        plain = [s for s in head if read((s,)) <= told | found | assigned((s,)) and not _is_of_examples(s)]
        left = found - {n for s in head if not any(s is p for p in plain) for n in assigned((s,))}
        if left == found:
            return found
        found = left


def _is_of_examples(stmt: Stmt) -> bool:
    """Whether examples take ways of their own through it, or draw numbers."""
    calls = (e for s in walk_stmts((stmt,)) for x in stmt_exprs(s) for e in walk(x) if isinstance(e, Call))
    return any(isinstance(s, While) for s in walk_stmts((stmt,))) or any(ROWS[e.op].kind == "draw" for e in calls)


def _made_anyhow(head: Sequence[Stmt], rest: Sequence[Stmt], found: set[str]) -> set[str]:
    """Those of the names whose statements must run again: for another name that is needed and does not cross."""
    made: set[str] = set()
    while True:
        left = found - made
        again = clean([*(s for s in head if not assigned((s,)) & left), *rest])
        dropped = [s for s in head if assigned((s,)) & left and (_leaves(s) - left) & read(again)]
        if not dropped:
            return made
        made |= {n for s in dropped for n in assigned((s,)) & left}


def _leaves(stmt: Stmt) -> set[str]:
    """Names that what comes after may read: no counters."""
    lists = {s.list.id for s in walk_stmts((stmt,)) if isinstance(s, (Push, Pop))}
    return assigned((stmt,)) - _counters([stmt]) | lists


def _is_stack(stmt: Stmt) -> bool:
    """Whether it is a loop of few turns that stacks what arithmetic makes of one argument after the other: arithmetic,
    which is done where the stack is read, with nothing stored (see transpile/passes/sheets.py).

    before:  for i in range(4): items[i] = x ** i
    """
    if not isinstance(stmt, For) or (turns := trips(stmt.start, stmt.stop, stmt.step)) is None:
        return False
    if turns.value is None or turns.value > MOST_SHEETS or not all(isinstance(s, (Assign, Store)) for s in stmt.body):
        return False
    stacks = {s.base.id for s in stmt.body if isinstance(s, Store)}
    carried = live_before(stmt.body) & assigned(stmt.body) - stacks
    exprs = [e for s in stmt.body for e in stmt_exprs(s)]
    own = all(s.op is None and not s.scatter for s in stmt.body if isinstance(s, Store))
    return own and not carried and not stacks & {n for e in exprs for n in names(e)} and all(map(_is_arithmetic, exprs))


def _is_arithmetic(expr: Expr) -> bool:
    """Whether products and sums of elements make it: a power that turns tell is a few products."""
    calls = [e for e in walk(expr) if isinstance(e, Call)]
    dear = [e for e in calls if ROWS[e.op].flops >= DEAR and not (e.op == "power" and value_of(e.args[1]) is not None)]
    return not dear and not any(map(_is_costly, calls))


def _counters(body: Sequence[Stmt]) -> set[str]:
    """Of loops: extents and indices name them."""
    return {s.var for s in walk_stmts(tuple(body)) if isinstance(s, For)}


def _costly(expr: Expr) -> bool:
    return any(isinstance(e, Call) and _is_costly(e) for e in walk(expr))


def _is_costly(expr: Call) -> bool:
    return _is_more_than_arithmetic(expr) or ROWS[expr.op].kind == "reduce" or expr.op == "list"


def _is_more_than_arithmetic(call: Call) -> bool:
    return ROWS[call.op].kind in _MORE or is_product(call)
