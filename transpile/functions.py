"""Typing of statements: a function's body becomes typed statements over unique names.

Helpers are inlined where they are called. Every assignment makes a new name, so a name is a value; where
control flow joins, the versions meet again in one name: the one a loop carries, or the one both branches of an
`if` assign.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import gast

from . import construct
from .assignments import Assignments
from .carried import Carried
from .choices import Choices
from .construct import known_truth
from .derivative_calls import DerivativeCalls
from .dims import Dim
from .draws import Draws
from .errors import Mistake, Reporter, Suppressed
from .exits import LATER_IF_NEW
from .expressions import Expressions
from .fold import fold
from .halting import Halts
from .inlining import Inlining
from .iteration import Iteration
from .joins import Joins
from .lazy import Lazy
from .leftovers import RAN
from .lists import Items, Key, Lists, Plan, appended_names, popped_names
from .lowering.facts import at_least
from .masks import explained
from .mutation import target_names
from .operations import BY_SPELLING
from .program import (
    Assert,
    Assign,
    Call,
    Expr,
    Index,
    Span,
    Stmt,
    Type,
    While,
)
from .source import Source
from .typing import TypingError
from .values import (
    RETURN,
    Broken,
    Choice,
    Fresh,
    Later,
    Static,
    Tuple,
    Value,
)
from .views import Views
from .writes import Writes

# Of a block: extents, what they are as well, and where that is asked.
Agreements = dict[Key, dict[Dim, tuple[Dim, Any]]]


class FunctionChecker(
    Assignments,
    Lazy,
    Iteration,
    Halts,
    Carried,
    Joins,
    Choices,
    Inlining,
    DerivativeCalls,
    Lists,
    Writes,
    Views,
    Draws,
    Expressions,
):
    """Types one function of a layer. `plans`: what an earlier typing found out about its lists;
    `agreements`: and about extents; `chosen`: names of which it matters which array they are; `apart`: loops of which
    each iteration has types of its own."""

    def __init__(
        self,
        source: Source,
        reporter: Reporter,
        fresh: Fresh,
        function: Any = None,
        plans: Mapping[Key, Plan] | None = None,
        chosen: Collection[str] = (),
        agreements: Agreements | None = None,
        apart: Collection[int] = (),
    ) -> None:
        self.reporter = reporter
        self.fresh = fresh
        self.env: dict[str, Value] = {}
        self.facts: dict[str, tuple[Dim, Dim]] = {}
        self.held: list[Dim] = []  # not negative here: assertions before say so
        self.out: list[Stmt] = []
        self.agreements: Agreements = dict(agreements or {})
        self.agreeing: Agreements = {}  # what this typing finds
        self.waiting: list[tuple[Dim, Dim, Any]] = []  # agreements of the block that are still to be asked for
        self.block_of: Key | None = None  # the block that is checked
        self.sizes: set[str] = set()  # the extents of arguments
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
        self.ternaries: set[Span] = set()  # where one of two values is chosen, which np.where makes an array of
        self.boxes: dict[str, str] = {}  # names of arrays without axes -> the first name of each
        self.assigned: set[str] = set()  # the function's own names
        self.popped: set[str] = set()
        self.appending: set[str] = set()
        self.chosen = set(chosen)
        self.apart = set(apart)
        self.passed: set[int] = set()  # statements that have been checked with the loop before them
        self.few: set[int] = set()  # loops with a mistake that could be so
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
            if id(node) in self.passed:
                self.passed.discard(id(node))
                continue
            self.current = node
            self.ask(node)
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
            with self.aside(nodes) as statements:
                self.block(nodes)
            return statements, self.env, self.lists
        finally:
            self.env, self.lists = env, lists

    @contextmanager
    def aside(self, nodes: Sequence[Any] = ()) -> Iterator[list[Stmt]]:
        """Takes the statements emitted meanwhile, of a block that may not run (`nodes`: all of it): what it asserts
        holds only inside."""
        out, held = self.out, self.held
        self.out, self.held = [], [*held]
        try:
            with self.agreed_in(nodes):
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

    def agree(self, dim: Dim, plain: Dim, node: Any) -> None:
        message = f"operands could not be broadcast together: {dim} against {plain}"
        self.require(construct.call("equal", construct.dim(dim), construct.dim(plain)), message, node)
        if self.block_of is not None and (dim - plain).symbols() <= self.sizes:
            self.agreeing.setdefault(self.block_of, {}).setdefault(dim, (plain, node))

    @contextmanager
    def agreed_in(self, nodes: Sequence[Any]) -> Iterator[None]:
        """Extents that an earlier typing found to be one, or the block fails, are one for all slices in it. Without
        nodes: what may run, or not, in the middle of a statement."""
        outside, agreed, waiting = self.block_of, self.agreed, self.waiting
        self.block_of = (*self.path, id(nodes[0])) if nodes else None
        found = self.agreements.get(self.block_of, {}) if self.block_of else {}
        self.waiting = [(dim, *how) for dim, how in found.items()]
        self.agreed = {**agreed, **{dim: plain for dim, (plain, _) in found.items()}}
        try:
            yield
        finally:
            self.block_of, self.agreed, self.waiting = outside, agreed, waiting

    def ask(self, before: Any) -> None:
        """Asks what extents have to agree in, before a statement that may take slices: the program's own assertions,
        and the sizes that they are of, come first."""
        plain = isinstance(before, (gast.Assert, gast.Assign, gast.Expr))
        if plain and not any(isinstance(n, gast.Slice) for n in gast.walk(before)):
            return
        waiting, self.waiting = self.waiting, []
        for agreement in waiting:
            self.agree(*agreement)

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
        for item in found.items if isinstance(found, Tuple) else (found,):
            if isinstance(item, (Index, Call)):  # nobody gets it: but it may fail
                self.emit(Assign(self.fresh("dropped"), item, self.span(node)))

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

    def _while(self, node: Any) -> None:
        if node.orelse:
            raise self.fail(node, "statement", "else on a loop is not part of the subset", _ELSE_HELP)
        if self.halts(node):
            return
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


_ELSE_HELP = "set a variable before the loop, and test it after"
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
