"""A forward sweep with what its copy in the reverse saves: where that runs the forward again, one run is enough.

forward:  while far(w):          copy:  while far(w_2):            merged:  while far(w_2):
              w = step(w)                   saved.append(w_2)                   saved.append(w_2)
              n += 1                        w_2 = step(w_2)                     w_2 = step(w_2)
                                                                                n += 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..transpile.clean import live_before
from ..transpile.program import (
    Assign,
    Comment,
    Expr,
    Name,
    Push,
    Stmt,
    Store,
    assigned,
    blocks,
    map_children,
)
from ..transpile.renaming import map_stmt, rename_block


@dataclass
class Merged:
    """Of two that differ in names: the copy has others for later values of a variable."""

    versions: dict[str, str] = field(default_factory=dict)  # name in the forward -> in the copy, for its value now
    named: dict[str, Expr] = field(default_factory=dict)  # parts of statements that have names in the reverse
    body: list[Stmt] = field(default_factory=list)
    alone: list[Stmt] = field(default_factory=list)  # those that the reverse does without

    def merge(self, forward: Sequence[Stmt], again: Sequence[Stmt]) -> bool:
        """Whether the one is a copy of the other."""
        own, left = assigned(tuple(forward)), list(forward)
        for stmt in again:
            if isinstance(stmt, Comment):
                continue
            before = dict(self.versions)
            found = ((k, twin) for k, s in enumerate(left) if (twin := self.twin(s, stmt)) is not None)
            match next(found, None), stmt:
                case (k, twin), _:
                    self.without(left[:k], before)
                    self.body.append(twin)
                    left = left[k + 1 :]
                case None, Push():
                    self.body.append(stmt)
                case None, Store(base=base) if base.id not in own:
                    self.body.append(stmt)
                case None, Assign(name=name, value=value) if name not in own:
                    if isinstance(value, Name):
                        self.versions |= {n: name for n, new in self.versions.items() if new == value.id}
                    else:
                        self.named[name] = _written_out(value, self.named)
                    self.body.append(stmt)
                case _:
                    return False
        self.without(left, self.versions)
        return True

    def without(self, stmts: Sequence[Stmt], versions: Mapping[str, str]) -> None:
        stmts = rename_block(stmts, versions)
        self.alone += stmts
        self.body += stmts

    def twin(self, stmt: Stmt, copy: Stmt) -> Stmt | None:
        """A statement with what its copy saves, and the names that this has for values; None where it is no copy."""
        if type(stmt) is not type(copy):
            return None
        plain = map_stmt(copy, lambda e: _written_out(e, self.named), lambda b: b, lambda n: n)
        if not blocks(stmt):
            (known,) = rename_block([replace(stmt, name="")] if isinstance(stmt, Assign) else [stmt], self.versions)
            if isinstance(stmt, Assign) and isinstance(plain, Assign) and isinstance(copy, Assign):
                if replace(plain, name="") != known or not f"{copy.name}_".startswith(f"{stmt.name}_"):
                    return None
                self.versions[stmt.name] = copy.name
                self.named.pop(copy.name, None)
                return copy
            return copy if plain == known else None
        if stmt.span != copy.span:
            return None
        parts = [Merged(dict(self.versions), dict(self.named)) for _ in blocks(stmt)]
        if not all(part.merge(s, c) for part, s, c in zip(parts, blocks(stmt), blocks(copy), strict=True)):
            return None
        (bare,) = rename_block([with_blocks(stmt, [() for _ in parts])], self.versions)
        ends = [{n: part.versions.get(n, n) for n in assigned((stmt,))} for part in parts]
        carried = live_before((stmt,), assigned((stmt,))) & assigned((stmt,))
        kept = all(end[n] == self.versions.get(n, n) for end in ends for n in carried)
        if with_blocks(plain, [() for _ in parts]) != bare or any(end != ends[0] for end in ends) or not kept:
            return None
        self.versions |= ends[0]
        self.alone += [s for part in parts for s in part.alone]
        return with_blocks(copy, [part.body for part in parts])


def with_blocks(stmt: Stmt, bodies: Sequence[Sequence[Stmt]]) -> Stmt:
    """A statement with others in the place of those inside."""
    left = iter(bodies)
    return map_stmt(stmt, lambda e: e, lambda _: tuple(next(left)), lambda n: n)


def _written_out(expr: Expr, named: Mapping[str, Expr]) -> Expr:
    if isinstance(expr, Name) and expr.id in named:
        return named[expr.id]
    return map_children(expr, lambda e: _written_out(e, named))
