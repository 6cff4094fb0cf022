"""Whether a call is part of a rehearsal (`layerc.runtime.rehearse`): asked at calls, and cheap where there is none."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layerc.runtime.stand_in import StandIn


def rehearsed(arrays: Any) -> "StandIn | None":
    """The first stand-in among arrays. Without the module there is none, and a built package does not need it."""
    module = sys.modules.get("layerc.runtime.stand_in")
    found: StandIn | None = module.first_of(arrays) if module is not None else None
    return found
