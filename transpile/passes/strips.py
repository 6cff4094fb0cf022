"""A loop around a loop, cut into strips: what an iteration hands to the inner loop gets a row, and what the inner loop
asks of it (a check) is asked once.

    for j in 0..W:                                      for s in 0..(W + 63)//64:
        at = floor(x[j]); f = x[j] - at                     for j in the strip: at = ...; f = ...; at_row[j] = at; ...
        for c in 0..C:                            ->        for j in the strip: check at_row[j] < W
            check at < W                                    (the inner loop as `interchange` and `channels` want it:
            y[c,j] = (1 - f) * a[c,at] + f * ...             it reads f_row[j] and at_row[j])

Every place is written to in the order in which it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..dims import Atom, Dim, Facts, minimum, product
from ..ir import Buffer, Check, Comment, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .depend import injective
from .products import step
from .tree import (
    Access,
    Body,
    Index,
    Names,
    accesses,
    buffers,
    dim_loads,
    map_places,
    own_accesses,
    parts,
    substitute,
    walk,
)

STRIP = 64  # iterations: rows of them stay in the first cache


@dataclass
class Nest:
    """A loop with another one in it, and what stands before and behind that."""

    loop: For
    before: Body
    middle: For  # the inner loop, or the loop over its blocks
    after: Body

    @property
    def inner(self) -> For:
        return next((s for s in self.middle.body if isinstance(s, For)), self.middle)

    @property
    def range(self) -> tuple[Dim, Dim]:
        """From where to where the inner loop runs, all blocks together."""
        if self.middle is self.inner:
            return self.inner.lo, self.inner.hi
        end = _end_of_blocks(self.middle, self.inner)
        assert end is not None
        return self.inner.lo.subs({self.middle.var: Dim.of(0)}), end

    @property
    def checks(self) -> tuple[Check, ...]:
        """Those of the inner loop, each once, unless the inner loop does not run."""
        idle: Expr = Op("less_equal", (Int(self.middle.hi - self.middle.lo), Const(0, "i64")), "bool")
        found = {s.cond: s for s in reversed(self.inner.body) if isinstance(s, Check)}
        kept = [s for s in self.inner.body if isinstance(s, Check) and found[s.cond] is s]
        return tuple(replace(s, cond=Op("logical_or", (s.cond, idle), "bool")) for s in kept)


class Strip:
    """One strip of a nest: the iterations from `start` on, and the rows that take the place of variables."""

    def __init__(self, loop: For, start: Dim, rows: dict[str, str], names: Names) -> None:
        self.var, self.start, self.rows, self.names = loop.var, start, rows, names
        self.count = minimum(Dim.of(STRIP), loop.hi - start)

    def over(self, body: Body) -> Body:
        """A loop over the strip."""
        if not body:
            return ()
        var = self.names.fresh(self.var)
        inside = substitute(map_places(body, self.place), {self.var: self.start + Dim.of(var)})
        return (For(var, Dim.of(0), self.count, inside, "map"),)

    def place(self, name: str, index: Index) -> tuple[str, Index]:
        return (self.rows[name], (Dim.of(self.var) - self.start,)) if name in self.rows else (name, index)


class Strips:
    """What cuts the nests of a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.table, self.names = buffers(kernel), Names.of(kernel)

    # -- whether -------------------------------------------------------------------------------------------------
    def jumps(self, nest: Nest) -> bool:
        """Whether memory lies along the outer loop, and nothing of it along the inner one."""
        places = [(a.index, self.table[a.buffer].shape) for a in accesses(nest.inner.body) if a.index]
        inner = {step(index, shape, nest.inner.var) for index, shape in places}
        outer = {step(index, shape, nest.loop.var) for index, shape in places}
        return not inner & {1, -1} and bool(outer & {1, -1})

    def keeps_order(self, nest: Nest, facts: Facts) -> bool:
        """Whether each iteration writes to places of its own, and all add to one place in the order in which they
        did."""
        within = {**facts, **{x.var: (x.lo, x.hi - 1) for x in (nest.middle, nest.inner)}}
        inside_of = {nest.middle.var, nest.inner.var}
        for a in accesses(nest.loop.body):
            if not a.writes:
                continue
            if a.index is None:
                return False
            if not a.index:
                if not self.is_own(a.buffer, nest):
                    return False
            elif not injective(tuple(d for d in a.index if not d.symbols() & inside_of), nest.loop.var, within):
                inside = any(a.buffer == b.buffer and a.index == b.index for b in accesses(nest.inner.body))
                if a.mode == "w" or not inside or not injective(a.index, nest.inner.var, within):
                    return False
        return True

    def is_own(self, name: str, nest: Nest) -> bool:
        """Whether a variable is set by an iteration before it is used."""
        buffer = self.table[name]
        return buffer.kind == "temp" and not buffer.alias and set_first(name, nest.loop.body)

    # -- how -----------------------------------------------------------------------------------------------------
    def numbered(self, nest: Nest) -> Nest:
        """Places that variables number along several axes, numbered by one: a[c, row, column] is a_flat[c, place]."""
        known = _written(nest.before) - _written(nest.middle.body)
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

        middle = replace(nest.middle, body=map_places(nest.middle.body, place))
        return replace(nest, middle=middle, before=tuple(before))

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

    def cut(self, nest: Nest, pieces: Sequence[Body], middle: Callable[[Strip], Body]) -> For:
        """The nest in strips. `pieces`: what stays together of it; `middle`: what a strip does of the inner loop."""
        loop, written = nest.loop, _written(nest.before)
        s = self.names.fresh("strip")
        start = loop.lo + Dim.of(s) * STRIP
        strip = Strip(loop, start, self.rows(nest, pieces), self.names)
        there = (Dim.of(loop.var) - start,)
        kept = [Store(row, there, Load(n, (), self.table[n].dtype)) for n, row in strip.rows.items() if n in written]
        first = Strip(loop, start, {}, self.names)  # it sets the variables
        body = (*first.over((*nest.before, *kept)), *strip.over(nest.checks), *middle(strip), *strip.over(nest.after))
        return For(s, Dim.of(0), (loop.hi - loop.lo + (STRIP - 1)) // STRIP, body, "map")

    def rows(self, nest: Nest, pieces: Sequence[Body]) -> dict[str, str]:
        """The variables that one piece of an iteration leaves to another, or to itself, and the rows that take their
        place."""
        found: dict[str, str] = {}
        for name in sorted({n for piece in pieces for n in _written(piece)}):
            using = [piece for piece in pieces if any(a.buffer == name for a in accesses(piece))]
            asked = any(a.buffer == name for a in accesses(nest.checks))
            if len(using) > 1 or asked or not set_first(name, using[0]):
                found[name] = self.names.fresh(f"{name}_row")
                self.table[found[name]] = Buffer(found[name], self.table[name].dtype, (Dim.of(STRIP),), "temp")
        return found


def nest_of(loop: For) -> Nest | None:
    if loop.kind != "map" or loop.parallel:
        return None
    body = tuple(s for s in loop.body if not isinstance(s, Comment))
    inner = [k for k, s in enumerate(body) if isinstance(s, For)]
    if len(inner) != 1:
        return None
    (k,) = inner
    middle = body[k]
    assert isinstance(middle, For)
    nest = Nest(loop, body[:k], middle, body[k + 1 :])
    outside = [*nest.before, *nest.after, *(s for s in middle.body if s is not nest.inner and middle is not nest.inner)]
    stores = all(isinstance(s, (Store, Comment)) for s in outside)
    plain = all(isinstance(s, (Store, Check, Comment)) for s in nest.inner.body)
    whole = middle is nest.inner or _end_of_blocks(middle, nest.inner) is not None
    fixed = not any(loop.var in d.symbols() or dim_loads(d) for x in (middle, nest.inner) for d in (x.lo, x.hi))
    return nest if stores and plain and whole and fixed and _asks_once(nest) else None


def _end_of_blocks(outer: For, inner: For) -> Dim | None:
    """Where two loops end that are one, in blocks of so many iterations (see accumulate)."""
    split = inner.lo.split(outer.var)
    if outer.kind != inner.kind or outer.lo != Dim.of(0) or split is None or split[0].value is None:
        return None
    size, start = split[0].value, split[1]
    for atom in inner.hi.atoms():
        for end in atom.args if isinstance(atom, Atom) and atom.kind == "min" else ():
            blocks = isinstance(end, Dim) and outer.hi == (end - start + (size - 1)) // size
            if blocks and inner.hi == minimum(end, inner.lo + size):
                return end
    return None


def _asks_once(nest: Nest) -> bool:
    """Whether the inner loop changes nothing of what it checks."""
    own = {a.buffer for a in accesses((nest.middle,)) if a.writes}
    variables = {nest.middle.var, nest.inner.var}
    for stmt in nest.inner.body:
        if isinstance(stmt, Check):
            told = {v for d in stmt.info for v in d.symbols()}.union(*(_symbols(a) for a in accesses((stmt,))))
            asked = {s for part in parts(stmt.cond) if isinstance(part, Int) for s in part.dim.symbols()}
            if (told | asked) & variables or any(a.buffer in own for a in accesses((stmt,))):
                return False
    return True


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


def set_first(name: str, body: Sequence[Stmt]) -> bool:
    """Whether a variable is set before it is asked for or added to, on each way."""
    return _set(name, body, False) is not None


def _set(name: str, body: Sequence[Stmt], known: bool) -> bool | None:
    """Whether it is set behind the body, if it is (not) before; None where it is asked for and may not be."""
    for stmt in body:
        if not known and any(buffer == name and mode != "w" for buffer, _, mode in own_accesses(stmt)):
            return None
        match stmt:
            case Store(buffer, op=None) if buffer == name:
                known = True
            case If(_, then, orelse):
                ways = [_set(name, way, known) for way in (then, orelse)]
                if None in ways:
                    return None
                known = all(ways)
            case For(body=inner):
                if (found := _set(name, inner, known)) is None:
                    return None
                known = found  # a loop that sets it runs, where it is asked for behind
            case _ if not known and any(a.buffer == name for a in accesses((stmt,))):
                return None
    return known
