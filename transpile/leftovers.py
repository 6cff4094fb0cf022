"""What a loop leaves: names that get a value in it only, and are read after it.

    for i in range(n):              some, last = 0 < n, <later>
        v = f(x[i])                 for i in range(n):
        if v < 1:          ->           last = i
            break                       v = f(x[i])
    return v * i                        ...
                                    i = last
                                    assert some, "v and i have no value: the loop did not run"
                                    return v * i

Python raises UnboundLocalError where the loop did not run; here it is asked before the first statement that reads one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gast

from .exits import LATER, LATER_IF_NEW, assigned_always, assignment, constant, loaded, placed, ways_out
from .mutation import target_names

_LOOPS = (gast.For, gast.While)
_ENDS = (gast.Break, gast.Continue)
RAN = "<ran"  # so begin the names of what an assertion here asks


def rewrite(tree: Any) -> None:
    """Rewrites all functions of a file, nested ones too, in place. Before `exits`: a loop may still break."""
    count = 0
    for function in gast.walk(tree):
        if isinstance(function, gast.FunctionDef):
            given = {n.id for n in gast.walk(function.args) if isinstance(n, gast.Name)}
            for block in _blocks(function):
                for loop in [n for n in block if isinstance(n, _LOOPS)]:
                    count += 1
                    _Loop(loop, block, given, function, count).rewrite()


def _blocks(node: Any) -> Iterator[list[Any]]:
    """The lists of statements of a function, outermost first; not those of functions in it."""
    for block in (node.body, getattr(node, "orelse", [])):
        if isinstance(block, list):
            yield block
            for child in list(block):
                if isinstance(child, (gast.If, *_LOOPS)):
                    yield from _blocks(child)


class _Loop:
    def __init__(self, node: Any, block: list[Any], given: set[str], function: Any, number: int) -> None:
        self.node, self.block, self.number = node, block, number
        self.position = block.index(node)
        before = [n for n in gast.walk(function) if _stores(n) and (n.lineno, n.col_offset) < _start(node)]
        self.known = given | {n.id for n in before}
        self.after = block[self.position + 1 :]

    def rewrite(self) -> None:
        bound = set(target_names(self.node.body))
        targets = [n.id for n in gast.walk(self.node.target) if _stores(n)] if isinstance(self.node, gast.For) else []
        counters = [t for t in targets if t not in bound and _read(self.after, t)]
        given = _in_every_round(self.node.body) - self.known - set(targets)
        own = {name for name in given if _read(self.after, name)}
        new = sorted(own | (set(counters) - self.known))
        before = [assignment(v, loaded(LATER_IF_NEW, self.node), self.node) for v in sorted(own)]
        inside, behind = [], []
        for name in counters:
            kept = f"<last {self.number} {name}>"
            first = loaded(name if name in self.known else LATER, self.node)
            before.append(assignment(kept, first, self.node))
            inside.append(assignment(kept, loaded(name, self.node), self.node))
            behind.append(assignment(name, loaded(kept, self.node), self.node))
        if new:
            self.ask(new, before, inside)
        self.node.body[:0] = inside
        self.block[self.position : self.position + 1] = [*before, self.node, *behind]

    def ask(self, names: list[str], before: list[Any], inside: list[Any]) -> None:
        """Puts the question whether the loop ran before what reads a name that it alone gives a value."""
        ran, node = f"{RAN} {self.number}>", self.node
        some = _runs(node)
        if isinstance(some, gast.Constant):
            return
        before.append(assignment(ran, some or constant(False, node), node))
        if some is None:
            inside.append(assignment(ran, constant(True, node), node))
        for name in names:
            text = constant(f"{name} has no value: the loop did not run", node)

            def asked(at: Any, text: Any = text) -> Any:
                return placed(gast.Assert(test=loaded(ran, at), msg=text), at)

            at = self.block.index(node) + 1
            self.block[at:] = _guarded(self.block[at:], name, asked)


def _guarded(nodes: list[Any], name: str, ask: Callable[[Any], Any]) -> list[Any]:
    """The statements, asked before those that read the name."""
    found: list[Any] = []
    for position, node in enumerate(nodes):
        loads, stores, blocks = _parts(node, name)
        if loads:
            return [*found, ask(node), *nodes[position:]]
        for block in blocks:
            block[:] = _guarded(block, name, ask)
        found.append(node)
        if stores:
            return [*found, *nodes[position + 1 :]]
    return found


def _read(nodes: list[Any], name: str) -> bool:
    """Whether the statements may read a name before they give it another value."""
    for node in nodes:
        loads, stores, blocks = _parts(node, name)
        if loads or any(_read(block, name) for block in blocks):
            return True
        if stores:
            return False
    return False


def _parts(node: Any, name: str) -> tuple[bool, bool, list[list[Any]]]:
    """Whether a statement reads a name, or always gives it another value, and its blocks where it is still the same."""
    if not isinstance(node, (gast.If, *_LOOPS)):
        own = [n for n in gast.walk(node) if isinstance(n, gast.Name) and n.id == name]
        assigns = isinstance(node, (gast.Assign, gast.AnnAssign)) and any(map(_stores, own))
        return any(map(_loads, own)) or (isinstance(node, gast.AugAssign) and bool(own)), assigns, []
    header = [node.iter] if isinstance(node, gast.For) else [node.test]
    loads = any(_loads(n) and n.id == name for part in header for n in gast.walk(part))
    counted = isinstance(node, gast.For) and any(_stores(n) and n.id == name for n in gast.walk(node.target))
    return loads, False, [node.orelse] if counted else [node.body, node.orelse]


def _in_every_round(body: list[Any]) -> set[str]:
    """The names that each iteration assigns, also one that ends early."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, _ENDS) or (isinstance(node, gast.If) and ways_out(node) & set(_ENDS)):
            break
        found |= assigned_always([node]) or set()
    return found


def _runs(loop: Any) -> Any:
    """Whether a loop runs at all, asked before it; None if that is for the loop to tell."""
    match loop:
        case gast.For(iter=gast.Call(func=gast.Name(id="range"), args=[gast.Constant(value=int(n))], keywords=[])):
            return constant(n > 0, loop) if n > 0 else None
        case gast.For(iter=gast.Call(func=gast.Name(id="range"), args=[*first, stop], keywords=[])) if len(first) < 2:
            start = first[0] if first else constant(0, loop)
            return placed(gast.Compare(left=start, ops=[gast.Lt()], comparators=[stop]), loop)
    return None


def _loads(node: Any) -> bool:
    return isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load)


def _stores(node: Any) -> bool:
    return isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store)


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset
