"""The digits net, for `layerc build examples/digits_net.py:net` (see ahead.py, which trains it first).

`layerc build` runs this file, as a net is an object; the weights that the net has then go with the package.
"""

import layers_compiled as L  # layerc build examples/layers.py
from digits import HERE, layers

from layerc.runtime import SGD, Input, Net

net = Net("digits", layers(L, Input([(64,), ()], ["data", "label"], name="data"), wide=64, ratio=0.2), seed=1)
solver = SGD(lr=0.05, momentum=0.9, regu_coef=1e-4)

weights = HERE / "out" / "digits.safetensors"
if weights.exists():
    net.load(weights)
