"""How the class layers of built packages have the characteristics of layers (`is_source`, `can_do_bp`...)."""

from typing import Any


class Characteristic:
    """One of a package's class, or of its layers: that of the class which runs it in a net.

    Asked for when it is read, as the nets are loaded where they are used.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, kind: Any) -> bool:
        from layerc.runtime.compiled_layer import class_for

        return bool(getattr(class_for(kind), self.name))
