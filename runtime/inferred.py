"""The element types that a compiled layer gives where its file leaves the return annotation out.

NumPy alone cannot tell `np.zeros(n)`, which is `real`, from `np.zeros(n, dtype=np.float64)`: the checker can. So a
compiled function says them to its reference.
"""

from contextvars import ContextVar

inferred: ContextVar[tuple[str, ...]] = ContextVar("inferred", default=())
