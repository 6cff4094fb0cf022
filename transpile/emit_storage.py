"""Where temporaries live.

    rank 0                 a C variable in the innermost block that holds all its uses small, constant size
    an array on the stack of its region lists                  a growing allocation of its region, freed
    when the region is left all others             a place in one arena, taken once a call; one copy a
    thread for those inside a parallel loop

A region is the whole kernel or one iteration of a parallel loop. A temporary belongs to a parallel loop if
it is used nowhere else and its indices do not name the loop's variable: then iterations would collide if
they shared it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .dims import ANY, Dim, Facts, largest
from .ir import Buffer, For, If, Kernel, Product, Stmt, Store, While
from .passes.tree import own_accesses, roots, walk

STACK_ARRAY, STACK_REGION = 4096, 32768  # bytes
SIZES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "bool": 1}

Path = tuple[tuple[int, int], ...]  # (position of a statement in its list, which of its lists), from the top


@dataclass
class Region:
    """What is allocated when a region is entered."""

    loop: For | None
    path: Path
    stack: list[Buffer] = field(default_factory=list)
    lists: list[Buffer] = field(default_factory=list)
    arena: list[Buffer] = field(default_factory=list)
    bounds: dict[str, tuple[Dim, ...]] = field(default_factory=dict)  # buffer -> its shape at its largest
    products: list[Product] = field(default_factory=list)  # with their extents at their largest

    @property
    def in_arena(self) -> bool:
        return bool(self.arena or self.products)


@dataclass
class Storage:
    locals: dict[Path, list[Buffer]]  # block -> the variables it declares
    regions: dict[Path, Region]  # () is the kernel itself


@dataclass
class _Use:
    paths: list[Path] = field(default_factory=list)
    symbols: set[str] = field(default_factory=set)


def plan(kernel: Kernel, real: str) -> Storage:
    root = roots(kernel)
    uses: dict[str, _Use] = {}
    loops: dict[Path, Stmt] = {}
    facts: dict[Path, Facts] = {(): dict.fromkeys((s.name for s in kernel.scalars), ANY)}
    products: list[tuple[Path, Product]] = []
    _visit(kernel.body, (), uses, loops, facts, root, products)
    storage = Storage({}, {(): Region(None, ())})
    for path, stmt in products:
        inner = _region(path, loops, set())
        region = storage.regions.setdefault(inner, Region(loops.get(inner), inner))  # type: ignore[arg-type]
        sizes = [(name, largest(extent, facts[path])) for name, extent in stmt.axes]
        region.products.append(replace(stmt, rows=sizes[0], columns=sizes[1], depth=sizes[2]))
    for buffer in kernel.buffers:
        if buffer.kind not in ("temp", "list") or buffer.alias or buffer.name not in uses:
            continue
        use = uses[buffer.name]
        home = _common(use.paths)
        if not buffer.shape and buffer.kind == "temp":
            home = _lift(home, loops, kernel, buffer.name, root)
            storage.locals.setdefault(home, []).append(buffer)
            continue
        region = storage.regions.setdefault(path := _region(home, loops, use.symbols), Region(None, path))
        region.loop = loops.get(path)  # type: ignore[assignment]
        _place(region, buffer, real, facts.get(path, {}), _inner_facts(home, facts))
    return storage


def _visit(
    body: tuple[Stmt, ...],
    path: Path,
    uses: dict[str, _Use],
    loops: dict[Path, Stmt],
    facts: dict[Path, Facts],
    root: dict[str, str],
    products: list[tuple[Path, Product]],
) -> None:
    for position, stmt in enumerate(body):
        inner = (*path, (position, 0))
        where = inner if isinstance(stmt, While) else path  # the condition of a While is evaluated inside it
        for name, index, _ in own_accesses(stmt):
            use = uses.setdefault(root[name], _Use())
            use.paths.append(where)
            for dim in index or ():
                use.symbols |= dim.symbols()
        match stmt:
            case Product():
                products.append((path, stmt))
            case For(var, lo, hi, inside):
                loops[inner] = stmt
                facts[inner] = {**facts[path], var: _range(lo, hi, [s for s in loops.values() if isinstance(s, For)])}
                _visit(inside, inner, uses, loops, facts, root, products)
            case While(before, _, inside):
                loops[inner] = stmt
                facts[inner] = facts[path]
                _visit(before + inside, inner, uses, loops, facts, root, products)
            case If(_, then, orelse):
                for which, branch in enumerate((then, orelse)):
                    facts[(*path, (position, which))] = facts[path]
                    _visit(branch, (*path, (position, which)), uses, loops, facts, root, products)


def _range(lo: Dim, hi: Dim, loops: list[For]) -> tuple[Dim, Dim]:
    """The lowest and highest value of a loop's variable. The share of a chunk lies between those of the first and the
    last."""
    for chunk in loops:
        if chunk.parallel and chunk.var in lo.symbols() | hi.symbols():
            lo, hi = lo.subs({chunk.var: chunk.lo}), hi.subs({chunk.var: chunk.hi - 1})
    return lo, hi - 1


def _common(paths: list[Path]) -> Path:
    first, last = min(paths), max(paths)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]


def block(kernel: Kernel, path: Path) -> tuple[Stmt, ...]:
    body = kernel.body
    for position, which in path:
        stmt = body[position]
        match stmt:
            case For(body=inside):
                body = inside
            case While(before, _, inside):
                body = before + inside
            case If(_, then, orelse):
                body = (then, orelse)[which]
    return body


def _lift(home: Path, loops: dict[Path, Stmt], kernel: Kernel, name: str, root: dict[str, str]) -> Path:
    """Out of every loop that carries the value from one iteration to the next: all but those that store it
    first. Iterations of a map loop are independent, so nothing is carried through one."""
    while home and not stored_first(block(kernel, home), name, root):
        outer = next((n for n in range(len(home), 0, -1) if home[:n] in loops), 0)
        loop = loops.get(home[:outer])
        if outer == 0 or (isinstance(loop, For) and loop.kind == "map"):
            break
        home = home[: outer - 1]
    return home


def stored_first(body: tuple[Stmt, ...], name: str, root: dict[str, str]) -> bool:
    for stmt in body:
        touched = [mode for s in walk((stmt,)) for b, _, mode in own_accesses(s) if root[b] == name]
        if touched:
            return isinstance(stmt, Store) and root[stmt.buffer] == name and stmt.op is None and "r" not in touched
    return False


def _region(home: Path, loops: dict[Path, Stmt], symbols: set[str]) -> Path:
    for length in range(len(home), 0, -1):
        loop = loops.get(home[:length])
        if isinstance(loop, For) and loop.parallel and loop.var not in symbols:
            return home[:length]
    return ()


def _inner_facts(home: Path, facts: dict[Path, Facts]) -> Facts:
    return facts.get(home, {})


def _place(region: Region, buffer: Buffer, real: str, outside: Facts, inside: Facts) -> None:
    # Extents may name loop variables (a slice up to i): room is made for the largest they can be. The arena
    # is taken at the top, where no loop variable is known.
    region.bounds[buffer.name] = shape = tuple(largest(d, inside) for d in buffer.shape)
    if buffer.kind == "list":
        region.lists.append(buffer)
        return
    size = _bytes(buffer.dtype, shape, real)
    room = sum(_bytes(b.dtype, region.bounds[b.name], real) or 0 for b in region.stack)
    if size is not None and size <= STACK_ARRAY and room + size <= STACK_REGION:
        region.stack.append(buffer)
    else:
        region.arena.append(buffer)


def _bytes(dtype: str, shape: tuple[Dim, ...], real: str) -> int | None:
    total = SIZES[real if dtype == "real" else dtype]
    for extent in shape:
        if extent.value is None:
            return None
        total *= extent.value
    return total
