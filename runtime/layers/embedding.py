"""Rows of a table."""

from layerc import Param, i64, layer, real


@layer(batched=True)
def embedding(index: i64["N"], weight: Param[real["V D"]]) -> real["N D"]:
    """weight[index]."""
    return weight[index]
