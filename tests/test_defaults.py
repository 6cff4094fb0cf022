"""Defaults, checks and initial values: read from the text of a file, and held to by the package."""

from __future__ import annotations

import inspect
import math

import pytest

from layerc import init
from layerc.runtime.settings import Settings
from layerc.transpile.defaults import INITIALIZERS
from layerc.transpile.layers import check_file

FILE = """
import math
import numpy as np
from layerc import Layer, Param, config, init, layer, real

STEP = 3. / 20.

class A(Layer):
    k: {type} = config({default}, check=lambda k: k > -10 and math.isfinite(k))
    w: Param[real["N"]] = {init}
    def predict(self, x: real["N"]):
        return x * self.k

@layer
def f(x: real["N"], *, k: {type} = {default}):
    return x * k
"""

# type | default | its value
DEFAULTS = [
    ("float", "3. / 20.", 0.15),
    ("float", "2 * STEP", 0.3),
    ("int", "2**3", 8),
    ("float", "np.pi", math.pi),
    ("float", "-1.5", -1.5),
    ("float", "math.sqrt(2.0)", math.sqrt(2)),
    ("int", "+7 // 2", 3),
    ("bool", "not 3 < 2", True),
]
INITS = [
    ("init.uniform(hi=2.0, lo=-1)", ("uniform", (-1, 2.0))),
    ("init.uniform(hi=STEP)", ("uniform", (-1.0, 0.15))),
    ("init.normal(std=1 / 2)", ("normal", (0.0, 0.5))),
    ("init.constant(value=2)", ("constant", (2,))),
    ("init.he()", ("he", ())),
]


@pytest.mark.parametrize("case", range(max(len(DEFAULTS), len(INITS))))
def test_constants_are_worked_out(case, tmp_path):
    kind, default, value = DEFAULTS[case % len(DEFAULTS)]
    text, made = INITS[case % len(INITS)]
    module = check_file(tmp_path / "a.py", FILE.format(type=kind, default=default, init=text))
    for found in module.layers:
        (k,) = (p for p in found.predict.params if p.name == "k")
        assert k.default == value
        assert not k.required
    assert [p.init for p in module.layers[0].predict.params if p.name == "w"] == [made]


def test_initializers_are_those_of_the_face():
    for name, takes in INITIALIZERS.items():
        parameters = inspect.signature(getattr(init, name)).parameters
        assert {n: None if p.default is p.empty else p.default for n, p in parameters.items()} == takes
    assert INITIALIZERS.keys() == init._RULES.keys()


# dtype | check | default | given | part of the message
REFUSED = [
    ("int", "lambda k: k > 5", 3, {}, "fails its check"),
    ("int", "lambda k: k.no", 3, {"k": 4}, "fails its check"),
    ("int", None, 3, {"k": 2**63}, "64 bits"),
    ("int", None, 3, {"k": 2**80}, "64 bits"),
    ("float", None, 3.0, {"k": 10**400}, "beyond"),
]


@pytest.mark.parametrize(("dtype", "check", "default", "given", "part"), REFUSED)
def test_settings_that_are_refused(dtype, check, default, given, part):
    settings = Settings([{"name": "k", "dtype": dtype, "check": check, "default": default}])
    with pytest.raises(ValueError, match=part) as caught:
        settings.read("layer", given)
    assert str(caught.value).startswith("layer: argument 'k'")
