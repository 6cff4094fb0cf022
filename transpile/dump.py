"""Readable text of a kernel: what `layerc show --stage ir:<pass>` prints."""

from __future__ import annotations

from .dims import ONE, ZERO, Atom, Dim, Symbol
from .ir import (
    Cast,
    Check,
    Comment,
    Const,
    Expr,
    For,
    Grow,
    If,
    Int,
    Kernel,
    Load,
    Op,
    Product,
    Scalar,
    Stmt,
    Store,
    While,
)

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "&",
    "logical_or": "|",
}
_STORE = {None: "=", "add": "+=", "mul": "*=", "max": "max=", "min": "min=", "or": "|=", "and": "&="}


def dump(kernel: Kernel) -> str:
    arguments = [*kernel.dims, *(f"{s.name}: {s.dtype}" for s in kernel.scalars)]
    lines = [f"kernel {kernel.name}({', '.join(arguments)})"]
    width = max((len(b.kind) for b in kernel.buffers), default=0)
    for b in kernel.buffers:
        alias = f"  same memory as {b.alias}" if b.alias else ""
        lines.append(f"  {b.kind:<{width}}  {b.name}: {b.dtype}[{_dims(b.shape)}]{alias}")
    lines += _body(kernel.body, "  ")
    return "\n".join(lines) + "\n"


def _body(body: tuple[Stmt, ...], indent: str) -> list[str]:
    return [indent + line for stmt in body for line in _stmt(stmt)]


def _stmt(stmt: Stmt) -> list[str]:
    match stmt:
        case Store(buffer, index, value, op):
            return [f"{_place(buffer, index)} {_STORE[op]} {expression(value)}"]
        case Product(buffer, index, left, right, op=op):
            axes = ", ".join(f"{name} in 0..{_dim(extent)}" for name, extent in stmt.axes)
            head = f"{_place(buffer, index)} {_STORE[op]} product"
            words = "".join(f" where {_dim(margin)} >= 0" for margin in stmt.asked)
            words += " parallel" if stmt.parallel else ""
            return [f"{head} {expression(left)} {expression(right)} for {axes}{words}"]
        case For(var, lo, hi, body, "map", False) if hi - lo == ONE and lo != ZERO:  # a name for a number
            return [f"for {var} = {_dim(lo)}:", *_body(body, "    ")]
        case For(var, lo, hi, body, kind, parallel, _):
            words = f" {kind}" + (" parallel" if parallel else "")
            words += f" fetching {', '.join(_place(p.buffer, p.index) for p in stmt.ahead)}" if stmt.ahead else ""
            words += f" if {expression(stmt.when)}" if stmt.when is not None else ""
            words += " past the caches" if stmt.past else ""
            return [f"for {var} in {_dim(lo)}..{_dim(hi)}{words}:", *_body(body, "    ")]
        case While(before, cond, body):
            return [
                "loop:",
                *_body(before, "    "),
                f"    leave unless {expression(cond)}",
                *_body(body, "    "),
            ]
        case If(cond, then, orelse):
            text = [f"if {expression(cond)}:", *_body(then, "    ")]
            return text + ["else:", *_body(orelse, "    ")] if orelse else text
        case Grow(buffer, count, lent):
            return [
                f"lend {expression(lent)} to {buffer}, {_dim(count)}" if lent else f"grow {buffer} to {_dim(count)}"
            ]
        case Check(cond, number, info):
            return [f"check {expression(cond)} else {number}({_dims(info)})"]
        case Comment(text_):
            return [f"# {text_}"]
    raise TypeError(stmt)


def _place(buffer: str, index: tuple[Dim, ...]) -> str:
    return f"{buffer}[{_dims(index)}]" if index else buffer


def _dims(dims: tuple[Dim, ...]) -> str:
    return ", ".join(map(_dim, dims))


def _dim(dim: Dim) -> str:
    return dim.render(_atom)


def _atom(atom: Symbol) -> str:
    match atom:
        case Atom("load", (Load(buffer, index),)):
            return _place(buffer, index)
        case Atom("floordiv" | "mod" as kind, (a, b)):
            left, right = (f"({_dim(d)})" if len(d.terms) > 1 else _dim(d) for d in (a, b))
            return f"({left}{'//' if kind == 'floordiv' else '%'}{right})"
        case Atom(kind, args):
            return f"{kind}({_dims(args)})"
    return str(atom)


def expression(expr: Expr) -> str:
    match expr:
        case Const(value):
            return str(value)
        case Int(dim):
            return f"int({_dim(dim)})"
        case Scalar(name):
            return name
        case Load(buffer, index):
            return _place(buffer, index)
        case Op(op, (a, b)) if op in _INFIX:
            return f"({expression(a)} {_INFIX[op]} {expression(b)})"
        case Op("negative", (a,)):
            return f"-{expression(a)}"
        case Op(op, args):
            return f"{op}({', '.join(map(expression, args))})"
        case Cast(value, dtype):
            return f"{dtype}({expression(value)})"
    raise TypeError(expr)
