"""Where an inner loop jumps through memory that the outer one runs along, they change places, a strip at a time.

    for j in 0..W:                                      for s in 0..(W + 63)//64:
        at = floor(x[j]); f = x[j] - at                     for j in the strip: at = ...; f = ...; at_row[j] = at; ...
        for c in 0..C:                            ->        for c in 0..C:
            check at < W                                        for j in the strip:
            y[c,j] = (1 - f) * a[c,at] + f * ...                    y[c,j] = (1 - f_row[j]) * a[c,at_row[j]] + ...

A stride that is a multiple of 4096 bytes, as the channels of an image have it, puts every element into the same few
lines of the first cache. What an iteration hands to the inner loop gets a row; what the inner loop asks of it (a
check) is asked once. Every place is written to in the order in which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..dims import Atom, Dim, Facts, minimum, product
from ..ir import Buffer, Check, Comment, Const, Expr, For, Int, Kernel, Load, Op, Stmt, Store
from .depend import Memory, injective
from .products import stride
from .tree import Access, Body, Index, Names, accesses, buffers, map_bodies, map_places, substitute, walk

STRIP = 64  # iterations: rows of them stay in the first cache


def interchange(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts)
    return replace(kernel, body=body, buffers=tuple(state.table.values()))


@dataclass
class _Nest:
    """A loop with another one in it, and what stands before and behind that."""

    loop: For
    inner: For
    before: Body
    after: Body
    checks: tuple[Check, ...]  # of the inner loop, which it does not change

    @property
    def asked(self) -> tuple[Check, ...]:
        """... each once, unless the inner loop does not run."""
        idle: Expr = Op("less_equal", (Int(self.inner.hi - self.inner.lo), Const(0, "i64")), "bool")
        first = {c.cond: c for c in reversed(self.checks)}
        kept = [c for c in self.checks if first[c.cond] is c]
        return tuple(replace(c, cond=Op("logical_or", (c.cond, idle), "bool")) for c in kept)


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.names = buffers(kernel), Names.of(kernel)

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(self.stmt(s, facts) for s in body)

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt:
        if isinstance(stmt, For):
            facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
            nest = _nest(stmt)
            if nest is not None and self.jumps(nest) and self.keeps_order(nest, facts):
                return self.changed(self.numbered(nest))
        return map_bodies(stmt, lambda inner: self.body(inner, facts))

    # -- whether -------------------------------------------------------------------------------------------------
    def jumps(self, nest: _Nest) -> bool:
        """Whether memory lies along the outer loop, and nothing of it along the inner one."""
        places = [a.index for a in accesses(nest.inner.body) if a.index]
        shapes = [self.table[a.buffer].shape for a in accesses(nest.inner.body) if a.index]
        inner = {_step(i, s, nest.inner.var) for i, s in zip(places, shapes, strict=True)}
        outer = {_step(i, s, nest.loop.var) for i, s in zip(places, shapes, strict=True)}
        return not inner & {1, -1} and bool(outer & {1, -1})

    def keeps_order(self, nest: _Nest, facts: Facts) -> bool:
        """Whether each iteration writes to places of its own, and all add to one place in the order in which they
        did."""
        within = {**facts, nest.inner.var: (nest.inner.lo, nest.inner.hi - 1)}
        for a in accesses(nest.loop.body):
            if not a.writes:
                continue
            if a.index is None:
                return False
            if not a.index:
                if not self.is_own(a.buffer, nest):
                    return False
            elif not injective(a.index, nest.loop.var, within):
                inside = any(a.buffer == b.buffer and a.index == b.index for b in accesses(nest.inner.body))
                if a.mode == "w" or not inside or not injective(a.index, nest.inner.var, within):
                    return False
        return True

    def is_own(self, name: str, nest: _Nest) -> bool:
        """Whether a variable is set by an iteration before it is used."""
        buffer = self.table[name]
        return buffer.kind == "temp" and not buffer.alias and _set_first(name, nest.loop.body)

    # -- how -----------------------------------------------------------------------------------------------------
    def numbered(self, nest: _Nest) -> _Nest:
        """Places that variables number along several axes, numbered by one: a[c, row, column] is a_flat[c, place]."""
        known = _written(nest.before)
        made: dict[tuple[Index, Index], str] = {}
        before = list(nest.before)

        def place(name: str, index: Index) -> tuple[str, Index]:
            shape = self.table[name].shape
            first = len(index)
            while first and (variable := _variable(index[first - 1])) is not None and variable.buffer in known:
                first -= 1
            if len(index) - first < 2:
                return name, index
            key = (index[first:], shape[first + 1 :])
            if key not in made:
                made[key] = self.names.fresh("place")
                self.table[made[key]] = Buffer(made[key], "i64", (), "temp")
                before.append(Store(made[key], (), _total(*key)))
            return self.flat(name, first), (*index[:first], _read(made[key]))

        inner = replace(nest.inner, body=map_places(nest.inner.body, place))
        return replace(nest, inner=inner, before=tuple(before))

    def flat(self, name: str, first: int) -> str:
        """The buffer with the axes from here on as one."""
        b = self.table[name]
        shape = (*b.shape[:first], product(b.shape[first:]))
        for other in self.table.values():
            if other.alias == (b.alias or name) and other.shape == shape:
                return other.name
        flat = Buffer(self.names.fresh(f"{name}_flat"), b.dtype, shape, "temp", alias=b.alias or name)
        self.table[flat.name] = flat
        return flat.name

    def changed(self, nest: _Nest) -> For:
        loop, inner = nest.loop, nest.inner
        s = self.names.fresh("strip")
        start = loop.lo + Dim.of(s) * STRIP
        count = minimum(Dim.of(STRIP), loop.hi - start)
        rows = self.rows(nest)
        kept = [Store(rows[n], (Dim.of(loop.var) - start,), Load(n, (), self.table[n].dtype)) for n in rows]
        kept = [x for x in kept if x.value.buffer in _written(nest.before)]  # type: ignore[union-attr]

        def place(name: str, index: Index) -> tuple[str, Index]:
            return (rows[name], (Dim.of(loop.var) - start,)) if name in rows else (name, index)

        def strip(body: Body) -> Body:
            var = self.names.fresh(loop.var)
            inside = substitute(body, {loop.var: start + Dim.of(var)})
            return (For(var, Dim.of(0), count, inside, "map"),) if body else ()

        work = tuple(x for x in inner.body if not isinstance(x, Check))
        pieces = (
            *strip((*nest.before, *kept)),
            *strip(map_places(nest.asked, place)),
            replace(inner, body=strip(map_places(work, place))),
            *strip(map_places(nest.after, place)),
        )
        return For(s, Dim.of(0), (loop.hi - loop.lo + (STRIP - 1)) // STRIP, pieces, "map")

    def rows(self, nest: _Nest) -> dict[str, str]:
        """The variables that one piece of an iteration leaves to another, and the rows that take their place."""
        pieces = (nest.before, nest.inner.body, nest.after)
        found: dict[str, str] = {}
        for name in sorted({n for piece in pieces for n in _written(piece)}):
            using = [k for k, piece in enumerate(pieces) if any(a.buffer == name for a in accesses(piece))]
            if len(using) > 1 or (using == [1] and not _set_first(name, nest.inner.body)):
                found[name] = self.names.fresh(f"{name}_row")
                self.table[found[name]] = Buffer(found[name], self.table[name].dtype, (Dim.of(STRIP),), "temp")
        return found


def _nest(loop: For) -> _Nest | None:
    if loop.kind != "map" or loop.parallel:
        return None
    body = tuple(s for s in loop.body if not isinstance(s, Comment))
    inner = [k for k, s in enumerate(body) if isinstance(s, For)]
    if len(inner) != 1:
        return None
    (k,) = inner
    before, middle, after = body[:k], body[k], body[k + 1 :]
    assert isinstance(middle, For)
    plain = all(isinstance(s, Store) for s in (*before, *after))
    simple = all(isinstance(s, (Store, Check, Comment)) for s in middle.body)
    if not plain or not simple or middle.parallel or loop.var in middle.lo.symbols() | middle.hi.symbols():
        return None
    own = {a.buffer for a in accesses(middle.body) if a.writes}
    checks = tuple(s for s in middle.body if isinstance(s, Check))
    for check in checks:
        if any(a.buffer in own or middle.var in _symbols(a) for a in accesses((check,))):
            return None
        if middle.var in {v for d in check.info for v in d.symbols()}:
            return None
    if any(isinstance(a, Load) for d in (middle.lo, middle.hi) for a in d.atoms()):
        return None
    return _Nest(loop, middle, before, after, checks)


def _variable(dim: Dim) -> Load | None:
    """The variable that an index is."""
    match dim.symbol:
        case Atom("load", (Load(_, (), "i64") as load,)):
            return load
    return None


def _read(name: str) -> Dim:
    return Dim.of(Atom("load", (Load(name, (), "i64"),)))


def _total(index: Index, extents: Index) -> Expr:
    """The place along several axes as one: (i * extent of the next axis + j)..."""
    total: Expr | None = None
    for dim, extent in zip(index, (Dim.of(1), *extents), strict=True):
        load = _variable(dim)
        assert load is not None
        above = total and Op("multiply", (total, Int(extent)), "i64")
        total = load if above is None else Op("add", (above, load), "i64")
    assert total is not None
    return total


def _symbols(a: Access) -> set[str]:
    return {s for d in a.index or () for s in d.symbols()}


def _written(body: Body) -> set[str]:
    """The variables that are set."""
    return {s.buffer for s in walk(body) if isinstance(s, Store) and not s.index}


def _set_first(name: str, body: Sequence[Stmt]) -> bool:
    """Whether a variable is set before it is asked for or added to."""
    for stmt in body:
        touching = [a for a in accesses((stmt,)) if a.buffer == name]
        if touching and isinstance(stmt, For):
            return _set_first(name, stmt.body)
        if touching:
            plain = isinstance(stmt, Store) and stmt.buffer == name and stmt.op is None
            return plain and all(a.mode == "w" for a in touching)
    return True


def _step(index: Index, shape: tuple[Dim, ...], var: str) -> int | None:
    """By how many elements a place moves with the variable, if that is a known number."""
    if any(d.split(var) is None for d in index):
        return None
    return stride(index, shape, var).value
