"""One variable for one running value: what only hands a number on to another name, and takes it back, is that name.

    total_2 = total                                       for b in range(3):
    for b in range(3):                              ->        total = total + x[a, b]
        total_2 = total_2 + x[a, b]
    total = total_2

Loops in loops have names of their own for what they carry, and the reverse of a branch hands cotangents through both
of its ways. Numbers, and arrays that are only bound anew: what is written into may have other names, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from . import construct
from .program import (
    Assign,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    If,
    Name,
    Pop,
    Pull,
    Push,
    Stmt,
    Store,
    Type,
    assigned,
    names,
    stmt_exprs,
    walk,
    walk_stmts,
)
from .renaming import map_stmt, rename_block


def merged(function: Function) -> Function:
    """The function with one variable for one running value."""
    return replace(function, body=merged_block(function.body))


def merged_block(body: Sequence[Stmt], in_gradient: bool = False) -> tuple[Stmt, ...]:
    """The body of a function. `in_gradient`: `v = 0; v += e` may be `v = e`, which differs where e is -0, and a branch
    or a loop that is left without statements is nothing."""
    if any(isinstance(s, Pull) for s in walk_stmts(tuple(body))):
        return tuple(body)
    block = list(body)
    while True:
        again = _Merge(mentions(block), _written_into(block), in_gradient).block(block)
        if again == block:
            return tuple(block)
        block = again


def mentions(body: Sequence[Stmt]) -> Counter[str]:
    """How often each name is read or written."""
    found: Counter[str] = Counter()
    for stmt in walk_stmts(tuple(body)):
        found.update(e.id for expr in stmt_exprs(stmt) for e in walk(expr) if isinstance(e, Name))
        match stmt:
            case Assign(name=name) | Pop(name=name):
                found[name] += 1
            case For(var=name):
                found[name] += 1
            case Store(base=base):
                found[base.id] += 1
        if isinstance(stmt, (Push, Pop)):
            found[stmt.list.id] += 1
        for expr in stmt_exprs(stmt):
            found.update(s for e in walk(expr) for d in e.type.shape for s in d.symbols())
    return found


def _written_into(body: Sequence[Stmt]) -> set[str]:
    return {s.base.id for s in walk_stmts(tuple(body)) if isinstance(s, Store)}


class _Merge:
    def __init__(self, everywhere: Counter[str], written: set[str], in_gradient: bool) -> None:
        self.everywhere, self.written, self.in_gradient = everywhere, written, in_gradient

    def block(self, body: Sequence[Stmt]) -> list[Stmt]:
        found = [map_stmt(s, lambda e: e, lambda b: tuple(self.block(b)), lambda n: n) for s in body]
        found = self.noted(found, [s for s in self.without_tails(found) if not self.is_idle(s)])
        position = 0
        while position < len(found):
            if (changed := self.at(found, position)) is not None:
                found, position = self.noted(found, changed), max(0, position - 1)
            else:
                position += 1
        return found

    def noted(self, old: list[Stmt], new: list[Stmt]) -> list[Stmt]:
        """The new statements, as they are counted from now on."""
        if new != old:
            self.everywhere.update(mentions(new))
            self.everywhere.subtract(mentions(old))
        return new

    def is_idle(self, stmt: Stmt) -> bool:
        return self.in_gradient and isinstance(stmt, For) and not _real(stmt.body)

    def at(self, body: list[Stmt], position: int) -> list[Stmt] | None:
        """The block with less, if the statement here is to be spared."""
        stmt, before, after = body[position], body[:position], body[position + 1 :]
        if isinstance(stmt, If):
            return self.joined(before, stmt, after)
        if not isinstance(stmt, Assign):
            return None
        if isinstance(stmt.value, Name) and _is_set_anew(stmt.name, after):
            return [*before, *after]
        if not isinstance(stmt.value, Name) and (made := self.handed_over(before, stmt, after)) is not None:
            return made
        if isinstance(stmt.value, Name) and stmt.value.type.rank:
            bound = not {stmt.name, stmt.value.id} & self.written
            return self.handed_back(before, stmt, stmt.value, after) if bound else None
        if stmt.value.type.rank:
            return None
        if stmt.value == Name(stmt.name, stmt.value.type):
            return [*before, *after]
        if isinstance(stmt.value, Name):
            return self.handed_back(before, stmt, stmt.value, after) or self.handed_on(before, stmt, stmt.value, after)
        if self.in_gradient and isinstance(stmt.value, Const) and stmt.value.value == 0:
            return self.begun(before, stmt, after)
        return None

    def joined(self, before: list[Stmt], stmt: If, after: list[Stmt]) -> list[Stmt] | None:
        """if c: own = e  else: own = value        value = own    ->    if c: value = e"""
        for k, other in enumerate(after):
            if isinstance(other, Assign) and not other.value.type.rank and isinstance(other.value, Name):
                own, of, type = other.value.id, other.name, other.value.type
                here = mentions([stmt])
                alone = here[own] + 1 == self.everywhere[own] and not mentions(after[:k])[of]
                if alone and _all_of(own, type, [stmt]) and _stays(stmt, own, of):
                    if all(_hands_over(branch, own, of) for branch in (stmt.then, stmt.orelse)):
                        (made,) = rename_block([stmt], {own: of})
                        return [*before, made, *after[:k], *after[k + 1 :]]
        return None

    def handed_over(self, before: list[Stmt], stmt: Assign, after: list[Stmt]) -> list[Stmt] | None:
        """own = e; ... own ...; of = own    ->    of = e; ... of ...

        And of = of + e; ...; of = of + d, where own is in place of the middle ones."""
        own, type = stmt.name, stmt.value.type
        for k, other in enumerate(after):
            using = after[:k]
            match other:
                case Assign(name=of, value=value) if of != own and _gains(stmt.value, of) and _gains(value, own):
                    alone = mentions([stmt, *using, other])[own] == self.everywhere[own] and not mentions(using)[of]
                    alike = value.type == type and _all_of(of, type, [stmt, other])
                    if not alone or type.rank or of in names(value) or not alike:
                        return None
                    if not _all_of(own, type, [stmt, *using, other]):
                        return None
                    return [*before, *rename_block([stmt, *using, other], {own: of}), *after[k + 1 :]]
                case Assign(name=of, value=Name(id=id)) if id == own:
                    here = mentions([stmt, *using])
                    alone = here[own] + 1 == self.everywhere[own] and not mentions(using)[of]
                    bound = not type.rank or not {own, of} & self.written
                    if not alone or not bound or not _all_of(own, type, [stmt, *using, other]):
                        return None
                    return [*before, *rename_block([stmt, *using], {own: of}), *after[k + 1 :]]
        return None

    def handed_back(self, before: list[Stmt], stmt: Assign, value: Name, after: list[Stmt]) -> list[Stmt] | None:
        """own = value; ...; value = own"""
        own, of = stmt.name, value.id
        for k, other in enumerate(after):
            here = mentions(after[:k])
            if isinstance(other, Assign) and other.name == of and other.value == Name(own, other.value.type):
                if here[of] or here[own] + 2 != self.everywhere[own] or not _all_of(own, value.type, after[: k + 1]):
                    return None
                return [*before, *rename_block(after[:k], {own: of}), *after[k + 1 :]]
            if of in assigned((other,)):
                return None
        return None

    def handed_on(self, before: list[Stmt], stmt: Assign, value: Name, after: list[Stmt]) -> list[Stmt] | None:
        """own = value; ... own ..., and neither changes"""
        own, of = stmt.name, value.id
        last = max((k for k, s in enumerate(after) if mentions([s])[own]), default=-1)
        using = after[: last + 1]
        if mentions(using)[own] + 1 != self.everywhere[own] or {own, of} & assigned(tuple(using)):
            return None
        if not _all_of(own, value.type, using):
            return None
        return [*before, *rename_block(using, {own: of}), *after[last + 1 :]]

    def begun(self, before: list[Stmt], stmt: Assign, after: list[Stmt]) -> list[Stmt] | None:
        """v = 0; ...; v = v + e    ->    ...; v = e"""
        for k, other in enumerate(after):
            if not mentions([other])[stmt.name]:
                continue
            if isinstance(other, If):
                return self.passed_by(before, stmt.name, after, k)
            match other:
                case Assign(name=name, value=Call(op="add", args=(Name(id=old), rest)) as value) if (
                    name == old == stmt.name and stmt.name not in names(rest) and rest.type == value.type
                ):
                    return [*before, *after[:k], replace(other, value=rest), *after[k + 1 :]]
            return None
        return None

    def passed_by(self, before: list[Stmt], own: str, after: list[Stmt], k: int) -> list[Stmt] | None:
        """v = 0; if c: ...; v = v + w  else: v = v + w;  w = v    ->    if c: ...  else: ..."""
        for m in range(k + 1, len(after)):
            match after[m]:
                case Assign(name=of, value=Name(id=id, type=type)) if id == own:
                    between = [*after[:k], *after[k + 1 : m]]
                    alone = mentions(after[: m + 1])[own] + 1 == self.everywhere[own]
                    if not alone or of in assigned(tuple(between)) or mentions(between)[own]:
                        return None
                    if type.rank or not _adds_once([after[k]], own, of) or not _all_of(own, type, [after[k]]):
                        return None
                    return [*before, *after[:k], *_without([after[k]], own), *after[k + 1 : m], *after[m + 1 :]]
        return None

    def without_tails(self, body: Sequence[Stmt]) -> list[Stmt]:
        """What both ways of a branch end with comes after it."""
        found: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, If):
                found.append(stmt)
                continue
            tail: list[Stmt] = []
            while (last := _last(stmt.then)) is not None and last == _last(stmt.orelse):
                tail.insert(0, last)
                stmt = replace(stmt, then=_without_last(stmt.then), orelse=_without_last(stmt.orelse))
            if not tail or _real((*stmt.then, *stmt.orelse)) or not self.in_gradient:
                found.append(stmt)
            found += tail
        return found


def _is_set_anew(name: str, after: Sequence[Stmt]) -> bool:
    """Whether nobody asks what it was before it is set again."""
    using = next((s for s in after if mentions([s])[name]), None)
    return isinstance(using, Assign) and using.name == name and name not in names(using.value)


def _hands_over(branch: Sequence[Stmt], own: str, of: str) -> bool:
    """Whether it sets the one, once on each of its ways, and does not go on to speak of the other, nor changes that."""
    at = [k for k, s in enumerate(branch) if own in assigned((s,))]
    if len(at) != 1 or of in assigned(tuple(branch)):
        return False
    maker = branch[at[0]]
    if isinstance(maker, If):
        once = _hands_over(maker.then, own, of) and _hands_over(maker.orelse, own, of)
    else:
        once = isinstance(maker, Assign)
    return once and not mentions(branch[at[0] + 1 :])[of] and not mentions(branch[: at[0]])[own]


def _stays(stmt: If, own: str, of: str) -> bool:
    """Whether it is still the running value: as it was on one way, or with something added on any."""
    made = [s.value for s in walk_stmts((stmt,)) if isinstance(s, Assign) and s.name == own]
    kept = [s for s in (*stmt.then, *stmt.orelse) if isinstance(s, Assign) and s.name == own]
    return any(_is(s.value, of) for s in kept) or all(_is(value, of) or _gains(value, of) for value in made)


def _is(value: Expr, name: str) -> bool:
    return isinstance(value, Name) and value.id == name


def _gains(value: Expr, name: str) -> bool:
    match value:
        case Call(op="add", args=(a, b)):
            return _is(a, name) or _is(b, name)
        case Call(op="subtract", args=(a, _)):
            return _is(a, name)
    return False


def _adds_once(branch: Sequence[Stmt], own: str, of: str) -> bool:
    """Whether all it has to do with the one is to add the other to it, once on each of its ways."""
    at = [k for k, s in enumerate(branch) if mentions([s])[own]]
    if len(at) != 1 or of in assigned(tuple(branch)):
        return False
    maker = branch[at[0]]
    if isinstance(maker, If):
        ways = all(_adds_once(way, own, of) for way in (maker.then, maker.orelse))
        return ways and not any(own in names(e) for e in stmt_exprs(maker))
    return _is_sum(maker, own, of)


def _is_sum(stmt: Stmt, own: str, of: str) -> bool:
    match stmt:
        case Assign(name=name, value=Call(op="add", args=(Name(id=old), Name(id=added)))):
            return (name, old, added) == (own, own, of)
    return False


def _without(body: Sequence[Stmt], own: str) -> tuple[Stmt, ...]:
    """Without the statements that set a name, and branches that are then left without any."""
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, If):
            then, orelse = (_without(way, own) for way in (stmt.then, stmt.orelse))
            if _real(then):
                found.append(replace(stmt, then=then, orelse=orelse if _real(orelse) else ()))
            elif _real(orelse):
                found.append(replace(stmt, cond=construct.call("logical_not", stmt.cond), then=orelse, orelse=()))
        elif not (isinstance(stmt, Assign) and stmt.name == own):
            found.append(stmt)
    return tuple(found)


def _all_of(name: str, type: Type, body: Sequence[Stmt]) -> bool:
    """Whether it is read, and given values, of one type only."""
    for stmt in walk_stmts(tuple(body)):
        if isinstance(stmt, (Assign, Pop)) and stmt.name == name:
            if not isinstance(stmt, Assign) or stmt.value.type != type:
                return False
        for expr in stmt_exprs(stmt):
            if any(isinstance(e, Name) and e.id == name and e.type != type for e in walk(expr)):
                return False
    return True


def _real(body: Sequence[Stmt]) -> list[Stmt]:
    return [s for s in body if not isinstance(s, Comment)]


def _last(body: Sequence[Stmt]) -> Stmt | None:
    real = _real(body)
    return real[-1] if real and isinstance(real[-1], (Assign, Store)) else None


def _without_last(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    last = _last(body)
    kept = list(body)
    while kept and (kept[-1] is last or isinstance(kept[-1], Comment)):
        kept.pop()
    return tuple(kept)


__all__ = ["merged", "merged_block"]
