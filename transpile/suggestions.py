"""What to write instead: for what the subset leaves out, and for names that are nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_BY_VALUE = "has a result whose shape depends on values"
_ELSE = "is not part of the subset"
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
    "np.interp": f"{_ELSE} -- write the weights: (1 - w) * y[i] + w * y[i + 1]",
    "np.linalg": f"{_ELSE} -- of np.linalg: solve, inv, cholesky, det, norm",
    "np.trim_zeros": f"{_BY_VALUE} -- use np.where(mask, x, 0)",
    "np.intersect1d": f"{_BY_VALUE} -- of each element: np.any(x[:, None] == y[None, :], axis=1)",
    "np.union1d": f"{_BY_VALUE} -- np.sort(np.concatenate([x, y])), and compare neighbours",
    "np.setdiff1d": f"{_BY_VALUE} -- of each element: np.any(x[:, None] == y[None, :], axis=1)",
    "np.isin": f"{_ELSE} -- np.any(x[:, None] == y[None, :], axis=1)",
    "np.searchsorted": f"{_ELSE} -- np.sum(a[None, :] < v[:, None], axis=1)",
    "np.digitize": f"{_ELSE} -- np.sum(bins[None, :] <= x[:, None], axis=1)",
    "np.convolve": f"{_ELSE} -- for k in range(w.shape[0]): y += w[-1 - k] * x[k : k + n]",
    "np.correlate": f"{_ELSE} -- for k in range(w.shape[0]): y += w[k] * x[k : k + n]",
    "np.kron": f"{_ELSE} -- a[:, None, :, None] * b[None, :, None, :], reshaped",
    "np.cross": f"{_ELSE} -- np.stack([a[1] * b[2] - a[2] * b[1], ...])",
    "np.partition": f"{_ELSE} -- np.sort(x)",
    "np.argpartition": f"{_ELSE} -- np.argsort(x)",
    "np.piecewise": f"{_ELSE} -- np.where(a, x, np.where(b, y, z))",
    "np.choose": f"{_ELSE} -- np.where(a, x, np.where(b, y, z))",
    "np.copyto": f"{_ELSE} -- y[...] = x",
    "np.put": f"{_ELSE} -- x[i] = v",
    "super": f"{_ELSE} -- name the class: Base.forward(self, x)",
    "any": f"{_ELSE} -- np.any(m), or a or b of two scalars",
    "all": f"{_ELSE} -- np.all(m), or a and b of two scalars",
    "sorted": f"{_ELSE} -- np.sort(x)",
    "divmod": f"{_ELSE} -- a // b, a % b",
    "np.divmod": f"{_ELSE} -- a // b, a % b",
    "slice": f"{_ELSE} -- write it in the brackets: x[a:b]",
    "map": f"{_ELSE} -- [f(v) for v in x], or arrays: f(x)",
    "filter": f"{_ELSE} -- np.where(m, x, 0)",
    "set": f"{_ELSE} -- use an array and comparisons",
    "dict": f"{_ELSE} -- use separate variables or a tuple",
    "str": f"{_ELSE} -- text has no meaning in a layer",
    "isinstance": f"{_ELSE} -- types are known from the annotations",
    "np.allclose": f"{_ELSE} -- np.all(np.abs(a - b) <= tol)",
    "np.isclose": f"{_ELSE} -- np.abs(a - b) <= tol",
    "np.array_equal": f"{_ELSE} -- np.all(a == b)",
    "np.ndarray": f"{_ELSE} -- np.empty(shape), np.zeros(shape)",
    "np.bincount": f"{_BY_VALUE} -- of n bins: y = np.zeros(n); np.add.at(y, i, 1)",
    "np.histogram": f"{_ELSE} -- of n bins: np.add.at(y, i, 1) at the bins i = np.floor(...).astype(np.int64)",
    "np.average": f"{_ELSE} -- np.mean(x), or np.sum(w * x) / np.sum(w)",
    "np.median": f"{_ELSE} -- of n: s = np.sort(x); (s[(n - 1) // 2] + s[n // 2]) / 2",
    "np.percentile": f"{_ELSE} -- take it from np.sort(x)",
    "np.quantile": f"{_ELSE} -- take it from np.sort(x)",
    "np.ptp": f"{_ELSE} -- np.max(x) - np.min(x)",
    "np.diff": f"{_ELSE} -- x[1:] - x[:-1]",
    "np.count_nonzero": f"{_ELSE} -- np.sum(x != 0)",
    "np.diag": f"{_ELSE} -- np.diagonal(x) takes it, v[:, None] * np.eye(n) makes a matrix",
    "np.nan_to_num": f"{_ELSE} -- np.where(np.isnan(x), 0, x)",
    "np.nansum": f"{_ELSE} -- np.sum(np.where(np.isnan(x), 0, x))",
    "np.atleast_1d": f"{_ELSE} -- shapes are known: np.reshape(x, -1)",
    "np.atleast_2d": f"{_ELSE} -- shapes are known: x[None, :]",
    "np.atleast_3d": f"{_ELSE} -- shapes are known: x[None, :, None]",
    "np.meshgrid": f"{_ELSE} -- a[None, :] and b[:, None] broadcast",
    "np.column_stack": f"{_ELSE} -- np.stack([a, b], axis=1)",
    "np.dstack": f"{_ELSE} -- np.stack([a, b], axis=2)",
    "np.append": f"{_ELSE} -- np.concatenate([x, y])",
    "np.insert": f"{_ELSE} -- np.concatenate([x[:k], v, x[k:]])",
    "np.delete": f"{_ELSE} -- np.concatenate([x[:k], x[k + 1:]])",
    "np.select": f"{_ELSE} -- np.where(a, x, np.where(b, y, z))",
    "open": "reads files -- pass the data as an argument",
    "input": "reads the keyboard -- pass the value as an argument",
    "eval": "runs text as code -- write the expression itself",
    "exec": "runs text as code -- write the statements themselves",
    "print": "prints -- compiled layers have no output; look at values with .reference under NumPy",
}


# Methods of arrays that are left out, and no function is called so.
METHODS = {
    "fill": "x[...] = v",
    "itemset": "x[i] = v",
    "resize": "np.reshape(x, shape); of another size: y = np.zeros(shape), and y[:n] = x",
    "tolist": "arrays are looped over and indexed as they are",
    "view": "x.astype(...) converts the elements",
    "conjugate": "the subset has real numbers only",
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
    """The name that this one misspells, of those with the same module before them; a bare one may be a field."""
    scope, _, last = name.rpartition(".")
    inside = {k.rpartition(".")[2]: k for k in known if k.rpartition(".")[0] in (scope, scope or "self")}
    close = difflib.get_close_matches(last, list(inside), n=1, cutoff=0.75)
    return f"did you mean {inside[close[0]]}?" if close else ""


UNDEFINED = "define it above, import it, or take it as an argument"
