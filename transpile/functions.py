"""Typing of statements: a function's body becomes typed statements over unique names.

Helpers are inlined where they are called. Every assignment makes a new name, so a name is a value; where control flow joins, the
versions meet again in one name: the one a loop carries, or the one both branches of an `if` assign.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

import gast

from . import construct
from .construct import const, value_of
from .dims import Atom, Dim
from .errors import Mistake, Reporter, Suppressed
from .expressions import Expressions, _known
from .iteration import Iteration
from .operations import BY_SPELLING
from .program import (
    Assert, Assign, At, Call, Const, Expr, Gather, If, Index, Item, Mask, Name, NewAxis, Pop, Push, Slice, Span, Stmt, Store, Type, While,
    item_exprs, map_children, names, walk, walk_stmts,
)
from .renaming import rename_block
from .source import Source
from .typing import TypingError, broadcast, promote
from .values import Broken, Closure, Fresh, ListValue, Static, Tuple, Value, View

_RETURN = "<return>"


class FunctionChecker(Iteration, Expressions):
    def __init__(self, source: Source, reporter: Reporter, fresh: Fresh) -> None:
        self.source = source
        self.reporter = reporter
        self.fresh = fresh
        self.env: dict[str, Value] = {}
        self.facts: dict[str, tuple[Dim, Dim]] = {}
        self.out: list[Stmt] = []
        self.mutated: set[str] = set()
        self.calling: tuple[str, ...] = ()
        self.loops = 0
        self.inserted = 0  # statements put before others, where lists are made

    def emit(self, stmt: Stmt) -> None:
        self.out.append(stmt)

    # -- blocks ------------------------------------------------------------------------------------------------
    def block(self, nodes: list[Any]) -> None:
        """Checks statements in order, going on after a mistake; leaves a returned value in env[_RETURN]."""
        for position, node in enumerate(nodes):
            try:
                if isinstance(node, gast.If) and _leaves(node):
                    self._branching_exit(node, nodes[position + 1 :])
                    return
                self.statement(node)
            except Suppressed:
                self._poison(node)
            except Mistake as mistake:
                self.reporter.add(mistake)
                self._poison(node)
            except TypingError as error:
                self.reporter.add(self.fail(node, error.kind, error.message, error.help))
                self._poison(node)
            if isinstance(node, (gast.Return, gast.Continue)):
                return

    def _branching_exit(self, node: Any, rest: list[Any]) -> None:
        """`if c: return a` and what follows: the rest moves into the branches that go on."""
        then = node.body if _always_leaves(node.body) else node.body + rest
        orelse = node.orelse if node.orelse and _always_leaves(node.orelse) else node.orelse + rest
        self._if(node, then, orelse)

    def _poison(self, node: Any) -> None:
        """What a broken statement should have assigned is broken too, without another message."""
        for name in _targets([node]):
            self.env[name] = Broken()
        if isinstance(node, gast.Return):
            self.env[_RETURN] = Broken()

    def captured(self, nodes: list[Any]) -> tuple[list[Stmt], dict[str, Value]]:
        """Checks a block aside: its statements and the names as it leaves them."""
        out, env = self.out, self.env
        self.out, self.env = [], dict(env)
        try:
            self.block(nodes)
            return self.out, self.env
        finally:
            self.out, self.env = out, env

    # -- statements --------------------------------------------------------------------------------------------
    def statement(self, node: Any) -> None:
        match node:
            case gast.Assign(targets=targets, value=value):
                found = self._assigned_value(value)
                for target in targets:
                    found = self.assign(target, found, node)
            case gast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.assign(target, self._assigned_value(value), node)
            case gast.AugAssign(target=target, op=op, value=value):
                self._augmented(node, target, op, value)
            case gast.For():
                self.for_loop(node)
            case gast.While():
                self._while(node)
            case gast.If():
                self._if(node, node.body, node.orelse)
            case gast.Return(value=value):
                self._return(node, value)
            case gast.Assert(test=test, msg=msg):
                self._assert(node, test, msg)
            case gast.Expr(value=value):
                self._expression(node, value)
            case gast.FunctionDef(name=name):
                self.env[name] = Closure(node, self.source, self.env, name)
            case gast.Pass() | gast.Continue():
                pass
            case gast.Break():
                raise self.fail(node, "unsupported", "break is not compiled yet", "put the condition into the loop: while going: ...")
            case gast.Delete():
                for name in _targets([node]):
                    self.env.pop(name, None)
            case _:
                what = type(node).__name__
                raise self.fail(node, "statement", f"{what} is not part of the subset", _STATEMENT_HELP.get(what, ""))

    def _assigned_value(self, node: Any) -> Value:
        if isinstance(node, gast.List) and not node.elts:
            made = ListValue(self.fresh("saved"))
            made.position = (self.out, len(self.out))
            return made
        return self.value(node)

    def assign(self, target: Any, value: Value, node: Any) -> Value:
        """Binds a target; returns what a further target of the same statement should get."""
        match target:
            case gast.Name(id=id):
                return self._bind_name(id, value, node, target)
            case gast.Tuple(elts=elts) | gast.List(elts=elts):
                items = self._unpack(value, len(elts), target)
                # All values are taken before any name is bound: a, b = b, a.
                held = [self._held(v, node) if len(items) > 1 and not isinstance(t, gast.Tuple) else v for v, t in zip(items, elts, strict=True)]
                for element, item in zip(elts, held, strict=True):
                    self.assign(element, item, node)
                return value
            case gast.Subscript(value=base, slice=slice):
                self.store(base, slice, self.as_expr(value, node), None, node)
                return value
            case gast.Attribute(value=gast.Name(id="self"), attr=attr):
                return self._assign_field(attr, value, target, node)
            case gast.Starred():
                raise self.fail(target, "unsupported", "* in an assignment is not part of the subset", "name every item")
        raise self.fail(target, "unsupported", "cannot assign to this")

    def _held(self, value: Value, node: Any) -> Value:
        return value

    def _assign_field(self, attr: str, value: Value, target: Any, node: Any) -> Value:
        known = self.env.get(f"self.{attr}")
        if not isinstance(known, Name) or attr not in getattr(self, "states", ()):
            what = "is not a State of the layer" if known is None else "is a Param or config, which a layer cannot assign"
            raise self.fail(target, "role", f"self.{attr} {what}", "only State fields are assigned; solvers change Params")
        expr = construct.convert(self.as_expr(value, node), known.type)
        return self._bind_name(f"self.{attr}", expr, node, target, base=attr)

    def _unpack(self, value: Value, count: int, target: Any) -> tuple[Value, ...]:
        if isinstance(value, Tuple):
            items: tuple[Value, ...] = value.items
        else:
            expr = self.as_expr(value, target)
            extent = expr.type.shape[0].value if expr.type.rank else None
            if extent is None:
                raise self.fail(target, "type", "only tuples, and arrays with a known first extent, can be unpacked")
            items = tuple(construct.index(expr, [At(const(i))]) for i in range(extent))
        if len(items) != count:
            raise self.fail(target, "type", f"expected {count} values to unpack, got {len(items)}")
        return items

    def _bind_name(self, id: str, value: Value, node: Any, target: Any, base: str = "") -> Value:
        if isinstance(value, (Tuple, Static, Closure, Broken, View)):
            self.env[id] = value
            return value
        if isinstance(value, ListValue):
            self.env[id] = value
            if value.type is None and value.name.startswith("saved"):
                value.name = self.fresh(id)
            return value
        if isinstance(value, Name) and value.value is not None:  # a loop counter or config integer, which never changes
            self.env[id] = value
            return value
        if self._is_view(value) and (id in self.mutated or self._root_mutated(value)):
            view = self._as_view(value, node)
            self.env[id] = view
            return view
        name = self.fresh(base or id)
        self.emit(Assign(name, value, self.span(node)))
        bound = Name(name, value.type, value_of(value), self.span(target))
        self.env[id] = bound
        return bound

    # -- aliasing ----------------------------------------------------------------------------------------------
    def _is_view(self, expr: Expr) -> bool:
        """Whether NumPy would give another name, or a part, of an array that exists: not for scalars, which are copied."""
        if not expr.type.rank:
            return False
        while isinstance(expr, Index) and not any(isinstance(i, (Gather, Mask)) for i in expr.items):
            expr = expr.base
        return isinstance(expr, Name)

    def _root_mutated(self, expr: Expr) -> bool:
        root = _root(expr)
        return any(isinstance(v, Name) and v.id == root and k in self.mutated for k, v in self.env.items())

    def _as_view(self, expr: Expr, node: Any) -> View:
        """The view with its index values fixed now."""
        if isinstance(expr, Name):
            return View(expr, None)
        assert isinstance(expr, Index)
        items = tuple(At(self._fixed(i.index, node)) if isinstance(i, At) else i for i in expr.items)
        return View(expr.base, items)

    def _fixed(self, expr: Expr, node: Any) -> Expr:
        if value_of(expr) is not None:
            return expr
        name = self.fresh("i")
        self.emit(Assign(name, expr, self.span(node)))
        return Name(name, expr.type)

    # -- in-place writes ---------------------------------------------------------------------------------------
    def _augmented(self, node: Any, target: Any, op: Any, value: Any) -> None:
        row = BY_SPELLING.get(type(op).__name__)
        if row is None:
            raise self.fail(node, "unsupported", f"{type(op).__name__} in place is not part of the subset")
        right = self.value(value)
        if isinstance(target, gast.Subscript):
            self.store(target.value, target.slice, self.as_expr(right, value), row.name, node)
            return
        left = self.value(_as_load(target))
        if isinstance(left, Tuple):
            self.assign(target, self._tuple_arithmetic(type(op).__name__, [left, right], node), node)
            return
        current = self.as_expr(left, target)
        addend = self.as_expr(right, value)
        if current.type.rank:
            self._store(current, construct.complete(current, ()), addend, row.name, node)
        else:
            self.assign(target, self.apply(row, [current, addend], {}, node), node)

    def store(self, base: Any, slice: Any, value: Expr, op: str | None, node: Any) -> None:
        array = self.typed(base)
        self._store(array, self.items(array, slice), value, op, node)

    def _store(self, array: Expr, items: tuple[Item, ...], value: Expr, op: str | None, node: Any) -> None:
        """array[items] op= value, through views down to the array itself."""
        span = self.span(node)
        while isinstance(array, Index):
            items = _compose(array, items, self.facts, lambda m: self.fail(node, "unsupported", m, "write to the array itself"))
            array = array.base
        if not isinstance(array, Name):
            raise self.fail(node, "unsupported", "this writes into a temporary array", "give the array a name first")
        if any(isinstance(i, Mask) for i in items):
            self._store_masked(array, items, value, op, span, node)
            return
        part = construct.index(array, items)
        if op not in (None, "add", "subtract"):
            value, op = construct.call(op, part, value), None
        if op == "subtract":
            value, op = construct.call("negative", value), "add"
        if broadcast([part.type.shape, value.type.shape]) != part.type.shape:
            raise self.fail(node, "shape", f"cannot store shape {construct.shape_text(value.type.shape)} into {construct.shape_text(part.type.shape)}")
        if value.type.is_float and not array.type.is_float:
            raise self.fail(node, "type", f"cannot store {value.type.dtype} into an array of {array.type.dtype}", "convert it: .astype(...)")
        if op == "add" and any(isinstance(i, Gather) for i in items):
            value, op = construct.call("add", part, value), None
        self.emit(Store(array, items, value if value.type.dtype == array.type.dtype else construct.cast(value, array.type.dtype), op, False, span))

    def _store_masked(self, array: Name, items: tuple[Item, ...], value: Expr, op: str | None, span: Span, node: Any) -> None:
        mask = next(i.condition for i in items if isinstance(i, Mask))
        if not isinstance(items[0], Mask) or value.type.rank:
            raise self.fail(node, "unsupported", "x[mask] = v takes a mask over the first axes and a scalar v", "use np.where(mask, v, x)")
        for _ in range(array.type.rank - mask.type.rank):
            mask = construct.call("expand_dims", mask, axis=mask.type.rank)
        new = construct.call(op, array, value) if op else value
        chosen = construct.cast(construct.call("where", mask, new, array), array.type.dtype)
        self.emit(Store(array, construct.complete(array, ()), chosen, None, False, span))

    def call_np_add_at(self, node: Any) -> Value:
        if len(node.args) != 3:
            raise self.fail(node, "type", "np.add.at takes an array, an index and values")
        array = self.typed(node.args[0])
        items = self.items(array, node.args[1])
        value = self.typed(node.args[2])
        while isinstance(array, Index):
            items = _compose(array, items, self.facts, lambda m: self.fail(node, "unsupported", m))
            array = array.base
        if not isinstance(array, Name):
            raise self.fail(node, "unsupported", "np.add.at writes into a temporary array", "give the array a name first")
        self.emit(Store(array, items, construct.cast(value, array.type.dtype), "add", True, self.span(node)))
        return Static(None)

    # -- control flow ------------------------------------------------------------------------------------------
    def _return(self, node: Any, value: Any) -> None:
        if self.loops:
            raise self.fail(node, "unsupported", "return inside a loop is not compiled yet", "keep the result in a variable and return it after the loop")
        if value is None:
            raise self.fail(node, "type", "a layer must return its result")
        self.env[_RETURN] = self._return_value(value)

    def _return_value(self, value: Any) -> Value:
        if isinstance(value, gast.Dict):
            return Tuple(tuple(self.value(v) for v in value.values))
        return self.value(value)

    def _assert(self, node: Any, test: Any, msg: Any) -> None:
        cond = self.condition(test)
        text = msg.value if isinstance(msg, gast.Constant) and isinstance(msg.value, str) else ""
        if _known(cond) is not True:
            self.emit(Assert(cond, text, self.span(node)))

    def _expression(self, node: Any, value: Any) -> None:
        if isinstance(value, gast.Constant):  # a docstring, or `...`
            return
        if not isinstance(value, gast.Call):
            raise self.fail(node, "statement", "this expression has no effect", "assign it, or remove it")
        found = self.value(value)
        if isinstance(found, Static):
            return
        if isinstance(value.func, gast.Attribute) and value.func.attr in ("sort", "fill"):
            raise self.fail(node, "unsupported", f".{value.func.attr}() in place is not part of the subset", "assign: x[...] = value")

    def _if(self, node: Any, then: list[Any], orelse: list[Any]) -> None:
        cond = self.condition(node.test)
        known = _known(cond)
        if known is not None:
            self.block(then if known else orelse)
            return
        then_out, then_env = self.captured(then)
        else_out, else_env = self.captured(orelse)
        self._join(node, cond, then_out, then_env, else_out, else_env)

    def _join(self, node: Any, cond: Expr, then_out: list[Stmt], then_env: dict[str, Value], else_out: list[Stmt], else_env: dict[str, Value]) -> None:
        env: dict[str, Value] = {}
        for id in dict.fromkeys([*then_env, *else_env]):
            a, b = then_env.get(id), else_env.get(id)
            if a is None or b is None:
                where = "when the condition is true" if b is None else "when the condition is false"
                env[id] = Broken(f"{_shown(id)} is assigned only {where}", "assign it before the if")
            elif a == b:
                env[id] = a
            else:
                try:
                    kept = (_read_by_others(then_env, id), _read_by_others(else_env, id))
                    env[id] = self._meet(id, a, b, then_out, else_out, node, kept)
                except TypingError as error:
                    self.reporter.add(self.fail(node, error.kind, error.message, error.help))
                    env[id] = Broken()
        self.emit(If(cond, tuple(then_out), tuple(else_out), self.span(node)))
        self.env.clear()
        self.env.update(env)

    def _meet(
        self, id: str, a: Value, b: Value, then_out: list[Stmt], else_out: list[Stmt], node: Any, kept: tuple[set[str], set[str]] = (set(), set())
    ) -> Value:
        """One value for what the two branches leave: a name assigned at the end of both. `kept`: names other values need as they are."""
        if isinstance(a, Broken) or isinstance(b, Broken):
            return a if isinstance(a, Broken) else b
        if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
            kept = (kept[0] | _value_names(a), kept[1] | _value_names(b))
            return Tuple(tuple(self._meet(id, x, y, then_out, else_out, node, kept) for x, y in zip(a.items, b.items, strict=True)))
        if isinstance(a, (Closure, ListValue, Static, Tuple)) or isinstance(b, (Closure, ListValue, Static, Tuple)):
            return Broken(f"{_shown(id)} is a different kind of thing after each branch", "give it one kind")
        x, y = self.as_expr(a, node), self.as_expr(b, node)
        if x.type.shape != y.type.shape:
            raise TypingError("type", f"{_shown(id)} has shape {construct.shape_text(x.type.shape)} on one branch and {construct.shape_text(y.type.shape)} on the other")
        type = Type(joined(x.type, y.type, _shown(id)), x.type.shape)
        name = self.fresh("y" if id == _RETURN else id.removeprefix("self."))
        _deliver(then_out, name, construct.convert(x, type), self.span(node), kept=kept[0])
        _deliver(else_out, name, construct.convert(y, type), self.span(node), kept=kept[1])
        return Name(name, type, None, self.span(node))

    def branch_value(self, node: Any, condition: Expr, body: Any, orelse: Any) -> Value:
        """`a if c else b`: a select where evaluating both is harmless, else a branch."""
        out = self.out
        self.out = []
        a = self.value(body)
        then_out, self.out = self.out, []
        b = self.value(orelse)
        else_out, self.out = self.out, out
        if isinstance(a, (Static, Closure, ListValue)) or isinstance(b, (Static, Closure, ListValue)):
            raise self.fail(node, "type", "the branches must be arrays or scalars")
        harmless = not then_out and not else_out and not isinstance(a, Tuple) and not isinstance(b, Tuple)
        if harmless:
            x, y = self.as_expr(a, node), self.as_expr(b, node)
            if not any(isinstance(e, Index) or getattr(e, "op", "") in ("floor_divide", "mod") for e in (*walk(x), *walk(y))):
                if x.type.shape == y.type.shape:
                    return construct.call("where", condition, x, y, span=self.span(node))
        value = self._meet("value", a, b, then_out, else_out, node)
        self.emit(If(condition, tuple(then_out), tuple(else_out), self.span(node)))
        return value

    def _while(self, node: Any) -> None:
        if node.orelse:
            raise self.fail(node, "statement", "else on a loop is not part of the subset")

        def body() -> tuple[Expr, list[Stmt]]:
            before, self.out = self.out, []
            cond = self.condition(node.test)
            if self.out:
                raise self.fail(node.test, "unsupported", "the condition of this loop needs statements of its own", "compute it into a variable, before the loop and at its end")
            self.out = before
            statements, self.env = self.captured(node.body)
            return cond, statements

        cond, statements = self.carried(node, body)
        if _known(cond) is False:
            return
        self.emit(While(cond, tuple(statements), self.span(node)))

    def carried(self, node: Any, body: Any) -> tuple[Any, list[Stmt]]:
        """Runs `body` with the names it reassigns turned into variables that the loop carries."""
        entry = dict(self.env)
        assigned = [n for n in dict.fromkeys(_targets(node.body)) if n in entry]
        promoted: dict[str, Type] = {}
        while True:
            mark, used = len(self.out) - self.inserted, set(self.fresh.used)
            self.env = dict(entry)
            carried = {id: self._carry(id, promoted.get(id), node) for id in assigned if self._carriable(id)}
            start = dict(self.env)
            self.loops += 1
            mistakes = len(self.reporter.mistakes)
            try:
                result, statements = body()
            finally:
                self.loops -= 1
            wider = self._wider(carried, node) if len(self.reporter.mistakes) == mistakes else {}
            if not wider:
                break
            promoted |= wider
            del self.out[mark + self.inserted :]
            self.fresh.used = used
        for id, name in carried.items():
            self._deliver_carried(id, name, statements, node)
        left = self.env
        self.env = start
        for id in left.keys() - start.keys():
            self.env[id] = Broken(f"{_shown(id)} is assigned in the loop only, which may not run", "assign it before the loop")
        for id, value in left.items():
            if isinstance(value, Broken):
                self.env[id] = value
        return result, statements

    def _carriable(self, id: str) -> bool:
        return not isinstance(self.env[id], (Closure, ListValue, Static, Broken, View, Tuple))

    def _carry(self, id: str, promoted: Type | None, node: Any) -> Name:
        value = self.as_expr(self.env[id], node)
        type = promoted or value.type
        shared = not isinstance(value, Name) or any(
            value.id in _value_names(v) for k, v in self.env.items() if k != id
        ) or not any(isinstance(s, Assign) and s.name == value.id for s in self.out)
        if not shared and isinstance(value, Name) and type == value.type:
            name = value.id
        else:
            name = self._retyped(value, type) or self.fresh(id.removeprefix("self."))
            if name != getattr(value, "id", None):
                self.emit(Assign(name, construct.convert(value, type), self.span(node)))
        bound = Name(name, type, None, self.span(node))
        self.env[id] = bound
        return bound

    def _retyped(self, value: Expr, type: Type) -> str | None:
        """`s = 0.0` before a loop that makes s an array's scalar: the constant itself takes the wider type."""
        for position in reversed(range(len(self.out))):
            stmt = self.out[position]
            if isinstance(value, Name) and isinstance(stmt, Assign) and stmt.name == value.id:
                if isinstance(stmt.value, Const) and not type.rank and not any(value.id in _reads(s) for s in self.out[position + 1 :]):
                    self.out[position] = replace(stmt, value=Const(stmt.value.value, type, stmt.value.span))
                    return stmt.name
                return None
        return None

    def _wider(self, carried: dict[str, Name], node: Any) -> dict[str, Type]:
        """Carried names whose type after the body is not the one before: the type that holds both."""
        wider = {}
        for id, name in carried.items():
            value = self.env.get(id)
            if value is None or isinstance(value, (Broken, Static, Closure, ListValue, Tuple)):
                continue
            after = self.as_expr(value, node).type
            if after == name.type:
                continue
            try:
                dtype = joined(name.type, after, _shown(id))
                shape = broadcast([name.type.shape, after.shape])
                if shape != after.shape or (name.type.rank and shape != name.type.shape):
                    raise TypingError("type", "")
            except TypingError:
                raise self.fail(
                    node, "type", f"{_shown(id)} is {name.type} before the loop and {after} after its body", "give it its final type before the loop"
                ) from None
            if Type(dtype, shape) != name.type:
                wider[id] = Type(dtype, shape)
        return wider

    def _deliver_carried(self, id: str, name: Name, statements: list[Stmt], node: Any) -> None:
        value = self.env.get(id)
        if value is None or isinstance(value, Broken) or value == name:
            return
        expr = self.as_expr(value, node)
        if expr == name:
            return
        _deliver(statements, name.id, construct.convert(expr, name.type), self.span(node), carried=True)

    # -- helpers -----------------------------------------------------------------------------------------------
    def inline(self, target: Closure, node: Any) -> Value:
        function = target.node
        if target.name != "lambda" and target.name in self.calling:
            raise self.fail(node, "unsupported", f"{target.name} calls itself", "write the recursion as a loop")
        if target.node is getattr(self, "own_node", None):
            raise self.fail(node, "unsupported", f"{target.name} calls itself", "write the recursion as a loop")
        bound = self._bind_arguments(target, node)
        outer = (self.env, self.source, self.calling, self.mutated, self.loops)
        inner_mutated = _mutated(function)
        env: dict[str, Value] = dict(target.env or {})
        for id, value in bound.items():
            env[id] = self._argument(id, value, inner_mutated, node)
        self.env, self.source, self.calling = env, target.source, (*self.calling, target.name)
        self.mutated, self.loops = inner_mutated, 0
        try:
            if isinstance(function, gast.Lambda):
                return self.value(function.body)
            self.block(function.body)
            result = self.env.get(_RETURN, Static(None))
        finally:
            self.env, self.source, self.calling, self.mutated, self.loops = outer
        if isinstance(result, Broken):
            raise Suppressed
        return result

    def _argument(self, id: str, value: Value, mutated: set[str], node: Any) -> Value:
        if isinstance(value, (Tuple, Static, Closure, ListValue, Broken, View)):
            return value
        if id in mutated and self._is_view(value):
            return self._as_view(value, node)
        if isinstance(value, (Name, Const)):
            return value
        name = self.fresh(id)
        self.emit(Assign(name, value, self.span(node)))
        return Name(name, value.type, value_of(value), self.span(node))

    def _bind_arguments(self, target: Closure, node: Any) -> dict[str, Value]:
        args = target.node.args
        if args.vararg or args.kwarg:
            raise self.fail(node, "unsupported", f"{target.name} takes * or ** arguments", "write the arguments out")
        ids = [a.id for a in args.args] + [a.id for a in args.kwonlyargs]
        if len(node.args) > len(args.args):
            raise self.fail(node, "type", f"{target.name} takes {len(args.args)} arguments, got {len(node.args)}")
        bound = {id: self.value(a) for id, a in zip(ids, node.args, strict=False)}
        for keyword in node.keywords:
            if keyword.arg not in ids or keyword.arg in bound:
                raise self.fail(node, "type", f"{target.name} has no argument {keyword.arg} left to give")
            bound[keyword.arg] = self.value(keyword.value)
        defaults = dict(zip([a.id for a in args.args][len(args.args) - len(args.defaults) :], args.defaults, strict=True))
        defaults |= {a.id: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
        for id in ids:
            if id not in bound:
                if id not in defaults:
                    raise self.fail(node, "type", f"{target.name} needs {id}")
                bound[id] = self.value(defaults[id])
        return bound

    # -- lists: what a while loop saves --------------------------------------------------------------------------
    def list_call(self, receiver: ListValue, node: Any, attr: str) -> Value:
        if attr == "append" and len(node.args) == 1:
            value = self.typed(node.args[0])
            if receiver.type is None:
                receiver.type = Type({"float": "real", "int": "i64"}.get(value.type.dtype, value.type.dtype), value.type.shape)
                assert receiver.position is not None
                out, position = receiver.position
                self.inserted += 1
                out.insert(position, Assign(receiver.name, Call("list", (), (("type", receiver.type),), receiver.type)))
            self.emit(Push(Name(receiver.name, receiver.type), construct.convert(value, receiver.type), self.span(node)))
            return Static(None)
        if attr == "pop" and not node.args:
            if receiver.type is None:
                raise self.fail(node, "type", "pop from a list that nothing was appended to")
            name = self.fresh(f"{receiver.name}_last")
            self.emit(Pop(name, Name(receiver.name, receiver.type), receiver.type, self.span(node)))
            return Name(name, receiver.type)
        raise self.fail(node, "unsupported", f"lists have no method {attr} here", "append and pop")


def joined(a: Type, b: Type, what: str) -> str:
    """The dtype of a variable that is of one type here and of another there: only weak scalars give way."""
    if a.dtype == b.dtype:
        return a.dtype
    top = promote([a, b])
    weak = [t for t in (a, b) if t.is_weak]
    if not weak or (a.is_weak and b.is_weak and {a.dtype, b.dtype} != {"int", "float"}):
        raise TypingError("type", f"{what} is {a} on one path and {b} on the other", "give it one type on both")
    if "bool" in (a.dtype, b.dtype):
        raise TypingError("type", f"{what} is {a} on one path and {b} on the other", "give it one type on both")
    return top


def _deliver(out: list[Stmt], name: str, value: Expr, span: Span, carried: bool = False, kept: Set[str] = frozenset()) -> None:
    """Makes the block leave `value` in `name`: renames the assignment that made it, or appends one."""
    if isinstance(value, Name) and value.id not in kept:
        makers = [i for i, s in enumerate(out) if isinstance(s, Assign) and s.name == value.id]
        inside = sum(isinstance(s, (Assign, Pop)) and s.name == value.id or isinstance(s, Store) and s.base.id == value.id for s in walk_stmts(tuple(out)))
        if len(makers) == 1 and inside == 1 and out[makers[0]].value.type == value.type:  # type: ignore[union-attr]
            later = out[makers[0] + 1 :]
            if not (carried and any(name in _reads(s) for s in later)):
                out[:] = rename_block(out, {value.id: name})
                return
    out.append(Assign(name, value, span))


def _reads(stmt: Stmt) -> set[str]:
    from .program import assigned, read

    return read((stmt,)) | assigned((stmt,))


def _compose(outer: Index, items: tuple[Item, ...], facts: Any, fail: Any) -> tuple[Item, ...]:
    """outer.base[outer.items][items] as one subscript of outer.base."""
    result: list[Item] = []
    rest = list(items)
    for item, extent in zip(outer.items, construct.item_extents(outer.base, outer.items), strict=True):
        match item:
            case At():
                result.append(item)
            case NewAxis():
                taken = rest.pop(0)
                if isinstance(taken, NewAxis):
                    raise fail("writing through a view with new axes is not part of the subset")
            case Slice(first=first, step=step):
                while rest and isinstance(rest[0], NewAxis):
                    result.append(rest.pop(0))
                inner = rest.pop(0)
                if isinstance(inner, At) and value_of(inner.index) is not None:
                    position = value_of(inner.index)
                    assert position is not None
                    if position.value is not None and position.value < 0:
                        position = position + item.extent
                    result.append(At(construct.dim(first + position * step)))
                elif isinstance(inner, At) and first == construct.ZERO and step == 1:
                    result.append(inner)
                elif isinstance(inner, Slice):
                    start, stride = first + inner.first * step, inner.step * step
                    end = start + inner.extent * stride
                    stop = construct.dim(end) if stride > 0 else None
                    result.append(Slice(construct.dim(start), stop, stride, start, inner.extent))
                    if stride < 0:
                        raise fail("writing through a reversed view is not part of the subset")
                else:
                    raise fail("writing through this view is not part of the subset")
            case _:
                raise fail("an indexed copy cannot be written through")
    result.extend(rest)
    return tuple(result)


def _root(expr: Expr) -> str | None:
    while isinstance(expr, Index):
        expr = expr.base
    return expr.id if isinstance(expr, Name) else None


def _value_names(value: Value) -> set[str]:
    match value:
        case Tuple(items):
            return set().union(*(_value_names(v) for v in items)) if items else set()
        case View(base, items):
            return names(base) | {n for item in items or () for e in item_exprs(item) for n in names(e)}
        case Static() | Closure() | ListValue() | Broken():
            return set()
    return names(value)


def _read_by_others(env: dict[str, Value], id: str) -> set[str]:
    return set().union(*(_value_names(v) for k, v in env.items() if k != id))


def _shown(id: str) -> str:
    return "the result" if id == _RETURN else id


def _targets(nodes: list[Any]) -> list[str]:
    """The names that statements bind, in order; for self.x: "self.x"."""
    found: list[str] = []
    for node in nodes:
        for child in gast.walk(node):
            match child:
                case gast.Name(id=id, ctx=gast.Store() | gast.Del()):
                    found.append(id)
                case gast.Attribute(value=gast.Name(id="self"), attr=attr, ctx=gast.Store()):
                    found.append(f"self.{attr}")
                case gast.AugAssign(target=gast.Name(id=id)):
                    found.append(id)
    return found


_HARMLESS = {"range", "len", "abs", "min", "max", "sum", "round", "int", "float", "bool", "enumerate", "zip", "reversed"}


def _mutated(function: Any) -> set[str]:
    """Names that a function may write into in place: x[...] = v, x += v, np.add.at(x, ...), and arguments of calls that might."""
    found: set[str] = set()
    for node in gast.walk(function):
        match node:
            case gast.Subscript(value=base, ctx=gast.Store()):
                found |= _base_names(base)
            case gast.AugAssign(target=target):
                found |= _base_names(target)
            case gast.Call(func=gast.Attribute(attr="at"), args=[first, *_]):
                found |= _base_names(first)
            case gast.Call(func=gast.Name(id=id), args=args) if id not in _HARMLESS:
                for arg in args:
                    found |= _base_names(arg)
    return found


def _base_names(node: Any) -> set[str]:
    while isinstance(node, (gast.Subscript, gast.Attribute)):
        node = node.value
    return {node.id} if isinstance(node, gast.Name) else set()


def _leaves(node: Any) -> bool:
    """Whether an if holds a return or continue of its own level."""
    return any(
        isinstance(s, (gast.Return, gast.Continue)) or (isinstance(s, gast.If) and _leaves(s)) for s in [*node.body, *node.orelse]
    )


def _always_leaves(nodes: list[Any]) -> bool:
    return any(
        isinstance(s, (gast.Return, gast.Continue)) or (isinstance(s, gast.If) and bool(s.orelse) and _always_leaves(s.body) and _always_leaves(s.orelse))
        for s in nodes
    )


def _as_load(node: Any) -> Any:
    if isinstance(node, gast.Name):
        return gast.copy_location(gast.Name(id=node.id, ctx=gast.Load(), annotation=None, type_comment=None), node)
    return gast.copy_location(gast.Attribute(value=node.value, attr=node.attr, ctx=gast.Load()), node)


_STATEMENT_HELP = {
    "Try": "check the condition with if, or assert it", "With": "layers have no resources to manage", "Raise": "use assert condition, 'message'",
    "Global": "pass the value as an argument", "Nonlocal": "return the value instead", "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file", "ClassDef": "define layers at the top of the file", "AsyncFor": "use for",
    "Match": "use if and elif", "Raise_": "",
}

__all__ = ["FunctionChecker", "map_children", "replace", "Atom"]
