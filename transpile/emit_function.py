"""A kernel and its float type -> the text of its C function: memory, and statements. Loops are in `emit_loops`."""

from __future__ import annotations

import re

from .dims import Dim, product
from .emit_loops import Exit, Loops, can_fail
from .emit_names import arguments, plain, prototype
from .emit_storage import Region, Storage, plan, stored_first
from .emit_text import C_OPS, Speller, bare, dtype_of, extreme
from .emit_vectors import Mask
from .emit_zeros import never_minus_zero
from .ir import Buffer, Check, Comment, Const, Expr, For, Grow, If, Kernel, Load, Op, Product, Stmt, Store, While
from .passes.products import stride
from .passes.tree import Names, own_accesses, parts, roots, walk
from .passes.triangles import asked_between
from .rounding import MARK, in_one_way


def function(kernel: Kernel, dtype: str) -> str:
    """The C function of a kernel."""
    return Function(kernel, dtype).text()


class Function:
    def __init__(self, kernel: Kernel, dtype: str):
        self.kernel, self.dtype = kernel, dtype
        self.spell = Speller(kernel, dtype)
        if kernel.batch:
            self.spell.names.add(kernel.batch)
        self.root = roots(kernel)
        self.storage: Storage = plan(kernel, dtype)
        self.spell.local = {b.name for locals_ in self.storage.locals.values() for b in locals_}
        self.constant = _stored_once(kernel, self.spell.local)
        self.sums = never_minus_zero(kernel, self.root)
        self.fresh = Names.of(kernel)
        self.lines: list[str] = []
        self.depth = 1
        self.exit = Exit("lc_done", "lc_fault")
        self.regions = 0
        self.panels = ""  # where the products of this region pack their operands
        self.mask: Mask | None = None  # in which lanes what is stored counts
        self.carried: dict[str, str] = {}  # variable -> the lanes that loops add up in for it
        self.loops = Loops(self)

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
        taken = (a.split()[-1].lstrip("*") for a in arguments(kernel, self.dtype, ""))
        unused = [n for n in taken if n not in words]
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
                self.put(f"lc_part_{self.dtype} {lanes};")
        return waiting

    def stmt(self, stmt: Stmt, path: tuple, waiting: set[str]) -> None:
        match stmt:
            case Store():
                self.store(stmt, waiting)
            case Product():
                self.product(stmt)
            case For(parallel=True):
                self.loops.parallel(stmt, path)
            case For():
                self.loops.write(stmt, path)
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
                self.put(f"/* {plain(text)} */")

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
        name = "lc_product"
        if stmt.asked:
            low, high = asked_between(stmt)
            name, last = "lc_product_between", f"{last}, {self.spell.dim(low)}, {self.spell.dim(high)}"
        self.put(f"{name}_{_kind(stmt, self.kernel, self.dtype)}({extents},")
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
            self.put(f"{own} = (lc_part_{self.dtype}){{0}};")
        place, value = self.spell.place(stmt.buffer, stmt.index), bare(self.spell.expr(stmt.value))
        if stmt.op in ("or", "and") and dtype_of(stmt.value) == "bool":
            value = f"({value}) != 0"  # gcc 12 moves where it keeps a _Bool that bytes are or-ed into, into the stack
        buffer = self.spell.root(stmt.buffer)
        head = ""
        if buffer.name in waiting:
            waiting.discard(buffer.name)
            head = ("const " if buffer.name in self.constant else "") + self.variable(buffer.dtype, value) + " "
        mask = self.mask if self.mask and buffer.name in self.mask.kept and not head else None
        is_sum = buffer.name in self.sums or (not stmt.index and place in self.spell.lent.values())  # of a lane
        if mask and stmt.op == "add" and is_sum and (added := self.or_zero(stmt.value, mask)):
            self.put(f"{place} += {added};")
            return
        if stmt.op in ("max", "min"):
            value = self.larger(stmt.op, stmt.value, place, self.spell.ctype(buffer.dtype))
        elif mask and stmt.op:
            value = f"{place} {C_OPS[stmt.op].rstrip('=')} ({value})"
        if mask:  # taken or left as a whole: a product stays fused with its sum
            self.put(f"{place} = {self.either(value, place, mask, self.spell.ctype(buffer.dtype))};")
        elif stmt.op in ("max", "min"):
            self.put(f"{place} = {value};")
        else:
            self.put(f"{head}{place} {C_OPS[stmt.op] if stmt.op else '='} {value};")

    def variable(self, dtype: str, value: str) -> str:
        """The type of a variable that is declared with a value: gcc converts a word of a vector, no `_Bool`."""
        is_word = dtype == "bool" and value in self.spell.lent.values()
        return f"lc_word_{self.dtype}" if is_word else self.spell.variable(dtype)

    def either(self, value: str, place: str, mask: Mask, ctype: str) -> str:
        name = {"float": "lc_eitherf", "double": "lc_either"}.get(ctype)
        return f"{name}({mask.lanes}, {value}, {place})" if name else f"{mask.lanes} ? {value} : {place}"

    def larger(self, op: str, value: Expr, place: str, ctype: str) -> str:
        """What accumulates a largest or a least; what leaves out NaN is one comparison."""
        match value:
            case Op("above" | "below" as name, (of, Const())):
                return f"lc_{name}{'f' if ctype == 'float' else ''}({bare(self.spell.expr(of))}, {place})"
        return f"{extreme(op, ctype)}({place}, {bare(self.spell.expr(value))})"

    def or_zero(self, value: Expr, mask: Mask) -> str:
        """A value that is 0 where the mask does not hold: an element that is, or a product, which stays fused with its
        sum, of factors that are. "" where it takes more."""
        if value in mask.zeros:
            return bare(self.spell.expr(value))
        if not (isinstance(value, Op) and value.op == "multiply" and self.spell.kind(value.dtype) == self.dtype):
            return ""
        name = {"f32": "lc_or_zerof", "f64": "lc_or_zero"}[self.dtype]
        texts = [(f, self.spell.expr(f)) for f in value.args]
        return " * ".join(t if f in mask.zeros else f"{name}({mask.lanes}, {bare(t)})" for f, t in texts)

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


def _kind(stmt: Product, kernel: Kernel, dtype: str) -> str:
    """The float type of a product."""
    return Speller(kernel, dtype).kind(stmt.left.dtype)


def _stored_once(kernel: Kernel, names: set[str]) -> set[str]:
    count: dict[str, int] = dict.fromkeys(names, 0)
    for stmt in walk(kernel.body):
        for name, _, mode in own_accesses(stmt):
            if mode != "r" and name in count:
                count[name] += 1
    return {n for n, c in count.items() if c == 1}


__all__ = ["Function", "function"]
