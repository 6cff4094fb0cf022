"""The typed program: what a layer file says, with every type, shape and span known.

    module    = Module(layers)
    layer     = Layer(name, methods predict/forward, custom backward)
    function  = Function(params, body, results)
    statement = Assign | Store | For | While | If | Return | Assert | Push | Pop | Pull | Comment
    expr      = Const | Name | Call | Index
    item      = At | Slice | NewAxis | Gather | Mask

Helpers are inlined and names are unique, so a `Name` means one thing throughout a function. A name assigned
once is a value; one assigned again inside a loop or on a branch is a variable. Nodes compare by structure:
spans do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any, Union

from .dims import Dim
from .node import node

FLOATS = ("real", "f32", "f64", "float")  # "float", "int": weak Python scalars, as NumPy 2
INTEGERS = ("i32", "i64", "int")


@node
class Span:
    """A place in a file: lines from 1, columns from 0, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    path: str = ""


NOWHERE = Span(0, 0, 0, 0)


@node
class Type:
    dtype: str  # real f32 f64 i32 i64 bool, and weak: float int
    shape: tuple[Dim, ...] = ()
    # Whether a scalar is Python's own, as `not x` is, and no NumPy's; None: Python's on one path, NumPy's on another.
    pythons: bool | None = field(default=False, compare=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGERS

    @property
    def is_weak(self) -> bool:
        return self.dtype in ("float", "int")

    def __str__(self) -> str:
        return f'{self.dtype}["{" ".join(str(d).replace(" ", "") for d in self.shape)}"]' if self.shape else self.dtype


# -- expressions -----------------------------------------------------------------------------------------------
@node
class Const:
    value: bool | int | float
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@node
class Name:
    id: str
    type: Type
    value: Dim | None = None  # its symbolic value, if it is an integer known from shapes, config and loop counters
    span: Span = field(default=NOWHERE, compare=False)


@node
class Call:
    """A row of the table of operations applied to arguments; `static` holds what must be known at build time."""

    op: str
    args: tuple[Expr, ...]
    static: tuple[tuple[str, Any], ...]
    type: Type
    value: Dim | None = None
    span: Span = field(default=NOWHERE, compare=False)

    def get(self, key: str) -> Any:
        return dict(self.static)[key]


@node
class At:
    index: Expr


@node
class Slice:
    """start:stop:step as written (None: left out); `first`, `extent`: where it begins and how many it takes. A step
    that is no number is positive; `by` is how it is written."""

    start: Expr | None
    stop: Expr | None
    step: int | Dim
    first: Dim
    extent: Dim
    by: Expr | None = None


@node
class NewAxis:
    pass


@node
class Gather:
    index: Expr


@node
class Mask:
    condition: Expr


Item = Union[At, Slice, NewAxis, Gather, Mask]


@node
class Index:
    base: Expr
    items: tuple[Item, ...]  # covers every axis of base
    type: Type
    value: Dim | None = None
    span: Span = field(default=NOWHERE, compare=False)


Expr = Union[Const, Name, Call, Index]


# -- statements ------------------------------------------------------------------------------------------------
@node
class Assign:
    name: str
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@node
class Store:
    """base[items] = value, or base[items] op= value in place. `scatter`: repeated indices accumulate (np.add.at);
    `binds`: in Python a list gets this value as an item, the array itself and not a copy; `undoes`: in a gradient,
    what an earlier write went over comes back."""

    base: Name
    items: tuple[Item, ...]
    value: Expr
    op: str | None = None
    scatter: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    binds: bool = False
    undoes: bool = False


@node
class For:
    var: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False)


@node
class While:
    cond: Expr
    body: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False)


@node
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False)


@node
class Return:
    values: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@node
class Assert:
    cond: Expr
    message: str
    span: Span = field(default=NOWHERE, compare=False)
    error: str = "AssertionError"
    lasting: bool = False  # stays in a gradient, where the others are the forward's business


@node
class Push:
    """list.append(value); a list holds values of one type. `Assign(list, Call("list"))` makes an empty one,
    `Call("list", (array, count))` one of its first entries, which is only taken from."""

    list: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@node
class Pop:
    """name = list.pop()"""

    name: str
    list: Name
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@node
class Pull:
    """names = dy times the derivatives of function(*args), by each argument. It stands in the rules of `with_backward`
    only; the adjoint writes it out."""

    names: tuple[str, ...]
    function: Function
    args: tuple[Expr, ...]
    dy: Expr
    span: Span = field(default=NOWHERE, compare=False)


@node
class Comment:
    """A line of prose; has no meaning. Generated source quotes the user's lines with it."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


Stmt = Union[Assign, Store, For, While, If, Return, Assert, Push, Pop, Pull, Comment]


# -- functions and layers --------------------------------------------------------------------------------------
@node
class Parameter:
    name: str
    role: str  # input param state config random output cotangent memory
    type: Type
    shape_text: str  # jaxtyping's string, as the user wrote it
    default: Any = None
    required: bool = True
    init: tuple[str, tuple[Any, ...]] | None = None
    check: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@node
class Result:
    name: str
    role: str  # output input param state memory ("input", "param": a gradient of one)
    type: Type
    shape_text: str
    of: str | None = None


@node
class Function:
    name: str
    params: tuple[Parameter, ...]
    body: tuple[Stmt, ...]
    results: tuple[Result, ...]
    batched: bool
    doc: str = ""
    span: Span = field(default=NOWHERE, compare=False)

    def param(self, name: str) -> Parameter:
        return next(p for p in self.params if p.name == name)


@node
class Layer:
    name: str
    kind: str  # function class
    params: tuple[Parameter, ...]
    predict: Function
    forward: Function | None
    backward: str  # auto custom none
    custom: Function | None
    doc: str
    source: str
    span: Span = field(default=NOWHERE, compare=False)
    by_hand: tuple[str, ...] = ()  # initialize, reset_state: methods that are run as they are


@node
class Module:
    path: str
    source: str
    layers: tuple[Layer, ...]
    imported: tuple[tuple[str, str], ...] = ()  # the layer files it imports from: path, text


# -- walking ---------------------------------------------------------------------------------------------------
def item_exprs(item: Item) -> tuple[Expr, ...]:
    match item:
        case At(index) | Gather(index):
            return (index,)
        case Slice(start, stop, by=by):
            return tuple(e for e in (start, stop, by) if e is not None)
        case Mask(condition):
            return (condition,)
    return ()


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call(args=args):
            return args
        case Index(base=base, items=items):
            return (base, *(e for item in items for e in item_exprs(item)))
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all within it, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def names(expr: Expr) -> set[str]:
    return {e.id for e in walk(expr) if isinstance(e, Name)}


def map_items(items: tuple[Item, ...], f: Any) -> tuple[Item, ...]:
    done: list[Item] = []
    for item in items:
        match item:
            case At(index):
                done.append(At(f(index)))
            case Gather(index):
                done.append(Gather(f(index)))
            case Mask(condition):
                done.append(Mask(f(condition)))
            case Slice(start, stop, by=by):
                done.append(replace(item, start=start and f(start), stop=stop and f(stop), by=by and f(by)))
            case _:
                done.append(item)
    return tuple(done)


def map_children(expr: Expr, f: Any) -> Expr:
    """The same node over f(child)."""
    match expr:
        case Call(args=args):
            done = tuple(f(a) for a in args)
            return expr if all(a is b for a, b in zip(done, args, strict=True)) else replace(expr, args=done)
        case Index(base=base, items=items):
            return replace(expr, base=f(base), items=map_items(items, f))
    return expr


def stmt_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions a statement reads itself (not those of its blocks; a Store reads its base only if op is set)."""
    match stmt:
        case Assign(value=value) | Push(value=value):
            return (value,)
        case Store(items=items, value=value):
            return (value, *(e for item in items for e in item_exprs(item)))
        case For(start=start, stop=stop):
            return (start, stop)
        case While(cond=cond) | If(cond=cond) | Assert(cond=cond):
            return (cond,)
        case Return(values=values):
            return values
        case Pull(args=args, dy=dy):
            return (*args, dy)
    return ()


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    match stmt:
        case For(body=body) | While(body=body):
            return (body,)
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case Pull(function=function):
            return (function.body,)
    return ()


def walk_stmts(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from walk_stmts(block)


def assigned(body: tuple[Stmt, ...]) -> set[str]:
    """Names that a block rebinds or writes into."""
    found = set()
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(name=name) | Pop(name=name) | For(var=name):
                found.add(name)
            case Store(base=base):
                found.add(base.id)
            case Pull(names=names_):
                found |= set(names_)
        if isinstance(stmt, (Push, Pop)):
            found.add(stmt.list.id)
    return found


def stored(body: tuple[Stmt, ...]) -> set[str]:
    """Names that a block writes into in place."""
    return {s.base.id for s in walk_stmts(body) if isinstance(s, Store)}


def read(body: tuple[Stmt, ...]) -> set[str]:
    """Names that a block reads."""
    found: set[str] = set()
    for stmt in walk_stmts(body):
        for expr in stmt_exprs(stmt):
            found |= names(expr)
        if isinstance(stmt, Store) and stmt.op:
            found.add(stmt.base.id)
        if isinstance(stmt, Pop):
            found.add(stmt.list.id)
    return found
