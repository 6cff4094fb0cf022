"""Draws of a random generator: pure functions of the seed, the number of the draw, the example and the element.

The first two are arguments, `rng` and `draw`; lowering adds the others. So nothing remembers how far a generator has
come, and a derivative that needs a draw again writes it again.
"""

from __future__ import annotations

from typing import Any

from ..operations import ZERO, Row, add
from ..program import Type
from ..typing import TypingError, broadcast, shape_text


def _draw(name: str, args: str, dtype: str, flops: int) -> None:
    def rule(types: list[Type], static: dict[str, Any]) -> Type:
        shape, own = tuple(static["shape"]), [t.shape for t in types[2:]]
        if broadcast([shape, *own]) != shape:
            raise TypingError(
                "shape",
                f"a draw of shape {shape_text(shape)} cannot be made from arguments of shape {shape_text(broadcast(own))}",
                "give the larger shape, or none: then it is that of the arguments",
            )
        return Type(dtype, shape)

    more = "".join(f", {{{k}}}" for k in range(4, 4 + len(args.split())))
    names = ", ".join(["rng", "draw", *args.split(), "shape: shape"])
    f = "{f}" if dtype == "real" else ""
    template = f"lc_draw_{name}{f}({{0}}, {{1}}, {{2}}, {{3}}{more})"
    spelling = {"normal": "standard_normal"}.get(name, name)
    add(Row(f"draw_{name}", f"Random.{spelling}", names, "draw", rule, ZERO, template, flops=flops))


_draw("random", "", "real", 60)
_draw("normal", "", "real", 100)
_draw("integers", "low high", "i64", 70)
_draw("bernoulli", "p", "bool", 60)
