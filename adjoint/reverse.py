"""Reverses a block of statements: the forward sweep that it needs, and the sweep that carries cotangents back.

Values that a rule needs are read from names that still hold them. A loop saves, at the start of each iteration,
the variables it carries; its reverse restores them, runs the body again and then backward, so whatever the body
computes is at hand. What turns out not to be needed - a save, a recomputation, a whole forward loop - is
removed afterwards by `clean`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import ZERO, Dim, Facts, maximum, nonnegative, product
from ..transpile.errors import Mistake
from ..transpile.operations import BACKWARD, ROWS
from ..transpile.program import (
    Assert,
    Assign,
    At,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Gather,
    If,
    Index,
    Name,
    NewAxis,
    Pop,
    Push,
    Slice,
    Span,
    Stmt,
    Store,
    Type,
    While,
    blocks,
    names,
    stored,
    walk,
    walk_stmts,
)
from ..transpile.templates import definition
from .activity import flows
from .cotangents import Cotangents
from .finality import LASTING
from .overlap import are_apart
from .own_backward import Derive, written_out
from .rules import count_dy, defined, differentiable, mentions, pullback, shared, unbroadcast
from .simplify import simplify
from .versions import with_versions

# A subexpression whose value a rule reads is computed again if it is at most this costly, else kept under a name.
_CHEAP = 8


@dataclass
class Reverser:
    """Shared by all blocks of one function."""

    active: set[str]
    types: dict[str, Type]
    used: set[str]
    like: set[str]
    lines: dict[str, list[str]]  # path -> source lines, for the comments
    facts: Facts  # the ranges of configuration and loop counters
    versioned: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)  # the name in the function -> by its versions
    chosen: set[str] = field(default_factory=set)  # names that a `where` may pass by
    only_written: set[str] = field(default_factory=set)  # those of them that only the return reads
    outputs: dict[Expr, Name] = field(
        default_factory=dict
    )  # a returned expression -> the parameter that holds its value
    written_once: set[str] = field(default_factory=set)  # arrays each place of which is written once, over a constant
    settled: frozenset[tuple[str, Span]] = frozenset()  # writes whose places are not written to any more
    lists: set[str] = field(default_factory=set)
    derive: Derive = lambda function: ()  # the body of the gradient of a function inside a rule
    replayed: dict[str, Name] = field(default_factory=dict)  # a list of popped values -> the list they were popped from

    def fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        return name

    # -- blocks ------------------------------------------------------------------------------------------------
    def block(self, body: Sequence[Stmt], cotangents: Cotangents, entering: set[str]) -> list[Stmt]:
        """Fills cotangents.out with the reverse of the block; returns its forward sweep. `entering`: names
        defined before it."""
        before = [set(entering)]
        for stmt in body:
            before.append(before[-1] | _rebound((stmt,)))
        forward = [self.stmt(stmt, cotangents, before[k]) for k, stmt in reversed(list(enumerate(body)))]
        return [s for part in reversed(forward) for s in part]

    def stmt(self, stmt: Stmt, cots: Cotangents, before: set[str]) -> list[Stmt]:
        match stmt:
            case Assign(name=name, value=value):
                return self._assign(stmt, name, value, cots)
            case Store():
                return self._store(stmt, cots)
            case For() | While():
                return self._loop(stmt, cots, before)
            case If():
                return self._if(stmt, cots, before)
            case Assert():
                return [stmt]
            case Comment():
                return []
            case Push():
                return self._push(stmt, cots)
            case Pop():
                return self._pop(stmt, cots)
        raise AssertionError(stmt)

    def _assign(self, stmt: Assign, name: str, value: Expr, cots: Cotangents) -> list[Stmt]:
        if name not in self.active or not flows(value) & self.active:
            cots.take(name) if cots.owns(name) else None
            return [stmt]
        cotangent = cots.take(name) if cots.owns(name) else self._taken_variable(name, cots)
        if cotangent is None:
            return [stmt]
        point = Point(self, cots, stmt.span)
        value = point.pull(value, cotangent, Name(name, value.type, value_of(value)), guarded=name in self.chosen)
        return [*point.kept, replace(stmt, value=value)]

    def _taken_variable(self, name: str, cots: Cotangents) -> Expr:
        """The cotangent of a variable of an outer block; it has none left before this assignment."""
        variable = cots.variable(name)
        held = Name(self.fresh(f"d_{name}"), variable.type)
        cots.emit(Assign(held.id, construct.call("copy", variable) if variable.type.rank else variable))
        if variable.type.rank:
            cots.emit(Store(variable, construct.complete(variable, ()), const(0)))
        else:
            cots.emit(Assign(variable.id, const(0.0)))
        return held

    # -- writes into arrays ------------------------------------------------------------------------------------
    def _store(self, stmt: Store, cots: Cotangents) -> list[Stmt]:
        array = stmt.base.id
        if array not in self.active:
            return [stmt]
        if cots.owns(array) and array not in cots.variables and not cots.pending.get(array):
            return [stmt]
        variable = cots.variable(array)
        start = len(cots.out)
        piece = simplify(construct.index(variable, stmt.items)) if not _whole(stmt) else variable
        overwritten = stmt.op is None
        value = stmt.value
        kept: list[Stmt] = []
        if flows(value) & self.active:
            if overwritten and piece.type.rank and (self._must_clear(stmt) or array in _reads_of(value)):
                piece = self._named(piece, f"d_{array}_part", cots, copy=True)
            elif not overwritten and sum(isinstance(e, Name) and e.id == array for e in walk(value)) > 1:
                # one contribution to the array's own cotangent must not be seen by the next
                piece = self._named(piece, f"d_{array}_part", cots, copy=bool(piece.type.rank))
            elif overwritten and not piece.type.rank:
                piece = self._named(piece, f"d_{array}_part", cots) if self._must_clear(stmt) else piece
        if overwritten and self._must_clear(stmt):
            cots.emit(Store(variable, stmt.items, const(0)))
        if flows(value) & self.active:
            if overwritten and any(isinstance(i, Gather) for i in stmt.items):
                piece = self._of_last_writers(stmt, piece, cots)
            point = Point(self, cots, stmt.span)
            held = self._left_by(stmt)
            value = point.pull(value, unbroadcast(piece, value.type), held, quote=False, guarded=array in self.chosen)
            kept = point.kept
        self.quote(stmt.span, cots.out, start)
        return [*kept, replace(stmt, value=value)]

    def _left_by(self, stmt: Store) -> Expr | None:
        """What holds the value of a write from then on: its place in the array, if it stays."""
        place = construct.index(replace(stmt.base, value=LASTING), stmt.items)
        stays = stmt.op is None and (stmt.base.id, stmt.span) in self.settled
        plain = all(isinstance(i, (At, Slice)) for i in stmt.items) and place.type == stmt.value.type
        return place if stays and plain else None

    def _of_last_writers(self, stmt: Store, piece: Expr, cots: Cotangents) -> Expr:
        """In y[i] = v with an index array, of the values that go to one place the last stays: the others get no
        cotangent."""
        shape = construct.index(stmt.base, stmt.items).type.shape
        order = construct.call("arange", start=construct.ZERO, stop=product(shape))
        if len(shape) > 1:
            order = construct.call("reshape", order, shape=shape)
        last = Name(self.fresh("last"), Type("i64", stmt.base.type.shape))
        self.types[last.id] = last.type
        cots.emit(Assign(last.id, construct.call("zeros", shape=last.type.shape, dtype="i64")))
        cots.emit(Store(last, stmt.items, order))
        stays = construct.call("equal", construct.index(last, stmt.items), order)
        return construct.call("where", stays, piece, const(0))

    # -- lists -------------------------------------------------------------------------------------------------
    def _push(self, stmt: Push, cots: Cotangents) -> list[Stmt]:
        """L.append(v): the cotangent of v is the last item of d_L."""
        if stmt.list.id not in self.active:
            return [stmt]
        start = len(cots.out)
        part = Name(self.fresh(f"d_{stmt.list.id}_part"), stmt.list.type)
        self.types[part.id] = part.type
        cots.emit(Pop(part.id, cots.variable(stmt.list.id), part.type))
        point = Point(self, cots, stmt.span)
        value = point.pull(stmt.value, part, None, quote=False)
        self.quote(stmt.span, cots.out, start)
        return [*point.kept, replace(stmt, value=value)]

    def _pop(self, stmt: Pop, cots: Cotangents) -> list[Stmt]:
        """v = L.pop(): d_L gets the cotangent of v, a zero where v was not used, so that the two lists stay paired."""
        owner = self.replayed.get(stmt.list.id, stmt.list)
        if owner.id not in self.active:
            cots.take(stmt.name) if cots.owns(stmt.name) else None
            return [stmt]
        start = len(cots.out)
        cotangent = cots.take(stmt.name) if cots.owns(stmt.name) else self._taken_variable(stmt.name, cots)
        if cotangent is None:
            cotangent = cots.zeros(stmt.name)
        elif cotangent.type.rank:
            cotangent = construct.call("copy", cotangent)  # the list keeps it; its variable goes on to change
        cots.emit(Push(cots.variable(owner.id), cotangent))
        self.quote(stmt.span, cots.out, start)
        return [stmt]

    def _replaying(self, stmt: For | While) -> tuple[list[Stmt], list[Stmt], tuple[Stmt, ...]]:
        """What a loop pops is put on a list of the gradient's own. Returns that list's making, the body that fills
        it and the body that pops from it: the list popped from is empty when the reverse sweep comes."""
        made = _rebound(stmt.body)
        for inner in (b for s in stmt.body for b in blocks(s)):
            for pop in walk_stmts(inner):
                if isinstance(pop, Pop) and pop.list.id not in made:
                    raise Mistake(
                        pop.span,
                        "derivative",
                        f"{pop.list.id} is made outside the loop or branch around this one: it has no gradient",
                        "write into an array: saved[i] = value",
                    )
        before: list[Stmt] = []
        filling: list[Stmt] = []
        replay: list[Stmt] = []
        for inner_stmt in stmt.body:
            filling.append(inner_stmt)
            if isinstance(inner_stmt, Pop):
                saved, make = self._list(inner_stmt.name, inner_stmt.type)
                before.append(make)
                filling.append(Push(saved, Name(inner_stmt.name, inner_stmt.type)))
                self.replayed[saved.id] = inner_stmt.list
                inner_stmt = replace(inner_stmt, list=saved)
            replay.append(inner_stmt)
        return before, filling, tuple(replay)

    def _list(self, name: str, type: Type) -> tuple[Name, Stmt]:
        """A list for the values of a variable, and the statement that makes it."""
        element = Type({"float": "real", "int": "i64"}.get(type.dtype, type.dtype), type.shape)
        saved = Name(self.fresh(f"{name}_saved"), element)
        self.types[saved.id] = element
        self.lists.add(saved.id)
        return saved, Assign(saved.id, Call("list", (), (("type", element),), element))

    def _must_clear(self, stmt: Store) -> bool:
        """Whether an overwritten place could still receive the cotangent of what it held before."""
        return stmt.base.id not in self.written_once or not _reads_elsewhere(stmt)

    def _named(self, expr: Expr, hint: str, cots: Cotangents, copy: bool = False) -> Name:
        name = Name(self.fresh(hint), expr.type)
        self.types[name.id] = expr.type
        cots.emit(Assign(name.id, construct.call("copy", expr) if copy else expr))
        return name

    # -- loops -------------------------------------------------------------------------------------------------
    def _loop(self, stmt: For | While, cots: Cotangents, before: set[str]) -> list[Stmt]:
        made, filling, replay = self._replaying(stmt)
        forward, stmt = replace(stmt, body=tuple(filling)), replace(stmt, body=replay)
        rebound = _rebound(stmt.body) | (
            {s.base.id for s in walk_stmts(stmt.body) if isinstance(s, Store)} & self.versioned
        )
        carried = rebound & before
        inside, leaving = with_versions(stmt.body, carried, self.versioned, self.types, self.version)
        touched = [n for n in sorted(self._touched(inside)) if n not in carried]
        if not any(n in self.active for n in [*touched, *carried]):
            return [*made, forward]
        self.quote(stmt.span, cots.out, len(cots.out), always=True)
        flowing = {n for n in carried & self.active if self._flows_in(n, inside, cots)}
        inner = self._inner(cots, inside, carried, flowing, touched)
        for name in sorted(flowing):
            inner.pending[leaving.get(name, name)] = [cots.variable(name)]
        again = self.block(inside, inner, before | carried)
        self._leave(flowing, cots, inner)
        saving, restores, counter = self._saving(forward, sorted(carried))
        again = _without_stores(again, _rebound([*inside, *again]))
        cots.emit(self._backward(stmt, counter, [*restores, *again, *inner.out]))
        return [*made, *saving]

    def _flows_in(self, name: str, inside: Sequence[Stmt], cots: Cotangents) -> bool:
        """Whether a derivative can pass through the value of a carried variable from one iteration to the next,
        or after the last."""
        if not cots.owns(name) or name in cots.variables or cots.pending.get(name):
            return True
        return any(name in flows(s.value) for s in walk_stmts(tuple(inside)) if isinstance(s, (Assign, Store, Push)))

    def version(self, name: str) -> str:
        """A new name for a later value of a variable."""
        new = self.fresh(name)
        self.types[new] = self.types[name]
        self.origins[new] = self.origins.get(name, name)
        for facts in (self.active, self.versioned, self.chosen, self.lists):
            if name in facts:
                facts.add(new)
        return new

    def _touched(self, body: Sequence[Stmt]) -> set[str]:
        """Active names of outer blocks whose cotangent the body adds to or reads."""
        inner = _rebound(body)
        found: set[str] = set()
        for s in walk_stmts(tuple(body)):
            match s:
                case Assign(name=name, value=value) if name in self.active:
                    found |= flows(value)
                case Store(base=target, value=value) | Push(list=target, value=value) if target.id in self.active:
                    found |= {target.id, *flows(value)}
                case Pop(list=target):
                    found.add(self.replayed.get(target.id, target).id)
        return {n for n in found - inner if n in self.active}

    def _inner(
        self, cots: Cotangents, body: Sequence[Stmt], carried: set[str], flowing: set[str], touched: Sequence[str]
    ) -> Cotangents:
        """Cotangents of a nested block: outer names have variables, its own names wait in it."""
        for name in [*touched, *sorted(flowing)]:
            if name not in cots.variables and cots.owns(name):
                if name in self.only_written:
                    cots.borrow_variable(name)
                else:
                    cots.make_variable(name, own=name not in carried)
        for name in [*touched, *sorted(flowing)]:
            cots.freeze(cots.variable(name).id)
        own = _rebound(body) | carried
        return Cotangents(self.types, self.fresh, self.like, self.lists, [], cots, own)

    def _leave(self, carried: set[str], cots: Cotangents, inner: Cotangents) -> None:
        """At the start of the body, going back: the cotangent of each carried name is that of its entering value."""
        ending: list[tuple[Name, Expr]] = []
        for name in sorted(carried & self.active):
            variable = cots.variable(name)
            entering = inner.take(name)
            if entering is None:
                entering = inner.zeros(name)
            if entering != variable:
                ending.append(
                    (variable, construct.convert(entering, variable.type) if variable.type.rank else entering)
                )
        reassigned = {v.id for v, _ in ending}
        if len(ending) > 1 and any(names(e) & (reassigned - {v.id}) for v, e in ending):
            held = []
            for variable, expr in ending:
                held.append((variable, self._named(expr, f"{variable.id}_next", inner)))
            ending = list(held)
        for variable, expr in ending:
            if variable.type.rank and not isinstance(expr, (Call,)):
                expr = construct.call("copy", expr) if isinstance(expr, Index) else expr
            inner.emit(Assign(variable.id, expr))

    def _saving(self, stmt: For | While, carried: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        """The forward loop that saves what it carries, the statements that restore it, and how often it ran."""
        if isinstance(stmt, While):
            return self._saving_while(stmt, carried)
        return self._saving_on_lists(stmt, carried) if self._trips(stmt) is None else self._saving_for(stmt, carried)

    def _saving_for(self, stmt: For, kept: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        count = self._trips(stmt)
        assert count is not None
        count, position = _room(count), _position(stmt)
        before: list[Stmt] = []
        at_start: list[Stmt] = []
        restore: list[Stmt] = []
        for name in kept:
            type = self.types[name]
            stored_type = Type({"float": "real", "int": "i64"}.get(type.dtype, type.dtype), (count, *type.shape))
            saved = Name(self.fresh(f"{name}_saved"), stored_type)
            before.append(Assign(saved.id, construct.call("empty", shape=stored_type.shape, dtype=stored_type.dtype)))
            items = construct.complete(saved, [At(position)])
            at_start.append(Store(saved, items, Name(name, type)))
            part = construct.index(saved, [At(position)])
            restore.append(Assign(name, part))
        return [*before, replace(stmt, body=(*at_start, *stmt.body))], restore, const(0)

    def _trips(self, stmt: For) -> Dim | None:
        """How often a loop runs, if sizes tell."""
        count = _count(stmt)
        return None if count is None else maximum(count, ZERO, self.facts)

    def _saving_while(self, stmt: While, kept: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        trips = Name(self.fresh("trips"), Type("int"))
        counted = Assign(trips.id, construct.call("add", trips, const(1)))
        forward, restore, _ = self._saving_on_lists(replace(stmt, body=(*stmt.body, counted)), kept)
        return [Assign(trips.id, const(0)), *forward], restore, trips

    def _saving_on_lists(self, stmt: For | While, kept: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        """For a number of iterations that is not known before they are done."""
        before: list[Stmt] = []
        at_start: list[Stmt] = []
        restore: list[Stmt] = []
        for name in kept:
            saved, make = self._list(name, self.types[name])
            before.append(make)
            value: Expr = Name(name, self.types[name])
            if name in stored(stmt.body):  # a list holds the array itself, which the body goes on to change
                value = construct.call("copy", value)
            at_start.append(Push(saved, value))
            restore.append(Pop(name, saved, saved.type))
        return [*before, replace(stmt, body=(*at_start, *stmt.body))], restore, const(0)

    def _backward(self, stmt: For | While, trips: Expr, body: list[Stmt]) -> Stmt:
        if isinstance(stmt, While):
            return For(self.fresh("_"), const(0), trips, 1, tuple(body), stmt.span)
        one = const(abs(stmt.step))
        if abs(stmt.step) == 1:
            start = construct.call("subtract" if stmt.step > 0 else "add", stmt.stop, one)
        else:
            first, count = value_of(stmt.start), _count(stmt)  # below 0, the reverse runs as little
            if first is None or count is None:
                raise Mistake(
                    stmt.span,
                    "derivative",
                    "this loop has a step, and bounds that depend on values: its gradient is not derived",
                    "count by 1 and multiply: for k in range(n): i = start + step * k",
                )
            start = construct.dim(first + (count - 1) * stmt.step)
        stop = construct.call("subtract" if stmt.step > 0 else "add", stmt.start, const(1))
        return For(stmt.var, _constant(start), _constant(stop), -stmt.step, tuple(body), stmt.span)

    # -- branches ----------------------------------------------------------------------------------------------
    def _if(self, stmt: If, cots: Cotangents, before: set[str]) -> list[Stmt]:
        changed = _rebound((stmt,))
        results = {
            n for n in changed if n in self.active and (n in cots.variables or cots.pending.get(n) or not cots.owns(n))
        }
        touched = sorted(self._touched((*stmt.then, *stmt.orelse)))
        if not any(n in self.active for n in [*touched, *results]):
            return [stmt]
        for name in [*touched, *sorted(results)]:
            if cots.owns(name) and name not in cots.variables:
                cots.make_variable(name, own=name not in results)
            cots.freeze(cots.variable(name).id)
        self.quote(stmt.span, cots.out, len(cots.out), always=True)
        branches = [self._branch(b, cots, results, before) for b in (stmt.then, stmt.orelse)]
        (then_again, then_out), (else_again, else_out) = branches
        cots.emit(If(stmt.cond, (*then_again, *then_out), (*else_again, *else_out), stmt.span))
        for name in results:
            if name not in before and cots.owns(name):
                cots.take(name)
        return [stmt]

    def _branch(
        self, body: Sequence[Stmt], cots: Cotangents, results: set[str], before: set[str]
    ) -> tuple[list[Stmt], list[Stmt]]:
        own = _rebound(body)
        entering = own & before
        inside, leaving = with_versions(body, entering, self.versioned, self.types, self.version)
        local = _rebound(inside) | entering
        inner = Cotangents(self.types, self.fresh, self.like, self.lists, [], cots, local)
        mine = sorted(results & own)
        for name in mine:
            inner.pending[leaving.get(name, name)] = [cots.variable(name)]
        again = self.block(inside, inner, before | own)
        again = _without_stores(again, _rebound([*inside, *again]))
        self._leave({n for n in mine if n in entering}, cots, inner)
        return again, inner.out

    # -- comments ----------------------------------------------------------------------------------------------
    def quote(self, span: Span, out: list[Stmt], start: int, always: bool = False) -> None:
        """Puts the user's line before what was written for it since `start`, if anything was."""
        lines = self.lines.get(span.path, [])
        written = out[start:]
        if not 0 < span.line <= len(lines) or not (written or always):
            return
        if written and isinstance(written[0], Comment) and written[0].span == span:
            return
        last = next((s for s in reversed(out[:start]) if isinstance(s, Comment)), None)
        if last is None or last.span.line != span.line or last.span.path != span.path:
            out.insert(start, Comment(f"{span.line}: {lines[span.line - 1].strip()}", span))


# Rows with an infinite derivative somewhere, or an overflow: there, 0 times the derivative is NaN.
_SINGULAR = set(
    "divide reciprocal sqrt cbrt power log log2 log10 log1p logaddexp exp exp2 expm1 sinh cosh tan"
    " arcsin arccos arccosh arctanh arctan2 logit gammaln xlogy".split()
)


def singular(expr: Expr) -> bool:
    return (
        isinstance(expr, Call)
        and expr.op in _SINGULAR
        and not (expr.op == "divide" and isinstance(expr.args[1], Const))
    )


@dataclass(frozen=True)
class Mask:
    """The choices of `where` above an expression, whose cotangent is zero where they pass it by.

    Through elementwise operations the zeros are put in last, so that no derivative multiplies them: where(x >
    0, dy / x, 0), not where(x > 0, dy, 0) / x. `guarded`: the zeros are in the cotangent, and a singular
    derivative must leave them zero.
    """

    choices: tuple[tuple[Expr, bool], ...] = ()  # (condition, whether the expression is chosen where it is true)
    guarded: bool = False

    def under(self, condition: Expr, when: bool) -> Mask:
        return Mask((*self.choices, (condition, when)), self.guarded)

    def inside(self) -> Mask:
        """After the zeros are put in."""
        return Mask((), self.guarded or bool(self.choices))

    def over(self, cotangent: Expr) -> Expr:
        for condition, when in reversed(self.choices):
            cotangent = construct.call("where", condition, *((cotangent, const(0)) if when else (const(0), cotangent)))
        return cotangent


@dataclass
class Point:
    """One statement being reversed: pulls a cotangent through its expression."""

    reverser: Reverser
    cots: Cotangents
    span: Span
    kept: list[Stmt] = field(default_factory=list)  # values given a name for the reverse sweep, in order
    known: dict[Expr, Name] = field(default_factory=dict)

    def pull(self, expr: Expr, cotangent: Expr, result: Expr | None, quote: bool = True, guarded: bool = False) -> Expr:
        """Adds the contributions of `expr` to the names in it; returns expr over the values given names."""
        start = len(self.cots.out)
        self._pull(expr, simplify(cotangent), result, mask=Mask(guarded=guarded))
        self.cots.flush()
        if quote:
            self.reverser.quote(self.span, self.cots.out, start)
        self._share()
        return self._replace(expr)

    def _share(self) -> None:
        """Orders the kept values inner ones first and lets each use those before it."""
        order = sorted(self.known, key=lambda e: sum(1 for _ in walk(e)))
        known, self.known = self.known, {}
        self.kept = []
        for expr in order:
            self.kept.append(Assign(known[expr].id, _map(expr, self._replace), self.span))
            self.known[expr] = known[expr]

    def _pull(
        self, expr: Expr, cotangent: Expr, result: Expr | None = None, role: str = "", mask: Mask = Mask()
    ) -> None:
        active = self.reverser.active
        if not (isinstance(expr, Call) and ROWS[expr.op].kind == "elementwise"):
            cotangent, mask = mask.over(cotangent), mask.inside()
        match expr:
            case Name(id=id):
                if id in active:
                    self.cots.add(id, cotangent)
            case Index():
                self._index(expr, cotangent)
            case Call() if ROWS[expr.op].grad == BACKWARD:
                self._by_rule(expr, cotangent, result)
            case Call() if defined(expr):
                self._pull(
                    definition(expr, dict(zip(ROWS[expr.op].arrays, expr.args, strict=True))),
                    cotangent,
                    None,
                    role,
                    mask,
                )
            case Call():
                wanted = [w and bool(flows(a) & active) for a, w in zip(expr.args, differentiable(expr), strict=True)]
                if not any(wanted):
                    return
                guarded = mask.guarded and not mask.choices and singular(expr)
                if count_dy(expr, wanted) > 1 or guarded:
                    cotangent = self._once(cotangent, expr, role)
                y = self._result(expr, wanted, result)
                args = [self._argument(expr, k, wanted) for k in range(len(expr.args))]
                known = self._shared(expr, wanted, args, y, cotangent)
                for k, arg in enumerate(expr.args):
                    if wanted[k] and expr.op == "where" and any(singular(e) for e in walk(arg)):
                        self._into(arg, cotangent, _role(expr, k), mask.under(args[0], k == 1))
                    elif wanted[k]:
                        contribution = pullback(expr, args, y, cotangent, k, known)
                        if guarded:
                            none = construct.call("equal", cotangent, const(0))
                            contribution = construct.call("where", none, const(0), contribution)
                        self._into(arg, contribution, _role(expr, k), mask)

    def _by_rule(self, expr: Call, cotangent: Expr, result: Expr | None) -> None:
        """The reverse that the call brings along, for all arguments at once."""
        owners = expr.args[1:]
        y = self.reverser.outputs.get(expr) or result or expr.args[0]
        given = [self._held(e) for e in (y, cotangent, *owners)]
        reverser = self.reverser
        body, gradients = written_out(expr.get("rule"), given, reverser.fresh, reverser.types, reverser.derive)
        for stmt in body:
            self.cots.emit(stmt)
        for owner, gradient in zip(owners, gradients, strict=True):
            if flows(owner) & reverser.active:
                self._into(owner, gradient, "", Mask())

    def _held(self, expr: Expr) -> Name:
        """Under a name, which a rule can read."""
        if isinstance(expr, Name):
            return expr
        held = Name(self.reverser.fresh(f"d_{_hint(expr)}"), expr.type)
        self.reverser.types[held.id] = expr.type
        self.cots.emit(Assign(held.id, expr))
        return held

    def _shared(self, expr: Call, wanted: list[bool], args: list[Expr], y: Expr, cotangent: Expr) -> dict[str, Expr]:
        """What several rules of a row read: under a name, if they read it more than once."""
        found = shared(expr, wanted, args, y, cotangent)
        if found is None:
            return {}
        name, value, uses = found
        if uses == 1 or isinstance(value, (Name, Const)):
            return {name: value}
        held = Name(self.reverser.fresh(name), value.type)
        self.reverser.types[held.id] = value.type
        self.cots.emit(Assign(held.id, value))
        return {name: held}

    def _into(self, arg: Expr, cotangent: Expr, role: str, mask: Mask) -> None:
        """A contribution to an argument; elementwise operations may have broadcast it."""
        if isinstance(arg, Name):
            if arg.id in self.reverser.active:
                self.cots.add(arg.id, mask.over(cotangent))
            return
        if cotangent.type.shape != arg.type.shape:
            cotangent, mask = unbroadcast(mask.over(cotangent), arg.type), mask.inside()
        self._pull(arg, cotangent, None, role, mask)

    def _once(self, cotangent: Expr, call: Call, role: str) -> Expr:
        """A cotangent that is used more than once gets a name, unless it is as short as one."""
        if isinstance(cotangent, Call) and cotangent.op == "broadcast_to":
            return replace(cotangent, args=(self._once(cotangent.args[0], call, role),))
        if isinstance(cotangent, (Name, Const)) or (isinstance(cotangent, Index) and isinstance(cotangent.base, Name)):
            return cotangent
        if isinstance(cotangent, Call) and cotangent.op == "negative" and isinstance(cotangent.args[0], Name):
            return cotangent
        name = Name(self.reverser.fresh(f"d_{role or _hint(call)}"), cotangent.type)
        self.reverser.types[name.id] = cotangent.type
        self.cots.emit(Assign(name.id, cotangent))
        return name

    def _result(self, expr: Call, wanted: list[bool], result: Expr | None) -> Expr:
        """An expression for the value of a call, if a rule reads it."""
        if not any(w and mentions(expr, k, "y") for k, w in enumerate(wanted)):
            return expr
        if expr in self.reverser.outputs:
            return self.reverser.outputs[expr]
        return result if result is not None else self.value(expr)

    def _argument(self, expr: Call, k: int, wanted: list[bool]) -> Expr:
        """An expression for the value of an argument, if a rule reads it."""
        row = ROWS[expr.op]
        name = row.arrays[min(k, len(row.arrays) - 1)]
        needed = isinstance(row.grad, str) or any(w and mentions(expr, j, name) for j, w in enumerate(wanted))
        return self.value(expr.args[k]) if needed else expr.args[k]

    def value(self, expr: Expr) -> Expr:
        """expr, or, where it is costly, a name that keeps its value."""
        if expr in self.known:
            return self.known[expr]
        if cost(expr) <= _CHEAP or isinstance(expr, (Name, Const)):
            return self._replace(expr)
        name = Name(self.reverser.fresh(_hint(expr)), expr.type)
        self.reverser.types[name.id] = expr.type
        self.known[expr] = name
        return name

    def _replace(self, expr: Expr) -> Expr:
        return self.known[expr] if expr in self.known else _map(expr, self._replace)

    def _index(self, expr: Index, cotangent: Expr) -> None:
        if not flows(expr.base) & self.reverser.active:
            return
        extents = construct.item_extents(expr.base, expr.items)
        if all(isinstance(i, NewAxis) or construct.is_full(i, e) for i, e in zip(expr.items, extents, strict=True)):
            back = construct.index(
                cotangent,
                [
                    At(const(0)) if isinstance(i, NewAxis) else construct.full_slice(e)
                    for i, e in zip(expr.items, extents, strict=True)
                ],
            )
            self._pull(expr.base, simplify(back))
            return
        items = tuple(
            replace(i, index=self._replace(i.index)) if isinstance(i, (At, Gather)) else i for i in expr.items
        )
        scatter = any(isinstance(i, Gather) for i in items)
        if isinstance(expr.base, Name):
            self.cots.add_part(expr.base.id, items, cotangent, scatter)
            return
        part = Name(self.reverser.fresh(f"d_{_hint(expr.base)}"), expr.base.type)
        self.reverser.types[part.id] = part.type
        self.cots.emit(Assign(part.id, construct.call("zeros", shape=part.type.shape, dtype=part.type.dtype)))
        self.cots.emit(Store(part, items, cotangent, "add", scatter))
        self._pull(expr.base, part)


def _map(expr: Expr, f: object) -> Expr:
    from ..transpile.program import map_children

    return map_children(expr, f)


def cost(expr: Expr) -> int:
    """Flops an element; a reduction or product costs as many as make it worth keeping."""
    total = 0
    for e in walk(expr):
        if isinstance(e, Call):
            row = ROWS[e.op]
            total += (
                row.flops
                if row.kind in ("elementwise", "draw")
                else 100
                if row.kind in ("reduce", "product", "compose", "body", "derivative")
                else 0
            )
    return total


_NOUNS = {
    "add": "sum",
    "subtract": "diff",
    "multiply": "prod",
    "divide": "ratio",
    "where": "choice",
    "sum": "total",
    "abs": "size",
    "max": "largest",
    "min": "smallest",
    "all": "every",
    "any": "some",
    "matmul": "product",
    "negative": "minus",
    "stop_gradient": "stopped",
    "with_backward": "found",
    "with_derivative": "found",
    "draw_random": "draw",
    "draw_normal": "draw",
    "draw_integers": "draw",
    "draw_bernoulli": "draw",
}


def _hint(expr: Expr) -> str:
    """A name for a value: exp_x for np.exp(x), ratio for a / b."""
    if isinstance(expr, Call):
        noun = _NOUNS.get(expr.op, expr.op)
        arg = expr.args[0] if len(expr.args) == 1 else None
        return f"{noun}_{arg.id}" if isinstance(arg, Name) else noun
    return "part"


def _role(call: Call, argument: int) -> str:
    """What an argument is to its call, where that says more than its own operation."""
    return ("", "then", "else")[argument] if call.op == "where" else ""


def _whole(stmt: Store) -> bool:
    return all(isinstance(i, Slice) and i.start is None and i.stop is None and i.step == 1 for i in stmt.items)


def _reads_elsewhere(stmt: Store) -> bool:
    """Whether the value reads the array, if at all, at places that are provably not the one written."""
    for expr in walk(stmt.value):
        if isinstance(expr, Index) and expr.base == stmt.base:
            if not are_apart(expr.items, stmt.items):
                return False
    whole = sum(isinstance(e, Name) and e.id == stmt.base.id for e in walk(stmt.value))
    return whole == sum(isinstance(e, Index) and e.base == stmt.base for e in walk(stmt.value))


def _reads_of(expr: Expr) -> set[str]:
    return names(expr)


def _count(stmt: For) -> Dim | None:
    """How often a loop runs, if it does."""
    start, stop = value_of(stmt.start), value_of(stmt.stop)
    if start is None or stop is None:
        return None
    span = stop - start if stmt.step > 0 else start - stop
    return (span + (abs(stmt.step) - 1)) // abs(stmt.step)


def _position(stmt: For) -> Expr:
    """The number of the iteration, from 0."""
    counter = Name(stmt.var, Type("int"), construct.Dim.of(stmt.var))
    start = value_of(stmt.start)
    offset = counter if start == construct.ZERO else construct.call("subtract", counter, stmt.start)
    if stmt.step == -1:
        return construct.call("subtract", stmt.start, counter)
    return offset if stmt.step == 1 else construct.call("floor_divide", offset, const(stmt.step))


def _constant(expr: Expr) -> Expr:
    value = value_of(expr)
    return const(value.value) if value is not None and value.value is not None else expr


def _without_stores(body: Sequence[Stmt], own: set[str]) -> list[Stmt]:
    """Writes into arrays and lists of outer blocks are not repeated by the reverse: their final content is there."""
    kept: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Store(base=target) | Push(list=target) if target.id not in own:
                continue
            case For() | While():
                stmt = replace(stmt, body=tuple(_without_stores(stmt.body, own)))
            case If():
                stmt = replace(
                    stmt, then=tuple(_without_stores(stmt.then, own)), orelse=tuple(_without_stores(stmt.orelse, own))
                )
        kept.append(stmt)
    return kept


def _room(count: Dim) -> Dim:
    """As many places as a loop may need, and no negative number of them: range(N - 1) is empty for N = 0."""
    constant = sum(c for monomial, c in count.terms if not monomial)
    above = count - constant if constant < 0 else count  # N reads better than max(0, N - 1)
    return above if nonnegative(above) else maximum(count, ZERO)


def _rebound(body: Sequence[Stmt]) -> set[str]:
    return {s.name for s in walk_stmts(tuple(body)) if isinstance(s, (Assign, Pop))}
