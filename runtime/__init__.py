"""What a built package needs at run time, and the Net runtime: `from layerc.runtime import ...`.

Each name is imported at its first use (PEP 562): a built package pays for what it uses only.
"""

from importlib import import_module

_MODULES = {
    "set_num_threads": "layerc.runtime.threads",
    "get_num_threads": "layerc.runtime.threads",
    # --- The Net's names go below, one line each: name -> module that defines it. ---
}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
