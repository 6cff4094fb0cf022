"""Removes what no result needs: liveness backward over structured statements.

before: t = np.exp(x); h_saved[i] = h; d_x = dy * y; return d_x      after: d_x = dy * y; return d_x
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from .program import (
    Assert,
    Assign,
    Comment,
    Expr,
    For,
    If,
    Pop,
    Push,
    Return,
    Stmt,
    Store,
    While,
    item_exprs,
    names,
)

_CHECKS = "assert"  # is live where checks stay; no variable is called so


def clean(body: Sequence[Stmt], checks: bool = False, live: Set[str] = frozenset()) -> tuple[Stmt, ...]:
    """The statements that the returned values depend on, and what is `live` behind them. `checks`: asserts stay; in a
    gradient they are the forward's business."""
    kept, _ = _block(body, {*live, _CHECKS} if checks else live)
    return tuple(_comments(kept))


def live_before(body: Sequence[Stmt], live: Set[str] = frozenset()) -> set[str]:
    """Names whose value, before this block, what it returns depends on, or what is `live` behind it."""
    return _block(body, live)[1]


def _block(body: Sequence[Stmt], live: Set[str]) -> tuple[list[Stmt], set[str]]:
    """The statements needed for `live` after the block, and what is live before it."""
    live = set(live)
    kept: list[Stmt] = []
    for stmt in reversed(body):
        done, live = _stmt(stmt, live)
        if done is not None:
            kept.append(done)
    kept.reverse()
    return kept, live


def _stmt(stmt: Stmt, live: set[str]) -> tuple[Stmt | None, set[str]]:
    match stmt:
        case Comment():
            return stmt, live
        case Assert(cond=cond):
            return (stmt, live | names(cond)) if _CHECKS in live or stmt.lasting else (None, live)
        case Assign(name=name, value=value):
            if name not in live:
                return None, live
            return stmt, (live - {name}) | names(value)
        case Store(base=base, items=items, value=value):
            if base.id not in live:
                return None, live
            return stmt, live | _reads(value, *(e for i in items for e in item_exprs(i)))
        case Push(list=list_, value=value):
            return (stmt, live | names(value)) if list_.id in live else (None, live)
        case Pop(name=name, list=list_):
            if name not in live and list_.id not in live:
                return None, live
            return stmt, (live - {name}) | {list_.id}
        case Return(values=values):
            return stmt, live | _reads(*values)
        case For() | While():
            return _loop(stmt, live)
        case If(cond=cond, then=then, orelse=orelse):
            then_kept, then_live = _block(then, live)
            else_kept, else_live = _block(orelse, live)
            if not _effects(then_kept) and not _effects(else_kept):
                return None, live
            return replace(stmt, then=tuple(then_kept), orelse=tuple(else_kept)), then_live | else_live | names(cond)
    raise AssertionError(stmt)


def _loop(stmt: For | While, live: set[str]) -> tuple[Stmt | None, set[str]]:
    """To the fixpoint: what the body reads is live at its end too, by the next iteration."""
    around = set(live)
    if isinstance(stmt, While) and not _writes_live(stmt.body, live):
        return None, live
    if isinstance(stmt, While):
        around |= names(stmt.cond)
    while True:
        kept, before = _block(stmt.body, around)
        if before <= around:
            break
        around |= before
    if not _effects(kept):
        return None, live
    if isinstance(stmt, While):
        return replace(stmt, body=tuple(kept)), live | before | names(stmt.cond)
    return replace(stmt, body=tuple(kept)), live | (before - {stmt.var}) | _reads(stmt.start, stmt.stop)


def _writes_live(body: Sequence[Stmt], live: set[str]) -> bool:
    kept, _ = _block(body, live)
    return _effects(kept)


def _effects(body: Sequence[Stmt]) -> bool:
    return any(not isinstance(s, Comment) for s in body)


def _reads(*exprs: Expr) -> set[str]:
    return set().union(*(names(e) for e in exprs)) if exprs else set()


def _comments(body: Sequence[Stmt]) -> list[Stmt]:
    """Without the comments that nothing follows."""
    done: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While():
                stmt = replace(stmt, body=tuple(_comments(stmt.body)))
            case If():
                stmt = replace(stmt, then=tuple(_comments(stmt.then)), orelse=tuple(_comments(stmt.orelse)))
            case Comment() | Return() if done and isinstance(done[-1], Comment):
                done.pop()
        done.append(stmt)
    if done and isinstance(done[-1], Comment):
        done.pop()
    return done
