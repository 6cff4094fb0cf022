"""Tangents of a piece of the forward: each value with its derivatives by what the piece is given, made along the way.

Where every operation on the way is of elements, what comes back through a result is one number an element times a
derivative, and those take no tape: they walk forward with the values. (Griewank and Walther, Evaluating Derivatives,
2nd ed., ch. 3.)

    before:  w = np.log1p(x)           after:  w_by_x = 1 / (1 + x); w = np.log1p(x)
             while far(w):                     while far(w):
                 w = w - w * w * x                 w_by_x = w_by_x - (2 * w_by_x * w * x + w * w)
                                                   w = w - w * w * x

The derivatives are those of the rules of the table: of a number, the rule for what comes back is that for what goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ..transpile import construct
from ..transpile.clean import live_before
from ..transpile.construct import const
from ..transpile.operations import MISSING, ROWS
from ..transpile.program import (
    Assign,
    At,
    Call,
    Comment,
    Const,
    Expr,
    For,
    If,
    Index,
    Name,
    Slice,
    Stmt,
    Type,
    While,
    assigned,
    names,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_expr
from .activity import flows
from .point import singular
from .rules import count_dy, differentiable, mentions, pullback, shared
from .simplify import simplify
from .values import Values, hint

_PLAIN = ("cast", "copy", "with_derivative")  # of elements, too, though they are no functions of them
_KINDS = (Assign, If, For, While, Comment)


@dataclass(frozen=True)
class Piece:
    """Statements whose results hang on their inputs element by element."""

    body: tuple[Stmt, ...]
    inputs: tuple[Expr, ...]  # names and parts of arrays
    depends: Mapping[str, frozenset[Expr]]  # a name it gives a value -> the inputs this hangs on
    entering: frozenset[str]  # names that it gives other values, where those they have before are asked for, too
    unsure: frozenset[tuple[str, Expr]]  # where a tangent may be 0 because nothing has been made of the input yet

    @staticmethod
    def of(body: Sequence[Stmt], active: Set[str], live: Set[str]) -> Piece | None:
        """None where anything else is done. `live`: names that are read behind it."""
        body = tuple(body)
        assigns = [s for s in walk_stmts(body) if isinstance(s, Assign)]
        own = assigned(body)
        if not all(isinstance(s, _KINDS) for s in walk_stmts(body)):
            return None
        reached: Reached = []
        for stmt in assigns:
            if stmt.name in active:
                leaves = _leaves(stmt.value, active)
                if leaves is None or any(isinstance(leaf, Index) and _told_by(leaf) & own for leaf in leaves):
                    return None
                reached.append((stmt.name, leaves))
        entering = frozenset(live_before(body, live) & own & active)
        every = dict.fromkeys(leaf for _, leaves in reached for leaf in leaves)
        inputs = [leaf for leaf in every if not (isinstance(leaf, Name) and leaf.id in own - entering)]
        types = {s.name: s.value.type for s in assigns}
        kept = [Name(n, types[n]) for n in sorted(entering & live)]  # where it takes no turn
        inputs += [name for name in kept if name not in inputs]
        depends = _depends(reached, inputs, entering)
        return Piece(body, tuple(inputs), depends, entering, _unsure(reached, depends, entering))

    def of_name(self, name: str) -> list[Expr]:
        """The inputs that a name hangs on, in order."""
        return [i for i in self.inputs if i in self.depends.get(name, ())]

    def results(self, live: Set[str]) -> list[str]:
        """Names that hang on an input and are read behind it."""
        return sorted(n for n, of in self.depends.items() if of and n in live)


def _told_by(part: Index) -> set[str]:
    """The names that tell which part it is, those that counters in closed form are told by, too."""
    closed = (e.get("dim") for e in walk(part) if isinstance(e, Call) and e.op == "dim")
    return names(part).union(*(d.symbols() for d in closed))


Reached = list[tuple[str, list[Expr]]]


def _leaves(expr: Expr, active: Set[str]) -> list[Expr] | None:
    """The names and parts through which a derivative reaches an expression; None where one operation on the way is not
    of elements."""
    if not flows(expr) & active:
        return []
    match expr:
        case Name():
            return [expr]
        case Index(base=Name(), items=items) if all(isinstance(i, (At, Slice)) for i in items):
            return [expr]
        case Call(args=args) if _is_of_elements(expr):
            wanted = [_leaves(a, active) for a, w in zip(args, differentiable(expr), strict=True) if w]
            found = [leaf for part in wanted for leaf in part or ()]
            return None if None in wanted else list(dict.fromkeys(found))
    return None


def _is_of_elements(call: Call) -> bool:
    row = ROWS[call.op]
    return call.op in _PLAIN or (row.kind == "elementwise" and row.grad != MISSING)


def _depends(reached: Reached, inputs: Sequence[Expr], entering: Set[str]) -> dict[str, frozenset[Expr]]:
    found: dict[str, frozenset[Expr]] = {n: frozenset() for n, _ in reached}
    for leaf in inputs:
        if isinstance(leaf, Name) and leaf.id in entering:
            found[leaf.id] = frozenset({leaf})
    while True:
        before = dict(found)
        for name, leaves in reached:
            for leaf in leaves:
                found[name] |= _by(leaf, found)
        if found == before:
            return found


def _by(leaf: Expr, depends: Mapping[str, frozenset[Expr]]) -> frozenset[Expr]:
    """The inputs that a leaf hangs on."""
    if isinstance(leaf, Name) and leaf.id in depends:
        return depends[leaf.id]
    return frozenset({leaf})


def _unsure(
    reached: Reached, depends: Mapping[str, frozenset[Expr]], entering: Set[str]
) -> frozenset[tuple[str, Expr]]:
    """A tangent that may be 0 as no derivative has come to it: a singular one of what is made of it must leave it 0.
    (Backwards, nothing would ever have been multiplied by that.)"""
    found = {(n, i) for n in entering for i in depends.get(n, ()) if not (isinstance(i, Name) and i.id == n)}
    while True:
        size = len(found)
        for name, leaves in reached:
            for i in depends[name]:
                on = [leaf for leaf in leaves if i in _by(leaf, depends)]
                if all(isinstance(leaf, Name) and (leaf.id, i) in found for leaf in on):
                    found.add((name, i))
        if len(found) == size:
            return frozenset(found)


@dataclass
class Tangents:
    """Writes a piece with names of its own, and with the tangents of its values."""

    piece: Piece
    fresh: Callable[[str], str]
    renamed: dict[str, str] = field(default_factory=dict)
    tangent: dict[tuple[str, Expr], Name | Const] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)  # all names it takes

    def __post_init__(self) -> None:
        assigns = [s for s in walk_stmts(self.piece.body) if isinstance(s, Assign)]
        self.types = {s.name: s.value.type for s in assigns}
        self.types |= {i.id: i.type for i in self.piece.inputs if isinstance(i, Name)}
        times = Counter(s.name for s in assigns)
        self.once = {n for n in times if times[n] == 1} - self.piece.entering

    def written(self) -> list[Stmt]:
        for name in sorted(n for n, inputs in self.piece.depends.items() if inputs):
            self.renamed[name] = self.new(name, self.types[name]).id
            for i in self.piece.of_name(name):
                self.tangent[name, i] = self.new(f"{name}_by_{_hint(i)}", self.types[name])
        before: list[Stmt] = []
        for name in sorted(self.piece.entering & self.renamed.keys()):
            type = self.types[name]
            before.append(Assign(self.renamed[name], Name(name, type)))
            for i in self.piece.of_name(name):
                one = isinstance(i, Name) and i.id == name
                before += self.given(name, i, _filled(1.0 if one else 0.0, type))
        return [*before, *self.block(self.piece.body)]

    def given(self, name: str, i: Expr, value: Expr) -> list[Stmt]:
        """The statement that gives a tangent its value; none where it is always the same number."""
        if isinstance(value, Const) and name in self.once:
            self.tangent[name, i] = const(value.value)
            return []
        tangent = self.tangent[name, i]
        assert isinstance(tangent, Name)
        return [Assign(tangent.id, value)]

    def new(self, hint: str, type: Type) -> Name:
        name = Name(self.fresh(hint), type)
        self.made.add(name.id)
        return name

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Assign) and stmt.name in self.renamed:
                done += _Step(self, stmt).written()
            elif not isinstance(stmt, Comment):
                done.append(map_stmt(stmt, self.inside, self.block, lambda n: n))
        return tuple(done)

    def inside(self, expr: Expr) -> Expr:
        return rename_expr(expr, self.renamed)

    def by(self, leaf: Expr, i: Expr) -> Expr | None:
        """The tangent of a name or part by an input; None: it is 0."""
        if isinstance(leaf, Name) and leaf.id in self.piece.depends:
            return self.tangent.get((leaf.id, i))
        return const(1.0) if leaf == i else None

    def is_unsure(self, expr: Expr, i: Expr) -> bool:
        on = [e for e in walk(expr) if isinstance(e, (Name, Index)) and self.by(e, i) is not None]
        return bool(on) and all(isinstance(e, Name) and (e.id, i) in self.piece.unsure for e in on)


@dataclass
class _Step:
    """One statement: what rules read of it, the tangents, the value."""

    whole: Tangents
    stmt: Assign
    parts: list[Stmt] = field(default_factory=list)  # tangents within

    def __post_init__(self) -> None:
        self.values = Values(self.whole.new, self.stmt.span, self.whole.renamed)

    def written(self) -> list[Stmt]:
        value = self.stmt.value
        tangents: list[Stmt] = []
        for i in self.whole.piece.of_name(self.stmt.name):
            tangents += self.whole.given(self.stmt.name, i, _fitting(self.of(value, i), value.type))
        kept = self.values.kept()
        made = replace(self.stmt, name=self.whole.renamed[self.stmt.name], value=self.values.named(value))
        return [*kept, *self.parts, *tangents, made]

    def of(self, expr: Expr, i: Expr) -> Expr | None:
        """The tangent of an expression by an input; None: it is 0."""
        if not isinstance(expr, Call):
            return self.whole.by(expr, i)
        wanted = differentiable(expr)
        tangents = [self.of(a, i) if w else None for a, w in zip(expr.args, wanted, strict=True)]
        if all(t is None for t in tangents):
            return None
        reached = [t is not None for t in tangents]
        args = [self.values.argument(expr, k, reached) for k in range(len(expr.args))]
        if expr.op == "where":  # of the two, what is passed by may have no number
            then, orelse = (const(0.0) if t is None else t for t in tangents[1:])
            return simplify(construct.call("where", args[0], then, orelse))
        reads_y = any(r and mentions(expr, k, "y") for k, r in enumerate(reached))
        y = self.values.value(expr) if reads_y else expr
        given = {k: t for k, t in enumerate(tangents) if t is not None}
        unsure = {k for k in given if singular(expr) and self.whole.is_unsure(expr.args[k], i)}
        parts = []
        for k, tangent in given.items():
            tangent = self.once(tangent, expr, k, i, k in unsure)
            found = shared(expr, _only(k, args), args, y, tangent)
            part = pullback(expr, args, y, tangent, k, {found[0]: found[1]} if found else None)
            parts.append(_guarded(part, tangent, len(unsure) < len(given)) if k in unsure else part)
        return simplify(_sum(parts))

    def once(self, tangent: Expr, call: Call, k: int, i: Expr, asked: bool) -> Expr:
        """A tangent that is read more than once has a name. `asked`: whether it is 0."""
        if isinstance(tangent, (Name, Const)) or not (asked or count_dy(call, _only(k, call.args)) > 1):
            return tangent
        name = self.whole.new(f"{hint(call.args[k])}_by_{_hint(i)}", tangent.type)
        self.parts.append(Assign(name.id, tangent, self.stmt.span))
        return name


def _only(k: int, args: Sequence[Expr]) -> list[bool]:
    return [j == k for j in range(len(args))]


def _guarded(part: Expr, tangent: Expr, beside_others: bool) -> Expr:
    """0 for a tangent that is 0. Beside others, which a divisor of 0 spoils anyway, all is divided at once."""
    none = construct.call("equal", tangent, const(0))
    quotient = _quotient(part)
    if quotient and beside_others:
        return construct.call("divide", construct.call("where", none, const(0.0), quotient[0]), quotient[1])
    return construct.call("where", none, const(0.0), part)


def _sum(parts: Sequence[Expr]) -> Expr:
    """What has one divisor is divided once."""
    shares = [_quotient(p) for p in parts]
    divisors = {s[1] for s in shares if s}
    if len(parts) > 1 and None not in shares and len(divisors) == 1:
        return construct.call("divide", _sum([s[0] for s in shares if s]), divisors.pop())
    if len(parts) == 2 and parts[0] == parts[1]:
        return construct.call("multiply", const(2), parts[0])
    total = parts[0]
    for part in parts[1:]:
        total = construct.call("add", total, part)
    return total


def _quotient(expr: Expr) -> tuple[Expr, Expr] | None:
    match expr:
        case Call(op="divide", args=[above, below]):
            return above, below
        case Call(op="negative", args=[inner]) if found := _quotient(inner):
            return construct.call("negative", found[0]), found[1]
    return None


def _fitting(tangent: Expr | None, type: Type) -> Expr:
    if tangent is None or isinstance(tangent, Const):
        return _filled(float(tangent.value) if tangent else 0.0, type)
    return construct.convert(tangent, type)


def _filled(number: float, type: Type) -> Expr:
    if not type.rank:
        return Const(number, type)
    if not number:
        return construct.zeros(type)
    ones = construct.call("ones", shape=type.shape, dtype={"float": "real"}.get(type.dtype, type.dtype))
    return ones if number == 1 else construct.call("multiply", const(number), ones)


def _hint(leaf: Expr) -> str:
    """What an input is called in the names of tangents."""
    base = leaf.base if isinstance(leaf, Index) else leaf
    return base.id if isinstance(base, Name) else "input"


__all__ = ["Piece", "Tangents"]
