"""What to write instead: for what the subset leaves out, and for names that are nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_BY_VALUE = "has a result whose shape depends on values"
UNSUPPORTED = {
    "np.unique": f"{_BY_VALUE} -- sort with np.sort and compare neighbours",
    "np.nonzero": f"{_BY_VALUE} -- keep the mask and use np.where(mask, x, 0)",
    "np.flatnonzero": f"{_BY_VALUE} -- keep the mask and use np.where(mask, x, 0)",
    "np.argwhere": f"{_BY_VALUE} -- keep the mask and use np.where(mask, x, 0)",
    "np.where of one argument": f"{_BY_VALUE} -- give both values: np.where(mask, x, 0)",
    "np.compress": f"{_BY_VALUE} -- use np.where(mask, x, 0)",
    "np.extract": f"{_BY_VALUE} -- use np.where(mask, x, 0)",
    "np.random": "has hidden state -- take a parameter rng: Random, and draw from it: rng.random(shape)",
    "random": "has hidden state -- take a parameter rng: Random, and draw from it: rng.random()",
    "np.fft": "is complex -- write sums with np.cos and np.sin: the subset has real numbers only",
    "np.vectorize": "runs Python for every element -- write the function on arrays, or a for loop",
    "np.apply_along_axis": "runs Python for every row -- loop over the axis: for i in range(x.shape[0])",
    "open": "reads files -- pass the data as an argument",
    "input": "reads the keyboard -- pass the value as an argument",
    "eval": "runs text as code -- write the expression itself",
    "exec": "runs text as code -- write the statements themselves",
    "print": "prints -- compiled layers have no output; look at values with .reference under NumPy",
}


# Builtins that are for loops, and how they are called there.
LOOPED = {
    "range": "for i in range(stop), range(start, stop) or range(start, stop, step); np.arange(n) is an array",
    "zip": "for a, b in zip(x, y), without strict: the shortest ends the loop",
    "enumerate": "for i, a in enumerate(x)",
    "reversed": "for a in reversed(x); x[::-1] is an array",
}

# Syntax: what a person calls it, and what to write instead.
SYNTAX = {
    "Dict": ("a dictionary", "use separate variables or a tuple"),
    "Set": ("a set", "use an array and comparisons"),
    "DictComp": ("a dictionary comprehension", "use arrays"),
    "SetComp": ("a set comprehension", "use an array"),
    "JoinedStr": ("an f-string", "text has no meaning in a layer"),
    "Await": ("await", "layers are plain functions"),
    "Yield": ("yield", "return the whole array instead"),
    "YieldFrom": ("yield", "return the whole array instead"),
    "NamedExpr": (":= (an assignment inside an expression)", "assign in a statement of its own"),
    "Starred": ("a starred item", "write the items out"),
}


def nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0].removeprefix('self.')}?" if close else ""
