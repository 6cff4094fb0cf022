# ruff: noqa: E501 (one line a case)
"""Mistakes in layer files: each is found at its line, said in words, with a way out; and the exceptions of bad calls."""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from layerc.build.driver import build, compile_module, read_module
from layerc.build.gradients import gradients_of
from layerc.transpile.bodies import _Body
from layerc.transpile.errors import InternalError, InvalidFile, Suppressed
from layerc.transpile.layers import check_file

HEAD = "import numpy as np\nfrom layerc import Layer, Memory, Param, State, config, init, layer, real, i64, bool_\n"
FIRST = HEAD.count("\n")  # lines before a case's own

# body of `def f(...)` or a whole file | line in it | kind | part of the message | part of the help
# fmt: off
MISTAKES = [
    ('def f(x: real["N"]):\n    return np.unique(x)', 3, 'shape', 'np.unique has a result whose shape depends on values', 'np.sort'),
    ('def f(x: real["N"]):\n    return x[x > 0]', 3, 'shape', 'depends on values', 'np.where'),
    ('def f(x: real["N"], k: i64):\n    return x[:k]', 3, 'shape', 'depends on values', 'np.where'),
    ('def f(x: real["N"], k: i64):\n    return np.zeros(k)', 3, 'shape', 'depend on values', 'largest'),
    ('def f(x: real["N"], y: real["M"]):\n    return x + y', 3, 'shape', 'do not broadcast', 'equal by name'),
    ('def f(x: real["N"], out: int = 2):\n    return x * out', 2, 'annotation', 'no configuration is called out: every call of a compiled layer takes out=array', 'rename'),
    ('def f(x: real["N"], k: int = 2):\n    return np.max(np.lib.stride_tricks.sliding_window_view(x, k), axis=-1)', 3, 'unsupported', 'sliding_window_view', 'np.stack([x[j : j + n - k + 1] for j in range(k)], axis=-1)'),
    ('def f(x: real["N"]):\n    y = x.copy()\n    for k in range(1, 3 * x.shape[0]):\n        y[::k] += 1.0\n    return y', 5, 'index', 'step of a slice', 'one by one'),
    ('def f(x: real["N"], i: i64["N"]):\n    y = x.copy()\n    np.maximum.at(y, i)\n    return y', 4, 'type', 'np.maximum.at takes an array, an index and values', ''),
    ('def f(x: real["N"], i: i64["N"]):\n    y = x.copy()\n    np.minimum.at(y, i, np.ones(3))\n    return y', 4, 'shape', 'do not broadcast', 'by name or 1'),
    ('def f(x: real["N"], i: i64["N"]):\n    k = i.copy()\n    np.maximum.at(k, i, x)\n    return k', 4, 'type', 'cannot store', 'astype'),
    ('def f(x: real["N"]):\n    return x[0::2] * x', 3, 'shape', 'do not broadcast', 'by name or 1'),
    ('def f(x: real["N"], y: real["M"]):\n    return x @ y', 3, 'shape', 'N and M', ''),
    ('def f(x: real["N M"]):\n    return x @ np.ones(1)', 3, 'shape', 'extents M and 1', ''),
    ('def f(x: real["N"]):\n    return not x', 3, 'type', 'ambiguous', 'np.any'),
    ('def f(x: real["N"]):\n    return x.reshape(3)', 3, 'shape', 'cannot reshape', 'same for every size'),
    ('def f(x: real["N"]):\n    return np.where(0 < x < 1, x, 0)', 3, 'type', 'truth of an array', '(a < b) & (b < c)'),
    ('def f(x: real["N N"]):\n    return np.diagonal(x, axis1=None)', 3, 'type', 'axis1 must be an integer', ''),
    ('def f(x: real["N N"], k: i64):\n    return np.diagonal(x, k)', 3, 'type', 'offset must be an integer known from shapes', 'x[i, i + k]'),
    ('def f(x: real["N N"], k: i64):\n    return np.linalg.matrix_power(x, k)', 3, 'index', 'n must be known at build', 'y = y @ a'),
    ('def f(x: real["N M"]):\n    return np.linalg.matrix_power(x, 2)', 3, 'shape', 'takes square matrices', ''),
    ('def f(x: real["N 2"]):\n    return np.cross(x, x)', 3, 'shape', 'vectors of 3 elements, got shape (N, 2)', 'of 2: a[..., 0]'),
    ('def f(x: real["N 3"]):\n    return np.cross(x > 0, x > 1)', 3, 'type', 'np.cross subtracts', 'astype'),
    ('def f(x: real["N**M"], M: int = 2):\n    return x', 2, 'annotation', 'cannot read the dimension', 'k**2'),
    ('def f(x: real["N"]):\n    def g():\n        x = x * 2\n        return x\n    return g()', 4, 'name', 'x', ''),
    ('def f(x: real["N"]):\n    return x.pad(1)', 3, 'unsupported', 'no method pad', 'np.pad(...)'),
    ('def f(x: real["N"]):\n    x.sort()\n    return x', 3, 'unsupported', 'no method sort', 'np.sort(...)'),
    ('def f(m: bool_["N"]):\n    return -m', 3, 'type', 'no - for booleans', '~'),
    ('@layer(True)\ndef f(x: real["N"]):\n    return x', 1, 'layer', 'options by name', 'batched=True'),
    ('def f(x: real["N"]):\n    ys = []\n    for i in range(3):\n        x += 1\n        x = x * 2\n        ys.append(x)\n    return np.stack(ys)', 5, 'aliasing', 'which shares its memory', '.copy()'),
    ('def f(x: real["anyone"]) -> real["anyone"]:\n    return x[:2]', 3, 'shape', 'declared is (anyone,)', ''),
    ('def f(x: real["N"]):\n    return np.ones(-1)', 3, 'shape', 'negative dimensions', ''),
    ('def f(x: real["N"]):\n    return x.reshape(0, -1)', 3, 'shape', 'any extent', 'write it out'),
    ('def f(x: real["*S"]):\n    return np.outer(x, x)', 3, 'shape', 'two groups of axes', 'name the axes'),
    ('def f(x: real["N"]):\n    return np.stack([x, x], 0, axis=0)', 3, 'type', 'no argument axis left', 'arrays, axis'),
    ('def f(x: real["N M"]):\n    ys = []\n    for r in x:\n        r[0] = 1.0\n        ys.append(x)\n    return np.stack(ys)', 5, 'aliasing', 'x; ys, which shares its memory', '.copy()'),
    ('def f(x: real["N"]):\n    return np.sum(x, axis=1)', 3, 'shape', 'axis 1 is out of range', ''),
    ('def f(x: real["N"]):\n    return x[0, 1]', 3, 'index', 'too many indices', ''),
    ('def f(x: real["N"]):\n    return x[1.5]', 3, 'index', 'must be an integer', 'int('),
    ('def f(x: real["N"]):\n    return x[::0]', 3, 'index', 'step cannot be zero', ''),
    ('def f(x: real["N"]) -> real["M"]:\n    return x', 3, 'shape', 'declared is (M,)', 'leave it out'),
    ('def f(x: real["N"]) -> i64["N"]:\n    return x', 3, 'type', 'declared is i64', 'astype'),
    ('def f(x: real["N"]) -> tuple[real["N"], real["N"]]:\n    return x', 3, 'type', '1 values are returned, 2 are declared', ''),
    ('def f(x: real["N"]):\n    y = x', 2, 'type', 'returns nothing', 'return'),
    ('def f(x: real["N"], s: real):\n    if s > 0:\n        y = x\n    return y', 5, 'name', 'assigned only when the condition is true', 'before the if'),
    ('def f(x: real["N"], s: real):\n    if s > 0:\n        return x', 2, 'type', 'returned only when', 'every path'),
    ('def f(x: real["N"], s: real):\n    if s > 0:\n        y = x\n    else:\n        y = x[1:]\n    return y', 3, 'type', 'on one branch', ''),
    ('def f(x: real["N"]):\n    if x > 0:\n        return x\n    return -x', 3, 'type', 'truth of an array', 'np.any'),
    ('def f(x: real["N"]):\n    return y', 3, 'name', 'y is not defined', ''),
    ('def f(value: real["N"]):\n    return valu', 3, 'name', 'valu is not defined', 'did you mean value'),
    ('from scipy import special\n@layer\ndef f(x: real["N"]):\n    return special.polygamma(2, x)', 4, 'unsupported', 'order 1', 'digamma'),
    ('def f(x: real["N"]):\n    return np.tanhh(x)', 3, 'unsupported', 'np.tanhh is not part of the subset', 'did you mean np.tanh'),
    ('def f(x: real["N"]):\n    print(x)\n    return x', 3, 'unsupported', 'print', '.reference'),
    ('def f(x: real["N"]):\n    return {v for v in x}', 3, 'unsupported', 'a set comprehension', 'use an array'),
    ('def f(x: real["N"]):\n    try:\n        return x\n    except ValueError:\n        return -x', 3, 'statement', 'Try', 'assert'),
    ('def f(x: real["N"]):\n    raise ValueError("no")', 3, 'statement', 'Raise', 'assert'),
    ('def f(x: real["N"]):\n    with x:\n        return x', 3, 'statement', 'With', ''),
    ('def f(x: real["N"]):\n    return np.exp(x, out=x)', 3, 'unsupported', 'out=', 'y[...]'),
    ('def f(x: real["N"]):\n    return np.sum(x, axes=0)', 3, 'type', 'no argument axes', 'axis'),
    ('def f(x: real["N"]):\n    return np.exp()', 3, 'type', 'np.exp needs a', ''),
    ('def f(x: real["N"]):\n    return np.exp(x, x, x, x)', 3, 'type', 'at most', ''),
    ('def f(x):\n    return x', 2, 'annotation', 'x has no type', 'real['),
    ('def f(x: list):\n    return x', 2, 'annotation', "not one of layerc's", 'real['),
    ('def f(x: real["N +"]):\n    return x', 2, 'annotation', 'cannot read the dimension', ''),
    ('def f(x: real["*S *T"]):\n    return x', 2, 'annotation', 'at most one group', ''),
    ('def f(*x):\n    return x', 2, 'annotation', 'no * or ** arguments', 'name every'),
    ('def f(x: real["N"] = 3):\n    return x', 2, 'annotation', 'has a default', 'configuration'),
    ('def f(x: real["N"], k: i64 = 3):\n    return x[k:]', 2, 'annotation', 'each example has its own', 'k: int = 3'),
    ('def f(x: real, k: real = -2.5):\n    return x * k', 2, 'annotation', 'each example has its own', 'k: float = ...'),
    ('def f(x: real["N"]):\n    x[0] = "a"\n    return x', 3, 'type', '', ''),
    ('def f(i: i64["N"]):\n    i[0] = 1.5\n    return i', 3, 'type', 'cannot store', 'astype'),
    ('def f(x: real["N"]):\n    x[:3] = np.ones(4)\n    return x', 3, 'shape', 'do not broadcast', ''),
    ('def f(x: real["N"]):\n    return [x, x + 1]', 3, 'type', 'returns no list', 'np.stack'),
    ('def f(x: real["N"]):\n    b = [x, x]\n    return b', 4, 'type', 'returns no list', 'np.stack'),
    ('def f(x: real["N"]) -> {"y": real["N"], "z": real["N"]}:\n    return {"q": x, "y": x + 1}', 3, 'type', 'its outputs are y, z', 'return y, z'),
    ('def f(x: real["N"]):\n    return {"y": x}', 3, 'type', 'names no outputs', 'return y, z'),
    ('def f(x: real["N"], *, z: float = 1.0):\n    return x * z[None]', 3, 'type', 'takes no index', 'np.asarray'),
    ('def f(x: real["N"]):\n    return np.linspace(0.0, 1.0, None)', 3, 'type', 'num must be an integer, not None', ''),
    ('def f(x: real["N"]):\n    return x + np.zeros((None,))', 3, 'type', 'expected an array or a scalar', ''),
    ('def f(x: real["N"]):\n    return np.full((3,), x)', 3, 'shape', 'do not broadcast', ''),
    ('def f(x: real["N"]):\n    return np.full_like(x, np.ones((2, 1)))', 3, 'shape', 'cannot broadcast', ''),
    ('def f(x: real["N"]):\n    a, b = x, x, x\n    return a', 3, 'type', 'expected 2 values', ''),
    ('def g(n):\n    return g(n)\n\n@layer\ndef f(x: real["N"]):\n    return g(x)', 2, 'unsupported', 'g calls itself', 'loop'),
    ('def f(x: real["N"]):\n    return x +', 3, 'syntax', '', ''),
    ('def f(x: real["N"]):\n    return x\n\ndef unused(y):\n    break', 6, 'syntax', "'break' outside loop", ''),
    ("class A(Layer):\n    w: Param[real['C']]\n    def predict(self, x: real['C']):\n        self.w = x\n        return x", 4, 'role', 'Param or config', 'State'),
    ("class A(Layer):\n    w: real['C']\n    def predict(self, x: real['C']):\n        return x", 2, 'annotation', 'no role', 'Param'),
    ('class A(Layer):\n    k: int = config(3)\n    def initialize(self, shape):\n        pass', 1, 'layer', 'neither predict nor forward', 'predict'),
    ("class A(Layer):\n    def predict(self, x: real['C']):\n        return x * self.gain", 3, 'name', 'no field gain', ''),
    ("@layer(batch=True)\ndef f(x: real['N']):\n    return x", 1, 'layer', 'no option batch', 'batched'),
    ("@layer\ndef f(x: real['N']) -> real['N']:\n    return x * x\n\n@f.backward\ndef g(x, dz):\n    return dz", 6, 'backward', 'cannot ask for dz', 'dy'),
    ("@layer\ndef f(x: real['N']) -> real['N']:\n    return x * x\n\n@f.backward\ndef g(x, dy):\n    return dy, dy", 6, 'backward', '2 gradients, 1 are needed', 'x'),
    ('def f(x: real["N M"]):\n    t = x.T * 2\n    f = t.reshape(-1)\n    f[0] = 1\n    return t', 5, 'aliasing', 'f; t, which shares its memory', 'copy'),
    ('def f(x: real["N"], a: real):\n    if a > 0:\n        if a > 1:\n            return v\n        v = x\n    else:\n        v = -x\n    return v', 5, 'name', 'v has no value yet', 'another name'),
    ('def f(x: real["N"]):\n    y = np.zeros(())\n    z = y\n    y += x[0]\n    return z * 1', 5, 'aliasing', 'y and z are one array without axes', 'copy'),
    ('def f(x: real["N"]):\n    y = (x.shape if x[0] > 1 else 0) * 1.0\n    return x', 3, 'type', 'a different kind of thing', 'one kind'),
    ('def f(x: real["N"]):\n    y = np.where(x[0] > 1, x[0], 0)\n    return x * round(y)', 4, 'type', 'takes a number, not an array without axes', 'np.rint'),
    ('def f(x: real["N M"]):\n    return np.sum(x, axis=(1, ()))', 3, 'type', 'among several', ''),
    ('def f(x: real["N M"]):\n    return np.argmax(x, axis=(0, 1))', 3, 'type', 'along one axis', 'axis=0'),
    ('def f(x: real["N"]):\n    for i in reversed(range(2)):\n        x = x * 2\n    reversed = 0\n    return x', 3, 'name', 'reversed has no value yet', 'another name'),
    ('def f(x: real["N"], k: float = 1.0):\n    return x * k.T', 3, 'type', 'number (float) has no T', 'asarray'),
    ('def f(x: real["N"], k: real):\n    k[True] = 0\n    return x * k', 3, 'type', 'scalar has no places', 'assign'),
    ("@layer\ndef f(x: real['N'], k: int = 'text'):\n    return x", 2, 'type', 'default of k is not an integer', 'write an integer'),
    ("@layer\ndef f(x: real['N'], k: float = -()):\n    return x", 2, 'type', 'default of k is not a number', ''),
    ("while True:\n    pass\n\n@layer\ndef f(x: real['N']):\n    return x", 1, 'statement', 'While is not part of a layer file', 'top level'),
    ('@layer\n@np.vectorize\ndef f(x: real["N"]):\n    return x\n\n', 2, 'layer', '@np.vectorize is not a mark', 'call it in the body'),
    ('@foo\n@layer\ndef f(x: real["N"]):\n    return x\n\n', 1, 'layer', '@foo is not a mark', ''),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@f.backwards\ndef g(dy):\n    return dy', 5, 'backward', '@f.backwards marks nothing', '@f.backward?'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@f.backward()\ndef g(dy):\n    return dy', 5, 'backward', '@f.backward(...) marks nothing', '@f.backward?'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@other.backward\ndef g(dy):\n    return dy', 5, 'backward', 'other is not a layer function', ''),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@f.backward\ndef g(dy):\n    return dy\n\n@f.backward\ndef h(dy):\n    return dy', 9, 'backward', 'two backwards', 'remove one'),
    ('@layer(backward=None)\ndef f(x: real["N"]):\n    return x\n\n@f.backward\ndef g(dy):\n    return dy', 5, 'backward', 'backward=None and this', 'remove one'),
    ('@layer(backward=False)\ndef f(x: real["N"]):\n    return x\n\n', 1, 'layer', 'backward must be None', '@f.backward'),
    ('@layer(batched=3)\ndef f(x: real["N"]):\n    return x\n\n', 1, 'layer', 'batched must be True or False', ''),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@layerr\ndef g(x: real["N"]):\n    return x', 5, 'layer', '@layerr is not a mark', 'did you mean @layer?'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\nclass V(Layerr):\n    def predict(self, x: real["N"]):\n        return x', 5, 'layer', 'Layerr is no layer class', 'did you mean Layer?'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@layer\nclass O:\n    pass', 5, 'layer', '@layer is for functions', 'class O(Layer):'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@layer\ndef f(x: real["N"]):\n    return x\n\n', 6, 'layer', 'f is defined twice', 'a name of its own'),
    ('import functools\n@functools.cache\ndef g(x):\n    return x\n\n@layer\ndef f(x: real["N"]):\n    return g(x)', 2, 'layer', '@functools.cache is not a mark', ''),
    ('class A(Layer):\n    k: int = config(3)\n    k: int = config(4)\n    def predict(self, x: real["N"]):\n        return x', 3, 'layer', 'k is defined twice', ''),
    ('class A(Layer):\n    def predict(self, x: real["N"]):\n        return x\n    def predict(self, x: real["N"]):\n        return -x', 4, 'layer', 'predict is defined twice', ''),
    ('class A(Layer):\n    batched = 3\n    def predict(self, x: real["N"]):\n        return x', 2, 'layer', 'batched must be True or False', 'batched = True'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@f.backward\ndef g(dy):\n    return dy > 0', 6, 'type', 'the gradient of x is boolean', 'astype'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\n@f.backward\ndef g(dy: real["M"]):\n    return dy', 6, 'backward', 'dy is real of shape (N,) here', 'leave the annotation out'),
    ('@layer\ndef f(x: real["N"]) -> tuple[real["N"], Memory[real["N"]]]:\n    return x, x\n\n', 2, 'backward', 'no backward of f asks for its memory', 'backward(dy, memory)'),
    ('def f(x: real["N"], y: real["k*N"], *, k: float = 2.0):\n    return x', 2, 'annotation', 'uses k, which is a float', 'k: int'),
    ('def f(x: real["N-M"]):\n    return x', 2, 'annotation', 'nothing gives M', 'M: int'),
    ('def f(x: real["#N"]):\n    return x', 2, 'annotation', "cannot read the dimension '#N'", 'broadcast'),
    ('def f(x: real["... N"]):\n    return x', 2, 'annotation', 'cannot read', '*S'),
    ('def f(x: real["-3"]):\n    return x', 2, 'annotation', 'is negative', '0 or more'),
    ('def f(x: real["N//0"]):\n    return x', 2, 'annotation', 'divides by zero', ''),
    ('def f(x: real["N"]) -> {"y": real["N"], "y": real["N"]}:\n    return x, x', 2, 'annotation', "'y' names two outputs", 'another name'),
    ('def f(x: real["N"], /, y: real["N"]):\n    return x', 2, 'annotation', 'x stands before a /', 'leave the / out'),
    ('class A(Layer):\n    k: int = config(3, check=5)\n    def predict(self, x: real["N"]):\n        return x', 2, 'layer', 'the check of k is not a lambda', 'lambda k'),
    ('class A(Layer):\n    k: int = config(3, check=lambda k: k > 5)\n    def predict(self, x: real["N"]):\n        return x', 2, 'type', 'fails its own check', 'another default'),
    ('class A(Layer):\n    k: int = config(3, check=lambda k: positive(k))\n\ndef positive(k):\n    return k > 0\n\nclass B(A):\n    def predict(self, x: real["N"]):\n        return x', 2, 'layer', 'uses positive, which a package has not', 'lambda k'),
    ('class A(Layer):\n    k: int = config(2**63)\n    def predict(self, x: real["N"]):\n        return x', 2, 'type', 'does not fit 64 bits', ''),
    ('class A(Layer):\n    w: Param[real["N"]] = init.ones(1, 2, 3)\n    def predict(self, x: real["N"]):\n        return x', 2, 'layer', 'init.ones does not take these', 'init.ones()'),
    ('class A(Layer):\n    w: Param[real["N"]] = init.foo()\n    def predict(self, x: real["N"]):\n        return x', 2, 'layer', 'there is no init.foo', 'init.uniform'),
    ('class A(Layer):\n    w: Param[real["M"]] = init.ones()\n    def predict(self, x: real["N"]):\n        return x', 2, 'annotation', 'nothing gives M', 'M: int'),
    ('class A(Layer):\n    w: Param[real["N"]] = init.ones()\n    def initialize(self, n, m):\n        pass\n    def predict(self, x: real["N"]):\n        return x', 3, 'layer', 'initialize takes 2 shapes, the layer has 1 inputs', 'x_shape'),
    ('@layer(batched=True)\ndef f(x: real["N D"]):\n    return x.T', 2, 'batch', 'the output y begins with D, not N', 'keep axis 0'),
    ('class A(Layer):\n    batched = True\n    def predict(self, x: real["N D"]):\n        return x[0]', 3, 'batch', 'the output y begins with D', ''),
    ('def f(x: real["N"]):\n    for i in range():\n        x = x + 1\n    return x', 3, 'type', 'range cannot be called like this', 'for i in range(stop)'),
    ('def f(x: real["N"]):\n    for a, b in zip(x, x, strict=True):\n        x = x + a\n    return x', 3, 'type', 'zip cannot be called', 'without strict'),
    ('def f(x: real["N"]):\n    a = []\n    for i in range(3):\n        a.append(x, x)\n    return np.stack(a)', 5, 'type', 'append takes one argument', 'one call for each'),
    ('def f(x: real["N"]):\n    return np.concatenate(x, x)', 3, 'index', 'axis must be known', 'several arrays are one tuple'),
    ('def f(x: real["N"]):\n    yield x', 3, 'unsupported', 'yield is not part', 'return the whole array'),
    ('def f(x: real["N"]):\n    return np.where(x > 0)', 3, 'shape', 'np.where of one argument has a result whose shape', 'np.where(mask, x, 0)'),
    ('def f(x: real["N"]):\n    y: real["N"]\n    return y', 4, 'name', 'y has a type, but no value yet', 'assign it first'),
    ('def f(x: real["N"]):\n    return zzz', 3, 'name', 'zzz is not defined', 'define it above'),
    ('def f(x: real["N"]):\n    return np.sum(x, axis=3)', 3, 'shape', 'axis 3 is out of range', 'its one axis is 0'),
    ('def f(x: real["N"]):\n    return x.reshape(-1, -1)', 3, 'shape', 'negative dimensions', 'at most one extent is -1'),
    ('def f(x: real["N"]):\n    return np.concatenate([x, x[None]])', 3, 'shape', 'cannot concatenate', 'x[None] adds one'),
    ('def f(x: real["N"]):\n    return np.stack([x, x[:2]])', 3, 'shape', 'must have one shape', 'np.concatenate'),
    ('def f(x: real["N"]):\n    return np.einsum("ij->i", x)', 3, 'shape', 'expected 2 axes', 'a letter an axis'),
    ('def f(x: real["N"]):\n    return np.linalg.inv(x)', 3, 'shape', 'expected square', '"N N"'),
    ('def f(x: real["N"]):\n    a, b = x, x, x\n    return a', 3, 'type', 'expected 2 values', 'a name with * takes the rest'),
    ('def f(x: real["N"]) -> tuple[real["N"], real["N"]]:\n    return x', 3, 'type', '1 values are returned', 'tuple[real'),
    ('def f(x: real["N"]):\n    return np.sum(x, foo=3)', 3, 'type', 'no argument foo', 'it takes: a, axis=None, dtype=None, keepdims=False'),
    ('from scipy import special\n@layer\ndef f(m: bool_["N"]):\n    return special.softmax(m, axis=0)', 4, 'type', 'no - for booleans', 'm.astype'),
    ('from scipy import special\n@layer\ndef f(m: bool_["N"]):\n    return special.log_softmax(m)', 4, 'type', 'no - for booleans', 'm.astype'),
    ('def f(x: real["N"]):\n    return x * (1 << 70)', 3, 'type', 'does not fit 64 bits', '2.0 **'),
    ('K = 1 << 10**12\n@layer\ndef f(x: real["N"]):\n    return x * K', 1, 'type', 'does not fit 64 bits', '2.0 **'),
    ('def f(x: real["N"]):\n    return x * 10**10**9', 3, 'type', 'does not fit 64 bits', '2.0 **'),
    ('def f(x: real["N"]):\n    return x * np.array([1] * 10**10)[0]', 3, 'unsupported', 'a list of 10000000000 items', 'np.full'),
    ('def f(x: real["N"]):\n    return x * (1 << -1)', 3, 'type', 'negative shift count', ''),
    ('def f(i: i64["N"]):\n    return i ** -1', 3, 'type', 'negative integer powers', 'astype'),
    ('def f(x: real["N"]):\n    return bool(x)', 3, 'type', 'bool() takes a scalar', 'astype'),
    ('def f(x: real["N M"]):\n    return x[..., ..., 0]', 3, 'index', 'one ... at most', ':'),
    ('def f(x: real["N"]):\n    return np.sort(x, kind="foo")', 3, 'type', "'foo' is no kind of sort", 'stable'),
    ('def f(x: real["N"]):\n    return np.round(x, 2, x)', 3, 'type', 'np.round takes at most 2 arguments', ''),
    ('def f(x: real["N"]):\n    return round(x[0], 1)', 3, 'unsupported', 'round takes one argument here', 'np.round('),
    ('def f(x: real["N"]):\n    return x * any(x > 0)', 3, 'unsupported', 'any is not part of the subset', 'np.any('),
    ('def f(x: real["N"]):\n    return x * np.allclose(x, 1)', 3, 'unsupported', 'np.allclose is not', 'np.all(np.abs(a - b) <= tol)'),
    ('def f(x: real["N"]):\n    return np.ndarray(3)', 3, 'unsupported', 'np.ndarray is not', 'np.empty('),
    ('def f(x: real["N"]):\n    x @= x\n    return x', 3, 'shape', '@= takes a matrix', 'np.dot'),
    ('def f(x: real["N N"]):\n    x[0] @= x[0]\n    return x', 3, 'shape', '@= takes a matrix', ''),
    ('def f(x: real["1 N"], w: real["N 1"]):\n    x @= w\n    return x', 3, 'shape', 'the product is (1, 1), not (1, N)', 'z = x @ y'),
    ('class A(Layer):\n    s: State[real["C"]] = init.zeros()\n    def forward(self, x: real["C"]):\n        self.s = np.mean(x)\n        return x', 4, 'shape', 'the state s has shape (C,), this is ()', 'np.full_like(self.s, value)'),
    ('class A(Layer):\n    w: Param[real["C"]] = init.normal(0, -1)\n    def predict(self, x: real["C"]):\n        return x', 2, 'layer', 'init.normal of w: std=-1 is negative', 'std=1.0'),
    ('class A(Layer):\n    w: Param[real["C"]] = init.uniform(lo=2)\n    def predict(self, x: real["C"]):\n        return x', 2, 'layer', 'init.uniform of w: lo=2 is above hi=1.0', ''),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, w, dy) -> real["N"]:\n    return dy * w, dy * x', 6, 'backward', '1 gradients are declared, 2 are needed', 'x, w'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, w, dy) -> tuple[real["N"], real["7"]]:\n    return dy * w, dy * x', 6, 'backward', 'the gradient of w is real of shape (N,) here', 'leave the annotation out'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, w, dy) -> tuple[real["N"], f64["N"]]:\n    return dy * w, dy * x', 6, 'annotation', 'not one of', ''),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, dy, **kept):\n    return dy, dy * x', 6, 'backward', 'without **kept', 'name each: x, i, w, y, dy'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(*a):\n    return a', 6, 'backward', 'without *a', ''),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, /, w, dy):\n    return dy * w, dy * x', 6, 'backward', 'x stands before a /', 'leave the / out'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, *, w, dy):\n    return dy * w, dy * x', 6, 'backward', 'w stands after a *', 'leave the * out'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, w, dy):\n    return dy * w, np.argsort(x)', 6, 'type', 'the gradient of w is an integer, not real', 'astype'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, w, dy):\n    return dy * w, None, dy * x', 7, 'backward', 'None has no place here', 'one each for: x, w'),
    ('@layer\ndef f(x: real["N"], i: i64["N"], w: real["N"]):\n    return x * w\n\n@f.backward\ndef b(x, w, dy):\n    if x[0] > 0:\n        return dy * w, None, dy * x\n    return dy * w, None, dy * x', 8, 'backward', 'None has no place here', ''),
    ('class A(Layer):\n    s: State[real["N"]] = init.zeros()\n    def forward(self, x: real["N"]):\n        return x\n    def backward(self, dy):\n        self.s = dy\n        return dy', 6, 'role', 'a backward cannot assign the state s', 'in forward'),
    ('class A(Layer):\n    s: State[real["N"]] = init.zeros()\n    def forward(self, x: real["N"]):\n        return x\n    def backward(self, dy):\n        self.s[0] += 1\n        return dy', 6, 'role', 'a backward cannot assign the state s', 'in forward'),
    ('def g(x):\n    return x\n\n@layer\ndef f(x: real["N"]):\n    return g(x)\n\ndef g(x):\n    return -x', 8, 'layer', 'g is defined twice, also in line 3', 'a name of its own'),
    ('@layer\ndef f(x: real["N"]):\n    return x\n\nf = 3', 5, 'layer', 'f is defined twice', 'a name of its own'),
    ('a, k = 3, 4\n@layer\ndef f(x: real["N"]):\n    return x * k(x)\n\ndef k(x):\n    return x', 6, 'layer', 'k is defined twice, also in line 3', ''),
    ('class A(Layer):\n    name: int = 3\n    def predict(self, x: real["N"]):\n        return x', 2, 'annotation', 'every layer has its own name', 'rename it'),
    ('class A(Layer):\n    tops: int = config(3)\n    def predict(self, x: real["N"]):\n        return x', 2, 'annotation', 'every layer has its own tops', 'rename it'),
    ('def f(x: real["N"]) -> {"x": real["N"], "z": real["N"]}:\n    return x, x', 2, 'annotation', "'x' names an input and an output", 'another name'),
    ('def f(x: real["N"], y: real["N"]):\n    return np.where(x > 0 and y > 0, x, y)', 3, 'type', 'truth of an array of shape (N,) is ambiguous', '(x > 0) & (y > 0)'),
    ('def f(x: real["N"]):\n    x.fill(3)\n    return x', 3, 'unsupported', 'no method fill', 'x[...] = v'),
    ('def f(x: real["N"]):\n    return x.tolist()', 3, 'unsupported', 'no method tolist', 'indexed as they are'),
    ('def f(x: real["N"]):\n    return x.maxx()', 3, 'unsupported', 'no method maxx', 'did you mean max?'),
    ('def f(x: real["N"]):\n    return np.interp(x, x, x)', 3, 'unsupported', 'np.interp is not', 'write the weights'),
    ('def f(x: real["N N"]):\n    return np.linalg.svd(x)', 3, 'unsupported', 'np.linalg.svd is not', 'solve, inv'),
    ('def g(x, acc=[]):\n    acc.append(x)\n    return np.stack(acc)\n\n@layer\ndef f(x: real["N"]):\n    return g(x)', 7, 'unsupported', 'the default of acc is one list', 'acc = []'),
    ('class A(Layer):\n    def predict(self, x: real["N"]):\n        return super().predict(x)', 3, 'unsupported', 'super is not part', 'Base.forward(self, x)'),
    ('from layerc import ode45\nclass A(Layer):\n    def rate(self, t, y):\n        return -y\n    def predict(self, x: real["N"]):\n        return ode45(self.rate, 0.0, 1.0, x)', 6, 'name', 'self.rate is a method', 'lambda t, y: self.rate(t, y)'),
    ('def f(x: real["N"]):\n    return x + np.expand_dims(0.0, None)', 3, 'type', 'axis must be an integer, not None', ''),
    ('x = 3', 1 - FIRST, 'layer', 'no layer in this file', '@layer'),
]
# fmt: on
_ids = [f"{k}-{m[3][:30] or m[2]}" for k, m in enumerate(MISTAKES)]


def write(path, text):
    """A case's text as a layer file. A bare function is marked as a layer: its line numbers count the mark."""
    text = textwrap.dedent(text)
    path.write_text(HEAD + ("@layer\n" if text.startswith("def f") else "") + text + "\n")
    return path


@pytest.mark.parametrize(("text", "line", "kind", "message", "help"), MISTAKES, ids=_ids)
def test_a_mistake_is_drawn_where_it_is(text, line, kind, message, help, tmp_path):
    source = write(tmp_path / "wrong.py", text)
    with pytest.raises(InvalidFile) as caught:
        compile_module(read_module(source))
    drawn = str(caught.value)
    assert any(
        part.startswith(f"wrong.py:{FIRST + line}:") and f"error[{kind}]: " in part and message in part and help in part
        for part in split(drawn)
    ), drawn
    assert "Traceback" not in drawn


# What the files beside it are; wrong.py, which uses g; where the one mistake is, and its words
ALONE = [
    ({"lib": "def g(x:"}, "from lib import g", "lib.py:1:", "was never closed"),
    ({"lib": "from wrong import f\ndef g(x):\n    return f(x)"}, "from lib import g", "lib.py:1:", "in a circle"),
    ({"lib": "def g(x):\n    return x"}, "from lib import *", "wrong.py:3:", "import *"),
    ({"lib": "def g(x):\n    return x"}, "from lib import h as g", "wrong.py:3:", "lib.py defines no h"),
    ({}, "from layerc import g", "wrong.py:3:", "layerc has no g"),
    ({}, "from nomodule import g", "wrong.py:6:", "nomodule.py"),
    ({}, "import nomodule as g", "wrong.py:6:", "nomodule.py"),
    ({"lib": "import numpy as np\ndef g(x):\n    return " + "+".join(["x"] * 1500)}, "from lib import g", "lib.py:3:", "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "importing", "place", "message"), ALONE, ids=[a[1] for a in ALONE])
def test_a_mistake_of_an_import_is_told_once(files, importing, place, message, tmp_path):
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text + "\n")
    called = "g.relu(x)" if importing.startswith("import ") else "g(x)"
    text = f"from layerc import layer, real\n\n{importing}\n@layer\ndef f(x: real['N']):\n    return {called}\n"
    (tmp_path / "wrong.py").write_text(text)
    with pytest.raises(InvalidFile) as caught:
        read_module(tmp_path / "wrong.py")
    assert len(caught.value.mistakes) == 1, str(caught.value)
    drawn = str(caught.value)
    assert drawn.startswith(place), drawn
    assert message in drawn, drawn


def test_an_import_in_a_function_is_told_once(tmp_path):
    source = write(tmp_path / "wrong.py", 'def f(x: real["N"]):\n    from math import pi\n    return x * pi')
    with pytest.raises(InvalidFile, match="at the top of the file") as caught:
        read_module(source)
    assert len(caught.value.mistakes) == 1


def test_backwards_need_no_names_of_their_own(tmp_path):
    text = "".join(
        f'@layer\ndef {f}(x: real["N"]) -> real["N"]:\n    return x\n\n@{f}.backward\ndef _(dy):\n    return dy\n\n'
        for f in ("one", "two")
    )
    assert len(read_module(write(tmp_path / "named.py", text)).layers) == 2


def test_a_gradient_may_be_a_number(tmp_path):
    text = """
        @layer
        def f(x: real["N"], s: real) -> real["N"]:
            return x

        @f.backward
        def b(x, dy) -> tuple[real["_"], real[""]]:
            return dy, 0
        """
    assert read_module(write(tmp_path / "constant.py", text)).layers[0].custom


def test_long_sums_are_no_mistake(tmp_path):
    source = write(tmp_path / "long.py", f'def f(x: real["N"]):\n    return {" + ".join(["x"] * 400)}')
    assert compile_module(read_module(source)).parts


# A whole file of one mistake: its line, its words, the help
ONLY = [
    ("from layerc import *\n\n@layer\ndef f(x: real['N']):\n    return x", 1, "import * is not part", "name what"),
    ("from layerc import real\n\n@layer\ndef f(x: real['N']):\n    return x", 3, "@layer is not imported", "from layerc import layer"),
    ("from layerc import real\n\nclass A(Layer):\n    def predict(self, x: real['N']):\n        return x", 3, "Layer is not imported", "from layerc import Layer"),
    ("from layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    c = x\n    def g():\n        nonlocal c\n        c = c + 1\n        return c\n    return g()", 7, "Nonlocal is not part", "return the value"),
    ("from layerc import layer, real\n\nif True:\n    K = 3\n\n@layer\ndef f(x: real['N']):\n    return x * K", 3, "an if gives a meaning", "define K without if"),
    ("import numpy as np\nfrom layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    return np.tensorinv(x)", 6, "np.tensorinv is not part", ""),
    ("import numpy as np\nfrom layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    return np.unwrap(x)", 6, "np.unwrap is not part", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message", "help"), ONLY, ids=[o[2] for o in ONLY])
def test_a_mistake_has_no_consequences(text, line, message, help, tmp_path):
    (tmp_path / "wrong.py").write_text(text + "\n")
    with pytest.raises(InvalidFile) as caught:
        read_module(tmp_path / "wrong.py")
    (mistake,) = caught.value.mistakes
    assert mistake.span.line == line
    assert message in mistake.message
    assert help in mistake.help
    assert help or not mistake.help


WHOLE = [
    (b"# coding: nosuch\n", "wrong.py:1:1: error[syntax]: unknown encoding: nosuch"),
    ("x = 'ä'; y = (\n".encode(), "wrong.py:1:14: error[syntax]: '(' was never closed"),
    ("def f(x):\n    return 'ä\xa0'\n".encode() + b"# \xe4\n", "wrong.py:3:3: error[syntax]: the byte 0xe4 is not UTF-8"),
    ("from layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    äö = x; return y\n".encode(), "wrong.py:5:20: error[name]: y is not"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "begin"), WHOLE, ids=[w[1] for w in WHOLE])
def test_bytes_of_a_file(content, begin, tmp_path):
    (tmp_path / "wrong.py").write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        read_module(tmp_path / "wrong.py")
    assert str(caught.value).startswith(begin), str(caught.value)
    if "[syntax]" in begin:  # told once, where it is, also from a file that imports this one
        (tmp_path / "user.py").write_text("from layerc import layer, real\nimport wrong\n")
        with pytest.raises(InvalidFile) as again:
            read_module(tmp_path / "user.py")
        assert str(again.value) == str(caught.value)


def split(drawn):
    """The mistakes of a drawing, one text each."""
    parts = []
    for row in drawn.splitlines():
        if row.startswith("wrong.py:"):
            parts.append("")
        parts[-1] += row + "\n"
    return parts


def test_all_mistakes_are_found_in_one_run(tmp_path):
    text = """
        def f(x: real["N"]):
            a = np.unique(x)
            b = a + 1
            c = undefined
            return np.sum(x, axis=3)

        @layer
        def g(x: real["N"]):
            return np.nonzero(x)
        """
    source = write(tmp_path / "wrong.py", text.lstrip("\n"))
    with pytest.raises(InvalidFile) as caught:
        read_module(source)
    assert [m.span.line - FIRST for m in caught.value.mistakes] == [3, 5, 6, 10]


def test_lines_are_those_of_python(tmp_path):
    """A form feed, U+2028 and the like end no line."""
    text = """
        def f(x: real["N"]):
            h = np.zeros(())  # \u2028 \x1c \x0b
            for v in x:
                h = np.sin(h) * v
            return h
        \x0c
        @layer
        def g(x: real["N"]):
            return np.exp(x)

        @g.backward
        def back(x, dy):
            return np.exp(x) * dy
        """
    source = write(tmp_path / "pages.py", text.lstrip("\n"))
    module = read_module(source)
    assert module.layers[1].source.startswith('@layer\ndef g(x: real["N"]):')
    found = gradients_of(module)
    assert found.sources["g"].startswith("def back(x, dy):")
    assert f"# {FIRST + 4}: for v in x:" in found.sources["f"]
    source.write_text(source.read_text().replace("(x) * dy", "(x) * dz"))
    with pytest.raises(InvalidFile, match=r"\n +16 \|     return np.exp\(x\) \* dz\n"):
        read_module(source)


def test_a_failed_build_leaves_nothing_and_the_older_package_as_it_was(tmp_path):
    source = write(tmp_path / "wrong.py", 'def f(x: real["N"]):\n    return x + 1')
    made = build(source)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in made.iterdir() if p.is_file()}
    write(source, 'def f(x: real["N"]):\n    return np.unique(x)')
    with pytest.raises(InvalidFile):
        build(source)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in made.iterdir() if p.is_file()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["wrong.py", made.name]
    fresh = tmp_path / "fresh_compiled"
    with pytest.raises(InvalidFile):
        build(source, fresh)
    assert not fresh.exists()


# -- exceptions at the call -------------------------------------------------------------------------------
CALLS = """
import numpy as np
from layerc import i64, layer, real

@layer(backward=None)
def at(x: real["N"], k: i64):
    return x[k]

@layer(backward=None)
def gathered(x: real["N"], k: i64["K"]):
    return x[k]

@layer(backward=None)
def last(x: real["N"]):
    return x[-1]

@layer(backward=None)
def third(x: real["N"]):
    return x[2]

@layer(backward=None)
def stored(x: real["N"], k: i64):
    x[k] = 1
    return x

@layer(backward=None)
def before(x: real["N"]):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i + 1]
    return y

@layer(backward=None)
def positive(x: real["N"]):
    assert np.all(x > 0), "x must be positive: {}"
    return np.log(x)

@layer(backward=None)
def ratio(a: i64, b: i64):
    return a // b

@layer(backward=None)
def remainder(a: i64, b: i64):
    return a % b

@layer(backward=None)
def parts(x: real["N"], *, k: int = 2):
    return x * (x.shape[0] // k)

@layer(backward=None)
def largest(x: real["N"]):
    return np.max(x)

@layer(backward=None)
def best(x: real["N M"]):
    return np.argmin(x, axis=1)

@layer(backward=None)
def popped(x: real["N"], k: i64):
    saved = []
    saved.append(x)
    for i in range(k):
        x = x + saved.pop()
    return x

@layer(backward=None)
def unread(x: real["N M"], k: i64):
    x[0] = 0
    row = x[k]
    return np.sum(x)

@layer(backward=None)
def unsaid(x: real["N"], k: i64):
    assert k > 0
    return x * k
"""

X = np.arange(3.0)
# call | exception | its line | parts of the message
# fmt: off
RAISED = [
    ('at', (X, 3), {}, IndexError, 7, ('at', 'index 3', 'axis 0', 'size 3')),
    ('at', (X, -4), {}, IndexError, 7, ('index -4',)),
    ('gathered', (X, np.array([0, 2, 3])), {}, IndexError, 11, ('index 3', 'size 3')),
    ('gathered', (X, np.array([0, -4])), {}, IndexError, 11, ('index -4',)),
    ('last', (X[:0],), {}, IndexError, 15, ('index -1', 'size 0')),
    ('third', (X[:2],), {}, IndexError, 19, ('index 2', 'size 2')),
    ('stored', (X, 5), {}, IndexError, 23, ('index 5',)),
    ('before', (X,), {}, IndexError, 30, ('index 3', 'size 3')),
    ('positive', (X,), {}, AssertionError, 35, ('positive', 'x must be positive: {}')),
    ('ratio', (1, 0), {}, ZeroDivisionError, 40, ('division',)),
    ('remainder', (1, 0), {}, ZeroDivisionError, 44, ('modulo',)),
    ('parts', (X,), {'k': 0}, ZeroDivisionError, 48, ('division',)),
    ('largest', (X[:0],), {}, ValueError, 52, ('zero-size array to reduction operation maximum',)),
    ('best', (np.zeros((2, 0)),), {}, ValueError, 56, ('argmin of an empty sequence',)),
    ('popped', (X, 2), {}, IndexError, 63, ('pop from empty list',)),
    ('unread', (X[:, None], 3), {}, IndexError, 69, ('index 3', 'size 3')),
    ('unsaid', (X, 0), {}, AssertionError, 74, ('what is asserted here does not hold',)),
]
# fmt: on
# fmt: off
FINE = [
    ('at', (X, -3)),
    ('gathered', (X, np.array([-1, 0]))),
    ('gathered', (X, np.zeros(0, np.int64))),
    ('last', (X,)),
    ('third', (X,)),
    ('ratio', (-7, 2)),
    ('remainder', (-7, 2)),
    ('ratio', (7, -2)),
    ('remainder', (7, -2)),
    ('parts', (X,)),
    ('best', (np.zeros((0, 2)),)),
    ('largest', (X,)),
    ('popped', (X, 1)),
    ('unread', (X[:, None], -3)),
]
# fmt: on


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    (folder / "calls.py").write_text(CALLS)
    made = build(folder / "calls.py")
    sys.path.insert(0, str(folder))
    yield importlib.import_module(made.name)
    sys.path.remove(str(folder))


@pytest.mark.parametrize(
    ("name", "args", "options", "kind", "line", "parts"),
    RAISED,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_call_fails_with_the_place(name, args, options, kind, line, parts, compiled):
    with pytest.raises(kind) as caught:
        getattr(compiled, name)(*args, **options)
    assert str(caught.value).startswith(f"calls.py:{line}: {name}: "), caught.value
    assert all(part in str(caught.value) for part in parts), caught.value
    if name in ("ratio", "remainder"):  # NumPy's own integers only warn
        return
    with pytest.raises(kind):  # as the source itself
        getattr(compiled, name).reference(*args, **options)


@pytest.mark.parametrize(("name", "args"), FINE, ids=lambda v: v if isinstance(v, str) else "")
def test_the_edge_of_what_is_allowed(name, args, compiled):
    layer = getattr(compiled, name)
    np.testing.assert_array_equal(layer(*args), layer.reference(*args))


OPTIONS = """
from layerc import Layer, Param, init, layer, real


@layer
def out(x: real["N"], out: real["N"]) -> real["N"]:
    return x + out


@layer
def batch(x: real["N"], batch: real["N"]) -> real["N"]:
    return x + batch


@layer
def acceleration(x: real["N"], acceleration: real["N"]) -> real["N"]:
    return x + acceleration


@layer
def self(x: real["N"], self: real["N"]) -> real["N"]:
    return x + self


class Scale(Layer):
    factor: Param[real["N"]] = init.ones()

    def predict(self, x: real["N"], out: real["N"], acceleration: real["N"]) -> real["N"]:
        return self.factor * x + out + acceleration
"""


@pytest.fixture(scope="module")
def named_as_options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    (folder / "named_as_options.py").write_text(OPTIONS)
    made = build(folder / "named_as_options.py")
    sys.path.insert(0, str(folder))
    yield importlib.import_module(made.name)
    sys.path.remove(str(folder))


@pytest.mark.parametrize("name", ["out", "batch", "acceleration"])
def test_an_argument_called_like_an_option_of_every_call(name, named_as_options):
    x, scale, text = np.ones(3), named_as_options.Scale(), f"argument '{name}' is missing; give it by position"
    fn = getattr(named_as_options, name)
    scale.initialize((3,), (3,), (3,), dtype=np.float64)
    np.testing.assert_array_equal(fn(x, x), x + x)
    np.testing.assert_array_equal(scale(x, x, x), 3 * x)
    for call in (fn, fn.vjp):
        with pytest.raises(TypeError, match=text):
            call(x, **{name: x})
    for call in (scale, scale.vjp) if name != "batch" else ():
        with pytest.raises(TypeError, match="give it by position"):
            call(x, x, **{name: x})


def test_an_argument_called_self(named_as_options):
    x = np.ones(3)
    np.testing.assert_array_equal(named_as_options.self(x, self=x), x + x)
    np.testing.assert_array_equal(named_as_options.self.vjp(x, self=x)[0], x + x)


# -- what must never pass in silence ------------------------------------------------------------------------------
ONE = "import numpy as np\nfrom layerc import layer, real\n\n\n@layer\ndef one(x: real['N']):\n    v = x.T\n    x[0] = 1\n    return v, x\n"


def test_a_layer_that_comes_to_nothing_without_a_mistake_is_a_fault_of_ours(monkeypatch):
    def nothing(*_):
        raise Suppressed

    monkeypatch.setattr("layerc.transpile.layers._function_layer", nothing)
    with pytest.raises(InternalError, match="it came to nothing, and no mistake says why"):
        check_file(Path("one.py"), ONE)


def test_a_typing_with_choices_that_fails_in_silence_gives_way_to_the_first(monkeypatch):
    plain = _Body.typed

    def typed(self, reporter, chosen, apart):
        found = plain(self, reporter, chosen, apart)
        if chosen:
            found.error, found.undecided = Suppressed(), set()
        else:
            found.undecided = {"x"}
        return found

    monkeypatch.setattr(_Body, "typed", typed)
    assert check_file(Path("one.py"), ONE).layers[0].name == "one"
