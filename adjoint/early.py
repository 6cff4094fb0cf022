"""What the reverse of a loop computes from its forward alone, the forward computes: then it need not be saved.

before:  for t in range(n):                          after:  for t in range(n):
             s_saved[t] = s                                      d_q[t] = dy[t] @ s.T
             s = s + np.outer(k[t], v[t])                        s = s + np.outer(k[t], v[t])
         for t in reversed(range(n)):                        for t in reversed(range(n)):
             s = s_saved[t]                                      d_k[t] = d_s @ v[t]; ...
             d_q[t] = dy[t] @ s.T
             d_k[t] = d_s @ v[t]; ...

Done for arrays that have more axes than any argument, a matrix for every step, where nothing else asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..transpile.clean import clean
from ..transpile.construct import value_of
from ..transpile.program import (
    Assign,
    At,
    Expr,
    For,
    Function,
    Index,
    Name,
    Pop,
    Return,
    Stmt,
    Store,
    assigned,
    item_exprs,
    names,
    read,
    walk_stmts,
)
from ..transpile.renaming import rename_block
from ..transpile.values import Fresh
from .blocks import taken
from .sizes import degree, most_axes


def without_saved(function: Function, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body of a gradient of the function, with fewer arrays that save what a loop has computed."""
    most = most_axes(function)
    done = tuple(body)
    fresh = Fresh(taken(function) | assigned(done) | read(done))
    for forward in [s for s in done if isinstance(s, For)]:
        for reverse in [s for s in done if isinstance(s, For)]:
            if forward in done and reverse in done and takes_back(forward, reverse):
                done = _Pair(done, forward, reverse, most).moved(fresh) or done
    return done


def takes_back(forward: For, reverse: For) -> bool:
    """Whether the second loop has the iterations of the first from the last one on."""
    ends = [value_of(e) for e in (forward.start, forward.stop, reverse.start, reverse.stop)]
    if any(e is None for e in ends) or (forward.var, forward.step, reverse.step) != (reverse.var, 1, -1):
        return False
    first, end, last, before = ends
    return last == end - 1 and before == first - 1  # type: ignore[operator]


@dataclass
class _Pair:
    """A loop of the forward sweep and the one that takes it back, both statements of `body`. `most`: axes of an
    argument."""

    body: tuple[Stmt, ...]
    forward: For
    reverse: For
    most: int

    def __post_init__(self) -> None:
        at = self.body.index(self.forward)
        self.fixed = read(self.body) - assigned(self.body[at:]) | {self.forward.var}
        self.writes = Counter(n for s in walk_stmts(self.body) for n in _own(s))
        self.saves: dict[str, int] = {}  # array -> where in the forward loop it saves what a name is
        for position, stmt in enumerate(self.forward.body):
            if isinstance(stmt, Store) and isinstance(stmt.value, Name) and self.is_once(stmt):
                self.saves[stmt.base.id] = position

    def moved(self, fresh: Fresh) -> tuple[Stmt, ...] | None:
        """The body without the large arrays; None where they are needed, or there are none."""
        known = self.of_forward()
        early = [s for s in self.reverse.body if isinstance(s, Store) and self.may_move(s, known)]
        large = {n for n in self.saves if degree(self.saved(n).base.type) > self.most}
        early = [s for s in early if large & self.arrays(s, known)]
        large &= set().union(*(self.arrays(s, known) for s in early))
        if not large or not self.holds(set().union(*(self.arrays(s, known) for s in early))):
            return None
        inside = self.with_early(early, known, fresh)
        arrays = {s.base.id for s in early}
        makers = [s for s in self.body if isinstance(s, Assign) and s.name in arrays]
        later = tuple(s for s in self.reverse.body if s not in early)
        done: list[Stmt] = []
        for stmt in self.body:
            if stmt is self.forward:
                done += [*makers, replace(stmt, body=inside)]
            elif stmt is self.reverse:
                done.append(replace(stmt, body=later))
            elif stmt not in makers:
                done.append(stmt)
        cleaned = clean(done)
        return None if large <= assigned(cleaned) else cleaned

    def saved(self, array: str) -> Store:
        stmt = self.forward.body[self.saves[array]]
        assert isinstance(stmt, Store)
        return stmt

    def is_once(self, stmt: Store) -> bool:
        """Whether it writes another place in every iteration, and nothing else writes to the array."""
        if stmt.op or stmt.scatter or self.writes[stmt.base.id] != 2:
            return False
        places = [value_of(i.index) for i in stmt.items if isinstance(i, At)]
        splits = [d.split(self.forward.var) for d in places if d is not None]
        moves = any(s is not None and s[0].value for s in splits)
        return moves and self.reads(*_indices(stmt)) <= self.fixed

    def reads(self, *exprs: Expr) -> set[str]:
        return set().union(*(names(e) for e in exprs)) if exprs else set()

    def of_forward(self) -> dict[str, Expr]:
        """Names of the reverse that stand for what the forward knows in the same iteration."""
        once = Counter(n for s in walk_stmts(self.reverse.body) for n in _own(s))
        known: dict[str, Expr] = {}
        before: set[str] = set()  # what is read before it is bound is what the iteration before has left
        for stmt in self.reverse.body:
            before |= read((stmt,))
            if isinstance(stmt, Assign) and once[stmt.name] == 1 and stmt.name not in before:
                array = _array(stmt.value)
                if array in self.saves:
                    ours = self.saved(array).items == stmt.value.items  # type: ignore[union-attr]
                else:
                    ours = names(stmt.value) <= self.fixed | known.keys()
                if ours:
                    known[stmt.name] = stmt.value
        return known

    def may_move(self, stmt: Store, known: dict[str, Expr]) -> bool:
        """Whether it fills its part of an array, that nothing else touches, from what the forward knows."""
        if not self.is_once(stmt):
            return False
        elsewhere = [s for s in walk_stmts(self.body) if stmt.base.id in read((s,)) and not isinstance(s, Return)]
        makers = [s for s in self.body if isinstance(s, Assign) and s.name == stmt.base.id]
        ready = len(makers) == 1 and names(makers[0].value) <= self.fixed
        return ready and not elsewhere and names(stmt.value) <= self.fixed | known.keys()

    def needed(self, stmt: Store, known: dict[str, Expr]) -> dict[str, Expr]:
        """Those of the names, in order, that it is made of."""
        wanted = names(stmt.value)
        for name, value in reversed(known.items()):
            if name in wanted and _array(value) not in self.saves:
                wanted |= names(value)
        return {n: v for n, v in known.items() if n in wanted}

    def arrays(self, stmt: Store, known: dict[str, Expr]) -> set[str]:
        """The arrays with saved values that it reads."""
        return {a for v in self.needed(stmt, known).values() if (a := _array(v)) in self.saves}

    def holds(self, arrays: set[str]) -> bool:
        """Whether, where the last of them has been stored to, the names still are what all of them saved."""
        places = [self.saves[a] for a in arrays]
        between = self.forward.body[min(places) : max(places)]
        return not assigned(between) & {self.saved(a).value.id for a in arrays}  # type: ignore[union-attr]

    def with_early(self, early: Sequence[Store], known: dict[str, Expr], fresh: Fresh) -> tuple[Stmt, ...]:
        """The body of the forward loop with these statements, where what they read has been saved."""
        needed: dict[str, Expr] = {}
        for stmt in early:
            needed |= self.needed(stmt, known)
        loads = {n: array for n, v in needed.items() if (array := _array(v)) in self.saves}
        new = {n: self.saved(array).value.id for n, array in loads.items()}  # type: ignore[union-attr]
        new |= {n: fresh(n) for n in needed if n not in loads}
        made: list[Stmt] = [Assign(n, needed[n]) for n in known if n in needed and n not in loads]
        at = max(self.saves[array] for array in loads.values()) + 1
        return self.placed(at, rename_block([*made, *early], new))

    def placed(self, at: int, early: list[Stmt]) -> tuple[Stmt, ...]:
        """The body of the forward loop with these statements: after one that gives a name to what one of them makes,
        with that name."""
        body = self.forward.body
        for position, stmt in enumerate(body[at:], at):
            same = [e for e in early if isinstance(e, Assign) and isinstance(stmt, Assign) and e.value == stmt.value]
            rest = [s for s in early if s not in same]
            if same and not read(tuple(rest)) & assigned(body[at : position + 1]):
                return self.placed(position + 1, rename_block(rest, {same[0].name: stmt.name}))  # type: ignore[union-attr]
        return (*body[:at], *early, *body[at:])


def _own(stmt: Stmt) -> set[str]:
    """The name that a statement itself binds, or writes into."""
    match stmt:
        case Assign(name=name) | Pop(name=name):
            return {name}
        case Store(base=base):
            return {base.id}
    return set()


def _array(value: Expr) -> str | None:
    return value.base.id if isinstance(value, Index) and isinstance(value.base, Name) else None


def _indices(stmt: Store) -> list[Expr]:
    return [e for item in stmt.items for e in item_exprs(item)]


__all__ = ["takes_back", "without_saved"]
