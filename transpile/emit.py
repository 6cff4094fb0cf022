"""Kernel x float type -> C text, its header, and its declaration for cffi.

    int LC_NAME(mish_f32)(int64_t batch, int64_t S, const float *restrict x, float *restrict y, lc_call *call)

The text is meant to be read: one function a kernel, loops as the IR has them, temporaries where
`emit_storage` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .dims import Atom, Dim, minimum, product
from .emit_edges import Edges, edges_of
from .emit_rows import copied, extreme_row_of, row_of
from .emit_simd import pragma
from .emit_storage import Region, Storage, plan, stored_first
from .emit_tails import tail_of
from .emit_text import C_OPS, C_TYPES, Speller, bare, extreme
from .emit_vectors import Vectors
from .ir import Buffer, Check, Comment, Expr, For, Grow, If, Kernel, Load, Op, Product, Stmt, Store, While
from .operations import ROWS
from .passes.overwrite import overwrites
from .passes.products import stride
from .passes.tree import Names, has, own_accesses, own_exprs, parts, roots, walk
from .passes.turned import turned_of
from .passes.work import FINER, WORTH
from .rounding import MARK, in_one_way

Job = tuple[Kernel, str]  # a kernel and its float type, "f32" or "f64"

CALL = """\
#ifndef LC_CALL
#define LC_CALL
/* threads: how many may be used (0: one). code, info: set when a call fails; code 1: out of memory. */
typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;
#endif
#ifndef LC_NAME
#define LC_NAME(name) name
#endif
"""


def c_file(
    jobs: Sequence[Job], prelude: str | None = None, title: str = "", functions: Sequence[str] | None = None
) -> str:
    """The C text of a library: prelude (default: math.h of this folder), what kernels need, the kernels (`functions`:
    their text, where it is known)."""
    head = f"/* {_comment(title)} */\n" if title else ""
    return head + "\n".join(pieces(jobs, prelude, functions))


def pieces(jobs: Sequence[Job], prelude: str | None = None, functions: Sequence[str] | None = None) -> list[str]:
    """The C text of a library, or of some of its functions, in pieces that are found in the text of the whole."""
    here = Path(__file__).parent
    prelude = (here / "math.h").read_text(encoding="utf-8") if prelude is None else prelude
    support = (here / "support.h").read_text(encoding="utf-8")
    if any(_draws(k) for k, _ in jobs):
        support += (here / "random.h").read_text(encoding="utf-8")
    functions = functions or [function(k, d) for k, d in jobs]
    begin = "#include <math.h>\n#include <stdint.h>\n" + CALL
    return [begin, prelude, support, *templates("\n".join(functions)), *functions]


def _draws(kernel: Kernel) -> bool:
    exprs = (e for stmt in walk(kernel.body) for e in own_exprs(stmt))
    return any(isinstance(p, Op) and ROWS[p.op].kind == "draw" for e in exprs for p in parts(e))


def templates(functions: str) -> list[str]:
    """The files of functions for both float types: for each type that the text has names of theirs for."""
    made = []
    for file, names in (
        ("rows.h", ("lc_copy_{}(", "lc_add_{}(", "lc_largest_{}(", "lc_least_{}(", "lc_farthest_{}(")),
        ("turn.h", ("lc_columns_{}(",)),
        ("past.h", ("lc_past_{}(",)),
        ("parts.h", ("lc_wide_{}",)),
        ("gemm.h", ("lc_product_{}(",)),
    ):
        text = (Path(__file__).parent / file).read_text(encoding="utf-8")
        for t in ("f32", "f64"):
            if any(name.format(t) in functions for name in names):
                head = f"#define LC_REAL {C_TYPES[t]}\n#define LC_AS(name) name##_{t}\n"
                made.append(f"{head}{text}#undef LC_REAL\n#undef LC_AS\n")
    return made


def _kind(stmt: Product, kernel: Kernel, dtype: str) -> str:
    """The float type of a product."""
    return Speller(kernel, dtype).kind(stmt.left.dtype)


def header(jobs: Sequence[Job], guard: str = "LC_LAYERS_H", title: str = "") -> str:
    """A plain C header; C++ may include it too."""
    head = f"/* {_comment(title)} */\n" if title else ""
    lines = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        CALL,
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    lines += [prototype(k, d, restrict="") + ";" for k, d in jobs]
    lines += ["#ifdef __cplusplus", "}", "#endif", "#endif"]
    return head + "\n".join(lines) + "\n"


def cdef(jobs: Sequence[Job]) -> str:
    """What cffi's `cdef` takes: every array a `void *`, so that `ffi.from_buffer` needs no cast."""
    lines = ["typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;"]
    for kernel, dtype in jobs:
        arguments = ", ".join(
            f"void *{a.split()[-1].lstrip('*')}" if "*" in a and not a.startswith("lc_call") else a
            for a in _arguments(kernel, dtype, "")
        )
        lines.append(f"int {symbol(kernel, dtype)}({arguments});")
    return "\n".join(lines) + "\n"


def symbol(kernel: Kernel, dtype: str) -> str:
    return f"{kernel.name}_{dtype}"


def prototype(kernel: Kernel, dtype: str, restrict: str = "restrict ") -> str:
    return f"int LC_NAME({symbol(kernel, dtype)})({', '.join(_arguments(kernel, dtype, restrict))})"


def _arguments(kernel: Kernel, dtype: str, restrict: str) -> list[str]:
    spell = Speller(kernel, dtype)
    sizes = (kernel.batch, *kernel.dims) if kernel.batch and kernel.batch not in kernel.dims else kernel.dims
    found = [f"int64_t {spell.names.add(d)}" for d in sizes]
    for s in kernel.scalars:
        found.append(f"{'double' if s.dtype in ('real', 'f32', 'f64') else 'int64_t'} {spell.names[s.name]}")
    shared = {name for pair in overwrites(kernel) for name in pair} if restrict else ()
    for b in kernel.buffers:
        if b.kind in ("in", "out") and not b.alias:
            const = "const " if b.kind == "in" else ""
            found.append(f"{const}{spell.ctype(b.dtype)} *{'' if b.name in shared else restrict}{spell.names[b.name]}")
    return [*found, "lc_call *call"]


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")


def function(kernel: Kernel, dtype: str) -> str:
    """The C function of a kernel."""
    return _Function(kernel, dtype).text()


@dataclass(frozen=True)
class _Exit:
    """How the code of a region leaves early: where to, and where it notes why."""

    label: str
    fault: str


class _Function:
    def __init__(self, kernel: Kernel, dtype: str):
        self.kernel, self.dtype = kernel, dtype
        self.spell = Speller(kernel, dtype)
        if kernel.batch:
            self.spell.names.add(kernel.batch)
        self.root = roots(kernel)
        self.storage: Storage = plan(kernel, dtype)
        self.spell.local = {b.name for locals_ in self.storage.locals.values() for b in locals_}
        self.constant = _stored_once(kernel, self.spell.local)
        self.fresh = Names.of(kernel)
        self.lines: list[str] = []
        self.depth = 1
        self.exit = _Exit("lc_done", "lc_fault")
        self.regions = 0
        self.panels = ""  # where the products of this region pack their operands
        self.masked: set[str] = set()  # what is stored to
        self.mask = ""  # only where this holds
        self.carried: dict[str, str] = {}  # variable -> the lanes that loops add up in for it

    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # -- the whole -------------------------------------------------------------------------------------------
    def text(self) -> str:
        kernel, regions = self.kernel, self.storage.regions
        fails = can_fail(kernel.body, any(r.in_arena for r in regions.values()))
        threads = any(isinstance(s, (For, Product)) and s.parallel for s in walk(kernel.body))
        if threads:
            self.put("const int lc_threads LC_USED = call && call->threads > 0 ? call->threads : 1;")
        if fails:
            self.put("lc_fault_t lc_fault = {0, {0}};")
        if kernel.flush:
            self.put("const unsigned lc_mode = lc_flush();")
        self.lists(regions[()])  # first: the way out frees them, wherever it starts from
        self.arena()
        self.enter(regions[()])
        self.body(kernel.body, ())
        if fails:
            self.lines.append("lc_done:")
            self.leave(regions[()])
            if any(r.in_arena for r in regions.values()):
                self.put("lc_give(lc_arena);")
        if kernel.flush:
            self.put("lc_gradual(lc_mode);")
        if fails:
            self.put("return lc_leave(call, &lc_fault);")
        else:
            self.put("return lc_leave(call, 0);")
        used = "\n".join(self.lines)
        words = set(re.findall(r"\w+", used))
        arguments = (a.split()[-1].lstrip("*") for a in _arguments(kernel, self.dtype, ""))
        unused = [n for n in arguments if n not in words]
        voids = ["    " + " ".join(f"(void){n};" for n in unused)] if unused else []
        mark = MARK if in_one_way(kernel, used) else ""
        return mark + "\n".join([prototype(kernel, self.dtype), "{", *voids, *self.lines, "}", ""])

    def arena(self) -> None:
        """One allocation for every temporary that needs one: offsets first, then the memory."""
        regions = [r for _, r in sorted(self.storage.regions.items()) if r.in_arena]  # numbered as they are entered
        if not regions:
            return
        self.put("size_t lc_room = 0;")
        loops = sum(r.loop is not None for r in regions)
        for region in regions:
            if region.loop is not None:
                self.regions += 1
                if self.regions == 1:
                    self.put("const size_t lc_base = lc_room;")
                    self.put("size_t lc_most = lc_room;")
                else:  # one loop runs after the other: they use the same memory
                    self.put("lc_room = lc_base;")
            for b in region.arena:
                extents = ", ".join(self.spell.dim(d) for d in region.bounds[b.name]) or "1"
                count = max(len(b.shape), 1)
                self.put(
                    f"const size_t lc_at_{self.spell.names[b.name]} = lc_reserve(&lc_room, "
                    f"sizeof({self.spell.ctype(b.dtype)}), (const int64_t[]){{{extents}}}, {count});"
                )
            if region.products:
                rooms = [self.room(p) for p in region.products]
                room = rooms[0]
                for other in rooms[1:]:
                    room = room if other == room else f"lc_larger({room}, {other})"
                at = f"lc_at_panels{self.regions}"
                self.put(f"const size_t {at} = lc_reserve(&lc_room, 1, (const int64_t[]){{{room}}}, 1);")
            if region.loop is not None:
                self.put(f"const size_t lc_step{self.regions} = lc_copies(&lc_room, lc_base, lc_threads);")
                self.put("if (lc_room > lc_most) lc_most = lc_room;")
        self.put(f"char *const lc_arena = lc_take({'lc_most' if loops else 'lc_room'});")
        self.put("if (!lc_arena) { lc_fault.code = 1; goto lc_done; }")
        self.regions = 0

    def enter(self, region: Region) -> None:
        names = self.spell.names
        for b in region.stack:
            size = max(product(region.bounds[b.name]).value or 0, 1)
            self.put(f"{self.spell.ctype(b.dtype)} {names[b.name]}[{size}] __attribute__((aligned(64)));")
        base, number = "lc_arena", 0
        if region.in_arena and region.loop is not None:
            self.regions += 1
            number = self.regions
            base = f"lc_mine{self.regions}"
            self.put(f"char *const {base} = lc_arena + (size_t)lc_thread() * lc_step{self.regions};")
        for b in region.arena:
            ctype = self.spell.ctype(b.dtype)
            self.put(f"{ctype} *restrict const {names[b.name]} = ({ctype} *)({base} + lc_at_{names[b.name]});")
        if region.products:
            self.panels = f"{base} + lc_at_panels{number}"

    def lists(self, region: Region) -> None:
        for b in region.lists:
            name = self.spell.names[b.name]
            room = f"lc_heap_{name} = 0; int64_t lc_room_{name} = 0;"
            self.put(f"{self.spell.ctype(b.dtype)} *{name} = 0, *{room}")

    def leave(self, region: Region) -> None:
        for b in region.lists:
            self.put(f"free(lc_heap_{self.spell.names[b.name]});")

    # -- statements ------------------------------------------------------------------------------------------
    def body(self, body: tuple[Stmt, ...], path: tuple) -> None:
        waiting = self.declare(body, path)
        for position, stmt in enumerate(body):
            self.stmt(stmt, (*path, (position, 0)), waiting)

    def declare(self, body: tuple[Stmt, ...], path: tuple) -> set[str]:
        """Declares the variables of a block, except those whose first store will."""
        waiting = set()
        for b in self.storage.locals.get(path, ()):
            if stored_first(body, b.name, self.root):
                waiting.add(b.name)
            else:
                self.put(f"{self.spell.variable(b.dtype)} {self.spell.names[b.name]} = 0;")
            if b.lanes:
                lanes = self.carried[b.name] = self.spell.names.add(self.fresh.fresh(f"{b.name}_lanes"))
                self.put(f"{self.spell.ctype(b.dtype)} {lanes}[lc_wide_{self.dtype}] __attribute__((aligned(64)));")
        return waiting

    def stmt(self, stmt: Stmt, path: tuple, waiting: set[str]) -> None:
        match stmt:
            case Store():
                self.store(stmt, waiting)
            case Product():
                self.product(stmt)
            case For(parallel=True):
                self.parallel(stmt, path)
            case For():
                self.loop(stmt, path)
            case While(before, cond, body):
                self.put("for (;;) {")
                bound = dict(self.spell.bound)
                self.depth += 1
                inner = self.declare(before + body, path)
                for position, s in enumerate(before + body):
                    if position == len(before):
                        self.put(f"if (!{self.condition(cond)}) break;")
                    self.stmt(s, (*path, (position, 0)), inner)
                if not body:
                    self.put(f"if (!{self.condition(cond)}) break;")
                self.close()
                self.spell.bound = bound
            case If(cond, then, orelse):
                self.put(f"if {self.condition(cond)} {{")
                self.inside(then, path)
                if orelse:
                    self.put("} else {")
                    self.inside(orelse, (*path[:-1], (path[-1][0], 1)))
                self.put("}")
            case Grow(buffer, count, lent):
                self.grow(self.spell.root(buffer), self.spell.dim(count), lent)
            case Check(cond, number, info):
                self.check(cond, number, [self.spell.dim(d) for d in info])
            case Comment(text):
                self.put(f"/* {_comment(text)} */")

    def product(self, stmt: Product) -> None:
        target = Load(stmt.buffer, stmt.index, stmt.left.dtype)
        rows, columns, depth = (name for name, _ in stmt.axes)
        operands = [
            f"{self.first(place, stmt)}, {', '.join(self.strides(place, variables))}"
            for place, variables in (
                (stmt.left, (rows, depth)),
                (stmt.right, (depth, columns)),
                (target, (rows, columns)),
            )
        ]
        extents = ", ".join(self.spell.dim(extent) for _, extent in stmt.axes)
        last = f"{int(stmt.op is not None)}, {self.panels}, {'lc_threads' if stmt.parallel else '1'}"
        self.put(f"lc_product_{_kind(stmt, self.kernel, self.dtype)}({extents},")
        for text in operands:
            self.put(f"    {text},")
        self.put(f"    {last});")

    def room(self, stmt: Product) -> str:
        """The bytes that a product packs into."""
        target = Load(stmt.buffer, stmt.index, stmt.left.dtype)
        extents = [self.spell.dim(extent) for _, extent in stmt.axes]
        (row, _), (column, _), _ = stmt.axes
        across = [*self.strides(stmt.left, (row,)), *self.strides(stmt.right, (column,))]
        steps = [*across, *self.strides(target, (row, column))]
        threads = "lc_threads" if stmt.parallel else "1"
        kind = _kind(stmt, self.kernel, self.dtype)
        return f"lc_product_room_{kind}({', '.join([*extents, *steps, threads])})"

    def first(self, place: Load, stmt: Product) -> str:
        """The address of an operand where its axes begin."""
        return self.address(place.subs({name: Dim.of(0) for name, _ in stmt.axes}))

    def address(self, place: Load) -> str:
        text = self.spell.place(place.buffer, place.index)
        return text.removesuffix("[0]") if text.endswith("[0]") else f"&{text}"

    def fetch(self, loop: For, at: Dim, count: str) -> None:
        """Asks for so many elements of what a later loop reads, from there on, unless a cache is full by then."""
        asked = [bare(self.spell.expr(loop.when))] if loop.when is not None else []
        asked += [] if at.value == 0 else [f"{self.spell.dim(at)} < LC_AHEAD"]
        near = f"if ({' && '.join(asked)}) " if asked else ""
        for place in loop.ahead:
            there, size = self.address(place.subs({loop.var: at})), f"sizeof({self.spell.ctype(place.dtype)})"
            self.put(f"{near}lc_ahead({there}, {count} * (int64_t){size});")

    def fetch_all(self, loop: For) -> None:
        """Asks for all that a later loop reads, or as much of it as a cache holds."""
        self.fetch(loop, loop.lo, f"lc_smaller({self.spell.dim(loop.hi - loop.lo)}, LC_AHEAD)")

    def strides(self, place: Load, variables: tuple[str, ...]) -> list[str]:
        shape = self.spell.table[place.buffer].shape
        return [self.spell.dim(stride(place.index, shape, v)) for v in variables]

    def close(self) -> None:
        self.depth -= 1
        self.put("}")

    def inside(self, body: tuple[Stmt, ...], path: tuple) -> None:
        bound = dict(self.spell.bound)
        self.depth += 1
        self.body(body, path)
        self.depth -= 1
        self.spell.bound = bound

    def condition(self, cond: Expr) -> str:
        return f"({bare(self.spell.expr(cond))})"

    def store(self, stmt: Store, waiting: set[str]) -> None:
        if lanes := {p.buffer for p in parts(stmt.value) if isinstance(p, Load)} & self.carried.keys():
            for name in sorted(lanes):
                self.put(f"{self.spell.place(name, ())} += lc_add_lanes_{self.dtype}({self.carried[name]});")
        if stmt.op is None and (own := self.carried.get(stmt.buffer)):
            self.put(f"for (int lc_lane = 0; lc_lane < lc_wide_{self.dtype}; lc_lane++) {own}[lc_lane] = 0;")
        place, value = self.spell.place(stmt.buffer, stmt.index), bare(self.spell.expr(stmt.value))
        buffer = self.spell.root(stmt.buffer)
        head = ""
        if buffer.name in waiting:
            waiting.discard(buffer.name)
            head = ("const " if buffer.name in self.constant else "") + self.spell.variable(buffer.dtype) + " "
        masked = bool(self.mask) and buffer.name in self.masked and not head
        if stmt.op in ("max", "min"):
            value = f"{extreme(stmt.op, self.spell.ctype(buffer.dtype))}({place}, {value})"
        elif masked and stmt.op:
            value = f"{place} {C_OPS[stmt.op].rstrip('=')} ({value})"
        if masked:  # taken or left as a whole: a product stays fused with its sum
            self.put(f"{place} = {self.either(value, place, self.spell.ctype(buffer.dtype))};")
        elif stmt.op in ("max", "min"):
            self.put(f"{place} = {value};")
        else:
            self.put(f"{head}{place} {C_OPS[stmt.op] if stmt.op else '='} {value};")

    def either(self, value: str, place: str, ctype: str) -> str:
        name = {"float": "lc_eitherf", "double": "lc_either"}.get(ctype)
        return f"{name}({self.mask}, {value}, {place})" if name else f"{self.mask} ? {value} : {place}"

    def loop(self, loop: For, path: tuple) -> None:
        def outer(name: str) -> str | None:
            inside = any(b.name == name for b in self.storage.locals.get(path, ()))
            inside |= any(b.name == name for p, bs in self.storage.locals.items() if p[: len(path)] == path for b in bs)
            return None if inside or name not in self.spell.local else self.spell.ctype(self.spell.table[name].dtype)

        if (loop.hi - loop.lo).value == 1 and has(loop.body, For):
            self.named(loop, path)
            return
        self.bounds(loop)
        if self.turned(loop):
            return
        if self.row(loop):
            return
        line = pragma(loop, outer, self.spell.facts, self.root)
        if line:
            for name in sorted(self.spell.local, key=len, reverse=True):
                if self.spell.names[name] != name:
                    line = line.replace(name, self.spell.names[name])
        tail = tail_of(loop, self.spell.table, self.root, self.dtype) if line else None
        if line:
            stores = [s for s in walk(loop.body) if isinstance(s, Store)]
            sums = {s.buffer for s in stores if not s.index and outer(s.buffer) is not None}
            edges = edges_of(loop, self.spell.table, self.root, self.dtype)
            vectors = (
                Edges(self, loop, path, line, edges, sums) if edges else Vectors(self, loop, path, line, tail, sums)
            )
            if vectors.are_worth():
                self.spell.in_vectors = True
                vectors.write()
                self.spell.in_vectors = False
                return
        self.fetch_all(loop)
        if line:
            self.put(line)
        self.open(loop)
        self.spell.in_vectors = line is not None
        self.inside(loop.body, path)
        self.spell.in_vectors = False
        self.put("}")
        del self.spell.facts[loop.var]

    def row(self, loop: For) -> bool:
        """Whether the loop is written as a row."""
        if (found := extreme_row_of(loop, self.spell.table)) is not None and found[0].buffer in self.spell.local:
            self.extreme(loop, *found)
            return True
        found = copied(loop) if loop.past else row_of(loop, self.spell.table)
        if found is None or any(self.spell.root(place.buffer).name in self.spell.local for place in found):
            return False
        store, source = found
        begins = {loop.var: loop.lo}
        target = self.address(Load(store.buffer, tuple(d.subs(begins) for d in store.index), source.dtype))
        verb = "lc_past" if loop.past else "lc_add" if store.op else "lc_copy"
        kind = self.spell.kind(self.spell.root(store.buffer).dtype)
        self.put(f"{verb}_{kind}({target}, {self.address(source.subs(begins))}, {self.length(loop)});")
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
            f"{self.address(place.subs(begins))}, {self.strides(place, (var,))[0]}"
            for place, var in ((target, read.var), (source, stored.var))
        ]
        extents = ", ".join(self.spell.dim(x.hi - x.lo) for x in (read, stored))
        kind = self.spell.kind(self.spell.root(store.buffer).dtype)
        self.put(f"lc_columns_{kind}({', '.join(places)}, {extents});")
        return True

    def named(self, loop: For, path: tuple) -> None:
        """A loop of one iteration: its variable is a name for a number, of no other loop or buffer."""
        bound = dict(self.spell.bound)
        self.put(f"const int64_t {self.spell.names.add(loop.var)} = {bare(self.spell.dim(loop.lo))};")
        self.spell.facts[loop.var] = (loop.lo, loop.lo)
        self.body(loop.body, path)
        del self.spell.facts[loop.var]
        self.spell.bound = bound

    def extreme(self, loop: For, store: Store, source: Load) -> None:
        place, kind = self.spell.place(store.buffer, ()), self.spell.kind(source.dtype)
        plain = "lc_largest" if store.op == "max" else "lc_least"
        verb = plain if isinstance(store.value, Load) else "lc_farthest"
        begins = self.address(source.subs({loop.var: loop.lo}))
        row = f"{verb}_{kind}({begins}, {self.length(loop)})"
        self.put(f"{place} = lc_{store.op}{'f' if kind == 'f32' else ''}({place}, {row});")

    def bounds(self, loop: For) -> None:
        """Gives a variable to bounds that are more than a sum, and to each of two numbers of chunks."""
        counts = [
            Dim.of(a) for a in loop.hi.atoms() if loop.parallel and isinstance(a, Atom) and a.kind in ("min", "max")
        ]
        for dim in sorted(counts, key=lambda d: (len(str(d)), str(d))):  # what stands in another first
            if dim not in self.spell.bound and dim != loop.hi:
                name = self.spell.names.add(self.fresh.fresh("parts"))
                self.put(f"const int64_t {name} = {bare(self.spell.dim(dim))};")
                self.spell.bound[dim] = name
        for dim, word in ((loop.lo, "from"), (loop.hi, "to")):
            if dim not in self.spell.bound and any(isinstance(a, Atom) and a.kind != "load" for a in dim.atoms()):
                name = "chunks" if loop.parallel else f"{self.spell.names.add(loop.var)}_{word}"
                name = self.spell.names.add(self.fresh.fresh(name))
                self.put(f"const int64_t {name} = {bare(self.spell.dim(dim))};")
                self.spell.bound[dim] = name

    def open(self, loop: For) -> None:
        var = self.spell.names.add(loop.var)
        lo, hi = self.spell.dim(loop.lo), self.spell.dim(loop.hi)
        self.spell.facts[loop.var] = (loop.lo, loop.hi - 1)
        self.put(f"for (int64_t {var} = {lo}; {var} < {hi}; {var}++) {{")

    def parallel(self, loop: For, path: tuple) -> None:
        """Iterations share nothing but faults: the first one in order of the index is reported."""
        region = self.storage.regions.get(path, Region(loop, path))
        fails = can_fail(loop.body, False)
        outside, panels, number = (
            self.exit,
            self.panels,
            sum("lc_first" in line and "int64_t" in line for line in self.lines) + 1,
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
            self.put(f"int64_t lc_first{number} = INT64_MAX;")
        many, caller = (self.spell.names.add(self.fresh.fresh(n)) for n in ("many", "caller"))
        self.put(f"const int {many} = lc_threads > 1{work};")
        self.put(f"const lc_caller {caller} = lc_calling({many} ? lc_threads : 1);")
        self.put(f"#pragma omp parallel for schedule(static) num_threads(lc_threads) if({many})")
        self.open(loop)
        self.depth += 1
        if fails:
            self.exit = _Exit(f"lc_next{number}", f"lc_fault{number}")
            self.put(f"lc_fault_t {self.exit.fault} = {{0, {{0}}}};")
        self.put(f"const unsigned lc_own_mode = lc_join({caller});")
        self.lists(region)
        self.enter(replace(region, loop=loop))
        self.body(loop.body, path)
        if fails:
            self.lines.append(f"{self.exit.label}:")
            self.put(f"if ({self.exit.fault}.code) {{")
            self.put("    #pragma omp critical(lc_faults)")
            self.put(
                f"    if ({(var := self.spell.names[loop.var])} < lc_first{number}) "
                f"{{ lc_first{number} = {var}; {outside.fault} = {self.exit.fault}; }}"
            )
            self.put("}")
        self.leave(region)
        if any(isinstance(s, For) and s.past for s in walk(loop.body)):
            self.put("LC_FENCE();")
        self.put("lc_round_again(lc_own_mode);")
        self.close()
        self.exit, self.panels = outside, panels
        self.spell.bound = bound
        if fails:
            self.put(f"if (lc_first{number} != INT64_MAX) goto {outside.label};")
        del self.spell.facts[loop.var]

    def grow(self, buffer: Buffer, count: str, lent: Load | None) -> None:
        name, ctype = self.spell.names[buffer.name], self.spell.ctype(buffer.dtype)
        if lent:
            self.put(f"{name} = ({ctype} *){self.address(lent)};")
            return
        row = ", ".join(self.spell.dim(d) for d in buffer.shape[1:]) or "1"
        axes = max(len(buffer.shape) - 1, 1)
        grown = f"lc_grow((void **)&lc_heap_{name}, &lc_room_{name}, {count}, sizeof({ctype}), "
        grown += f"(const int64_t[]){{{row}}}, {axes})"
        self.put(f"if ({count} > lc_room_{name} && !{grown}) {{ {self.fail(1)} }}")
        self.put(f"{name} = lc_heap_{name};")

    def check(self, cond: Expr, number: int, info: list[str]) -> None:
        self.put(f"if (!{self.condition(cond)}) {{ {self.fail(number, info)} }}")

    def fail(self, number: int, info: list[str] | None = None) -> str:
        fault = self.exit.fault
        notes = "".join(f" {fault}.info[{n}] = {text};" for n, text in enumerate((info or [])[:4]))
        return f"{fault}.code = {number};{notes} goto {self.exit.label};"


def can_fail(body: tuple[Stmt, ...], allocates: bool) -> bool:
    return allocates or any(isinstance(s, (Check, Grow)) for s in walk(body))


def _stored_once(kernel: Kernel, names: set[str]) -> set[str]:
    count: dict[str, int] = dict.fromkeys(names, 0)
    for stmt in walk(kernel.body):
        for name, _, mode in own_accesses(stmt):
            if mode != "r" and name in count:
                count[name] += 1
    return {n for n, c in count.items() if c == 1}
