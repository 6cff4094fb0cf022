"""A loop in C: a call where a routine does it, in vectors, in blocks, shared among threads, or element by element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .dims import Atom, Dim, minimum
from .emit_blocks import Blocks, blocks_of
from .emit_edges import Edges, edges_of
from .emit_rows import copied, even_of, extreme_rectangle_of, extreme_row_of, row_of
from .emit_simd import pragma
from .emit_storage import Region
from .emit_tails import tail_of
from .emit_text import bare
from .emit_ties import First, Ties, first_of, ties_of
from .emit_vectors import Vectors
from .ir import Check, For, Grow, Load, Op, Stmt, Store, While
from .passes.tree import accesses, dim_loads, has, walk
from .passes.turned import turned_of
from .passes.work import FINER, WORTH

if TYPE_CHECKING:
    from .emit_function import Function


@dataclass(frozen=True)
class Exit:
    """How the code of a region leaves early: where to, and where it notes why."""

    label: str
    fault: str


def can_fail(body: tuple[Stmt, ...], allocates: bool) -> bool:
    return allocates or any(isinstance(s, (Check, Grow)) for s in walk(body))


class Loops:
    """The loops of a function. `by_element`: where there are no vectors."""

    def __init__(self, to: Function):
        self.to, self.spell = to, to.spell
        self.by_element = False

    def write(self, loop: For, path: tuple) -> None:
        if (loop.hi - loop.lo).value == 1 and has(loop.body, For):
            self.named(loop, path)
            return
        if not self.by_element and self.blocks(loop, path):
            return
        self.bounds(loop)
        if self.turned(loop) or self.row(loop):
            return
        line = self.pragma(loop, path)
        vectors = self.vectors(loop, path, line) if line and not self.by_element else None
        if vectors and vectors.are_worth():
            self.spell.in_vectors = True
            vectors.write()
            self.spell.in_vectors = False
            return
        self.to.fetch_all(loop)
        if line:
            self.to.put(line)
        self.open(loop)
        self.spell.in_vectors = bool(line)
        self.to.inside(loop.body, path)
        self.spell.in_vectors = False
        self.to.put("}")
        del self.spell.facts[loop.var]

    def outer(self, name: str, path: tuple) -> str | None:
        """The type of a variable that is declared outside of the loop there."""
        inside = any(b.name == name for p, bs in self.to.storage.locals.items() if p[: len(path)] == path for b in bs)
        return None if inside or name not in self.spell.local else self.spell.ctype(self.spell.table[name].dtype)

    def pragma(self, loop: For, path: tuple) -> str:
        """What stands above a loop that is vectorised; "" above others."""
        line = pragma(loop, lambda name: self.outer(name, path), self.spell.facts, self.to.root) or ""
        for name in sorted(self.spell.local, key=len, reverse=True) if line else ():
            if self.spell.names[name] != name:
                line = line.replace(name, self.spell.names[name])
        return line

    def vectors(self, loop: For, path: tuple, line: str, blocks: Blocks | None = None) -> Vectors:
        """A vectorised loop, to be written vector by vector where that is worth it."""
        stores = [s for s in walk(loop.body) if isinstance(s, Store)]
        sums = {s.buffer for s in stores if not s.index and self.outer(s.buffer, path) is not None}
        edges = edges_of(loop, self.spell.table, self.to.root, self.to.dtype)
        if edges:
            return Edges(self.to, loop, path, line, edges, sums)
        tail = tail_of(loop, self.spell.table, self.to.root, self.to.dtype)
        return Vectors(self.to, loop, path, line, tail, sums, blocks)

    def blocks(self, loop: For, path: tuple) -> bool:
        """Whether the loop is written as blocks of a sum that are one loop."""
        blocks = blocks_of(loop, self.spell.table)
        if blocks is None:
            return False
        inner = (*path, (blocks.at, 0))
        line = self.pragma(blocks.loop, inner)
        vectors = self.vectors(blocks.loop, inner, line, blocks) if line else None
        if vectors is None or not vectors.has_blocks():
            return False
        bound = dict(self.spell.bound)
        self.to.put("#if LC_LANES")
        self.to.put("{")
        self.to.depth += 1
        waiting = self.to.declare(loop.body, path)
        for stmt in blocks.begun:
            self.to.store(stmt, waiting)
        self.bounds(blocks.loop)
        self.spell.in_vectors = True
        vectors.write()
        self.spell.in_vectors = False
        for stmt in blocks.added:
            self.to.store(stmt, waiting)
        self.to.close()
        self.to.put("#else")
        self.spell.bound, self.by_element = dict(bound), True
        self.write(loop, path)
        self.spell.bound, self.by_element = bound, False
        self.to.put("#endif")
        return True

    def row(self, loop: For) -> bool:
        """Whether the loop is written as a row."""
        if (found := extreme_row_of(loop, self.spell.table)) is not None and found[0].buffer in self.spell.local:
            self.extreme(loop, None, *found)
            return True
        whole = extreme_rectangle_of(loop, self.spell.table)
        if whole is not None and whole[1].buffer in self.spell.local:
            row, store, source = whole
            self.extreme(row, loop, store, source)
            return True
        ties = ties_of(loop, self.spell.table, self.to.root)
        if ties is not None and (ties.share is not None or ties.store.buffer in self.spell.local):
            self.ties(ties)
            return True
        first = first_of(loop, self.spell.table)
        if first is not None and first.store.buffer in self.spell.local:
            self.first(first)
            return True
        found = even = even_of(loop, self.spell.table)
        if even and self.to.root[even[0].buffer] == self.to.root[even[1].buffer]:
            return False
        found = found or (copied(loop) if loop.past else row_of(loop, self.spell.table))
        if found is None or any(self.spell.root(place.buffer).name in self.spell.local for place in found):
            return False
        store, source = found
        begins = {loop.var: loop.lo}
        target = self.to.address(Load(store.buffer, tuple(d.subs(begins) for d in store.index), source.dtype))
        verb = "lc_even" if even else "lc_past" if loop.past else "lc_add" if store.op else "lc_copy"
        kind = self.spell.kind(self.spell.root(store.buffer).dtype)
        self.to.put(f"{verb}_{kind}({target}, {self.to.address(source.subs(begins))}, {self.length(loop)});")
        return True

    def length(self, loop: For) -> str:
        """How many iterations a loop has, by the names of its bounds where they have names."""
        named = loop.lo in self.spell.bound and loop.hi in self.spell.bound
        return f"{self.spell.dim(loop.hi)} - {self.spell.dim(loop.lo)}" if named else self.spell.dim(loop.hi - loop.lo)

    def turned(self, loop: For) -> bool:
        """Whether the loop is written as columns that become rows."""
        found = turned_of(loop, self.spell.table)
        if found is None or any(self.spell.root(x.buffer).name in self.spell.local for x in found[:2]):
            return False
        store, source, read, stored = found
        self.bounds(stored if read is loop else read)
        begins = {x.var: x.lo for x in (read, stored)}
        target = Load(store.buffer, store.index, source.dtype)
        places = [
            f"{self.to.address(place.subs(begins))}, {self.to.strides(place, (var,))[0]}"
            for place, var in ((target, read.var), (source, stored.var))
        ]
        extents = ", ".join(self.spell.dim(x.hi - x.lo) for x in (read, stored))
        kind = self.spell.kind(self.spell.root(store.buffer).dtype)
        self.to.put(f"lc_columns_{kind}({', '.join(places)}, {extents});")
        return True

    def named(self, loop: For, path: tuple) -> None:
        """A loop of one iteration: its variable is a name for a number, of no other loop or buffer."""
        bound = dict(self.spell.bound)
        self.to.put(f"const int64_t {self.spell.names.add(loop.var)} = {bare(self.spell.dim(loop.lo))};")
        self.spell.facts[loop.var] = (loop.lo, loop.lo)
        self.to.body(loop.body, path)
        del self.spell.facts[loop.var]
        self.spell.bound = bound

    def extreme(self, loop: For, rows: For | None, store: Store, source: Load) -> None:
        """The largest of a row, or of several."""
        place, kind = self.spell.place(store.buffer, ()), self.spell.kind(source.dtype)
        verb = "lc_largest" if store.op == "max" else "lc_least"
        if isinstance(store.value, Op):
            verb = "lc_farthest" if store.value.op == "abs" else f"{verb}_number"
        begins = self.to.address(source.subs({x.var: x.lo for x in (loop, rows) if x}))
        row = f"{verb}_{kind}({begins}, {self.length(loop)})"
        if rows:
            step = self.to.strides(source, (rows.var,))[0]
            row = f"{verb}_in_{kind}({begins}, {self.length(rows)}, {step}, {self.length(loop)})"
        self.to.put(f"{place} = lc_{store.op}{'f' if kind == 'f32' else ''}({place}, {row});")

    def first(self, first: First) -> None:
        """The first place where a row has a number."""
        place, kind = self.spell.place(first.store.buffer, ()), self.spell.kind(first.source.dtype)
        begins = self.to.address(first.source.subs({first.row.var: first.row.lo}))
        number, length = bare(self.spell.expr(first.number)), self.length(first.row)
        there = f"lc_first_{kind}({begins}, {length}, {number})"
        there = f"lc_place({there}, {self.spell.dim(first.begin)}, {self.spell.dim(first.none)})"
        self.to.put(f"if ({length} > 0) {place} = lc_smaller({place}, {there});")

    def ties(self, ties: Ties) -> None:
        if ties.rows is None:
            self.to.fetch_all(ties.row)
        begins = {x.var: x.lo for x in (ties.rows, ties.row) if x}
        kind = self.spell.kind(ties.source.dtype)

        def rows(place: Load) -> tuple[str, str]:
            step = self.to.strides(place, (ties.rows.var,))[0] if ties.rows else "0"
            return self.to.address(place.subs(begins)), step

        at, step = rows(ties.source)
        size = (self.length(ties.rows) if ties.rows else "1", step, self.length(ties.row))
        number = bare(self.spell.expr(ties.number))
        if ties.share is None:
            call = f"lc_equal_in_{kind}({', '.join((at, *size, number))})"
            self.to.put(f"{self.spell.place(ties.store.buffer, ())} += {call};")
        else:
            target = rows(Load(ties.store.buffer, ties.store.index, ties.source.dtype))
            share = bare(self.spell.expr(ties.share))
            self.to.put(f"lc_give_in_{kind}({', '.join((*target, at, *size, number, share))});")

    def bounds(self, loop: For) -> None:
        """Gives a variable to bounds that are more than a sum, and to each of two numbers of chunks."""
        counts = [
            Dim.of(a) for a in loop.hi.atoms() if loop.parallel and isinstance(a, Atom) and a.kind in ("min", "max")
        ]
        for dim in sorted(counts, key=lambda d: (len(str(d)), str(d))):  # what stands in another first
            if dim not in self.spell.bound and dim != loop.hi:
                name = self.spell.names.add(self.to.fresh.fresh("parts"))
                self.to.put(f"const int64_t {name} = {bare(self.spell.dim(dim))};")
                self.spell.bound[dim] = name
        for dim, word in ((loop.lo, "from"), (loop.hi, "to")):
            if dim not in self.spell.bound and any(isinstance(a, Atom) and a.kind != "load" for a in dim.atoms()):
                name = "chunks" if loop.parallel else f"{self.spell.names.add(loop.var)}_{word}"
                name = self.spell.names.add(self.to.fresh.fresh(name))
                self.to.put(f"const int64_t {name} = {bare(self.spell.dim(dim))};")
                self.spell.bound[dim] = name
        self.rows_around(loop)

    def rows_around(self, loop: For) -> None:
        """Gives a variable to a place around an axis that an innermost loop does not change: in the loop, gcc would not
        see that it runs along memory."""
        if has(loop.body, For, While):
            return
        atoms = (x for a in accesses(loop.body) for d in a.index or () for x in d.atoms() if isinstance(x, Atom))
        for atom in sorted(set(atoms), key=lambda x: (len(str(x)), str(x))):  # what stands in another first
            place = Dim.of(atom)
            if atom.kind != "mod" or atom.args[1].value is not None or place in self.spell.bound:
                continue
            if loop.var in place.symbols() or any(dim_loads(place)):
                continue
            name = self.spell.names.add(self.to.fresh.fresh("around"))
            self.to.put(f"const int64_t {name} = {bare(self.spell.dim(place))};")
            self.spell.bound[place] = name

    def open(self, loop: For) -> None:
        var = self.spell.names.add(loop.var)
        lo, hi = self.spell.dim(loop.lo), self.spell.dim(loop.hi)
        self.spell.facts[loop.var] = (loop.lo, loop.hi - 1)
        self.to.put(f"for (int64_t {var} = {lo}; {var} < {hi}; {var}++) {{")

    def parallel(self, loop: For, path: tuple) -> None:
        """Iterations share nothing but faults: the first one in order of the index is reported."""
        region = self.to.storage.regions.get(path, Region(loop, path))
        fails = can_fail(loop.body, False)
        outside, panels, number = (
            self.to.exit,
            self.to.panels,
            sum("lc_first" in line and "int64_t" in line for line in self.to.lines) + 1,
        )
        self.bounds(loop)
        work = f" && {self.spell.tight(loop.work)}" if loop.work is not None else ""
        if work and loop.coarse is not None:
            work += f"*{self.spell.tight(minimum(Dim.of(FINER), loop.coarse))} > {FINER * WORTH}"
        elif work:
            work += f" > {WORTH}"
        if loop.hi.value is None:
            work += f" && {self.spell.tight(loop.hi)} > 1"
        bound = dict(self.spell.bound)
        if fails:
            self.to.put(f"int64_t lc_first{number} = INT64_MAX;")
        many, caller = (self.spell.names.add(self.to.fresh.fresh(n)) for n in ("many", "caller"))
        self.to.put(f"const int {many} = lc_threads > 1{work};")
        self.to.put(f"const lc_caller {caller} = lc_calling({many} ? lc_threads : 1);")
        self.to.put(f"#pragma omp parallel for schedule(static) num_threads(lc_threads) if({many})")
        self.open(loop)
        self.to.depth += 1
        if fails:
            self.to.exit = Exit(f"lc_next{number}", f"lc_fault{number}")
            self.to.put(f"lc_fault_t {self.to.exit.fault} = {{0, {{0}}}};")
        self.to.put(f"const unsigned lc_own_mode = lc_join({caller});")
        self.to.lists(region)
        self.to.enter(replace(region, loop=loop))
        self.to.body(loop.body, path)
        if fails:
            self.to.lines.append(f"{self.to.exit.label}:")
            self.to.put(f"if ({self.to.exit.fault}.code) {{")
            self.to.put("    #pragma omp critical(lc_faults)")
            self.to.put(
                f"    if ({(var := self.spell.names[loop.var])} < lc_first{number}) "
                f"{{ lc_first{number} = {var}; {outside.fault} = {self.to.exit.fault}; }}"
            )
            self.to.put("}")
        self.to.leave(region)
        if any(isinstance(s, For) and s.past for s in walk(loop.body)):
            self.to.put("LC_FENCE();")
        self.to.put("lc_round_again(lc_own_mode);")
        self.to.close()
        self.to.exit, self.to.panels = outside, panels
        self.spell.bound = bound
        if fails:
            self.to.put(f"if (lc_first{number} != INT64_MAX) goto {outside.label};")
        del self.spell.facts[loop.var]
