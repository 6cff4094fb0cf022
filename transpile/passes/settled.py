"""What every example asks alike, and looks up alike, is asked before the loop over the examples, if there are any.

    for b in 0..batch:                                check batch <= 0 or win != 0
        check win != 0                                for i: for j: rel[i,j] = i // win - j // win
        for i: for j: rel[i,j] = i // win - j // win  if batch > 0:
        for i: for j:                           ->        for i: for j: check rel[i,j] < K; at[i,j] = rel[i,j]
            check rel[i,j] < K; at[i,j] = rel[i,j]    for b in 0..batch:
        for i: for j: y[b,i,j] = table[at[i,j]]           for i: for j: y[b,i,j] = table[at[i,j]]

Up to the first statement that may fail for one example and not for another: which fault is the first stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim
from ..ir import Check, Grow, If, Kernel, Stmt, While
from .ends import compared, unless
from .once import Examples, asks_nothing_of, is_harmless
from .tree import Body, has, over_examples, written


def settled(kernel: Kernel) -> Kernel:
    if kernel.batch is None or not has(kernel.body, Check):
        return kernel
    found: list[Stmt] = []
    for stmt in kernel.body:
        if over_examples(stmt, kernel) and has(stmt.body, Check):
            found += _Asked(kernel, stmt).parted()
        else:
            found.append(stmt)
    return replace(kernel, body=tuple(found))


class _Asked(Examples):
    def parted(self) -> Body:
        chosen = self.chosen(self.steady())
        before: list[Stmt] = []
        for k in sorted(chosen):
            stmt, last = self.if_any(self.loop.body[k]), before[-1] if before else None
            if isinstance(last, If) and not isinstance(stmt, Check):
                before[-1] = replace(last, then=(*last.then, *(stmt.then if isinstance(stmt, If) else (stmt,))))
            else:
                before.append(stmt)
        rest = tuple(s for k, s in enumerate(self.loop.body) if k not in chosen)
        return (*before, replace(self.loop, body=rest)) if before else (self.loop,)

    def may_move(self, stmt: Stmt) -> bool:
        """Whether it is the same of every example. All that is asked before it is asked before it there, too."""
        alike = asks_nothing_of(self.loop.var, stmt) and not has((stmt,), Grow, While)
        return alike and written((stmt,)) <= self.own

    def chosen(self, steady: set[int]) -> set[int]:
        """Those that may fail, and what they need."""
        body, todo = self.loop.body, set[int]()
        for k, stmt in enumerate(body):
            if has((stmt,), Check, Grow, While) and k not in steady:
                break
            if has((stmt,), Check):
                todo.add(k)
        found = set[int]()
        while todo:
            found |= todo
            made = written(body[k] for k in found)
            needed = (made | {n for k in found for n in self.read(body[k])}) & self.changed
            between = {k for n in made for k in self.readers(n, found) if k < max(self.writers(n))}
            todo = ({k for n in needed for k in self.writers(n)} | between) - found
        end = max(found, default=0)
        return set() if any(has((body[k],), Check) for k in range(end) if k not in found) else found

    def if_any(self, stmt: Stmt) -> Stmt:
        idle = compared("less_equal", self.loop.hi - self.loop.lo, Dim.of(0))
        if isinstance(stmt, Check):
            return unless(idle, stmt, self.loop, self.loop.lo)
        some = compared("greater", self.loop.hi - self.loop.lo, Dim.of(0))
        return stmt if is_harmless(stmt, self.memory) else If(some, (stmt,))


__all__ = ["settled"]
