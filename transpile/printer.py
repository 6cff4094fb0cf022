"""The typed program as Python source, printed by astor: what `layerc show --stage typed` and gradient files consist of.

The text is a layer file again: it runs under plain NumPy and types to the same program.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import astor

from . import construct
from .dims import Atom, Dim, Symbol
from .errors import InternalError
from .operations import ROWS
from .program import (
    Assert,
    Assign,
    At,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    Gather,
    If,
    Index,
    Item,
    Mask,
    Name,
    NewAxis,
    Parameter,
    Pop,
    Push,
    Result,
    Return,
    Slice,
    Stmt,
    Store,
    Type,
    While,
    blocks,
    stmt_exprs,
    walk,
    walk_stmts,
)
from .templates import instantiate
from .values import Fresh

_OPERATORS = {
    "Add": ast.Add,
    "Sub": ast.Sub,
    "Mult": ast.Mult,
    "Div": ast.Div,
    "FloorDiv": ast.FloorDiv,
    "Mod": ast.Mod,
    "Pow": ast.Pow,
    "MatMult": ast.MatMult,
    "BitAnd": ast.BitAnd,
    "BitOr": ast.BitOr,
    "BitXor": ast.BitXor,
    "LShift": ast.LShift,
    "RShift": ast.RShift,
    "Lt": ast.Lt,
    "LtE": ast.LtE,
    "Gt": ast.Gt,
    "GtE": ast.GtE,
    "Eq": ast.Eq,
    "NotEq": ast.NotEq,
    "USub": ast.USub,
    "UAdd": ast.UAdd,
    "And": ast.And,
    "Or": ast.Or,
    "Invert": ast.Invert,
}
_DTYPES = {"f32": "np.float32", "f64": "np.float64", "i32": "np.int32", "i64": "np.int64", "bool": "bool"}
WIDTH = 110


class Printer:
    """Prints one function: knows how its symbolic dimensions are written."""

    def __init__(self, params: Sequence[Parameter]) -> None:
        self.params = params
        self.real = next((p.name for p in params if p.type.dtype == "real" and p.type.rank), None)
        self.number = next((p.name for p in params if p.type.dtype == "real"), None)  # if no array says what real is
        self.dims: set[str] = set()  # symbols that a `T, D = x.shape` line must define
        self.second: set[str] = set()  # second names of numbers: of an array without axes, += would change the first
        self.sizes: dict[str, str] = {}  # what a dimension is called where an argument has its name

    # -- expressions -------------------------------------------------------------------------------------------
    def tree(self, expr: Expr) -> Any:
        match expr:
            case Const(value=value):
                return _number(value)
            case Name(id=id):
                return ast.Name(id=id, ctx=ast.Load())
            case Index(base=base, items=items):
                return ast.Subscript(value=self.tree(base), slice=self.subscript(items), ctx=ast.Load())
            case Call():
                return self.call(expr)
        raise InternalError("printer", f"no source for {type(expr).__name__}")

    def call(self, expr: Call) -> Any:
        special = getattr(self, f"print_{expr.op}", None)
        if special is not None:
            return special(expr)
        row = ROWS[expr.op]
        if not row.spell:  # it is printed as what it means
            return self.tree(instantiate(str(row.define), dict(zip(row.arrays, expr.args, strict=True))))
        if row.kind == "draw":
            return self._draw(expr)
        operator = next((_OPERATORS[s] for s in row.spellings if s in _OPERATORS), None)
        if expr.type.rank and operator in (ast.And, ast.Or):  # for scalars only
            operator = None
        if expr.type.dtype == "bool" and operator in (ast.Add, ast.Mult):  # numbers of Python's own truth values
            operator = None
        args = [self.tree(a) for a in expr.args]
        if operator is not None:
            return _operation(operator, args)
        keywords = []
        static = dict(expr.static)
        positional: list[Any] = []
        rest = iter(args)
        for argument in row.signature:
            if argument.kind == "array":
                positional.append(next(rest))
            elif argument.kind == "arrays":
                positional.append(ast.Tuple(elts=list(rest), ctx=ast.Load()))
            elif argument.required:
                positional.append(self.static(static[argument.name]))
            elif (
                argument.kind == "dtype"
                and not self.real
                and expr.type == row.type([a.type for a in expr.args], {**static, argument.name: None})
            ):
                continue  # it is what NumPy makes, and there is no array to name the type after
            elif not _is_default(static.get(argument.name), argument.default):
                keywords.append(ast.keyword(arg=argument.name, value=self.static(static[argument.name], argument.kind)))
        counts = {"maximum": "max", "minimum": "min"} if expr.value is not None else {}  # x[max(i - k, 0):i]
        spelling = counts.get(row.name, row.python.removeprefix("derivative."))
        return ast.Call(func=_dotted(spelling), args=positional, keywords=keywords)

    def _draw(self, expr: Call) -> Any:
        """A method of the generator as it is before that draw: rng.at(2).random((n,))."""
        rng, draw, *rest = (self.tree(a) for a in expr.args)
        at = ast.Call(func=ast.Attribute(value=rng, attr="at", ctx=ast.Load()), args=[draw], keywords=[])
        method = ast.Attribute(value=at, attr=ROWS[expr.op].python.split(".")[1], ctx=ast.Load())
        shape = [self.static(expr.get("shape"))] if expr.type.rank else []
        return ast.Call(func=method, args=[*rest, *shape], keywords=[])

    def print_dim(self, expr: Call) -> Any:
        return self.dim(expr.get("dim"))

    def print_extent(self, expr: Call) -> Any:
        shape = ast.Attribute(value=self.tree(expr.args[0]), attr="shape", ctx=ast.Load())
        return ast.Subscript(value=shape, slice=ast.Constant(value=expr.get("axis")), ctx=ast.Load())

    def print_size(self, expr: Call) -> Any:
        if not expr.args[0].type.rank:  # it may be a number of Python's own, which has no size
            return ast.Constant(value=1)
        return ast.Attribute(value=self.tree(expr.args[0]), attr="size", ctx=ast.Load())

    def print_transpose(self, expr: Call) -> Any:
        axes = expr.get("axes")
        if axes is None or axes == tuple(reversed(range(len(axes)))):
            return ast.Attribute(value=self.tree(expr.args[0]), attr="T", ctx=ast.Load())
        return ast.Call(func=_dotted("np.transpose"), args=[self.tree(expr.args[0]), self.static(axes)], keywords=[])

    def print_cast(self, expr: Call) -> Any:
        value, dtype = self.tree(expr.args[0]), expr.get("dtype")
        if not expr.type.rank:
            if dtype in ("f32", "f64", "i32") or (dtype == "i64" and expr.args[0].type.is_integer):  # int(a) stays i32
                return ast.Call(func=_dotted(_DTYPES[dtype]), args=[value], keywords=[])
            return ast.Call(
                func=_dotted({"i64": "int", "int": "int", "bool": "bool"}.get(dtype, "float")),
                args=[value],
                keywords=[],
            )
        if dtype == "real" and not self.real and expr.args[0].type.dtype not in ("f32", "f64"):
            return ast.BinOp(left=value, op=ast.Mult(), right=ast.Constant(1.0))  # no array says what real is
        return ast.Call(
            func=ast.Attribute(value=value, attr="astype", ctx=ast.Load()), args=[self.dtype(dtype)], keywords=[]
        )

    def print_logical_not(self, expr: Call) -> Any:
        operator = ast.Invert() if expr.type.rank else ast.Not()
        return ast.UnaryOp(op=operator, operand=self.tree(expr.args[0]))

    def print_einsum(self, expr: Call) -> Any:
        specs, out = expr.get("spec")
        text = ast.Constant(value=f"{','.join(specs)}->{out}")
        return ast.Call(func=_dotted("np.einsum"), args=[text, *(self.tree(a) for a in expr.args)], keywords=[])

    def print_arange(self, expr: Call) -> Any:
        start, stop = expr.get("start"), expr.get("stop")
        step = expr.get("step")
        bounds = [stop] if start == Dim.of(0) and step == 1 else [start, stop]
        bounds += [Dim.of(step)] if step != 1 else []
        keywords = [ast.keyword(arg="dtype", value=self.dtype(expr.get("dtype")))] if expr.get("dtype") else []
        return ast.Call(func=_dotted("np.arange"), args=[self.dim(b) for b in bounds], keywords=keywords)

    def print_concatenate(self, expr: Call) -> Any:
        """Arrays along a new axis are stacked, scalars are np.array([1, 2])."""
        axis = expr.get("axis")
        parts = [
            a.args[0] for a in expr.args if isinstance(a, Call) and a.op == "expand_dims" and a.get("axis") == axis
        ]
        if len(parts) < len(expr.args) or len({p.type.rank for p in parts}) > 1:
            keywords = [ast.keyword(arg="axis", value=_number(axis))] if axis else []
            return ast.Call(
                func=_dotted("np.concatenate"),
                args=[ast.Tuple(elts=[self.tree(a) for a in expr.args], ctx=ast.Load())],
                keywords=keywords,
            )
        if (rows := self._literal(expr)) is not None:
            return ast.Call(func=_dotted("np.array"), args=[rows], keywords=[])
        keywords = [ast.keyword(arg="axis", value=_number(axis))] if axis else []
        return ast.Call(
            func=_dotted("np.stack"),
            args=[ast.Tuple(elts=[self.tree(p) for p in parts], ctx=ast.Load())],
            keywords=keywords,
        )

    def _literal(self, expr: Expr) -> Any:
        """The list of lists that an array of scalars was written as; None for another expression."""
        match expr:
            case Call(op="cast", args=[Const(value=value)]) if expr.get("dtype") in ("i64", "real"):
                return _number(int(value) if expr.get("dtype") == "i64" else float(value))
            case Call(op="concatenate", args=args) if expr.get("axis") == 0:
                rows: list[Any] = [
                    self._literal(a.args[0])
                    if isinstance(a, Call) and a.op == "expand_dims" and a.get("axis") == 0
                    else None
                    for a in args
                ]
                return None if None in rows else ast.List(elts=rows, ctx=ast.Load())
        return None if expr.type.rank else self.tree(expr)

    def print_pad(self, expr: Call) -> Any:
        array, value = expr.args
        widths = expr.get("pad_width")
        shown = widths[0][0] if len({w for pair in widths for w in pair}) == 1 else widths
        keywords = [] if value == construct.const(0) else [ast.keyword(arg="constant_values", value=self.tree(value))]
        return ast.Call(func=_dotted("np.pad"), args=[self.tree(array), self.static(shown)], keywords=keywords)

    def print_eye(self, expr: Call) -> Any:
        return self._matrix(expr, "np.eye")

    def print_tri(self, expr: Call) -> Any:
        return self._matrix(expr, "np.tri")

    def _matrix(self, expr: Call, name: str) -> Any:
        """All by their places: np.eye(n, m, k)."""
        rows, columns, k, dtype = (expr.get(a) for a in ("N", "M", "k", "dtype"))
        args = [rows, rows if columns is None else columns, Dim.of(k)]
        while len(args) > 1 and args[-1] == (rows, rows, Dim.of(0))[len(args) - 1]:
            args.pop()
        said = dtype and (dtype != "real" or self.real)  # real is what it is anyway
        keywords = [ast.keyword(arg="dtype", value=self.dtype(dtype))] if said else []
        return ast.Call(func=_dotted(name), args=[self.dim(a) for a in args], keywords=keywords)

    def print_list(self, expr: Call) -> Any:
        if not expr.args:
            return ast.List(elts=[], ctx=ast.Load())
        array, count = map(self.tree, expr.args)
        part = ast.Subscript(value=array, slice=ast.Slice(upper=count), ctx=ast.Load())
        return ast.Call(func=_dotted("list"), args=[part], keywords=[])

    # -- static values -----------------------------------------------------------------------------------------
    def static(self, value: Any, kind: str = "") -> Any:
        if kind == "dtype":
            return self.dtype(value)
        if isinstance(value, tuple):
            return ast.Tuple(elts=[self.static(v) for v in value], ctx=ast.Load())
        if isinstance(value, Dim):
            return self.dim(value)
        return _number(value) if isinstance(value, (int, float)) else ast.Constant(value=value)

    def dtype(self, dtype: str) -> Any:
        if dtype in ("real", "float"):
            if self.real is None and self.number is not None:
                return ast.parse(f"np.asarray({self.number}).dtype", mode="eval").body
            return _dotted(f"{self.real}.dtype" if self.real else "np.float64")
        return _dotted(_DTYPES[dtype])

    def dim(self, value: Dim) -> Any:
        for symbol in value.symbols():
            self.dims.add(symbol)
        return ast.parse(value.render(self._atom), mode="eval").body

    def _atom(self, atom: Symbol) -> str:
        if isinstance(atom, str):
            return self.sizes.get(atom, atom)
        assert isinstance(atom, Atom)
        args = [f"({a.render(self._atom)})" for a in atom.args]
        match atom.kind:
            case "floordiv":
                return f"({args[0]} // {args[1]})"
            case "mod":
                return f"({args[0]} % {args[1]})"
        return f"{atom.kind}({', '.join(args)})"

    # -- subscripts --------------------------------------------------------------------------------------------
    def subscript(self, items: tuple[Item, ...]) -> Any:
        shown = list(items)
        while len(shown) > 1 and isinstance(shown[-1], Slice) and _is_colon(shown[-1]):
            shown.pop()
        parts = [self.item(i) for i in shown]
        return parts[0] if len(parts) == 1 else ast.Tuple(elts=parts, ctx=ast.Load())

    def item(self, item: Item) -> Any:
        match item:
            case NewAxis():
                return ast.Constant(value=None)
            case At(index) | Gather(index):
                return self.tree(index)
            case Mask(condition):
                return self.tree(condition)
            case Slice(start, stop, step, by=by):
                return ast.Slice(
                    lower=self.tree(start) if start is not None else None,
                    upper=self.tree(stop) if stop is not None else None,
                    step=self.tree(by) if by is not None else _number(step) if step != 1 else None,
                )
        raise InternalError("printer", f"no source for {item}")

    # -- statements --------------------------------------------------------------------------------------------
    def text(self, expr: Expr) -> str:
        tree = self.tree(expr)
        text = _source(ast.Expr(value=tree))
        if ast.dump(ast.parse(text, mode="eval").body) != ast.dump(tree):
            raise InternalError("printer", f"astor changed an expression: {text}", expr.span)
        return text

    def lines(self, body: Sequence[Stmt], indent: int) -> list[str]:
        found: list[str] = []
        for stmt in body:
            found += self.stmt(stmt, indent)
        return found or [" " * indent + "pass"]

    def stmt(self, stmt: Stmt, indent: int) -> list[str]:
        pad = " " * indent
        match stmt:
            case Comment(text=text):
                return [f"{pad}# {text}"]
            case Assign(name=name, value=Call(op="add", args=[Name(id=same), addend]) as total) if (
                same == name
                and not total.type.rank
                and name not in self.second  # of arrays it would be in place
                and total.type.dtype != "bool"
            ):
                return self.wrapped(f"{pad}{name} += ", addend)
            case Assign(name=name, value=value):
                return self.wrapped(f"{pad}{name} = ", value)
            case Store():
                return self.store(stmt, pad)
            case For(var=var, body=body):
                return [f"{pad}for {var} in {self.range(stmt)}:", *self.lines(body, indent + 4)]
            case While(cond=cond, body=body):
                return [f"{pad}while {self.text(cond)}:", *self.lines(body, indent + 4)]
            case If(cond=cond, then=then, orelse=orelse):
                lines = [f"{pad}if {self.text(cond)}:", *self.lines(then, indent + 4)]
                return lines + ([f"{pad}else:", *self.lines(orelse, indent + 4)] if orelse else [])
            case Return(values=values):
                return [f"{pad}return {', '.join(self.text(v) for v in values)}"]
            case Assert(cond=cond, message=message):
                return [f"{pad}assert {self.text(cond)}" + (f", {message!r}" if message else "")]
            case Push(list=list, value=value):
                return [f"{pad}{list.id}.append({self.text(value)})"]
            case Pop(name=name, list=list):
                return [f"{pad}{name} = {list.id}.pop()"]
        raise InternalError("printer", f"no source for {type(stmt).__name__}")

    def store(self, stmt: Store, pad: str) -> list[str]:
        full = all(isinstance(i, Slice) and _is_colon(i) for i in stmt.items)
        if stmt.scatter:
            index = self.subscript(stmt.items)
            if isinstance(index, ast.Tuple):  # only brackets can hold slices
                index = ast.Subscript(value=_dotted("np.s_"), slice=index, ctx=ast.Load())
            return [f"{pad}np.add.at({stmt.base.id}, {_source(ast.Expr(value=index))}, {self.text(stmt.value)})"]
        target = stmt.base.id
        if not full:
            target = _source(
                ast.Expr(value=ast.Subscript(value=_dotted(target), slice=self.subscript(stmt.items), ctx=ast.Load()))
            )
        elif not stmt.op:
            target += "[...]"
        match stmt:
            case Store(op="add", value=Call(op="negative", args=[value])):
                return self.wrapped(f"{pad}{target} -= ", value)
            case Store(op="add", value=value):
                return self.wrapped(f"{pad}{target} += ", value)
        return self.wrapped(f"{pad}{target} = ", stmt.value)

    def range(self, stmt: For) -> str:
        match stmt:
            case For(step=-1, start=start, stop=stop):
                low, high = self.text(_plus_one(stop)), self.text(_plus_one(start))
                return f"reversed(range({high}))" if low == "0" else f"reversed(range({low}, {high}))"
            case For(step=1, start=Const(value=0), stop=stop):
                return f"range({self.text(stop)})"
            case For(step=1, start=start, stop=stop):
                return f"range({self.text(start)}, {self.text(stop)})"
        return f"range({self.text(stmt.start)}, {self.text(stmt.stop)}, {stmt.step})"

    def wrapped(self, head: str, value: Expr) -> list[str]:
        """One line, or, where it is too long, a parenthesised sum a term a line."""
        line = head + self.text(value)
        if len(line) <= WIDTH:
            return [line]
        terms = _terms(value)
        if len(terms) < 2:
            return [line]
        pad = " " * (len(head) - len(head.lstrip()) + 4)
        rows = [
            f"{pad}{'' if k == 0 and sign == '+' else sign + ' '}{self.term(term)}"
            for k, (sign, term) in enumerate(terms)
        ]
        if ast.dump(ast.parse("\n".join(["(", *rows, ")"]), mode="eval").body) != ast.dump(self.tree(value)):
            raise InternalError("printer", f"wrapping changed an expression: {rows}", value.span)
        return [head + "(", *rows, pad[4:] + ")"]

    def term(self, expr: Expr) -> str:
        """The text of a term of a sum: in parentheses, if it binds no tighter than + and -."""
        text = self.text(expr)
        match self.tree(expr):
            case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.Lambda():
                return f"({text})"
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.LShift() | ast.RShift()):
                return f"({text})"
            case ast.UnaryOp(op=ast.Not()):
                return f"({text})"
        return text


def print_function(function: Function, doc: Sequence[str] = ()) -> str:
    """A function with its annotations; a line `T, D = x.shape` first where its body needs them."""
    printer = Printer(function.params)
    bound = {s.var for s in walk_stmts(function.body) if isinstance(s, For)} | {
        p.name for p in function.params if p.role == "config"
    }
    bound |= {s.name for s in walk_stmts(function.body) if isinstance(s, (Assign, Pop))}
    printer.sizes = _sizes(function.params, bound)
    printer.second = {s.name for s in walk_stmts(function.body) if isinstance(s, Assign) and isinstance(s.value, Name)}
    body = printer.lines(function.body, 4)
    prologue = _dimension_lines(function.params, printer.dims - bound, printer.sizes)
    params = ", ".join(_parameter(p) for p in _ordered(function.params))
    head = [f"def {function.name}({params}) -> {_returns(function.results)}:"]
    if len(head[0]) > WIDTH:
        inner = ",\n".join(f"    {_parameter(p)}" for p in _ordered(function.params))
        head = [f"def {function.name}(", *f"{inner},".split("\n"), f") -> {_returns(function.results)}:"]
    docs = [f'    """{doc[0]}' + ('"""' if len(doc) == 1 else "")] if doc else []
    docs += [f"    {line}".rstrip() for line in doc[1:]] + (['    """'] if len(doc) > 1 else [])
    return "\n".join([*head, *docs, *prologue, *body]) + "\n"


def _sizes(params: Sequence[Parameter], bound: set[str]) -> dict[str, str]:
    """Other names for the dimensions that are called as an argument is: x: real["T"], T: real."""
    arguments = {p.name for p in params}
    symbols = {s for p in params for extent in p.type.shape for s in extent.symbols()}
    fresh = Fresh(arguments | symbols | bound)
    return {symbol: fresh(f"{symbol}_size") for symbol in sorted(symbols & arguments - bound)}


def _dimension_lines(params: Sequence[Parameter], needed: set[str], sizes: Mapping[str, str]) -> list[str]:
    """`sizes`: dimensions with another name than their own."""
    lines = []
    for param in params:
        shape = [d.symbol for d in param.type.shape]
        if not needed & {s for s in shape if isinstance(s, str)}:
            continue
        names = [s if isinstance(s, str) and s in needed else "_" for s in shape]
        shown = [sizes.get(n, n) for n in names]
        lines.append(f"    {', '.join(shown)}{',' if len(shown) == 1 else ''} = {param.name}.shape")
        needed = needed - set(names)
    for param in params:  # from an axis like 2*G + 1
        for axis, extent in enumerate(param.type.shape):
            for symbol in sorted(needed & extent.symbols()):
                parts = extent.split(symbol)
                if parts is None or parts[0].value in (None, 0) or parts[1].value is None:
                    continue
                rest = f" - {parts[1].value}" if parts[1].value else ""
                length = f"{param.name}.shape[{axis}]{rest}"
                called = sizes.get(symbol, symbol)
                lines.append(f"    {called} = {f'({length})' if rest else length} // {parts[0].value}")
                needed = needed - {symbol}
    return lines


def _ordered(params: Sequence[Parameter]) -> list[Parameter]:
    return sorted(params, key=lambda p: not p.required)


def annotation(role: str, type: Type, text: str) -> str:
    if role == "config":
        return type.dtype
    if role == "random":
        return "Random"
    name = "bool_" if type.dtype == "bool" else type.dtype  # a bare `bool` would be a config
    inner = f'{name}["{text}"]' if text else name
    return (
        f"{ {'param': 'Param', 'state': 'State', 'memory': 'Memory'}[role] }[{inner}]"
        if role in ("param", "state", "memory")
        else inner
    )


def _parameter(p: Parameter) -> str:
    default = "" if p.required else f" = {p.default!r}"
    return f"{p.name}: {annotation(p.role, p.type, p.shape_text)}{default}"


def _returns(results: Sequence[Result]) -> str:
    each = [annotation(r.role, r.type, r.shape_text) for r in results]
    return each[0] if len(each) == 1 else f"tuple[{', '.join(each)}]"


def _is_default(value: Any, default: Any) -> bool:
    return value == default or (isinstance(value, Dim) and value.value is not None and value.value == default)


def _plus_one(expr: Expr) -> Expr:
    match expr:
        case Const(value=int(value)):
            return construct.const(value + 1)
        case Call(op="subtract", args=[a, Const(value=1)]):
            return a
    return construct.call("add", expr, construct.const(1))


def _terms(expr: Expr) -> list[tuple[str, Expr]]:
    match expr:
        case Call(op="add", args=[a, b]):
            return [*_terms(a), ("+", b)]
        case Call(op="subtract", args=[a, b]):
            return [*_terms(a), ("-", b)]
    return [("+", expr)]


def _operation(operator: Any, args: list[Any]) -> Any:
    if issubclass(operator, ast.cmpop):
        return ast.Compare(left=args[0], ops=[operator()], comparators=[args[1]])
    if issubclass(operator, ast.unaryop):
        return ast.UnaryOp(op=operator(), operand=args[0])
    if issubclass(operator, ast.boolop):
        return ast.BoolOp(op=operator(), values=args)
    return ast.BinOp(left=args[0], op=operator(), right=args[1])


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return ast.Constant(value=value)
    if value != value:
        return _dotted("np.nan")
    if value in (float("inf"), float("-inf")):
        inf = _dotted("np.inf")
        return inf if value > 0 else ast.UnaryOp(op=ast.USub(), operand=inf)
    if math.copysign(1.0, value) > 0:  # -0.0 is not less than 0
        return ast.Constant(value=value)
    return ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=-value))


def _dotted(name: str) -> Any:
    head, *rest = name.split(".")
    tree: Any = ast.Name(id=head, ctx=ast.Load())
    for attr in rest:
        tree = ast.Attribute(value=tree, attr=attr, ctx=ast.Load())
    return tree


def _is_colon(item: Slice) -> bool:
    return item.start is None and item.stop is None and item.step == 1


def _source(tree: Any) -> str:
    text = astor.to_source(tree, pretty_source=lambda parts: "".join(parts)).strip()
    while text.startswith("(") and text.endswith(")") and _closes_last(text):
        text = text[1:-1]
    return text


def _closes_last(text: str) -> bool:
    """Whether the first parenthesis closes at the very end, and what is inside is not a tuple."""
    depth, comma = 0, False
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        comma |= character == "," and depth == 1
        if depth == 0:
            return position == len(text) - 1 and not comma
    return False


__all__ = ["Printer", "annotation", "blocks", "print_function", "stmt_exprs", "walk"]
