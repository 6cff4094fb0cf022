"""`break`, `continue` and `return` anywhere, as flags and branches: afterwards a function returns at the end of
its branches only.

    for i in range(n):                    going, looping, result = True, True, <later>
        if x[i] < 0:                      for i in range(n):
            break                             if going and looping:
        if x[i] > 9:              ->              if x[i] < 0:
            return s                                  looping = False
        s += x[i]                                 elif x[i] > 9:
    return -s                                         result, going = s, False
                                                  else:
                                                      s += x[i]
                                          if going:
                                              return -s
                                          else:
                                              return result

What follows an `if` that always leaves moves into its other branch. Flags are needed only where the place to go
on is further out. A `for` that only counts its turns until it is left is a `while`: it ends there.

    for _ in range(20):                   going, turn = True, 0
        w = step(w)                       while going and turn < 20:
        if near(w):               ->          w = step(w)
            break                             if near(w):
                                                  going = False
                                              turn += 1

So is one that asks for its counter as a number only, 1 / k or (k - a) * k, and not where something is.

The names made here, <going 1>, cannot be a user's; the checker gives each a readable one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import gast

from .mutation import target_names

_LEAVING = (gast.Return, gast.Break, gast.Continue)
# What a variable is before it is assigned, where nothing reads it; the checker knows these names. The second leaves one
# that has a value as it is.
LATER, LATER_IF_NEW = "<later>", "<later if new>"


def rewrite(tree: Any) -> None:
    """Rewrites all functions of a file, nested ones too, in place."""
    constants = _constants(tree)
    for node in gast.walk(tree):
        if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef)):
            node.bound = set(target_names(node.body))  # its own also where it is behind a return
            node.body = _Function(node, constants).body()


@dataclass(frozen=True)
class Place:
    """Where a block stands. `tail`: its end is the function's end. `ready`: the flag of return is set."""

    tail: bool = True
    ready: bool = False
    looping: str | None = None  # the flag of the loop around, if something in it breaks
    next: str | None = None  # the flag of the iteration, for continue
    looped: bool = False


class _Function:
    def __init__(self, node: Any, constants: set[str]) -> None:
        self.node = node
        self.integers = constants - {a.id for a in (*node.args.args, *node.args.kwonlyargs)}
        if node.decorator_list:  # a layer, whose configuration is what it is declared to be
            declared = [a for a in node.args.kwonlyargs if isinstance(a.annotation, gast.Name)]
            self.integers |= {a.id for a in declared if a.annotation.id == "int"}
        self.count = 0
        returns = [n for n in _own(node.body) if isinstance(n, gast.Return)]
        self.has_value = any(r.value is not None and not _is_none(r.value) for r in returns)
        self.where = returns[0] if returns else node
        self.going = ""
        self.result = ""

    def body(self) -> list[Any]:
        if not any(_leaving(n) for n in self.node.body):
            return self.node.body
        return self.block(self.node.body, Place()) or [placed(gast.Pass(), self.node)]

    # -- blocks ------------------------------------------------------------------------------------------------
    def block(self, nodes: list[Any], place: Place) -> list[Any]:
        out: list[Any] = []
        for position, node in enumerate(nodes):
            rest = nodes[position + 1 :]
            if isinstance(node, _LEAVING):
                return [*out, *self.leave(node, place)]
            if isinstance(node, gast.If) and ways_out(node):
                return [*out, *self.branch(node, rest, place)]
            if isinstance(node, gast.If) and _leaving(node):
                inner = replace(place, tail=False)
                node = self.make_if(node.test, self.block(node.body, inner), self.block(node.orelse, inner), node)
            if isinstance(node, (gast.For, gast.While)) and _leaving(node):
                made, returns = self.loop(node, place)
                out += made
                if returns:
                    return [*out, *self.after(node, ["<going>"], rest, replace(place, ready=True), _endless(node))]
                continue
            out.append(node)
        return out

    def leave(self, node: Any, place: Place) -> list[Any]:
        match node:
            case gast.Return() if place.tail:
                return [node] if self.has_value else []
            case gast.Return(value=value):
                kept = [assignment(self.result, value or constant(None, node), node)] if self.has_value else []
                return [*kept, assignment(self.going, constant(False, node), node)]
            case gast.Break() if place.looping:
                return [assignment(place.looping, constant(False, node), node)]
            case gast.Continue() if place.looped:
                go_on = [assignment(place.next, constant(False, node), node)] if place.next else []
                return go_on or [placed(gast.Pass(), node)]
        return [node]  # outside a loop: the checker says so

    def branch(self, node: Any, rest: list[Any], place: Place) -> list[Any]:
        then_leaves, else_leaves = _always(node.body), _always(node.orelse)
        if then_leaves or else_leaves or not rest:
            then = node.body if then_leaves else node.body + rest
            orelse = node.orelse if else_leaves else node.orelse + rest
            return [self.make_if(node.test, self.block(then, place), self.block(orelse, place), node)]
        # Both branches may go on, or leave from further inside: what follows waits for a flag.
        kinds = ways_out(node)
        out: list[Any] = []
        flags = []
        if gast.Return in kinds:
            out += self.prepare(place, node)
            flags.append("<going>")
            place = replace(place, ready=True)
        inner = replace(place, tail=False)
        if gast.Break in kinds and place.looping:
            flags.append(place.looping)
        if gast.Continue in kinds and place.looped:
            name = place.next or self.name("going")
            if not place.next:
                out.append(assignment(name, constant(True, node), node))
            inner = replace(inner, next=name)
            flags.append(name)
        if not flags:
            return [node, *self.block(rest, place)]
        # What follows may read what every branch assigns that goes on.
        out += [assignment(name, loaded(LATER_IF_NEW, node), node) for name in sorted(assigned_always([node]) or ())]
        out.append(self.make_if(node.test, self.block(node.body, inner), self.block(node.orelse, inner), node))
        return [*out, *self.after(node, flags, rest, place, False)]

    def after(self, node: Any, flags: list[str], rest: list[Any], place: Place, never: bool) -> list[Any]:
        """What follows a statement that may have left. `never`: it is not reached, but for a return."""
        returned = (
            [placed(gast.Return(value=loaded(self.result, self.where)), self.where)]
            if place.tail and self.has_value
            else []
        )
        if never:
            return returned
        test = _all([loaded(self.going if f == "<going>" else f, node) for f in flags], node)
        then = self.block(rest, place)
        if not then and not returned:
            return []
        only_going = flags == ["<going>"]
        return [self.make_if(test, then, returned if only_going else [], rest[0] if rest else self.where)]

    def make_if(self, test: Any, then: list[Any], orelse: list[Any], node: Any) -> Any:
        return placed(gast.If(test=test, body=then or [placed(gast.Pass(), node)], orelse=orelse), node)

    # -- loops -------------------------------------------------------------------------------------------------
    def loop(self, node: Any, place: Place) -> tuple[list[Any], bool]:
        kinds = ways_out(node, inside=True)
        out: list[Any] = []
        flags = []
        if gast.Return in kinds:
            out += self.prepare(place, node)
            flags.append(self.going)
        looping = None
        if gast.Break in kinds:
            looping = self.name("looping" if flags else "going")
            out.append(assignment(looping, constant(True, node), node))
            flags.append(looping)
        inner = Place(tail=False, ready=place.ready or gast.Return in kinds, looping=looping, looped=True)
        body = self.block(node.body, inner) or [placed(gast.Pass(), node)]
        tests = [loaded(f, node) for f in flags]
        if tests and (bounds := self.bounds(node)) is not None:
            turn = self.name("turn")
            out.append(assignment(turn, bounds[0], node))
            tests.append(placed(gast.Compare(left=loaded(turn, node), ops=[gast.Lt()], comparators=[bounds[1]]), node))
            one = placed(gast.BinOp(left=loaded(turn, node), op=gast.Add(), right=constant(1, node)), node)
            if _asks(node.body, node.target.id):
                body = [assignment(node.target.id, loaded(turn, node), node), *body]
            body = [*body, assignment(turn, one, node)]
            out.append(placed(gast.While(test=_all(tests, node), body=body, orelse=[]), node))
        elif isinstance(node, gast.For):
            if tests:
                body = [self.make_if(_all(tests, node), body, [], node)]
            out.append(
                placed(
                    gast.For(target=node.target, iter=node.iter, body=body, orelse=node.orelse, type_comment=None), node
                )
            )
        else:
            tests += [] if tests and _is_true(node.test) else [node.test]
            out.append(placed(gast.While(test=_all(tests, node.test), body=body, orelse=node.orelse), node))
        return out, gast.Return in kinds

    def bounds(self, node: Any) -> tuple[Any, Any] | None:
        """From where to before what a `for` counts whose variable is asked for as a number only, or not at all; None if
        it is not such a loop."""
        match node:
            case gast.For(
                target=gast.Name(id=var), iter=gast.Call(func=gast.Name(id="range"), args=args, keywords=[]), orelse=[]
            ) if 1 <= len(args) <= 2 and all(map(self.is_fixed, args)) and not _asks(self.node.body, var, node):
                if all(_is_number_in(stmt, var) for stmt in node.body):
                    return (args[0] if len(args) == 2 else constant(0, node), args[-1])
        return None

    def is_fixed(self, limit: Any) -> bool:
        """Whether it is an integer that nothing changes, as far as names tell."""
        if isinstance(limit, gast.Name):
            return limit.id in self.integers and limit.id not in self.node.bound
        return isinstance(limit, gast.Constant) and type(limit.value) is int

    def prepare(self, place: Place, node: Any) -> list[Any]:
        """Sets the flag of return, if an outer block has not."""
        if place.ready:
            return []
        self.going, self.result = self.name("going"), self.name("result")
        kept = [assignment(self.result, loaded(LATER, node), node)] if self.has_value else []
        return [assignment(self.going, constant(True, node), node), *kept]

    def name(self, base: str) -> str:
        self.count += 1
        return f"<{base} {self.count}>"


# -- asking ----------------------------------------------------------------------------------------------------
def _own(nodes: list[Any]) -> Iterator[Any]:
    """All statements in these that belong to the same function, and that this pass can move."""
    for node in nodes:
        yield node
        if isinstance(node, (gast.If, gast.For, gast.While)):
            yield from _own([*node.body, *node.orelse])


def _constants(tree: Any) -> set[str]:
    """The names that a file gives to an integer, once."""
    targets = Counter(target_names(tree.body))
    return {
        stmt.targets[0].id
        for stmt in tree.body
        if isinstance(stmt, gast.Assign)
        and isinstance(stmt.targets[0], gast.Name)
        and targets[stmt.targets[0].id] == 1
        and isinstance(stmt.value, gast.Constant)
        and type(stmt.value.value) is int
    }


def _asks(nodes: list[Any], var: str, but: Any = None) -> bool:
    """Whether some statements read a variable, outside of loops that count in it and of one that is not asked."""
    for node in nodes:
        if node is but:
            continue
        if isinstance(node, gast.For) and isinstance(node.target, gast.Name) and node.target.id == var:
            if _asks([node.iter], var, but):
                return True
        elif isinstance(node, gast.Name):
            if node.id == var and isinstance(node.ctx, gast.Load):
                return True
        elif _asks(list(gast.iter_child_nodes(node)), var, but):
            return True
    return False


def _is_number_in(node: Any, var: str) -> bool:
    """Whether a variable is read only to compute with other numbers: no place, no argument, no other name for it."""
    if not _asks([node], var):
        return True
    match node:
        case gast.Name() | gast.Subscript() | gast.Call() | gast.For():
            return False
        case gast.BinOp() | gast.UnaryOp() | gast.Compare():
            inside = list(gast.walk(node))
            alone = {n.id for n in inside if isinstance(n, gast.Name)} == {var}  # k + 1 may be a place
            is_number = not alone or any(isinstance(n, (gast.Div, gast.Compare)) for n in inside)
            return is_number and all(_computes(child, var) for child in gast.iter_child_nodes(node))
    return all(_is_number_in(child, var) for child in gast.iter_child_nodes(node))


def _computes(node: Any, var: str) -> bool:
    """The same of a part of what is computed."""
    if isinstance(node, (gast.Subscript, gast.Call)):
        return not _asks([node], var)
    return all(_computes(child, var) for child in gast.iter_child_nodes(node))


def _leaving(node: Any) -> bool:
    return any(isinstance(n, _LEAVING) for n in _own([node]))


def ways_out(node: Any, inside: bool = False) -> set[type]:
    """How an `if` may leave its block, or (inside) how control leaves from within a loop's body."""
    found: set[type] = set()
    for child in [*node.body, *([] if inside else node.orelse)]:
        if isinstance(child, _LEAVING):
            found.add(type(child))
        elif isinstance(child, gast.If):
            found |= ways_out(child)
        elif isinstance(child, (gast.For, gast.While)):
            found |= ways_out(child, inside=True) & {gast.Return}
    return found


def _always(nodes: list[Any]) -> bool:
    return any(
        isinstance(s, _LEAVING) or (isinstance(s, gast.If) and _always(s.body) and _always(s.orelse)) or _endless(s)
        for s in nodes
    )


def assigned_always(nodes: list[Any]) -> set[str] | None:
    """The variables that are assigned whenever control goes on after these statements; None where it never does."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case gast.If(body=body, orelse=orelse):
                arms = [names for names in (assigned_always(body), assigned_always(orelse)) if names is not None]
                if not arms:
                    return None
                found |= set.intersection(*arms)
            case gast.Assign(targets=targets):
                parts = [n for t in targets for n in gast.walk(t) if isinstance(n, gast.Name)]
                found |= {n.id for n in parts if isinstance(n.ctx, gast.Store)}
            case gast.AnnAssign(target=gast.Name(id=id), value=value) if value is not None:
                found.add(id)
        if isinstance(node, _LEAVING) or _endless(node):
            return None
    return found


def _endless(node: Any) -> bool:
    """Whether only a return ends a loop."""
    return (
        isinstance(node, gast.While)
        and _is_true(node.test)
        and gast.Return in (kinds := ways_out(node, inside=True))
        and gast.Break not in kinds
    )


def _is_true(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value in (True, 1)


def _is_none(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value is None


# -- making ----------------------------------------------------------------------------------------------------
def placed(made: Any, node: Any) -> Any:
    return gast.copy_location(made, node)


def constant(value: Any, node: Any) -> Any:
    return placed(gast.Constant(value=value, kind=None), node)


def loaded(name: str, node: Any) -> Any:
    return placed(gast.Name(id=name, ctx=gast.Load(), annotation=None, type_comment=None), node)


def assignment(name: str | None, value: Any, node: Any) -> Any:
    target = placed(gast.Name(id=name, ctx=gast.Store(), annotation=None, type_comment=None), node)
    return placed(gast.Assign(targets=[target], value=value, type_comment=None), node)


def _all(tests: list[Any], node: Any) -> Any:
    return tests[0] if len(tests) == 1 else placed(gast.BoolOp(op=gast.And(), values=tests), node)
