"""Typing of statements: a function's body becomes typed statements over unique names.

Helpers are inlined where they are called. Every assignment makes a new name, so a name is a value; where
control flow joins, the versions meet again in one name: the one a loop carries, or the one both branches of an
`if` assign.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gast

from . import construct
from .choices import Choices
from .construct import const, known_truth, value_of
from .derivative_calls import DerivativeCalls
from .dims import Dim, product
from .draws import Draws
from .errors import Mistake, Reporter, Suppressed
from .exits import LATER, LATER_IF_NEW
from .expressions import Expressions
from .fold import fold
from .inlining import Inlining
from .iteration import Iteration
from .joins import Joins
from .leftovers import RAN
from .lists import Items, Key, Lists, Plan, appended_names, popped_names
from .lowering.facts import assumed, at_least
from .masks import explained
from .mutation import target_names
from .operations import BY_SPELLING
from .program import (
    Assert,
    Assign,
    At,
    Call,
    Const,
    Expr,
    Gather,
    If,
    Index,
    Name,
    Stmt,
    Type,
    While,
    children,
    walk,
)
from .source import Source
from .typing import TypingError
from .values import (
    RETURN,
    VALUE,
    Broken,
    Choice,
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
    plain,
)
from .views import Views
from .writes import Writes

# What is an array without axes where others give a number.
_BOXES = frozenset("where zeros ones full empty copy broadcast_to reshape squeeze transpose asarray array".split())


class FunctionChecker(Iteration, Joins, Choices, Inlining, DerivativeCalls, Lists, Writes, Views, Draws, Expressions):
    """Types one function of a layer. `plans`: what an earlier typing found out about its lists; `chosen`:
    names of which it matters which array they are."""

    def __init__(
        self,
        source: Source,
        reporter: Reporter,
        fresh: Fresh,
        function: Any = None,
        plans: Mapping[Key, Plan] | None = None,
        chosen: Collection[str] = (),
    ) -> None:
        self.reporter = reporter
        self.fresh = fresh
        self.env: dict[str, Value] = {}
        self.facts: dict[str, tuple[Dim, Dim]] = {}
        self.held: list[Dim] = []  # not negative here: assertions before say so
        self.out: list[Stmt] = []
        self.own_node = function
        self.states: dict[str, Type] = {}  # State fields, which may be assigned
        self.methods: dict[str, tuple[Source, Any]] = {}  # those of its class, which it may call
        self.calling: tuple[Any, ...] = ()  # the helpers being inlined
        self.frames: list[tuple[object, dict[str, Value]]] = []  # the functions around, with their variables
        self.path: Key = ()
        self.loops = 0
        self.counters: set[str] = set()  # of all loops so far
        self.born: dict[str, int] = {}  # name of an array -> how many loops it was made in
        self.inserted = 0  # statements put before others, where lists are made
        self.lists: dict[Key, Items] = {}
        self.found: dict[Key, Plan] = {}
        self.plans: dict[Key, Plan] = dict(plans or {})
        self.source, self.frame = source, object()
        self.current: Any = gast.Pass()  # the statement being checked
        self.mutated: set[str] = set()
        self.again = {}
        self.mutating = False  # whether it, or a function that calls it, writes into any array
        self.unordered: set[str] = set()  # arrays that may not lie in C order under NumPy
        self.boxes: dict[str, str] = {}  # names of arrays without axes -> the first name of each
        self.truths: set[str] = set()  # names of Python's own booleans
        self.assigned: set[str] = set()  # the function's own names
        self.popped: set[str] = set()
        self.appending: set[str] = set()
        self.chosen = set(chosen)
        self.undecided: set[str] = set()  # names that would have to be, as far as typing tells
        self.meant: dict[str, str] = {}  # the names of arrays -> what the program calls them
        self.shown_by: dict[str, Choice] = {}  # names that a choice was read into
        if function is not None:
            self.enter(function, source)

    def emit(self, stmt: Stmt) -> None:
        if isinstance(stmt, Assign):
            self._note_order(stmt.name, stmt.value)
        self.out.append(stmt)

    def keep(self, mistake: Mistake) -> None:
        mistake = explained(mistake, self.current)
        if not any(m.span.line == mistake.span.line and m.args == mistake.args for m in self.reporter.mistakes):
            self.reporter.add(mistake)

    # -- blocks ------------------------------------------------------------------------------------------------
    def block(self, nodes: list[Any]) -> None:
        """Checks statements in order, going on after a mistake; leaves a returned value in env[RETURN]."""
        for node in nodes:
            self.current = node
            try:
                self.statement(node)
            except Suppressed:
                if self.source.shipped:
                    raise
                self._look_inside(node)
                self._poison(node)
            except TypingError as error:
                mistake = (
                    explained(error, node)
                    if isinstance(error, Mistake)
                    else self.fail(node, error.kind, error.message, error.help)
                )
                if self.source.shipped:  # one mistake a call: what follows in layerc's own code is no one's concern
                    raise mistake from None
                self.reporter.add(mistake)
                self._look_inside(node)
                self._poison(node)

    def _look_inside(self, node: Any) -> None:
        """The blocks of a statement that has a mistake in its header have their own. What a loop assigns, or gets, may
        be anything there."""
        if not isinstance(node, (gast.If, gast.For, gast.While)):
            return
        env = self.env
        if not isinstance(node, gast.If):
            self.env = {**env, **{name: Broken() for name in target_names([node])}}
        self.captured(node.body)
        self.captured(node.orelse)
        self.env = env

    def _poison(self, node: Any) -> None:
        """What a broken statement should have assigned, or put into a list, is broken too, without another message."""
        for name in (*target_names([node]), *appended_names(node), *popped_names(node)):
            self.env[name] = Broken()
        if isinstance(node, (gast.Import, gast.ImportFrom)):
            self.env |= {alias.asname or alias.name.split(".")[0]: Broken() for alias in node.names}
        if isinstance(node, (gast.Global, gast.Nonlocal)):
            self.env |= dict.fromkeys(node.names, Broken())
        if any(isinstance(n, gast.Return) for n in gast.walk(node)):
            self.env[RETURN] = Broken()

    def captured(self, nodes: list[Any]) -> tuple[list[Stmt], dict[str, Value], dict[Key, Items]]:
        """Checks a block aside: its statements, and the names and lists as it leaves them."""
        env, lists = self.env, self.lists
        self.env, self.lists = dict(env), dict(lists)
        try:
            with self.aside() as statements:
                self.block(nodes)
            return statements, self.env, self.lists
        finally:
            self.env, self.lists = env, lists

    @contextmanager
    def aside(self) -> Iterator[list[Stmt]]:
        """Takes the statements emitted meanwhile, of a block that may not run: what it asserts holds only inside."""
        out, held = self.out, self.held
        self.out, self.held = [], [*held]
        try:
            yield self.out
        finally:
            self.out, self.held = out, held

    # -- statements --------------------------------------------------------------------------------------------
    def statement(self, node: Any) -> None:
        match node:
            case gast.Assign(targets=[gast.Name(id=id)], value=gast.Name(id=value)) if value == LATER_IF_NEW:
                self.env.setdefault(id, Later())
            case gast.Assign(targets=targets, value=value):
                found = self._assigned_value(value, targets[0])
                for target in targets:
                    found = self.assign(target, found, node)
            case gast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.assign(target, self._assigned_value(value, target), node)
                elif isinstance(target, gast.Name):
                    message = f"{target.id} has a type, but no value yet"
                    self.env.setdefault(target.id, Broken(message, f"assign it first: {target.id} = ..."))
            case gast.AugAssign(target=target, op=op, value=value):
                self._augmented(node, target, op, value)
            case gast.For():
                self.for_loop(node)
            case gast.While():
                self._while(node)
            case gast.If():
                self._if(node)
            case gast.Return(value=value):
                self._return(node, value)
            case gast.Assert(test=test, msg=msg):
                self._assert(node, test, msg)
            case gast.Expr(value=value):
                self._expression(node, value)
            case gast.FunctionDef(name=name):
                self._nested(node, name)
            case gast.Pass():
                pass
            case gast.Break() | gast.Continue():
                raise self.fail(node, "syntax", f"{type(node).__name__.lower()} outside a loop")
            case gast.Delete(targets=targets):
                self._delete(node, targets)
            case _:
                what = type(node).__name__
                raise self.fail(node, "statement", f"{what} is not part of the subset", _STATEMENT_HELP.get(what, ""))

    def _nested(self, node: Any, name: str) -> None:
        if node.decorator_list:
            raise self.fail(
                node.decorator_list[0], "unsupported", "a nested function has no decorators", "call what it would call"
            )
        self.env[name] = self.closure(node, name)

    def _delete(self, node: Any, targets: list[Any]) -> None:
        for target in targets:
            if not isinstance(target, gast.Name):
                raise self.fail(target, "unsupported", "del is for whole variables here")
            self._name(target, target.id)
            self.env[target.id] = Broken(f"{target.id} was deleted", "use it before the del")

    # -- assignment --------------------------------------------------------------------------------------------
    def _assigned_value(self, node: Any, target: Any) -> Value:
        name = target.id if isinstance(target, gast.Name) else ""
        hint = plain(name) if name else "items"
        if isinstance(node, gast.Name) and node.id == LATER:
            return Later()
        if (
            isinstance(node, gast.Tuple)
            and isinstance(target, (gast.Tuple, gast.List))
            and len(node.elts) == len(target.elts)
            and not any(isinstance(e, gast.Starred) for e in (*node.elts, *target.elts))
        ):
            targets = {id(v): t for v, t in zip(node.elts, target.elts, strict=True)}
            return Tuple(tuple(self.values(node.elts, lambda v: self._assigned_value(v, targets[id(v)]))))
        if isinstance(node, gast.List) and name in self.popped:
            if node.elts:
                raise self.fail(
                    node, "unsupported", "a list that is popped from begins empty here", "append its first items"
                )
            return self.new_stack()
        if isinstance(node, gast.List) and (not node.elts or name in self.appending):
            return self.new_list(node, hint, tuple(zip(self.values(node.elts), node.elts, strict=True)))
        if isinstance(node, gast.ListComp):
            return self.comprehension(node, hint)
        return self.value_or_list(node)

    def assign(self, target: Any, value: Value, node: Any) -> Value:
        """Binds a target; returns what a further target of the same statement should get."""
        match target:
            case gast.Name(id=id):
                return self._bind_name(id, value, node, target)
            case gast.Tuple(elts=elts) | gast.List(elts=elts):
                items = self._unpack(self.unlisted(value, node), elts, target)
                # All values are taken before any target is assigned: a, b = b, a.
                if any(not isinstance(e, gast.Name) for e in elts):
                    items = tuple(self._held(v, node) for v in items)
                for element, item in zip(elts, items, strict=True):
                    self.assign(element, item, node)
                return value
            case gast.Subscript(value=base, slice=slice):
                value = self._held(self.unlisted(value, node), node)
                self.store(base, slice, self.as_expr(value, node), None, node)
                return value
            case gast.Attribute(value=gast.Name(id="self"), attr=attr):
                return self._assign_field(attr, value, target, node)
            case gast.Starred(value=inner):
                return self.assign(inner, value, node)
        raise self.fail(target, "unsupported", "cannot assign to this")

    def _held(self, value: Value, node: Any) -> Value:
        """A value as it is now, before an assignment into an array changes what it is read from. Parts of arrays
        are views."""
        if isinstance(value, (Index, Call)) and not self._is_view(value) and (isinstance(value, Index) or value.args):
            if isinstance(node, gast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], gast.Subscript):
                return value  # nothing else is assigned
            name = self.fresh("held")
            self.emit(Assign(name, value, self.span(node)))
            return Name(name, value.type, value_of(value), self.span(node))
        return value

    def _assign_field(self, attr: str, value: Value, target: Any, node: Any) -> Value:
        known = self.env.get(f"self.{attr}")
        if attr not in self.states:
            what = (
                "is not a State of the layer" if known is None else "is a Param or config, which a layer cannot assign"
            )
            # The field keeps its value, so that what follows is checked too.
            self.keep(
                self.fail(
                    target, "role", f"self.{attr} {what}", "only State fields are assigned; solvers change Params"
                )
            )
            return value
        type = self.states[attr]
        expr = construct.convert(self._fitting(self.as_expr(value, node), type, attr, node), type)
        return self._bind_name(f"self.{attr}", expr, node, target, base=attr)

    def _fitting(self, expr: Expr, type: Type, attr: str, node: Any) -> Expr:
        if expr.type.shape != type.shape:
            found, declared = construct.shape_text(expr.type.shape), construct.shape_text(type.shape)
            raise self.fail(
                node,
                "shape",
                f"the state {attr} has shape {declared}, this is {found}",
                "assign a value of the declared shape"
                if expr.type.rank
                else f"np.full_like(self.{attr}, value) fills it",
            )
        if expr.type.is_float and not type.is_float:
            raise self.fail(
                node, "type", f"the state {attr} is {type.dtype}, this is {expr.type.dtype}", "convert it: .astype(...)"
            )
        return expr

    def _unpack(self, value: Value, elts: list[Any], target: Any) -> tuple[Value, ...]:
        if isinstance(value, Tuple):
            items: tuple[Value, ...] = value.items
        else:
            expr = self.as_expr(value, target)
            extent = expr.type.shape[0].value if expr.type.rank else None
            if extent is None:
                raise self.fail(
                    target, "type", "only tuples, and arrays with a known first extent, can be unpacked", _UNPACK
                )
            items = tuple(construct.index(expr, [At(const(i))]) for i in range(extent))
        starred = [k for k, e in enumerate(elts) if isinstance(e, gast.Starred)]
        if starred and len(items) >= len(elts) - 1:  # a, *b, c = items
            first, after = starred[0], len(items) - (len(elts) - starred[0] - 1)
            items = (*items[:first], Tuple(items[first:after]), *items[after:])
        if len(items) != len(elts):
            raise self.fail(target, "type", f"expected {len(elts)} values to unpack, got {len(items)}", _UNPACK)
        return items

    def _bind_name(self, id: str, value: Value, node: Any, target: Any, base: str = "") -> Value:
        if isinstance(value, Tuple):
            value = replace(value, items=tuple(self._named_item(id, v, node, target) for v in value.items))
        if isinstance(value, ListValue) and value.type is None and value.name.startswith("saved"):
            value.name = self.fresh(id)
        if isinstance(value, (Tuple, Static, Closure, Generator, Later, Broken, View, Collected, ListValue)):
            self.env[id] = value
            return value
        if isinstance(value, Choice):
            self.env[id] = self.settled_choice(value, node)
            return self.env[id]
        if isinstance(value, Name) and value.value is not None:  # a loop counter or config integer, which never changes
            self.env[id] = value
            return value
        if (choice := self.choice_of_parts(value, node)) is not None:
            self.env[id] = choice
            return choice
        if self._is_view(value) and (id in self.mutated or self._root_mutated(value) or id in self.chosen):
            view: Value = self._as_view(value, node)
            self.env[id] = view
            return view
        if id in self.mutated and not value.type.rank and isinstance(value, Call) and self._shows(value):
            raise self.fail(
                node, "aliasing", f"{plain(id)} shows an element of an array, and is updated in place", "index it: x[0]"
            )
        name = self.fresh(base or plain(id))
        self.meant[name] = id
        self.emit(Assign(name, value, self.span(node)))
        self.born[name] = self.loops
        if self.is_truth(value):
            self.truths.add(name)
        if isinstance(value, Call) and not value.type.rank and value.op in _BOXES:
            self.boxes[name] = name
        if isinstance(value, Name) and value.id in self.boxes:
            self.boxes[name] = self.boxes[value.id]
        bound = Name(name, value.type, value_of(value), self.span(target))
        self.env[id] = bound
        return bound

    def _named_item(self, id: str, value: Value, node: Any, target: Any) -> Value:
        """An item of a tuple that gets a name: computed now, once."""
        if isinstance(value, Tuple):
            return replace(value, items=tuple(self._named_item(id, v, node, target) for v in value.items))
        if isinstance(value, Choice):
            return self.settled_choice(value, node)
        if not isinstance(value, (Index, Call)) or self._is_view(value) or value_of(value) is not None:
            return value
        name = self.fresh(plain(id))
        self.emit(Assign(name, value, self.span(node)))
        return Name(name, value.type, None, self.span(target))

    # -- small statements --------------------------------------------------------------------------------------
    def _return(self, node: Any, value: Any) -> None:
        if value is None:
            raise self.fail(node, "type", "a layer must return its result")
        self.env[RETURN] = self._by_name(value) if isinstance(value, gast.Dict) else self.value(value)

    def _by_name(self, node: Any) -> Value:
        """`return {"z": ..., "y": ...}` of outputs that the return annotation names."""
        returns = self.own_node.returns if not self.frames else None
        wanted = [k.value for k in returns.keys] if isinstance(returns, gast.Dict) else []
        given = [k.value if isinstance(k, gast.Constant) else None for k in node.keys]
        if not wanted or sorted(map(str, given)) != sorted(wanted):
            what = f"its outputs are {', '.join(wanted)}" if wanted else "its return annotation names no outputs"
            help = "return them in order: return y, z; or name all of them as -> {...} does"
            raise self.fail(node, "type", f"this returns a dictionary, and {what}", help)
        made = dict(zip(given, self.values(node.values), strict=True))
        return Tuple(tuple(made[name] for name in wanted))

    def _assert(self, node: Any, test: Any, msg: Any) -> None:
        cond = self.condition(test)
        text = msg.value if isinstance(msg, gast.Constant) and isinstance(msg.value, str) else ""
        if known_truth(cond) is False:
            said = "this assertion never holds" + (f": {text}" if text else "")
            raise self.fail(node, "type", text if self.source.shipped else said)
        if known_truth(cond) is not True:
            left = isinstance(test, gast.Name) and test.id.startswith(RAN)  # Python would find no value
            self.emit(Assert(cond, text, self.span(node), "UnboundLocalError" if left else "AssertionError"))
            self.held += at_least(cond)

    def require(self, cond: Expr, message: str, node: Any) -> None:
        if isinstance(cond, Call) and known_truth(fold(cond.op, cond.args) or cond) is False:
            raise self.fail(node, "shape", message)
        if not any(isinstance(s, Assert) and s.cond == cond for s in self.out):
            self.emit(Assert(cond, message, self.span(node), "ValueError"))
            self.held += at_least(cond)

    def _expression(self, node: Any, value: Any) -> None:
        if isinstance(value, gast.Constant):  # a docstring, or `...`
            return
        if isinstance(value, (gast.Yield, gast.YieldFrom, gast.Await)):
            self.value(value)  # a mistake of its own
        if not isinstance(value, gast.Call):
            raise self.fail(node, "statement", "this expression has no effect", "assign it, or remove it")
        found = self.value(value)
        if isinstance(found, Static):
            return
        if isinstance(value.func, gast.Attribute) and value.func.attr in ("sort", "fill"):
            raise self.fail(
                node,
                "unsupported",
                f".{value.func.attr}() in place is not part of the subset",
                "assign: x[...] = value",
            )

    # -- control flow ------------------------------------------------------------------------------------------
    def _if(self, node: Any) -> None:
        cond = self.condition(node.test)
        known = known_truth(cond)
        if known is not None:
            self.block(node.body if known else node.orelse)
            return
        then_out, then_env, then_lists = self.captured(node.body)
        else_out, else_env, else_lists = self.captured(node.orelse)
        self.join_lists(then_lists, else_lists)
        self._join(node, cond, then_out, then_env, else_out, else_env)

    def branch_value(self, node: Any, condition: Expr, body: Any, orelse: Any) -> Value:
        """`a if c else b`: a select where evaluating both is harmless, else a branch."""
        before = self.drawn()
        a, then_out = self._aside(body)
        then = self.drawn()
        self.env.update(before)
        b, else_out = self._aside(orelse)
        if any(isinstance(v, (Static, Closure, Generator, ListValue)) for v in (a, b)):
            raise self.fail(node, "type", "the branches must be arrays or scalars")
        self._draws_meet(then, then_out, self.drawn(), else_out, node)
        harmless = not then_out and not else_out and not isinstance(a, Tuple) and not isinstance(b, Tuple)
        if harmless:
            x, y = self.as_expr(a, node), self.as_expr(b, node)
            shows = self.mutating and (self._is_view(x) or self._is_view(y))  # not a copy, as that of a select
            reads = any(isinstance(e, Index) for e in (*walk(x), *walk(y)))
            if not shows and not reads and not self._may_fail(x, y):
                if x.type.shape == y.type.shape:
                    return construct.call("where", condition, x, y, span=self.span(node))
        value: Value = self._meet(VALUE, a, b, then_out, else_out, node)
        if isinstance(value, Broken) and value.message is not None:
            raise self.fail(node, "type", value.message, value.help)
        self.emit(If(condition, tuple(then_out), tuple(else_out), self.span(node)))
        return value

    def _draws_meet(
        self, then: dict[str, Value], then_out: list[Stmt], other: dict[str, Value], else_out: list[Stmt], node: Any
    ) -> None:
        """The counts of draws after two branches of an expression."""
        for id in then:
            same = then[id] == other[id]
            self.env[id] = then[id] if same else self._meet(id, then[id], other[id], then_out, else_out, node)

    def _aside(self, node: Any) -> tuple[Value, list[Stmt]]:
        """A value and the statements that it needs."""
        with self.aside() as needed:
            return self.value(node), needed

    def _boolean(self, spelling: str, values: list[Any], node: Any, exact: bool = False) -> Value:
        """`a and b`, `a or b`: b is a branch where evaluating it without need could fail, as in `i < n and x[i] >
        0`."""
        result = self.condition(values[0], exact)
        for other in values[1:]:
            known = known_truth(result)
            if known is not None:
                result = self.condition(other, exact) if known == (spelling == "And") else result
                continue
            facts, self.facts = self.facts, assumed(result, spelling == "And", self.facts)
            before = self.drawn()
            try:
                with self.aside() as needed:
                    term = self.condition(other, exact)
            finally:
                self.facts = facts
            # Whether it may fail where the first does not hold.
            if needed or self._may_fail(term) or self.drawn() != before:
                result = self._guarded(spelling, result, term, needed, before, node)
            else:
                result = construct.call(
                    "logical_and" if spelling == "And" else "logical_or", result, term, span=self.span(node)
                )
        return result

    def _guarded(
        self, spelling: str, first: Expr, second: Expr, needed: list[Stmt], before: dict[str, Value], node: Any
    ) -> Expr:
        """`before`: the counts of draws before the second was looked at."""
        name = self.fresh("holds")
        self.emit(Assign(name, first, self.span(node)))
        holds = Name(name, first.type, None, self.span(node))
        inner, skipped = [*needed, Assign(name, second, self.span(node))], list[Stmt]()
        self._draws_meet(self.drawn(), inner, before, skipped, node)
        then, orelse = (inner, skipped) if spelling == "And" else (skipped, inner)
        self.emit(If(holds, tuple(then), tuple(orelse), self.span(node)))
        return holds

    def _may_fail(self, *exprs: Expr) -> bool:
        """Whether evaluating them can raise: an index not proven in range, an integer division, the largest of none."""
        return any(self._one_may_fail(e) for e in exprs)

    def _one_may_fail(self, expr: Expr) -> bool:
        match expr:
            case Index(base=base, items=items):
                for item, extent in zip(items, construct.item_extents(base, items), strict=True):
                    if isinstance(item, Gather) or (isinstance(item, At) and not self._in_range(item.index, extent)):
                        return True
            case Call(op="floor_divide" | "mod") if expr.type.is_integer and not isinstance(expr.args[1], Const):
                return True
            case Call(op=op, args=[a, *_]) if op in _OF_SOMETHING and not self._has_elements(a):
                return True
            case Call(op=op) if op in _OF_REGULAR:
                return True
        return self._may_fail(*children(expr))

    def _has_elements(self, array: Expr) -> bool:
        return construct.nonnegative(product(array.type.shape) - 1, self.facts)

    def _in_range(self, index: Expr, extent: Dim) -> bool:
        value = value_of(index)
        if value is None:
            return False
        if value.value is not None and value.value < 0:
            value = value + extent
        return construct.nonnegative(value, self.facts) and construct.nonnegative(extent - 1 - value, self.facts)

    def _while(self, node: Any) -> None:
        if node.orelse:
            raise self.fail(node, "statement", "else on a loop is not part of the subset", _ELSE_HELP)
        needs = False

        def body() -> tuple[Expr, list[Stmt]]:
            nonlocal needs
            before = self.drawn()
            with self.aside() as statements:
                cond = self.condition(node.test)
            needs = bool(statements) or self.drawn() != before
            if needs or known_truth(cond) is False:
                return cond, []
            inner, self.env, self.lists = self.captured(node.body)
            return cond, inner

        mark, used, env, lists = len(self.out) - self.inserted, set(self.fresh.used), dict(self.env), dict(self.lists)
        shown = dict(self.shown_by)
        cond, statements = self.carried(node, body)
        if needs or known_truth(cond) is False:
            self._again(mark, used, shown)
            self.env, self.lists = env, lists
            if needs:
                self.block(_with_flag(node))
            return
        if known_truth(cond) is True:
            raise self.fail(
                node, "statement", "this loop never ends", "leave it with break or return, or give it a condition"
            )
        self.emit(While(cond, tuple(statements), self.span(node)))

    # -- rows of the table that a method here shadows ----------------------------------------------------------
    def plain_call(self, node: Any, spelling: str) -> Value:
        return self.call_row(BY_SPELLING[spelling], node.args, node.keywords, node)


def _with_flag(node: Any) -> list[Any]:
    """`while f(x): ...` where f(x) takes statements: going = True; while going: going = f(x); if going: ..."""

    def at(made: Any) -> Any:
        return gast.copy_location(made, node.test)

    def assigned(value: Any) -> Any:
        name = gast.Name(id=f"<going while {node.lineno}>", ctx=gast.Store(), annotation=None, type_comment=None)
        return at(gast.Assign(targets=[at(name)], value=value, type_comment=None))

    going = at(gast.Name(id=f"<going while {node.lineno}>", ctx=gast.Load(), annotation=None, type_comment=None))
    inner = [assigned(node.test), gast.copy_location(gast.If(test=going, body=node.body, orelse=[]), node)]
    return [
        assigned(at(gast.Constant(value=True, kind=None))),
        gast.copy_location(gast.While(test=going, body=inner, orelse=[]), node),
    ]


_OF_SOMETHING = ("max", "min", "argmax", "argmin", "logsumexp", "softmax", "log_softmax")  # fail where there is nothing
_OF_REGULAR = ("solve", "inv", "cholesky")  # fail where a matrix is singular
_ELSE_HELP = "set a variable before the loop, and test it after"
_UNPACK = "as many names as items; a name with * takes the rest; of an array, index it: a, b = x[0], x[1]"
_STATEMENT_HELP = {
    "Try": "check the condition with if, or assert it",
    "With": "layers have no resources to manage",
    "Raise": "use assert condition, 'message'",
    "Global": "pass the value as an argument",
    "Nonlocal": "return the value instead",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
    "ClassDef": "define layers at the top of the file",
    "AsyncFor": "use for",
    "Match": "use if and elif",
    "AsyncFunctionDef": "use def",
    "AsyncWith": "layers have no resources to manage",
    "TryStar": "check the condition with if, or assert it",
}

__all__ = ["FunctionChecker"]
