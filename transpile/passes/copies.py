"""A variable that holds what another one holds is that one.

    at = e; at_2 = e_2                                  y[j] = x[e,e_2] * x[e,e_2]
    y[j] = x[at,at_2] * x[e,e_2]        ->

Then expressions that are the same are seen to be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir import If, Kernel, Load, Stmt, Store
from .tree import Body, accesses, buffers, map_bodies, map_places, touched, written


def copies(kernel: Kernel) -> Kernel:
    table = buffers(kernel)
    uses = Counter(a.buffer for a in accesses(kernel.body))
    variables = {n for n, b in table.items() if b.kind == "temp" and not b.shape and not b.alias}

    def is_copy(name: str, of: str, following: Body) -> bool:
        """Whether nothing else is stored in the variable, and all that ask for it follow, before its model changes."""
        here = Counter(a.buffer for a in accesses(following))
        alone = {name, of} <= variables and table[name].dtype == table[of].dtype
        if not alone or uses[name] != here[name] + 1 or name in written(following):
            return False
        last = max((k for k, s in enumerate(following) if name in touched((s,))), default=0)
        changed = of in written(following[: last + 1])
        return not changed or (of not in written(following[:last]) and _asks_first(following[last], name))

    def body(statements: Body) -> Body:
        found, rest = [], statements
        while rest:
            stmt, rest = rest[0], rest[1:]
            match stmt:
                case Store(name, (), Load(of, ()), None) if is_copy(name, of, rest):
                    uses[of] += uses[name] - 2  # one for the store, one for what it read
                    rest = map_places(rest, lambda n, index, name=name, of=of: (of if n == name else n, index))  # type: ignore[misc]
                case _:
                    found.append(map_bodies(stmt, body))
        return tuple(found)

    return replace(kernel, body=body(kernel.body))


def _asks_first(stmt: Stmt, name: str) -> bool:
    """Whether it is a branch that asks for a variable before it takes a way, and not after."""
    return isinstance(stmt, If) and name not in touched((*stmt.then, *stmt.orelse))
