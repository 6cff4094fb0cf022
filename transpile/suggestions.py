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
    "np.compress": f"{_BY_VALUE} -- use np.where(mask, x, 0)",
    "np.extract": f"{_BY_VALUE} -- use np.where(mask, x, 0)",
    "np.random": "has hidden state -- take a parameter rng: Random",
    "np.vectorize": "runs Python for every element -- write the function on arrays, or a for loop",
    "np.apply_along_axis": "runs Python for every row -- loop over the axis: for i in range(x.shape[0])",
    "np.fft.fft": "is complex -- the subset has real numbers only",
    "open": "reads files -- pass the data as an argument",
    "input": "reads the keyboard -- pass the value as an argument",
    "eval": "runs text as code -- write the expression itself",
    "exec": "runs text as code -- write the statements themselves",
    "print": "prints -- compiled layers have no output; look at values with .reference under NumPy",
    "Dict": " use separate variables or a tuple",
    "Set": " use an array and comparisons",
    "ListComp": " use a for loop and store into an array: y = np.zeros(n); y[i] = ...",
    "DictComp": " use arrays",
    "SetComp": " use arrays",
    "GeneratorExp": " use np.sum and friends on arrays",
    "JoinedStr": " text has no meaning in a layer",
    "Await": " layers are plain functions",
    "Yield": " return the whole array instead",
    "NamedExpr": " assign in a statement of its own",
    "Starred": " write the items out",
}


def nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0].removeprefix('self.')}?" if close else ""
