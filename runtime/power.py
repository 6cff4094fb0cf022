"""`Power`: (scale x + shift)^power."""

import math
from typing import Any

from layerc.runtime.fields import field
from layerc.runtime.mapped import Mapped, Shape


class Power(Mapped):
    """(scale x + shift)^power, element by element."""

    scale: float = field(1.0, check=math.isfinite)
    shift: float = field(0.0, check=math.isfinite)
    power: float = field(1.0, check=math.isfinite)

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        return "standard.power", {"scale": self.scale, "shift": self.shift, "power": self.power}
