"""A random program as a class layer: its Params are fields, one of them may be a State that `forward` assigns.

    @layer                                            class p3(Layer):
    def p3(x: real["N"], w: Param[real["N"]]):   ->       w: Param[real["N"]] = init.ones()
        return x * w
                                                          def predict(self, x: real["N"]):
                                                              return x * self.w

Programs are drawn, changed and shrunk as functions; only what layerc and NumPy get is the class.
"""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace
from typing import Any

# What a class body says of first values means nothing here: tests set them.
FIELDS = {
    "Layer": object,
    "init": SimpleNamespace(ones=lambda: None, zeros=lambda: None),
    "config": lambda value: value,
}


def as_class(text: str, name: str, state: str = "", batched: bool = False) -> str:
    """The text with its layer, which comes last, as a class. `state`: the Param that is a state instead. A text that is
    none any more (an ill-typed program is made of any) stays as it is."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    function = tree.body[-1]
    if not (isinstance(function, ast.FunctionDef) and function.name == name):
        return text
    fields, inputs, keys = [], [], set()
    defaults = len(function.args.args) - len(function.args.defaults)
    for k, argument in enumerate(function.args.args):
        said = ast.unparse(argument.annotation) if argument.annotation else "real"
        if argument.arg == state:
            fields.append(f"{argument.arg}: {said.replace('Param', 'State', 1)} = init.zeros()")
        elif said.startswith("Param"):
            fields.append(f"{argument.arg}: {said} = init.ones()")
        elif k >= defaults:
            fields.append(f"{argument.arg}: {said} = config({ast.unparse(function.args.defaults[k - defaults])})")
        else:
            inputs.append(argument)
            continue
        keys.add(argument.arg)
    function.args.args = [ast.arg("self"), *inputs]
    function.args.defaults = []
    function.decorator_list = []
    function.name = "forward" if state else "predict"
    function.body = [_Fields(keys).visit(s) for s in function.body]
    if state:
        function.body[:0] = ast.parse(_update(state, [a.arg for a in inputs if _is_real(a)] if batched else [])).body
    method = ast.unparse(ast.fix_missing_locations(function))
    lines = [f"class {name}(Layer):", *(f"    {line}" for line in ["batched = True"] * batched + fields), ""]
    return "\n".join(
        [*(ast.unparse(s) + "\n\n" for s in tree.body[:-1]), *lines, *(f"    {s}" for s in method.splitlines()), ""]
    )


def _is_real(argument: ast.arg) -> bool:
    return argument.annotation is not None and ast.unparse(argument.annotation).startswith("real")


def _update(state: str, inputs: list[str]) -> str:
    """Of a whole batch, a state may depend on its examples; of one example all must leave the same."""
    more = f"np.sum({inputs[0]})" if inputs else "0.25"
    return f"self.{state} = 0.5 * self.{state} + 0.125 * {more}"


class _Fields(ast.NodeTransformer):
    """w -> self.w"""

    def __init__(self, keys: set[str]) -> None:
        self.keys = keys

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx) if node.id in self.keys else node


class Called:
    """A class layer under NumPy as the function that it was drawn as; `states` are those that the last call left."""

    def __init__(self, kind: type, order: list[str], state: str) -> None:
        self.kind, self.state = kind, state
        self.method = next(m for n in ("forward", "predict") if (m := getattr(kind, n, None)))
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in order]
        )

    def __call__(self, **values: Any) -> Any:
        layer = self.kind()
        inputs = inspect.signature(self.method).parameters
        vars(layer).update({n: v for n, v in values.items() if n not in inputs})
        result = self.method(layer, **{n: v for n, v in values.items() if n in inputs})
        self.states = {self.state: getattr(layer, self.state)} if self.state else {}
        return result


class Compiled:
    """A compiled class layer called as the function that it was drawn as."""

    def __init__(self, kind: Any, arguments: tuple[Any, ...], state: str) -> None:
        self.kind, self.arguments, self.state = kind, arguments, state

    def _layer(self, values: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        given = {a.name: v for a, v in zip(self.arguments, values, strict=True)}
        inputs = {a.name: given[a.name] for a in self.arguments if a.role == "input"}
        real = next(v.dtype for a, v in zip(self.arguments, values, strict=True) if a.dtype == "real")
        layer = self.kind(name="drawn")
        layer.initialize(*(v.shape for v in inputs.values()), dtype=real)
        for a in self.arguments:
            if a.role != "input":
                (layer.states if a.name == self.state else layer.params)[a.name] = given[a.name]
        return layer, list(inputs.values())

    def __call__(self, *values: Any) -> Any:
        layer, inputs = self._layer(values)
        return layer(*inputs)

    def vjp(self, *values: Any) -> tuple[Any, Any]:
        layer, inputs = self._layer(values)
        y, pullback = layer.vjp(*inputs)
        self.states = dict(layer.states)

        def pulled(*dys: Any) -> tuple[Any, ...]:
            """Those of the inputs, then those of the params; states have none."""
            found = pullback(*dys)
            params = [a.name for a in self.arguments if a.role == "param"]
            assert set(params) == found.params.keys()
            return *found.inputs, *(found.params[name] for name in params)

        return y, pulled


__all__ = ["FIELDS", "Called", "Compiled", "as_class"]
