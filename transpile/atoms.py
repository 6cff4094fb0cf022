"""Names, constants and attributes: the expressions that hold no others."""

from __future__ import annotations

from typing import Any

import gast

from . import construct
from .construct import const
from .errors import Suppressed
from .operations import BY_SPELLING
from .program import (
    Expr,
    Name,
)
from .source import CONSTANTS, Source
from .suggestions import UNDEFINED, nearest
from .typing import BUILTIN_DTYPES, DTYPES
from .values import (
    Broken,
    Closure,
    Later,
    Static,
    Tuple,
    Value,
)


class Atoms:
    """Mixed into the checker of expressions."""

    def _constant(self: Any, node: Any, value: Any) -> Value:
        if value is None or isinstance(value, str):
            return Static(value)
        if isinstance(value, (bool, int, float)):
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise self.fail(node, "type", "the integer does not fit 64 bits")
            expr = const(value)
            return construct.replace(expr, span=self.span(node))
        raise self.fail(
            node, "type", f"{type(value).__name__} values are not part of the subset", "use float, int or bool"
        )

    def _name(self: Any, node: Any, id: str) -> Value:
        value = self.env.get(id)
        if isinstance(value, Broken):
            if value.message is None:
                raise Suppressed
            raise self.fail(node, "name", value.message, value.help)
        if isinstance(value, Name):
            return construct.replace(value, span=self.span(node))
        if value is not None and (id.startswith("<") or not isinstance(value, Later)):
            return self.unlisted(value, node)
        if id in self.assigned:
            raise self.fail(
                node,
                "name",
                f"{id} has no value yet: as the function assigns it further down, it is a variable of the function",
                "give that variable another name",
            )
        found = self.source.defined(id)
        if found is not None:
            return self._defined(node, *found)
        dotted = self.source.resolve(node)
        if dotted in CONSTANTS:
            number = CONSTANTS[dotted]
            return Static(None) if number is None else const(number)
        if dotted in DTYPES or id in BUILTIN_DTYPES:
            return Static(id if dotted is None else dotted)
        if dotted in BY_SPELLING or dotted:
            return Static(dotted)
        if self.source.is_lost(id):
            raise Suppressed
        raise self.fail(
            node,
            "name",
            f"{id} is not defined",
            nearest(id, [*self.env, *self.source.functions, *self.source.constants]) or UNDEFINED,
        )

    def _defined(self: Any, node: Any, source: Source, id: str) -> Value:
        """A function or constant of this file, or of an imported one."""
        if id in source.functions:
            return Closure(source.functions[id], source, None, id)
        if id in source.classes:
            raise self.fail(
                node, "unsupported", f"the class {id} is not a value here", f"call its method: {id}.predict(self, x)"
            )
        return self._module_constant(node, source, id)

    def _module_constant(self: Any, node: Any, source: Source, id: str) -> Value:
        key = f"{source.path}:{id}"
        if key in self.constants_seen:
            raise self.fail(node, "name", f"the constant {id} is defined by itself")
        outer = self.constants_seen, self.env, self.source
        self.constants_seen, self.env, self.source = (*self.constants_seen, key), {}, source
        try:
            return self.value(source.constants[id])
        finally:
            self.constants_seen, self.env, self.source = outer

    def _attribute(self: Any, node: Any) -> Value:
        dotted = self.source.resolve(node)
        if dotted is not None and not (isinstance(node.value, gast.Name) and node.value.id in self.env):
            if dotted in CONSTANTS:
                number = CONSTANTS[dotted]
                return Static(None) if number is None else const(number)
            return Static(dotted)
        if isinstance(node.value, gast.Name) and node.value.id == "self" and "self" not in self.env:
            return self._field(node, node.attr)
        if isinstance(node.value, gast.Name) and node.value.id in self.source.modules and node.value.id not in self.env:
            member = self.source.member(node)
            if member is None:
                module = self.source.modules[node.value.id]
                raise self.fail(
                    node,
                    "name",
                    f"{module.path} defines no {node.attr}",
                    nearest(node.attr, [*module.functions, *module.constants]),
                )
            return self._defined(node, *member)
        if self.is_array_list(node.value):
            raise self.fail(node, "type", f"a list has no {node.attr}", "len(ys), or stack it first: np.stack(ys)")
        base = self.typed(node.value)
        self._no_number(base, node, f"has no {node.attr}")
        match node.attr:
            case "shape":
                return Tuple(tuple(construct.call("extent", base, axis=i) for i in range(base.type.rank)))
            case "ndim":
                return const(base.type.rank)
            case "size":
                return construct.call("size", base)
            case "dtype":
                return Static(f"dtype:{base.type.dtype}")
            case "T" | "mT":
                return construct.call("transpose", base, axes=None) if base.type.rank > 1 else base
        raise self.fail(
            node,
            "unsupported",
            f"arrays have no attribute {node.attr} here",
            "shape, ndim, size, dtype, T, and methods",
        )

    def _no_number(self: Any, base: Expr, node: Any, what: str) -> None:
        """What arrays have, and NumPy's scalars, Python's numbers have not."""
        if base.type.pythons and not base.type.rank:
            own = {"real": "float", "i64": "int"}.get(base.type.dtype, base.type.dtype)
            said = f"a Python number ({own}) {what}"
            raise self.fail(node, "type", said, "np.asarray(...) makes an array of it")

    def _field(self: Any, node: Any, attr: str) -> Value:
        key = f"self.{attr}"
        if key in self.env:
            return self._name_like(node, key, attr)
        if attr in self.methods:
            arguments = ", ".join(a.id for a in self.methods[attr][1].args.args[1:])
            help = f"as a function: lambda {arguments}: self.{attr}({arguments})"
            raise self.fail(node, "name", f"self.{attr} is a method, which can only be called here", help)
        fields = [k[5:] for k in self.env if k.startswith("self.")]
        raise self.fail(node, "name", f"the layer has no field {attr}", nearest(attr, fields))

    def _name_like(self: Any, node: Any, key: str, shown: str) -> Value:
        value = self.env[key]
        if isinstance(value, Broken):
            if value.message is None:
                raise Suppressed
            raise self.fail(node, "name", value.message, value.help)
        return construct.replace(value, span=self.span(node)) if isinstance(value, Name) else value


__all__ = ["Atoms"]
