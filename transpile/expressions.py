"""Typing of expressions: a gast expression in, a typed expression (or another build-time value) out."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import gast

from . import construct
from .array_calls import flattened
from .construct import const, value_of
from .dims import ONE, ZERO, Dim, maximum, minimum, nonnegative, product, without_remainder
from .errors import Mistake, Suppressed, span_of
from .fold import fold
from .operations import BY_SPELLING, ROWS, Argument, Row
from .program import (
    NOWHERE,
    Assert,
    Assign,
    At,
    Call,
    Expr,
    Gather,
    Index,
    Item,
    Mask,
    Name,
    NewAxis,
    Slice,
    Span,
    Stmt,
    Type,
    names,
    stored,
)
from .source import CONSTANTS, Source, shipped
from .special_calls import SpecialCalls, gast_text
from .suggestions import LOOPED, SYNTAX, UNSUPPORTED, nearest
from .typing import TypingError, promote
from .values import (
    Broken,
    Closure,
    Collected,
    Fresh,
    Generator,
    Later,
    ListValue,
    Static,
    Tuple,
    Value,
    View,
    leaves,
    map_leaves,
)

_DTYPES = {
    "np.float32": "f32",
    "np.float64": "f64",
    "np.int32": "i32",
    "np.int64": "i64",
    "np.bool_": "bool",
    "np.double": "f64",
    "np.single": "f32",
    "np.intp": "i64",
}
_UNDEFINED = "define it above, import it, or take it as an argument"
_BUILTIN_DTYPES = {"float": "real", "int": "i64", "bool": "bool"}
_MOST_ITEMS = 10000  # of a list whose items are known one by one
_SORTS = (None, "quicksort", "mergesort", "heapsort", "stable")
# Methods that NumPy's arrays have; sort, which works in place, is left to np.sort.
_OF_ARRAYS = frozenset(
    "all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot flatten item max mean min prod"
    " ravel repeat reshape round squeeze std sum swapaxes take trace transpose var".split()
)
# Where their name is not that of the function.
_METHODS = {"flatten": "ravel", "conj": "copy", "astype": "cast"}


class Expressions(SpecialCalls):
    """Mixed into the checker of functions, which supplies `source`, `env`, `facts`, `inline` and `emit`."""

    source: Source
    env: dict[str, Value]
    facts: dict[str, tuple[Dim, Dim]]
    constants_seen: tuple[str, ...] = ()
    called_at: Span = NOWHERE
    again: dict[int, Value] = {}  # noqa: RUF012 (the checker's own) values of nodes, for who asks for them next

    def emit(self, stmt: Stmt) -> None:
        raise NotImplementedError

    def require(self, cond: Expr, message: str, node: Any) -> None:
        """What NumPy would raise a ValueError for. The text of a derivative asks nothing: the forward has."""

    def keep(self, mistake: Mistake) -> None:
        """Called with a mistake where there may be more: the checker of functions goes on."""
        raise mistake

    # -- entry points ------------------------------------------------------------------------------------------
    def span(self, node: Any) -> Span:
        """Where a node stands. What layerc's own files say stands, for a user, where their function is called."""
        return self.called_at if self.source.shipped else span_of(node, self.source.path)

    def fail(self, node: Any, kind: str, message: str, help: str = "") -> Mistake:
        return Mistake(self.span(node), kind, message, help)

    def typed(self, node: Any) -> Expr:
        """The expression, which must be an array or a scalar."""
        return self.as_expr(self.value(node), node)

    def as_expr(self, value: Value, node: Any) -> Expr:
        match value:
            case View(base, items):
                return construct.index(base, items, self.span(node)) if items is not None else base
            case Static(True | False as flag):
                return const(flag)
            case Tuple() | Static() | Closure() | ListValue() | Generator():
                what = {
                    Tuple: "a tuple",
                    Static: "this object",
                    Closure: "a function",
                    ListValue: "a list",
                    Generator: "a random generator",
                }[type(value)]
                raise self.fail(node, "type", f"expected an array or a scalar, got {what}", _object_help(value))
            case Collected():
                return self.as_expr(self.unlisted(value, node), node)
            case Broken() | Later():
                raise Suppressed
        return value

    def value(self, node: Any) -> Value:
        """Types a node; a broken rule becomes a mistake at this node."""
        try:
            return self._value(node)
        except Mistake:
            raise
        except TypingError as error:
            raise self.fail(node, error.kind, error.message, error.help) from None

    def values(self, nodes: Sequence[Any], of: Callable[[Any], Value] | None = None) -> list[Value]:
        """All of them, and the mistakes of all of them. `of`: what gives the value of one."""
        found: list[Value] = []
        failed = False
        for node in nodes:
            mark = len(self.out)
            try:
                found.append((of or self.value)(node))
                found[:-1] = [self._before(v, mark, node) for v in found[:-1]]
            except Mistake as mistake:
                self.keep(mistake)
                failed = True
            except Suppressed:
                failed = True
        if failed:
            raise Suppressed
        return found

    def spread(self, nodes: Sequence[Any]) -> list[Value]:
        """The values of items or arguments, those of `*items` one by one."""
        given = self.values([n.value if isinstance(n, gast.Starred) else n for n in nodes])
        found: list[Value] = []
        for node, value in zip(nodes, given, strict=True):
            found += self.taken_apart(value, node) if isinstance(node, gast.Starred) else [value]
        return found

    def taken_apart(self, value: Value, node: Any) -> tuple[Value, ...]:
        """The items of `*value`."""
        value = self.unlisted(value, node)
        if not isinstance(value, Tuple):
            raise self.fail(node, "type", "only a tuple can be taken apart by *", "write the items out")
        return value.items

    def _before(self, value: Value, mark: int, node: Any) -> Value:
        """A value as it was before what has been emitted since: a call in an expression may write into an array that
        an operand on its left was computed from. An array itself, or a view of it, sees that."""
        written = stored(tuple(self.out[mark:])) if len(self.out) > mark else set()
        if not written:
            return value

        def held(path: tuple[int, ...], v: Value) -> Value:
            if not isinstance(v, (Call, Index)) or self._is_view(v) or not names(v) & written:
                return v
            name = self.fresh("held")
            self.out.insert(mark, Assign(name, v, self.span(node)))
            return Name(name, v.type, value_of(v), self.span(node))

        return map_leaves(value, held)

    def _value(self, node: Any) -> Value:
        if (found := self.again.pop(builtins.id(node), None)) is not None:
            return found
        match node:
            case gast.Constant(value=value):
                return self._constant(node, value)
            case gast.Name(id=id):
                return self._name(node, id)
            case gast.BinOp(left=left, op=op, right=right):
                return self._operator(type(op).__name__, [left, right], node)
            case gast.UnaryOp(op=gast.Not(), operand=operand):
                return construct.call("logical_not", self.condition(operand), span=self.span(node))
            case gast.UnaryOp(op=op, operand=operand):
                return self._operator(type(op).__name__, [operand], node)
            case gast.Compare(left=left, ops=ops, comparators=rest):
                return self._comparison(node, left, ops, rest)
            case gast.BoolOp(op=op, values=values):
                return self._boolean(type(op).__name__, values, node, exact=True)
            case gast.IfExp(test=test, body=body, orelse=orelse):
                return self._ternary(node, test, body, orelse)
            case gast.Attribute():
                return self._attribute(node)
            case gast.Call():
                return self._call(node)
            case gast.Subscript(value=value, slice=slice):
                return self._subscript(node, value, slice)
            case gast.Tuple(elts=elts) | gast.List(elts=elts):
                return Tuple(tuple(self.spread(elts)))
            case gast.Lambda():
                return self.closure(node, "lambda")
            case gast.ListComp() | gast.GeneratorExp():
                return self.comprehension(node)
        what = type(node).__name__
        shown, help = SYNTAX.get(what, (what, ""))
        raise self.fail(node, "unsupported", f"{shown} is not part of the subset", help)

    # -- atoms -------------------------------------------------------------------------------------------------
    def _constant(self, node: Any, value: Any) -> Value:
        if value is None or isinstance(value, str):
            return Static(value)
        if isinstance(value, (bool, int, float)):
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise self.fail(node, "type", "the integer does not fit 64 bits")
            expr = const(value)
            return construct.replace(expr, span=self.span(node))
        raise self.fail(
            node, "type", f"{type(value).__name__} values are not part of the subset", "use float, int or bool"
        )

    def _name(self, node: Any, id: str) -> Value:
        value = self.env.get(id)
        if isinstance(value, Broken):
            if value.message is None:
                raise Suppressed
            raise self.fail(node, "name", value.message, value.help)
        if isinstance(value, Name):
            return construct.replace(value, span=self.span(node))
        if value is not None and (id.startswith("<") or not isinstance(value, Later)):
            return self.unlisted(value, node)
        if id in self.assigned:
            raise self.fail(
                node,
                "name",
                f"{id} has no value yet: as the function assigns it further down, it is a variable of the function",
                "give that variable another name",
            )
        found = self.source.defined(id)
        if found is not None:
            return self._defined(node, *found)
        dotted = self.source.resolve(node)
        if dotted in CONSTANTS:
            number = CONSTANTS[dotted]
            return Static(None) if number is None else const(number)
        if dotted in _DTYPES or id in _BUILTIN_DTYPES:
            return Static(id if dotted is None else dotted)
        if dotted in BY_SPELLING or dotted:
            return Static(dotted)
        if self.source.is_lost(id):
            raise Suppressed
        raise self.fail(
            node,
            "name",
            f"{id} is not defined",
            nearest(id, [*self.env, *self.source.functions, *self.source.constants]) or _UNDEFINED,
        )

    def _defined(self, node: Any, source: Source, id: str) -> Value:
        """A function or constant of this file, or of an imported one."""
        if id in source.functions:
            return Closure(source.functions[id], source, None, id)
        if id in source.classes:
            raise self.fail(
                node, "unsupported", f"the class {id} is not a value here", f"call its method: {id}.predict(self, x)"
            )
        return self._module_constant(node, source, id)

    def _module_constant(self, node: Any, source: Source, id: str) -> Value:
        key = f"{source.path}:{id}"
        if key in self.constants_seen:
            raise self.fail(node, "name", f"the constant {id} is defined by itself")
        outer = self.constants_seen, self.env, self.source
        self.constants_seen, self.env, self.source = (*self.constants_seen, key), {}, source
        try:
            return self.value(source.constants[id])
        finally:
            self.constants_seen, self.env, self.source = outer

    def _attribute(self, node: Any) -> Value:
        dotted = self.source.resolve(node)
        if dotted is not None and not (isinstance(node.value, gast.Name) and node.value.id in self.env):
            if dotted in CONSTANTS:
                number = CONSTANTS[dotted]
                return Static(None) if number is None else const(number)
            return Static(dotted)
        if isinstance(node.value, gast.Name) and node.value.id == "self" and "self" not in self.env:
            return self._field(node, node.attr)
        if isinstance(node.value, gast.Name) and node.value.id in self.source.modules and node.value.id not in self.env:
            member = self.source.member(node)
            if member is None:
                module = self.source.modules[node.value.id]
                raise self.fail(
                    node,
                    "name",
                    f"{module.path} defines no {node.attr}",
                    nearest(node.attr, [*module.functions, *module.constants]),
                )
            return self._defined(node, *member)
        if self.is_array_list(node.value):
            raise self.fail(node, "type", f"a list has no {node.attr}", "len(ys), or stack it first: np.stack(ys)")
        base = self.typed(node.value)
        self._no_number(base, node)
        match node.attr:
            case "shape":
                return Tuple(tuple(construct.call("extent", base, axis=i) for i in range(base.type.rank)))
            case "ndim":
                return const(base.type.rank)
            case "size":
                return construct.call("size", base)
            case "dtype":
                return Static(f"dtype:{base.type.dtype}")
            case "T" | "mT":
                return construct.call("transpose", base, axes=None) if base.type.rank > 1 else base
        raise self.fail(
            node,
            "unsupported",
            f"arrays have no attribute {node.attr} here",
            "shape, ndim, size, dtype, T, and methods",
        )

    def _no_number(self, base: Expr, node: Any) -> None:
        weak = base.type.is_weak and not base.type.rank and isinstance(base, (Name, construct.Const))
        if weak or self.is_truth(base):
            what = f"a Python number ({base.type.dtype}) has no {node.attr}"
            raise self.fail(node, "type", what, "np.asarray(...) makes an array of it")

    def is_truth(self, expr: Expr) -> bool:
        """Whether it is Python's own True or False, where NumPy's would have an array's methods."""
        if expr.type.rank or expr.type.dtype != "bool":
            return False
        match expr:
            case Name(id=id):
                return id in self.truths
            case Call(op="logical_not" | "logical_and" | "logical_or", args=args):
                return all(map(self.is_truth, args))
            case Call(args=args):
                return ROWS[expr.op].kind == "elementwise" and all(a.type.is_weak and not a.type.rank for a in args)
        return isinstance(expr, construct.Const)

    def _field(self, node: Any, attr: str) -> Value:
        key = f"self.{attr}"
        if key in self.env:
            return self._name_like(node, key, attr)
        fields = [k[5:] for k in self.env if k.startswith("self.")]
        raise self.fail(node, "name", f"the layer has no field {attr}", nearest(attr, fields))

    def _name_like(self, node: Any, key: str, shown: str) -> Value:
        value = self.env[key]
        if isinstance(value, Broken):
            if value.message is None:
                raise Suppressed
            raise self.fail(node, "name", value.message, value.help)
        return construct.replace(value, span=self.span(node)) if isinstance(value, Name) else value

    # -- operators ---------------------------------------------------------------------------------------------
    def _operator(self, spelling: str, operands: list[Any], node: Any) -> Value:
        row = BY_SPELLING.get(spelling)
        if row is None:
            raise self.fail(node, "unsupported", f"the operator {spelling} is not part of the subset")
        for operand in operands:
            if self.is_array_list(operand):
                raise self.fail(
                    operand, "type", "arithmetic on a list is not that on arrays", "stack it first: np.stack(ys)"
                )
        values = self.values(operands)
        if spelling in ("Add", "Mult") and any(isinstance(v, Tuple) for v in values):
            return self._tuple_arithmetic(spelling, values, node)
        return self.apply(row, [self.as_expr(v, o) for v, o in zip(values, operands, strict=True)], {}, node)

    def _tuple_arithmetic(self, spelling: str, values: list[Value], node: Any) -> Value:
        match spelling, values:
            case "Add", [Tuple(a), Tuple(b)]:
                return Tuple(a + b)
            case "Mult", [Tuple(a), Expr_] if not isinstance(Expr_, (Tuple, Static, Closure)):
                count = value_of(self.as_expr(Expr_, node))
                if count is not None and count.value is not None and len(a) * count.value > _MOST_ITEMS:
                    what = f"a list of {len(a) * count.value} items"
                    raise self.fail(node, "unsupported", what, "make an array: np.full(n, v), np.zeros(n)")
                if count is not None and count.value is not None:
                    return Tuple(a * count.value)
        raise self.fail(node, "type", "this arithmetic on tuples is not part of the subset")

    def apply(self, row: Row, args: Sequence[Expr], static: dict[str, Any], node: Any) -> Expr:
        folded = fold(row.name, args)
        if folded is not None:
            if (
                isinstance(folded, construct.Const)
                and isinstance(folded.value, int)
                and not -(2**63) <= folded.value < 2**63
            ):
                raise self.fail(node, "type", "the integer does not fit 64 bits", "write a float: 2.0 ** 64")
            return construct.replace(folded, span=self.span(node))
        if row.name in ("max", "min") and not args[0].type.rank:
            return args[0]
        if row.name == "squeeze" and (taken := self.squeezed(args[0], static["axis"], node)) is not None:
            return taken
        if row.name == "bitwise_not" and args[0].type.dtype == "bool":
            row = ROWS["logical_not"]
        if row.name.startswith("bitwise") and any(a.type.is_float for a in args):
            raise self.fail(
                node, "type", "& | ^ ~ take booleans or integers", "compare first, in parentheses: (x > 0) & (y > 0)"
            )
        if row.name in ("negative", "subtract") and all(a.type.dtype == "bool" and a.type.rank for a in args):
            raise self.fail(node, "type", "NumPy has no - for booleans", "~ for not, ^ for differs")
        if row.name.endswith("_shift"):
            self._by_a_number_of_bits(args, node)
        if row.name == "power":
            args = self._whole_power(args, node)
        if row.kind == "elementwise":
            args = self._halves(args, node)
        made = construct.call(row.name, *args, span=self.span(node), **static)
        if row.name in ("maximum", "minimum") and isinstance(made, Call) and made.value is not None:
            (a, b), choose = map(value_of, args), maximum if row.name == "maximum" else minimum
            made = replace(made, value=choose(a or ZERO, b or ZERO, self.facts))
        if isinstance(made, Call) and any(d.value is not None and d.value < 0 for d in made.type.shape):
            several = row.name == "reshape" and sum(d.value == -1 for d in static["shape"]) > 1
            help = "at most one extent is -1: write the others out" if several else "an extent is 0 or more"
            raise self.fail(node, "shape", "negative dimensions are not allowed", help)
        self._no_less_than_nothing(made, args, node)
        if row.name == "reshape":
            self._fill_the_hole(static["shape"], node)
        if row.name == "reshape" and (size := product(args[0].type.shape)) != product(made.type.shape):
            fits = construct.call("equal", construct.dim(size), construct.dim(product(made.type.shape)))
            message = (
                f"cannot reshape {construct.shape_text(args[0].type.shape)} to {construct.shape_text(made.type.shape)}"
            )
            self.require(fits, message, node)
        return made

    def _by_a_number_of_bits(self, args: Sequence[Expr], node: Any) -> None:
        if any(not a.type.is_integer for a in args):
            raise self.fail(node, "type", "<< and >> take integers", "multiply by a power of two: x * 2.0**n")
        if all(isinstance(a, construct.Const) for a in args):  # what Python computes would have been folded
            raise self.fail(node, "type", "negative shift count")

    def _whole_power(self, args: Sequence[Expr], node: Any) -> Sequence[Expr]:
        """An integer to the power of another: a negative one gives a float in Python, and no result in NumPy."""
        base, exponent = args
        if base.type.is_float or not exponent.type.is_integer:
            return args
        power = value_of(exponent)
        if power is not None and nonnegative(power, self.facts):
            return args
        plain = all(a.type.dtype == "int" for a in args)
        below = power is not None and nonnegative(-power - 1, self.facts)
        if plain and below and not isinstance(base, construct.Const):
            return construct.cast(base, "float"), exponent
        message = "Integers to negative integer powers are not allowed"
        if plain:
            message = "an integer to a negative power is a float: write 2.0 ** n"
        if below:
            raise self.fail(node, "type", message, "make it a float: 2.0 ** n, i.astype(np.float64) ** n")
        least = construct.call("greater_equal", exponent, const(0))
        self.require(construct.call("all", least) if least.type.rank else least, message, node)
        return args

    def _no_less_than_nothing(self, made: Expr, args: Sequence[Expr], node: Any) -> None:
        """np.zeros(n - 1) has no result where n is 0."""
        given = {d for a in args for d in a.type.shape}
        for extent in made.type.shape:
            if extent not in given and not nonnegative(extent, self.facts):
                enough = construct.call("greater_equal", construct.dim(extent), const(0))
                self.require(enough, "negative dimensions are not allowed", node)

    def _fill_the_hole(self, shape: Sequence[Dim], node: Any) -> None:
        """-1 beside an extent of 0 could be any."""
        rest = product(d for d in shape if d != -ONE)
        if -ONE in shape and not nonnegative(rest - ONE, self.facts):
            told = construct.shape_text(tuple(shape))
            something = construct.call("greater", construct.dim(rest), const(0))
            message = f"cannot reshape an array of size 0 to {told}: -1 could be any extent"
            self.require(something, message, node)

    def _halves(self, args: Sequence[Expr], node: Any) -> Sequence[Expr]:
        """x[:, : D // 2] and x[:, D // 2 :] have one shape where D is even, which is checked at the call."""
        shapes = [a.type.shape for a in args if a.type.rank]
        if len(shapes) < 2 or (len({s[-1:] for s in shapes}) < 2 and len(set(shapes)) < 2):
            return args
        rank = max(map(len, shapes))
        columns = [[s[k - rank + len(s)] for s in shapes if k - rank + len(s) >= 0] for k in range(rank)]
        plain = {d: min(c, key=lambda e: len(e.terms)) for c in columns for d in c if _half_of(d, c)}
        if not plain:
            return args
        fitted: list[Expr] = []
        for arg in args:
            shape = tuple(plain.get(d, d) for d in arg.type.shape)
            fitted.append(
                arg if shape == arg.type.shape else self.apply(ROWS["reshape"], [arg], {"shape": shape}, node)
            )
        return fitted

    def _comparison(self, node: Any, left: Any, ops: list[Any], rest: list[Any]) -> Value:
        terms = self.values([left, *rest[:1]])
        drawn, mark = self.drawn(), len(self.out)
        terms += self.values(rest[1:])
        if self.drawn() != drawn or stored(tuple(self.out[mark:])):
            what = "the end of this comparison is looked at only where its beginning holds: it may not draw or write"
            raise self.fail(node, "unsupported", what, "take its value before: u = ...")
        if len(ops) == 1 and isinstance(ops[0], (gast.Is, gast.IsNot)):
            if isinstance(terms[1], Static) and terms[1].value is None:
                same = isinstance(terms[0], Static) and terms[0].value is None
                return const(same == isinstance(ops[0], gast.Is))
        if all(isinstance(t, Static) for t in terms) and len(ops) == 1 and isinstance(ops[0], (gast.Eq, gast.NotEq)):
            return const((terms[0] == terms[1]) == isinstance(ops[0], gast.Eq))
        if len(ops) == 1 and isinstance(ops[0], (gast.In, gast.NotIn)) and isinstance(terms[1], Tuple):
            return self._membership(terms[0], terms[1], isinstance(ops[0], gast.In), node)
        match terms, ops:
            case [Tuple() as these, Tuple() as those], [gast.Eq() | gast.NotEq()]:
                equal = self._same_items(these, those, node)
                return equal if isinstance(ops[0], gast.Eq) else self.apply(ROWS["logical_not"], [equal], {}, node)
        exprs = [self.as_expr(t, n) for t, n in zip(terms, [left, *rest], strict=True)]
        result: Expr | None = None
        for op, a, b in zip(ops, exprs, exprs[1:], strict=False):
            row = BY_SPELLING.get(type(op).__name__)
            if row is None:
                raise self.fail(node, "unsupported", f"the comparison {type(op).__name__} is not part of the subset")
            test = self.apply(row, [a, b], {}, node)
            if len(ops) > 1 and test.type.rank:
                raise self.fail(
                    node, "type", "a < b < c asks for the truth of an array, which has none", "(a < b) & (b < c)"
                )
            result = test if result is None else construct.call("logical_and", result, test, span=self.span(node))
        assert result is not None
        return result

    def _same_items(self, a: Tuple, b: Tuple, node: Any) -> Expr:
        """Whether two tuples, such as shapes, are equal item by item."""
        result: Expr = const(len(a.items) == len(b.items))
        for x, y in zip(a.items, b.items, strict=False):
            first, second = self.as_expr(x, node), self.as_expr(y, node)
            known = (value_of(first), value_of(second))
            same = const(True) if None not in known and known[0] == known[1] else construct.call("equal", first, second)
            if _known(result) is False or _known(same) is True:
                continue
            apart = _number(construct.call("subtract", first, second)) if None not in known else None
            same = same if apart is None else const(apart == 0)
            result = same if _known(result) is True else construct.call("logical_and", result, same)
        return result

    def _membership(self, value: Value, items: Tuple, inside: bool, node: Any) -> Value:
        """`n in (1, 2)`: whether it equals one of them."""
        if any(isinstance(v, Static) for v in (value, *items.items)):
            return const((value in items.items) == inside)
        one = self.as_expr(value, node)
        result: Expr = const(False)
        if one.type.rank:
            raise self.fail(
                node, "type", "whether an array is in a list is not part of the subset", "use np.any(x == v)"
            )
        for item in items.items:
            same = self.apply(ROWS["equal"], [one, self.as_expr(item, node)], {}, node)
            known = _known(same)
            if known is True:
                return const(inside)
            if known is None:
                result = same if result == const(False) else construct.call("logical_or", result, same)
        return result if inside else self.apply(ROWS["logical_not"], [result], {}, node)

    def _boolean(self, spelling: str, values: list[Any], node: Any, exact: bool = False) -> Value:
        result = self.condition(values[0], exact)
        for other in values[1:]:
            term = self.condition(other, exact)
            static = _known(result)
            if static is not None:
                result = term if static == (spelling == "And") else result
            else:
                result = construct.call(
                    "logical_and" if spelling == "And" else "logical_or", result, term, span=self.span(node)
                )
        return result

    def condition(self, node: Any, exact: bool = False) -> Expr:
        """A scalar condition. `exact`: not only its truth matters, as of what `and` and `or` give: one of the two."""
        if isinstance(node, gast.BoolOp):
            return self.as_expr(self._boolean(type(node.op).__name__, node.values, node, exact), node)
        expr = self.typed(node)
        if exact and (expr.type.rank or expr.type.dtype != "bool"):
            what = "`and` and `or` give one of their operands; here these are no truths"
            raise self.fail(node, "type", what, "say which one is meant: k if k else 2")
        if expr.type.rank and expr.type.shape != (construct.ONE,) * expr.type.rank:
            raise self.fail(
                node,
                "type",
                f"the truth of an array of shape {construct.shape_text(expr.type.shape)} is ambiguous",
                "use np.any or np.all; elementwise: np.where, & and |",
            )
        if expr.type.rank:
            expr = construct.index(expr, [At(const(0))] * expr.type.rank)
        return expr if expr.type.dtype == "bool" else construct.call("not_equal", expr, const(0))

    def _ternary(self, node: Any, test: Any, body: Any, orelse: Any) -> Value:
        condition = self.condition(test)
        known = _known(condition)
        if known is not None:
            return self.value(body if known else orelse)
        return self.branch_value(node, condition, body, orelse)

    def branch_value(self, node: Any, condition: Expr, body: Any, orelse: Any) -> Value:
        raise NotImplementedError

    # -- lists: an expression of its own has none, the checker of functions does ----------------------------------
    mutating = False

    def unlisted(self, value: Value, node: Any) -> Value:
        return value

    def value_or_list(self, node: Any) -> Value:
        return self.value(node)

    # -- calls -------------------------------------------------------------------------------------------------
    def _call(self, node: Any) -> Value:
        if any(k.arg is None for k in node.keywords):
            raise self.fail(node, "unsupported", "** in calls is not part of the subset", "write the arguments out")
        dotted = self._called(node.func)
        own = shipped(dotted.removeprefix("layerc.")) if dotted is not None and dotted.startswith("layerc.") else None
        spread = dotted is None or own is not None or dotted.startswith("derivative.")
        if any(isinstance(a, gast.Starred) for a in node.args) and not spread:
            raise self.fail(
                node, "unsupported", "* is for calls of functions of a layer file", "write the arguments out"
            )
        if own is not None and dotted is not None:
            return self.inline(Closure(own.functions[dotted[7:]], own, None, dotted[7:]), node)
        if dotted is not None:
            return self._named_call(node, dotted)
        if isinstance(node.func, gast.Attribute) and not self._is_member(node.func):
            return self._method(node)
        target = self.value(node.func)
        if isinstance(target, Closure):
            return self.inline(target, node)
        raise self.fail(node, "type", "this cannot be called")

    def _is_member(self, func: Any) -> bool:
        """Whether it is a function of an imported layer file: mylayers.helper."""
        return (
            isinstance(func.value, gast.Name) and func.value.id in self.source.modules and func.value.id not in self.env
        )

    def _called(self, func: Any) -> str | None:
        """The canonical name of what is called, unless the file itself defines it."""
        if isinstance(func, gast.Name):
            if func.id in self.assigned and func.id not in self.env:
                return None
            if func.id in self.env or self.source.defined(func.id) is not None:
                value = self.env.get(func.id)
                return value.value if isinstance(value, Static) and isinstance(value.value, str) else None
            return self.source.resolve(func) or func.id
        if isinstance(func, gast.Attribute):
            base = func
            while isinstance(base, gast.Attribute):
                base = base.value
            if isinstance(base, gast.Name) and (base.id in self.env or base.id == "self"):
                return None
            return self.source.resolve(func)
        return None

    def _named_call(self, node: Any, dotted: str) -> Value:
        special = getattr(self, "call_" + dotted.replace(".", "_"), None)
        if special is not None:
            return self._of_numbers(dotted, special(node), node)
        if dotted in _DTYPES or dotted in _BUILTIN_DTYPES:
            return self._convert_call(node, dotted)
        if (outer := BY_SPELLING.get(dotted.removesuffix(".outer"))) is not None and dotted.endswith(".outer"):
            return self._outer(outer, node)
        row = BY_SPELLING.get(dotted)
        if row is None or dotted[0].isupper() or dotted == "list":
            raise self._unknown(node, dotted)
        return self._of_numbers(dotted, self.call_row(row, node.args, node.keywords, node), node)

    def _of_numbers(self, dotted: str, made: Value, node: Any) -> Value:
        """What a function of math gives: it takes numbers only."""
        if dotted.startswith("math.") and self.as_expr(made, node).type.rank:
            raise self.fail(node, "type", f"{dotted} takes a scalar", f"np.{dotted[5:]}")
        return made

    def _outer(self, row: Row, node: Any) -> Value:
        """np.add.outer(a, b): the operation on each element of a with each of b."""
        if row.kind != "elementwise" or len(row.arrays) != 2 or len(node.args) != 2 or node.keywords:
            raise self.fail(node, "unsupported", "outer is of operations with two arguments, and takes two arrays")
        a, b = (self.as_expr(v, n) for v, n in zip(self.values(node.args), node.args, strict=True))
        spread = construct.index(a, [*construct.complete(a, []), *[NewAxis()] * b.type.rank])
        return self.apply(row, [spread, b], {}, node)

    def _unknown(self, node: Any, dotted: str) -> Mistake:
        first = node.func
        while isinstance(first, gast.Attribute):
            first = first.value
        if isinstance(first, gast.Name) and self.source.is_lost(first.id) and first.id not in self.source.imports:
            raise Suppressed
        if dotted in ("list", "tuple"):
            return self.fail(
                node,
                "unsupported",
                f"{dotted}() is not part of the subset",
                "arrays are looped over and indexed as they are",
            )
        if dotted in LOOPED and "." not in dotted:
            return self.fail(node, "type", f"{dotted} cannot be called like this here", LOOPED[dotted])
        families = (dotted, dotted.rpartition(".")[0], dotted.partition(".")[0])
        family = next((f for f in families if f in UNSUPPORTED), None)
        if family is not None:
            message, _, help = UNSUPPORTED[family].partition(" -- ")
            return self.fail(node, "shape" if "shape" in message else "unsupported", f"{dotted} {message}", help)
        known = [s for s in BY_SPELLING if not s[0].isupper()]
        if "." in dotted:
            missing = self.source.missing.get(first.id) if isinstance(first, gast.Name) else None
            help = f"a layer file for it was not found: {missing}" if missing else nearest(dotted, known)
            return self.fail(node, "unsupported", f"{dotted} is not part of the subset", help)
        close = nearest(dotted, [*known, *self.env, *self.source.functions])
        return self.fail(node.func, "name", f"{dotted} is not defined", close or _UNDEFINED)

    def _convert_call(self, node: Any, dotted: str) -> Value:
        if len(node.args) != 1 or node.keywords:
            raise self.fail(node, "type", f"{dotted} takes one argument")
        expr = self.typed(node.args[0])
        if dotted in _BUILTIN_DTYPES and expr.type.rank:
            raise self.fail(node, "type", f"{dotted}() takes a scalar", f"use .astype({dotted}) for arrays")
        if dotted in ("float", "int"):
            if dotted == "float" and expr.type.is_float:
                return expr
            if dotted == "int" and expr.type.is_integer:
                return expr
            return construct.cast(expr, "real" if dotted == "float" else "i64")
        return construct.cast(expr, _DTYPES.get(dotted) or _BUILTIN_DTYPES[dotted])

    def _method(self, node: Any) -> Value:
        target, attr = node.func.value, node.func.attr
        if isinstance(target, gast.Name) and target.id == "self":
            return self.self_call(node, attr)
        layer = self._layer_class(target)
        if layer is not None:
            return self.class_call(node, *layer)
        if (replayed := self.replayed(target)) is not None:
            return self.draw(replayed[0], node, replayed[1])
        receiver = self.value_or_list(target)
        if isinstance(receiver, Generator):
            return self.draw(receiver, node)
        if isinstance(receiver, (ListValue, Collected)):
            if attr in ("append", "extend") and (len(node.args) != 1 or node.keywords):
                self.env |= {n.id: Broken() for n in (target,) if isinstance(n, gast.Name)}  # what it holds is unknown
                raise self.fail(node, "type", f"{attr} takes one argument", f"one call for each: ys.{attr}(y)")
            return self.list_call(receiver, node, attr)
        base = self.as_expr(receiver, target)
        self._no_number(base, node.func)
        if attr == "item" and not base.type.rank:
            return base
        if attr == "flatten" and self.mutating:  # a copy, where ravel is a view
            base = construct.call("copy", base, span=self.span(node))
        row = ROWS.get(_METHODS.get(attr, attr)) if attr in _OF_ARRAYS else None
        if row is None and f"np.{attr}" in BY_SPELLING:
            raise self.fail(node, "unsupported", f"arrays have no method {attr} here", f"np.{attr}(...)")
        if row is None or not row.arrays or row.arrays[0] != "a" or row.signature[0].kind != "array":
            raise self.fail(node, "unsupported", f"arrays have no method {attr} here", nearest(attr, ROWS))
        args = list(node.args)
        if row.name in ("reshape", "transpose") and len(args) > 1:
            args = [gast.Tuple(elts=args, ctx=gast.Load())]
            gast.copy_location(args[0], node)
        return self.call_row(row, args, node.keywords, node, first=base)

    def _layer_class(self, node: Any) -> tuple[Source, str] | None:
        if isinstance(node, gast.Name) and node.id in self.env:
            return None
        found = self.source.defined(node.id) if isinstance(node, gast.Name) else self.source.member(node)
        return found if found is not None and found[1] in found[0].classes else None

    def self_call(self, node: Any, attr: str) -> Value:
        raise NotImplementedError

    def class_call(self, node: Any, source: Source, name: str) -> Value:
        raise NotImplementedError

    def list_call(self, receiver: ListValue | Collected, node: Any, attr: str) -> Value:
        raise NotImplementedError

    def inline(self, target: Closure, node: Any) -> Value:
        raise NotImplementedError

    # -- random numbers: only a function's arguments are generators --------------------------------------------
    def replayed(self, target: Any) -> tuple[Generator, Any] | None:
        return None

    def draw(self, generator: Generator, node: Any, number: Any = None) -> Value:
        raise NotImplementedError

    def drawn(self) -> dict[str, Value]:
        return {}

    assigned: Set[str] = frozenset()  # names that the function around assigns
    truths: Set[str] = frozenset()  # names of Python's own booleans
    boxes: Mapping[str, str] = {}

    # -- lists: only a function's body has them ----------------------------------------------------------------
    frame: object = None
    fresh: Fresh
    out: list[Stmt] = []  # noqa: RUF012 (a template emits nothing)

    def comprehension(self, node: Any) -> Value:
        raise NotImplementedError

    def closure(self, node: Any, name: str) -> Value:
        raise NotImplementedError

    def is_array_list(self, node: Any) -> bool:
        return False

    def _is_view(self, expr: Expr) -> bool:
        return False

    # -- binding the arguments of a row ------------------------------------------------------------------------
    def call_row(self, row: Row, args: list[Any], keywords: list[Any], node: Any, first: Expr | None = None) -> Value:
        bound = self._bind(row, args, keywords, node, first)
        kinds = {argument.name: argument for argument in row.signature}
        found: dict[str, list[Expr]] = {}
        static = {a.name: a.default for a in row.signature if a.kind not in ("array", "arrays")}
        failed = False
        for name, given in bound.items():  # in the order in which they are written
            mark = len(self.out)
            try:
                match kinds[name].kind:
                    case "array":
                        found[name] = [self._array(row, kinds[name], given, node)]
                    case "arrays":
                        found[name] = self._arrays(given, node)
                    case _:
                        static[name] = self.static(kinds[name], given, node)
                for other in [o for o in found if o != name]:
                    found[other] = [self.as_expr(self._before(v, mark, node), node) for v in found[other]]
            except Mistake as mistake:  # the other arguments may have mistakes of their own
                self.keep(mistake)
                failed = True
            except Suppressed:
                failed = True
        if failed:
            raise Suppressed
        for argument in row.signature:  # those left out
            if argument.kind == "array" and argument.name not in bound:
                found[argument.name] = [self._array(row, argument, None, node)]
        arrays = [expr for name in kinds for expr in found.get(name, ())]
        self._adjust(row, arrays, static, node)
        if row.kind in ("reduce", "compose", "body") and (dtype := static.pop("dtype", None)) is not None:
            arrays[0] = construct.cast(arrays[0], dtype)
            return construct.cast(self.apply(row, arrays, static, node), dtype)
        return self.apply(row, arrays, static, node)

    def _bind(self, row: Row, args: list[Any], keywords: list[Any], node: Any, first: Expr | None) -> dict[str, Any]:
        names = [a.name for a in row.signature]
        given: list[Any] = ([first] if first is not None else []) + args
        written = gast_text(node.func) if first is None else f".{node.func.attr}"
        if len(given) > len(names):
            most = f"{len(names)} argument{'s' * (len(names) > 1)}"
            raise self.fail(node, "type", f"{written} takes at most {most}: {row.takes}")
        bound: dict[str, Any] = dict(zip(names, given, strict=False))
        alias = {
            "newshape": "shape",
            "min": "a_min",
            "max": "a_max",
            "repeats": "repeats",
            "x": "a",
            "fill_value": "value",
            "N": "n",
            "M": "m",
        }
        for keyword in keywords:
            name = keyword.arg if keyword.arg in names else alias.get(keyword.arg, keyword.arg)
            if keyword.arg == "out":
                raise self.fail(
                    node, "unsupported", "out= is not part of the subset", "assign the result: y[...] = np.f(x)"
                )
            if name not in names:
                raise self.fail(node, "type", f"{written} has no argument {keyword.arg} here", f"it takes: {row.takes}")
            if name in bound:
                raise self.fail(node, "type", f"{written} gets {name} twice")
            bound[name] = keyword.value
        if len(bound) == 1 and (alone := f"{row.python} of one argument") in UNSUPPORTED:
            raise self._unknown(node, alone)
        for argument in row.signature:
            if argument.required and argument.name not in bound:
                raise self.fail(node, "type", f"{written} needs {argument.name}", f"it takes: {row.takes}")
        return bound

    def _array(self, row: Row, argument: Argument, given: Any, node: Any) -> Expr:
        if given is not None and not isinstance(given, gast.AST):
            return given
        value = self.value(given) if given is not None else Static(argument.default)
        if row.name == "clip" and isinstance(value, Static) and value.value is None:
            return const(float("-inf") if argument.name == "a_min" else float("inf"))
        if isinstance(value, Tuple):
            return self.stacked(value, given)
        return self.as_expr(value, given)

    def stacked(self, value: Tuple, node: Any) -> Expr:
        """np.array([a, b, c]) and the like: equal shapes along a new first axis."""
        items = [self.stacked(v, node) if isinstance(v, Tuple) else self.as_expr(v, node) for v in value.items]
        if not items:
            raise self.fail(node, "type", "an empty list has no element type", "use np.zeros(0)")
        dtype = promote([i.type for i in items])
        dtype = {"float": "real", "int": "i64"}.get(dtype, dtype)
        return construct.call(
            "concatenate", *(construct.call("expand_dims", construct.cast(i, dtype), axis=0) for i in items), axis=0
        )

    def _arrays(self, given: Any, node: Any) -> list[Expr]:
        value = self.value(given)
        if not isinstance(value, Tuple) or not value.items:
            raise self.fail(given, "type", "expected a list or tuple of arrays")
        items = [self.as_expr(v, given) for v in value.items]
        if any(not i.type.rank for i in items):
            raise self.fail(
                given, "shape", "scalars cannot be joined along an axis", "np.array([a, b]) makes an array of scalars"
            )
        dtype = promote([i.type for i in items])
        return [construct.cast(i, dtype) for i in items]

    def static(self, argument: Argument, given: Any, node: Any) -> Any:
        value = self.value(given) if isinstance(given, gast.AST) else given
        match argument.kind:
            case "axis" | "int" | "axes":
                return self._axes(value, given, argument)
            case "flag":
                known = _known(self.as_expr(value, given))
                if known is None:
                    raise self.fail(given, "type", f"{argument.name} must be True or False at build time")
                return known
            case "shape":
                return self.shape(value, given)
            case "extent":
                return self.extent(value, given)
            case "dtype":
                return self.dtype(value, given)
            case "text" if isinstance(value, Static) and isinstance(value.value, str):
                return value.value
            case "value" if isinstance(value, Static):
                return value.value
            case "value" if isinstance(value, Tuple):
                return value
            case "value" if isinstance(number := self.as_expr(value, given), construct.Const):
                return number.value
        raise self.fail(given, "type", f"{argument.name} must be known at build time")

    def _axes(self, value: Value, node: Any, argument: Argument) -> Any:
        if isinstance(value, Static) and value.value is None and (argument.default is None or argument.name == "axis"):
            return None
        if isinstance(value, Tuple) and argument.kind == "axes":
            axes = tuple(self._axes(v, node, argument) for v in value.items)
            if any(not isinstance(a, int) for a in axes):
                raise self.fail(node, "type", f"one {argument.name} among several is an integer")
            return axes
        number = None if isinstance(value, Static) else value_of(self.as_expr(value, node))
        if number is None or number.value is None:
            raise self.fail(node, "type", f"{argument.name} must be an integer known at build time")
        return number.value

    def extent(self, value: Value, node: Any) -> Dim | None:
        if isinstance(value, Static) and value.value is None:
            return None
        expr = self.as_expr(value, node)
        size = value_of(expr)
        if size is None:
            if not expr.type.is_integer:
                raise self.fail(node, "type", "an extent must be an integer")
            raise self.fail(
                node,
                "shape",
                "the shape would depend on values",
                "shapes may depend on other shapes and on config only; allocate the largest and use part of it",
            )
        return size

    def shape(self, value: Value, node: Any) -> tuple[Dim, ...]:
        items = value.items if isinstance(value, Tuple) else (value,)
        found = tuple(self.extent(v, node) for v in items)
        if any(d is None for d in found):
            raise self.fail(node, "type", "a shape is a tuple of integers")
        return tuple(d for d in found if d is not None)

    def dtype(self, value: Value, node: Any) -> str | None:
        if isinstance(value, Static):
            text = value.value
            if text is None:
                return None
            if isinstance(text, str):
                if text.startswith("dtype:"):
                    return text[6:]
                found = _DTYPES.get(text) or _BUILTIN_DTYPES.get(text) or _DTYPES.get(f"np.{text}")
                if found:
                    return found
        raise self.fail(
            node,
            "type",
            "this dtype is not part of the subset",
            "np.float32, np.float64, np.int32, np.int64, bool, x.dtype",
        )

    def _adjust(self, row: Row, arrays: list[Expr], static: dict[str, Any], node: Any) -> None:
        """Python's conventions that are not in the table: arange(stop), axis=None of the flat array."""
        if row.name == "arange" and static["stop"] is None:
            static["start"], static["stop"] = Dim.of(0), static["start"]
        if row.name == "arange" and None in (static["start"], static["stop"]):
            raise self.fail(
                node, "type", "np.arange takes integers, not None", "np.arange(stop), np.arange(start, stop)"
            )
        if row.name == "arange":  # with an end before the start it is empty, which for extents cannot be
            start, stop = static["start"], static["stop"]
            if static["step"] > 0:
                static["stop"] = start + maximum(stop - start, ZERO, self.facts)
            else:
                static["stop"] = start - maximum(start - stop, ZERO, self.facts)
        if any(a.name == "axis" and a.kind == "axis" for a in row.signature) and static["axis"] is None:
            flat = len(arrays) if row.signature[0].kind == "arrays" else 1  # of take, the indices keep their shape
            arrays[:flat], static["axis"] = [flattened(a) for a in arrays[:flat]], 0
        if row.name == "outer":
            arrays[:] = [flattened(a) for a in arrays]
        if row.name == "transpose" and isinstance(static["axes"], int):
            static["axes"] = (static["axes"],)
        if row.name == "transpose" and static["axes"] is not None:
            rank = arrays[0].type.rank
            if sorted(a + rank if a < 0 else a for a in static["axes"]) != list(range(rank)):
                raise self.fail(node, "shape", f"the axes of a transpose are each of 0 to {rank - 1} once")
        if static.get("kind") not in _SORTS:
            help = ", ".join(map(repr, _SORTS[1:]))
            raise self.fail(node, "type", f"{static['kind']!r} is no kind of sort", help)
        if row.name in ("softmax", "log_softmax") and arrays[0].type.dtype == "bool":
            message = f"{row.python} subtracts, and NumPy has no - for booleans"
            raise self.fail(node, "type", message, "m.astype(np.float64)")
        if row.name == "logsumexp" and arrays[0].type.dtype == "bool":
            arrays[0] = construct.cast(arrays[0], "i64")
        if row.name == "norm":
            self._only_the_2_norm(static["ord"], static["axis"], arrays[0].type.rank, node)

    def _only_the_2_norm(self, ord: Any, axis: Any, rank: int, node: Any) -> None:
        axes = rank if axis is None else len(axis) if isinstance(axis, tuple) else 1
        if ord not in (None, 2, "fro"):
            raise self.fail(
                node, "unsupported", "np.linalg.norm has the 2-norm only", "np.sum(np.abs(x)), np.max(np.abs(x))"
            )
        if ord == 2 and axes == 2:
            what = "the 2-norm of a matrix is its largest singular value, which is not part of the subset"
            raise self.fail(node, "unsupported", what, "np.linalg.norm(x) is the root of the sum of all squares")
        if (ord is not None and axes != (2 if ord == "fro" else 1)) or (axis is not None and axes > 2):
            raise self.fail(node, "shape", f"np.linalg.norm: {ord!r} is no norm along {axes} axes")

    # -- indexing ----------------------------------------------------------------------------------------------
    def _subscript(self, node: Any, value: Any, slice: Any) -> Value:
        base = self.value(value)
        if isinstance(base, Tuple):
            return self._pick(node, base, slice)
        expr = self.as_expr(base, value)
        items = self.items(expr, slice)
        return self._take(expr, items, node)

    def _take(self, expr: Expr, items: tuple[Item, ...], node: Any) -> Value:
        return construct.index(expr, items, self.span(node))

    def _pick(self, node: Any, base: Tuple, slice: Any) -> Value:
        if isinstance(slice, gast.Slice):
            bounds = [self._static_int(b) if b is not None else None for b in (slice.lower, slice.upper, slice.step)]
            return Tuple(base.items[bounds[0] : bounds[1] : bounds[2]])
        number = self.typed(slice)
        if number.type.rank or number.type.is_float:
            raise self.fail(slice, "type", f"the index of a tuple is one integer, not {number.type}")
        if _number(number) is None and not any(isinstance(v, (Static, Closure)) for _, v in leaves(base)):
            stacked = self.stacked(base, node)  # which item depends on values
            return construct.index(stacked, self.items(stacked, slice), self.span(node))
        position = self._static_int(slice)
        if not -len(base.items) <= position < len(base.items):
            raise self.fail(node, "index", f"index {position} is out of range for {len(base.items)} items")
        return base.items[position]

    def _static_int(self, node: Any, what: str = "the index of a tuple", help: str = "") -> int:
        number = value_of(self.typed(node))
        if number is None or number.value is None:
            raise self.fail(node, "index", f"{what} must be known at build time", help)
        return number.value

    def items(self, base: Expr, node: Any) -> tuple[Item, ...]:
        """What stands in the brackets, one item an axis of base."""
        if isinstance(node, gast.Subscript) and self._called(node.value) == "np.s_":
            node = node.slice
        elements = [
            (e, e if _is_form(e) else self._index(e)) for e in (node.elts if isinstance(node, gast.Tuple) else [node])
        ]
        if sum(isinstance(e, gast.Constant) and e.value is Ellipsis for e, _ in elements) > 1:
            raise self.fail(node, "index", "an index has one ... at most", "write a : for each axis")
        taken = sum(_axes_taken(value) for _, value in elements)
        items: list[Item] = []
        axis = 0
        for element, value in elements:
            if isinstance(element, gast.Constant) and element.value is Ellipsis:
                for extent in base.type.shape[axis : axis + base.type.rank - taken]:
                    items.append(construct.full_slice(extent))
                    axis += 1
                continue
            item = self._item(base, axis, element, value)
            items.append(item)
            axis += item.condition.type.rank if isinstance(item, Mask) else 0 if isinstance(item, NewAxis) else 1
        try:
            return construct.complete(base, items)
        except TypingError as error:
            raise self.fail(node, error.kind, error.message, error.help) from None

    def _index(self, element: Any) -> Expr | None:
        """What stands at one place in the brackets; None is a new axis."""
        value = self.value(element)
        if isinstance(value, Static) and value.value is None:
            return None
        return self.stacked(value, element) if isinstance(value, Tuple) else self.as_expr(value, element)

    def _item(self, base: Expr, axis: int, element: Any, expr: Expr | None) -> Item:
        if isinstance(element, gast.Slice):
            if axis >= base.type.rank:
                raise self.fail(element, "index", f"too many indices for shape {construct.shape_text(base.type.shape)}")
            return self._slice(element, base.type.shape[axis])
        if expr is None:
            return NewAxis()
        if expr.type.dtype == "bool":
            return Mask(expr)
        if not expr.type.is_integer:
            raise self.fail(element, "index", f"an index must be an integer, got {expr.type}", "use int(...)")
        if axis >= base.type.rank:
            raise self.fail(element, "index", f"too many indices for shape {construct.shape_text(base.type.shape)}")
        return Gather(expr) if expr.type.rank else At(expr)

    def _slice(self, node: Any, extent: Dim) -> Slice:
        bounds = []
        for bound in (node.lower, node.upper):
            expr = self.typed(bound) if bound is not None else None
            if expr is not None and not expr.type.is_integer:
                raise self.fail(bound, "index", f"a slice bound must be an integer, got {expr.type}")
            bounds.append(expr)
        step = 1
        if node.step is not None:
            step = self._static_int(node.step)
        return construct.slice_of(bounds[0], bounds[1], step, extent, self.facts, self.guarded(node))

    def guarded(self, node: Any) -> Callable[[Dim, str], None]:
        """What a slice bound of unknown sign needs: a check at run time, as a negative one means another place."""

        def check(bound: Dim, message: str) -> None:
            holds = construct.call("greater_equal", construct.dim(bound), const(0))
            self.emit(Assert(holds, message, self.span(node), "IndexError"))

        return check


def _half_of(dim: Dim, others: Sequence[Dim]) -> bool:
    """Whether an extent equals another of these just where a division leaves no remainder."""
    return any(len(d.terms) < len(dim.terms) and not without_remainder(dim - d).terms for d in others)


def _known(expr: Expr) -> bool | None:
    """The truth of a condition known at build time."""
    return bool(expr.value) if isinstance(expr, construct.Const) else None


def _is_form(element: Any) -> bool:
    """A slice or `...`: no value."""
    return isinstance(element, gast.Slice) or (isinstance(element, gast.Constant) and element.value is Ellipsis)


def _axes_taken(value: Any) -> int:
    """How many axes the value in the brackets stands for."""
    match value:
        case None | gast.Constant():
            return 0
        case gast.Slice():
            return 1
    return value.type.rank if value.type.dtype == "bool" else 1


def _object_help(value: Value) -> str:
    match value:
        case ListValue():
            return "its length depends on values: store into an array made before, y[i] = v"
        case Tuple():
            return "np.array(...) makes an array of it; one that is written into is made by np.zeros(...)"
        case Generator(name):
            return f"draw from it: {name.id}.random(shape)"
    return ""


def _number(expr: Expr) -> int | None:
    value = value_of(expr)
    return None if value is None else value.value


__all__ = ["Call", "Expressions", "Index", "Name", "Type"]
