"""A layer file to its typed module: decorated functions and Layer classes, their roles, methods and custom
backwards."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import gast

from . import construct, defaults, extents, marks
from .aliasing import hidden_writes
from .annotations import Annotation, groups_of, parse_annotation, shape_string
from .depth import deep
from .dims import Atom, Dim, same_extent
from .errors import Mistake, Reporter, Suppressed, span_of
from .functions import FunctionChecker
from .lists import Key, Plan
from .program import (
    Assign,
    Expr,
    Function,
    Layer,
    Module,
    Name,
    Parameter,
    Result,
    Return,
    Span,
    Store,
    Type,
    stored,
    walk_stmts,
)
from .source import Source, loose_exit, read
from .typing import TypingError
from .values import RETURN, Broken, Fresh, Static, Tuple, Value, leaves

_T = TypeVar("_T")


@deep()
def check_file(path: Path, text: str | None = None) -> Module:
    """Reads and types a layer file. Raises InvalidFile with every mistake drawn; OSError if it cannot be read."""
    reporter = Reporter()
    source = read(path, reporter, text)
    if source is None:
        reporter.raise_if_any()
        raise AssertionError
    for mistake in marks.mistakes(source):
        reporter.add(mistake)
    layers = [
        _guarded(_function_layer, source, node, reporter)
        for node in source.functions.values()
        if marks.is_layer(source, node)
    ]
    layers += [
        _guarded(_class_layer, source, node, reporter)
        for node in source.classes.values()
        if marks.is_layer_class(source, node)
    ]
    if not reporter.mistakes:
        for mistake in filter(None, map(loose_exit, (source, *source.imported()))):
            reporter.add(mistake)
    found = sorted((layer for layer in layers if layer is not None), key=lambda layer: layer.span.line)
    for layer in found:
        for function in filter(None, (layer.predict, layer.forward, layer.custom)):
            for mistake in hidden_writes(function):
                reporter.add(mistake)
    files = {s.path: s.text for s in source.imported()}
    if not layers and not reporter.mistakes:
        reporter.add(
            Mistake(
                Span(1, 0, 1, 1, source.path),
                "layer",
                "there is no layer in this file",
                "mark a function with @layer, or derive a class from Layer",
            )
        )
    reporter.raise_if_any()
    return Module(source.path, source.text, tuple(found), tuple(sorted(files.items())))


def _guarded(make: Any, source: Source, node: Any, reporter: Reporter) -> Layer | None:
    return _attempt(reporter, lambda: make(source, node, reporter))


def _attempt(reporter: Reporter, make: Callable[[], _T]) -> _T | None:
    """What is made; None after a mistake, which is kept: the others of the file are to be found as well."""
    try:
        return make()
    except Mistake as mistake:
        reporter.add(mistake)
    except Suppressed:
        pass
    return None


def _broken(name: str, span: Span) -> Parameter:
    """Stands for an argument or field whose declaration has a mistake: what uses it makes no other one."""
    return Parameter(name, "broken", Type("real"), "", span=span)


# -- functions -------------------------------------------------------------------------------------------------
def _function_layer(source: Source, node: Any, reporter: Reporter) -> Layer:
    options = _attempt(reporter, lambda: marks.options(source, node)) or {}
    fresh = Fresh()
    params = _parameters(source, node, fresh, reporter, skip=0)
    for mistake in extents.mistakes(params, params):
        reporter.add(mistake)
    function = _checked(
        source, node, params, reporter, bool(options.get("batched")) or node.name in source.batched, node.name
    )
    # The files that layerc writes say themselves which functions take whole batches: also gradients, whose results may
    # be of Params.
    for mistake in extents.unbatched(function) if function.batched and node.name not in source.batched else ():
        reporter.add(mistake)
    custom_node = next(iter(marks.backwards(source, node.name)), None)
    mode = "none" if "backward" in options else "auto"
    custom = None
    if custom_node is not None:
        custom, mode = _checked_backward(source, custom_node, function, params, reporter, skip=0), "custom"
    _check_memory(span_of(node, source.path), function, custom)
    mode = _possible(mode, function)
    doc = gast.get_docstring(node) or ""
    text = source.excerpt(node)
    return Layer(
        node.name, "function", function.params, function, None, mode, custom, doc, text, span_of(node, source.path)
    )


def _possible(mode: str, function: Function) -> str:
    """No gradient is derived for a layer that takes nothing differentiable."""
    return (
        mode
        if mode != "auto" or any(p.role in ("input", "param") and p.type.is_float for p in function.params)
        else "none"
    )


def _parameters(source: Source, node: Any, fresh: Fresh, reporter: Reporter, skip: int) -> list[Parameter]:
    args = node.args
    found = []
    for many in (args.vararg, args.kwarg):
        if many:
            where = span_of(node, source.path)
            reporter.add(Mistake(where, "annotation", "a layer takes no * or ** arguments", "name every argument"))
            found.append(_broken(many.id, where))
    for arg in args.posonlyargs:
        where = span_of(arg, source.path)
        message = f"{arg.id} stands before a /: the arguments of a layer have names"
        reporter.add(Mistake(where, "annotation", message, "leave the / out"))
        found.append(_broken(arg.id, where))
    values: list[Any] = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
    pairs = list(zip(args.args, values, strict=True))[skip:] + list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    for arg, default in pairs:
        parameter = _attempt(reporter, lambda: _parameter(source, arg, default, fresh))  # noqa: B023 (called at once)
        found.append(parameter or _broken(arg.id, span_of(arg, source.path)))
    generators = [p for p in found if p.role == "random"]
    if len(generators) > 1:
        raise Mistake(
            generators[1].span,
            "annotation",
            "a layer takes one random generator",
            f"draw all numbers from {generators[0].name}",
        )
    return found


def _parameter(source: Source, arg: Any, default: Any, fresh: Fresh) -> Parameter:
    span = span_of(arg, source.path)
    if arg.annotation is None:
        raise Mistake(span, "annotation", f"the argument {arg.id} has no type", f'annotate it: {arg.id}: real["N C"]')
    annotation = parse_annotation(arg.annotation, source, fresh)
    value = None
    if default is not None:
        if annotation.role != "config":
            raise Mistake(
                span,
                "annotation",
                f"the {'generator' if annotation.role == 'random' else 'array'} {arg.id} has a default",
                "only configuration (float, int, bool) has defaults",
            )
        value = defaults.default(default, annotation.type.dtype, arg.id, source)
    fresh(arg.id)
    return Parameter(arg.id, annotation.role, annotation.type, annotation.text, value, default is None, span=span)


def _checked(
    source: Source,
    node: Any,
    params: list[Parameter],
    reporter: Reporter,
    batched: bool,
    name: str,
    fields: list[Parameter] | None = None,
    methods: dict[str, tuple[Source, Any]] | None = None,
) -> Function:
    """Types a function: again, as long as that finds out more about how long its lists become."""
    plans: dict[Key, Plan] = {}
    overwritten: set[str] = set()
    for last in (False, False, False, False, False, True):
        scratch = Reporter(reporter.sources)
        checker = FunctionChecker(source, scratch, Fresh(), node, plans)
        checker.methods = methods or {}
        _enter(checker, source, node, params, fields or [], overwritten)
        checker.block(node.body)
        changeable = [p for p in [*params, *(fields or [])] if p.role not in ("param", "config")]
        changeable = [p for p in changeable if p in params or p.role == "state"]
        through_views = {p.name for p in changeable} & stored(tuple(checker.out))
        if (checker.found == plans and not through_views) or last:
            break
        plans = dict(checker.found)
        overwritten |= through_views
    fixed = {p.name for p in params if p.role == "param"} | {f.name for f in fields or []}
    for stmt in walk_stmts(tuple(checker.out)):
        if isinstance(stmt, Store) and stmt.base.id in fixed:
            message = f"this writes into {stmt.base.id}, a Param of the layer, which it cannot change"
            scratch.add(Mistake(stmt.span, "role", message, "take a copy: .copy(); solvers change Params"))
    for mistake in _rebound(source, node, params):
        if all(m.span.line != mistake.span.line for m in scratch.mistakes):
            scratch.add(mistake)
    for mistake in scratch.mistakes:
        reporter.add(mistake)
    if any(m.kind == "role" for m in scratch.mistakes):
        raise Suppressed
    everything = [*params, *(fields or [])]
    results, values = _results(source, node, checker, everything)
    if any(p.role == "broken" for p in everything):
        raise Suppressed
    body = (*checker.out, Return(values, _return_span(source, node)))
    return Function(
        name, tuple(everything), body, results, batched, gast.get_docstring(node) or "", span_of(node, source.path)
    )


def _rebound(source: Source, node: Any, params: list[Parameter]) -> Iterator[Mistake]:
    """Assignments to the names of Params and configuration."""
    what = {"param": "a Param", "config": "configuration"}
    fixed = {p.name: what[p.role] for p in params if p.role in what}
    waiting = list(node.body)
    while waiting:
        inner = waiting.pop(0)
        if isinstance(inner, gast.Name) and isinstance(inner.ctx, gast.Store) and inner.id in fixed:
            yield Mistake(
                span_of(inner, source.path),
                "role",
                f"{inner.id} is {fixed[inner.id]}, which a layer cannot assign",
                "give the new value a name of its own",
            )
        if not isinstance(inner, (gast.FunctionDef, gast.Lambda, gast.ListComp, gast.GeneratorExp)):
            waiting += gast.iter_child_nodes(inner)


def _enter(
    checker: FunctionChecker,
    source: Source,
    node: Any,
    params: list[Parameter],
    fields: list[Parameter],
    overwritten: set[str],
) -> None:
    """The arguments and fields that the body sees. `overwritten`: arguments that it writes into by other names."""
    checker.states = {f.name: f.type for f in fields if f.role == "state"}
    _reserve(checker, [*params, *fields], source)
    for param in params:
        entry = _entry(param)
        if isinstance(entry, Name) and param.role == "random":
            checker.env[param.name] = checker.new_generator(entry)
        else:
            checker.env[param.name] = entry
    for own in fields:
        checker.env[f"self.{own.name}"] = _entry(own)
        if own.name in overwritten:
            _copied_if_stored(checker, own, node, f"self.{own.name}")
    for param in params:  # a function may write into its arguments: into a copy of them
        if param.name in checker.mutated | overwritten and param.type.rank and param.role != "param":
            _copied_if_stored(checker, param, node)


def _return_span(source: Source, node: Any) -> Any:
    returns = [n for n in gast.walk(node) if isinstance(n, gast.Return)]
    return span_of(returns[-1] if returns else node, source.path)


def _copied_if_stored(checker: FunctionChecker, param: Parameter, node: Any, id: str = "") -> None:
    own = checker.fresh(param.name)
    checker.emit(Assign(own, construct.call("copy", Name(param.name, param.type)), span_of(node, checker.source.path)))
    checker.env[id or param.name] = Name(own, param.type)


def _entry(param: Parameter) -> Value:
    if param.role == "broken":
        return Broken()
    if param.role == "config":
        return Name(param.name, param.type, Dim.of(param.name) if param.type.dtype == "int" else None, param.span)
    return Name(param.name, param.type, None, param.span)


def _reserve(checker: FunctionChecker, params: list[Parameter], source: Source) -> None:
    seen: set[str] = set()
    extents = {d.symbol for p in params for d in p.type.shape}
    for param in params:
        if param.name in seen:
            raise Mistake(param.span, "name", f"{param.name} is both an argument and a field", "rename one")
        seen.add(param.name)
        checker.fresh.used.add(param.name)
        if param.role == "config" and param.type.dtype == "bool":
            checker.truths.add(param.name)
        if param.role == "config" and param.type.dtype == "int" and param.name not in extents:
            # It may be negative, as far as proofs go.
            unknown = Dim.of(Atom("config", (param.name,)))
            checker.facts[param.name] = (unknown, unknown)
    for param in params:
        for dim in param.type.shape:
            checker.fresh.used |= dim.symbols()


# -- results ---------------------------------------------------------------------------------------------------
def _results(
    source: Source, node: Any, checker: FunctionChecker, params: list[Parameter]
) -> tuple[tuple[Result, ...], tuple[Expr, ...]]:
    declared = _declared(source, node, checker)
    value = checker.env.get(RETURN)
    for _, broken in leaves(value) if value is not None else ():
        if not isinstance(broken, Broken):
            continue
        if broken.message is None:
            raise Suppressed
        raise Mistake(
            span_of(node, source.path),
            "type",
            broken.message.replace("is assigned", "is returned"),
            broken.help if broken is not value else "return on every path",
        )
    if value is None:
        if checker.reporter.mistakes:
            raise Suppressed
        raise Mistake(span_of(node, source.path), "type", f"{node.name} returns nothing", "return its result")
    where = next((n for n in gast.walk(node) if isinstance(n, gast.Return)), node)
    values = value.items if isinstance(value, Tuple) else (value,)
    exprs = [checker.as_expr(v, where) for v in values]
    groups = groups_of([p.shape_text for p in params] + [a.text for _, a in declared or []])
    if declared is None:
        declared = []
        for position, expr in enumerate(exprs):
            name = "y" if len(exprs) == 1 else f"y{position + 1}"
            dtype = {"float": "real", "int": "i64"}.get(expr.type.dtype, expr.type.dtype)
            type = Type(dtype, expr.type.shape)
            declared.append((name, Annotation("input", type, shape_string(type, groups))))
    if len(declared) != len(exprs):
        raise Mistake(
            span_of(where, source.path),
            "type",
            f"{len(exprs)} values are returned, {len(declared)} are declared",
            "-> tuple[real[...], real[...]] for two; or leave the annotation out: it is inferred",
        )
    results, outputs = [], []
    for (name, annotation), expr in zip(declared, exprs, strict=True):
        if sum(token.startswith("*") for token in annotation.text.split()) > 1:
            raise Mistake(
                span_of(where, source.path),
                "shape",
                f'the result "{annotation.text}" has two groups of axes: nobody could tell where the second begins',
                'name the axes of the arguments: real["N M"] for real["*S"]',
            )
        outputs.append(_fitted(source, where, name, annotation, expr))
        if any(_open(annotation)):  # what came is what it is from now on
            found = zip(_open(annotation), annotation.type.shape, expr.type.shape, strict=True)
            type = Type(annotation.type.dtype, tuple(f if is_open else d for is_open, d, f in found))
            annotation = replace(annotation, type=type, text=shape_string(type, groups))
        role = {"input": "output", "param": "param", "memory": "memory"}.get(annotation.role, annotation.role)
        results.append(Result(name, role, annotation.type, annotation.text))
    for state in params:
        current = checker.env.get(f"self.{state.name}")
        if state.role == "state" and current is not None and current != _entry(state):
            outputs.append(construct.convert(checker.as_expr(current, where), state.type))
            results.append(Result(state.name, "state", state.type, state.shape_text))
    return tuple(results), tuple(outputs)


def _declared(source: Source, node: Any, checker: FunctionChecker) -> list[tuple[str, Annotation]] | None:
    returns = node.returns
    if returns is None:
        return None
    if isinstance(returns, gast.Dict):
        if not returns.keys or not all(
            isinstance(k, gast.Constant) and isinstance(k.value, str) and k.value.isidentifier() for k in returns.keys
        ):
            raise Mistake(
                span_of(returns, source.path),
                "annotation",
                "the outputs must have names",
                'write -> {"y": real["N"], "z": real[""]}',
            )
        names = [k.value for k in returns.keys]
        for key in (k for n, k in enumerate(returns.keys) if k.value in names[:n] or keyword.iskeyword(k.value)):
            what = "is a word of Python" if keyword.iskeyword(key.value) else "names two outputs"
            raise Mistake(span_of(key, source.path), "annotation", f"{key.value!r} {what}", "take another name")
        return [
            (k.value, parse_annotation(v, source, checker.fresh))
            for k, v in zip(returns.keys, returns.values, strict=True)
        ]
    if (
        isinstance(returns, gast.Subscript)
        and isinstance(returns.value, gast.Name)
        and returns.value.id in ("tuple", "Tuple")
    ):
        elts = returns.slice.elts if isinstance(returns.slice, gast.Tuple) else [returns.slice]
        found = [parse_annotation(e, source, checker.fresh) for e in elts]
        return list(zip(_result_names(found), found, strict=True))
    return [("y", parse_annotation(returns, source, checker.fresh))]


def _result_names(results: list[Annotation]) -> list[str]:
    """y, or y1, y2, ...; and memory, or memory1, ..., for what only a backward gets."""
    names, counts = [], {"y": 0, "memory": 0}
    for result in results:
        base = "memory" if result.role == "memory" else "y"
        counts[base] += 1
        alone = sum((r.role == "memory") == (base == "memory") for r in results) == 1
        names.append(base if alone else f"{base}{counts[base]}")
    return names


def _open(annotation: Annotation) -> list[bool]:
    """Of each extent, whether it was declared as `_`."""
    return [word == "_" for word in annotation.text.split()]


def _fitted(source: Source, where: Any, name: str, annotation: Annotation, expr: Expr) -> Expr:
    """The returned value as the declared type; a declared `_` or a name no input has takes what comes."""
    declared, found = annotation.type, expr.type
    if declared.rank != found.rank or any(
        not same_extent(d, f) and not is_open
        for d, f, is_open in zip(declared.shape, found.shape, _open(annotation), strict=True)
    ):
        raise Mistake(
            span_of(where, source.path),
            "shape",
            f"{name} has shape {construct.shape_text(found.shape)}, declared is {construct.shape_text(declared.shape)}",
            "change the annotation, or leave it out: it is inferred",
        )
    if found.is_float and not declared.is_float:
        raise Mistake(
            span_of(where, source.path),
            "type",
            f"{name} is {found.dtype}, declared is {declared.dtype}",
            "convert it: .astype(...)",
        )
    return construct.cast(expr, declared.dtype)


# -- classes ---------------------------------------------------------------------------------------------------
_CLASS_PARTS = "fields with annotations, batched = True, methods"


@dataclass
class _Class:
    """What a layer class declares, and what it inherits from layer classes that it derives from."""

    fields: dict[str, Parameter] = field(default_factory=dict)
    methods: dict[str, tuple[Source, Any]] = field(default_factory=dict)
    batched: bool = False
    mode: str = "auto"


def _collect(source: Source, node: Any, reporter: Reporter, fresh: Fresh, seen: tuple[Any, ...] = ()) -> _Class:
    found = _Class()
    if node in seen:
        raise Mistake(span_of(node, source.path), "layer", f"{node.name} derives from itself")
    for base in reversed(node.bases):
        known = source.defined(base.id) if isinstance(base, gast.Name) else source.member(base)
        if known is not None and known[1] in known[0].classes:
            above = _collect(known[0], known[0].classes[known[1]], reporter, fresh, (*seen, node))
            found = _Class(
                {**found.fields, **above.fields}, {**found.methods, **above.methods}, above.batched, above.mode
            )
    own: dict[str, Any] = {}
    for child in node.body:
        match child:
            case gast.AnnAssign(target=gast.Name(id=id)):
                _declare_once(source, child, id, own, reporter)
                found.fields.pop(id, None)
                made = _attempt(reporter, lambda: _field(source, child, id, fresh))  # noqa: B023 (called at once)
                found.fields[id] = made or _broken(id, span_of(child, source.path))
            case gast.Assign(targets=[gast.Name(id="batched")], value=gast.Constant(value=bool(value))):
                found.batched = value
            case gast.Assign(targets=[gast.Name(id="batched")]):
                where = span_of(child.value, source.path)
                reporter.add(Mistake(where, "layer", "batched must be True or False", "batched = True"))
            case gast.Assign(targets=[gast.Name(id="backward")], value=gast.Constant(value=None)):
                found.mode = "none"
            case gast.FunctionDef(name=name):
                _declare_once(source, child, name, own, reporter)
                mistake = _method_mistake(source, child)
                if mistake is None:
                    found.methods[name] = (source, child)
                else:
                    reporter.add(mistake)
            case gast.Expr(value=gast.Constant()) | gast.Pass():
                pass
            case _:
                reporter.add(
                    Mistake(span_of(child, source.path), "layer", "this is not part of a layer class", _CLASS_PARTS)
                )
    return found


def _declare_once(source: Source, node: Any, name: str, own: dict[str, Any], reporter: Reporter) -> None:
    """Of two fields or methods of one name, the last would win."""
    if name in own:
        message = f"{name} is defined twice, also in line {own[name].lineno}"
        reporter.add(Mistake(span_of(node, source.path), "layer", message, "remove one, or rename it"))
    own[name] = node


def _method_mistake(source: Source, node: Any) -> Mistake | None:
    """Why this is no method of a layer class."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if node.name.startswith("__"):
        message, help = f"a layer class has no {node.name}", "fields are declared, initialize(self, *shapes) sets them"
    elif node.decorator_list:
        node = node.decorator_list[0]
        message, help = "a method of a layer has no decorators", "write it as a function outside the class"
    elif not arguments or arguments[0].id != "self":
        message, help = f"the first argument of {node.name} must be self", f"def {node.name}(self, ...)"
    else:
        return None
    return Mistake(span_of(node, source.path), "layer", message, help)


def _class_layer(source: Source, node: Any, reporter: Reporter) -> Layer:
    fresh = Fresh()
    mistakes = len(reporter.mistakes)
    found = _collect(source, node, reporter, fresh)
    fields, methods = list(found.fields.values()), found.methods
    if "predict" not in methods and "forward" not in methods:
        if len(reporter.mistakes) > mistakes:
            raise Suppressed
        raise Mistake(
            span_of(node, source.path),
            "layer",
            f"{node.name} has neither predict nor forward",
            "define predict(self, x)",
        )
    made = {}
    for name in ("predict", "forward"):
        if name in methods:
            home, method = methods[name]
            params = _parameters(home, method, Fresh(set(fresh.used)), reporter, skip=1)
            for mistake in extents.mistakes(
                [*params, *fields], [*params, *fields] if "initialize" in methods else params
            ):
                reporter.add(mistake)
            whole = f"{node.name}.{name}"
            typed = _attempt(
                reporter,
                lambda: _checked(home, method, params, reporter, found.batched, whole, fields, methods),  # noqa: B023
            )
            if typed is not None:
                made[name] = typed
    predict = made.get("predict", made.get("forward"))
    if len(reporter.mistakes) > mistakes or predict is None:  # None: an inherited mistake, reported with its class
        raise Suppressed
    forward = made.get("forward") if "predict" in made else None
    main = forward or predict
    if forward is not None:
        _check_alike(source, node, predict, forward)
    inputs = [p for p in main.params if p not in fields]
    for mistake in extents.unbatched(main) if found.batched else ():
        reporter.add(mistake)
    if "initialize" in methods:
        _check_initialize(*methods["initialize"], inputs)
    custom, mode = None, found.mode
    if "backward" in methods:
        home, method = methods["backward"]
        custom, mode = (
            _checked_backward(home, method, main, inputs, reporter, skip=1, fields=fields, methods=methods),
            "custom",
        )
    _check_memory(span_of(node, source.path), main, custom)
    mode = _possible(mode, main)
    by_hand = tuple(name for name in ("initialize", "reset_state") if name in methods)
    return Layer(
        node.name,
        "class",
        tuple(main.params),
        predict,
        forward,
        mode,
        custom,
        gast.get_docstring(node) or "",
        source.excerpt(node),
        span_of(node, source.path),
        by_hand,
    )


def _check_initialize(source: Source, node: Any, params: list[Parameter]) -> None:
    """It gets one shape for each input."""
    inputs = [p.name for p in params if p.role == "input"]
    takes = len(node.args.args) - 1
    if node.args.vararg is None and not takes - len(node.args.defaults) <= len(inputs) <= takes:
        shapes = ", ".join(f"{name}_shape" for name in inputs)
        raise Mistake(
            span_of(node, source.path),
            "layer",
            f"initialize takes {takes} shapes, the layer has {len(inputs)} inputs",
            f"def initialize(self, {shapes})",
        )


def _check_alike(source: Source, node: Any, predict: Function, forward: Function) -> None:
    """predict and forward take the same arguments and give the same outputs: only states and memory may differ."""

    def face(f: Function) -> list[tuple[str, str, Type]]:
        arguments = [(p.name, p.role, p.type) for p in f.params if p.role in ("input", "config")]
        return arguments + [(r.name, r.role, r.type) for r in f.results if r.role == "output"]

    if [(n, r) for n, r, _ in face(predict)] != [(n, r) for n, r, _ in face(forward)] or not all(
        a.dtype == b.dtype and a.rank == b.rank
        for (_, _, a), (_, _, b) in zip(face(predict), face(forward), strict=True)
    ):
        raise Mistake(
            span_of(node, source.path),
            "layer",
            f"predict and forward of {node.name} differ in their arguments or results",
            "give both the same signature",
        )


def _field(source: Source, node: Any, id: str, fresh: Fresh) -> Parameter:
    span = span_of(node, source.path)
    annotation = parse_annotation(node.annotation, source, fresh)
    fresh(id)
    if annotation.role == "random":
        help = f"a method takes it: forward(self, x, {id}: Random)"
        raise Mistake(span, "annotation", f"the field {id} is a random generator", help)
    if annotation.role == "input":
        raise Mistake(
            span,
            "annotation",
            f"the field {id} has no role",
            f'write {id}: Param[real["C"]] = init.zeros(), State[...] or a configuration type',
        )
    parameter = Parameter(id, annotation.role, annotation.type, annotation.text, span=span)
    if node.value is None:
        return parameter
    if annotation.role == "config":
        return defaults.config_field(source, node, parameter)
    return replace(parameter, init=defaults.initial(source, node.value, id))


# -- custom backwards ------------------------------------------------------------------------------------------
def cotangents_of(function: Function) -> list[tuple[Result, Parameter]]:
    """The differentiable outputs of a function and the parameters that carry their cotangents.

    An output that is shared by the batch (a gradient function has them: gradients of Params) has a shared cotangent.
    """
    taken = {p.name for p in function.params}
    found = []
    for result in function.results:
        if result.role in ("output", "param"):
            name = "dy" if result.name == "y" else f"d{result.name}"
            while name in taken:
                name = f"d{name}"
            taken.add(name)
            role = "param" if result.role == "param" else "cotangent"
            found.append((result, Parameter(name, role, result.type, result.shape_text)))
    return found


def backward_inputs(function: Function) -> dict[str, Parameter]:
    """What a backward may name: the forward's arguments, its outputs, and the cotangents of its outputs."""
    known = {p.name: p for p in function.params}
    for result in function.results:
        if result.role == "memory":
            known.setdefault(result.name, Parameter(result.name, "memory", result.type, result.shape_text))
    for result, cotangent in cotangents_of(function):
        if result.role == "output":
            known.setdefault(result.name, Parameter(result.name, "output", result.type, result.shape_text))
        known[cotangent.name] = cotangent
    return known


def _checked_backward(
    source: Source,
    node: Any,
    function: Function,
    inputs: list[Parameter],
    reporter: Reporter,
    skip: int,
    fields: list[Parameter] | None = None,
    methods: dict[str, tuple[Source, Any]] | None = None,
) -> Function:
    known = backward_inputs(function)
    taken = []
    for arg in node.args.args[skip:]:
        if arg.id not in known:
            raise Mistake(
                span_of(arg, source.path),
                "backward",
                f"a backward of {function.name} cannot ask for {arg.id}",
                "it may name: " + ", ".join(known),
            )
        _check_annotated(source, arg, known[arg.id])
        taken.append(known[arg.id])
    configs = [p for p in function.params if p.role == "config" and p not in taken and p not in (fields or [])]
    stripped = replace_returns(node)
    used_fields = [f for f in fields or [] if f not in taken]
    checked = _checked(
        source,
        stripped,
        [*taken, *configs],
        reporter,
        function.batched,
        f"{function.name}.backward",
        used_fields,
        methods,
    )
    owners = [p for p in function.params if p.role in ("input", "param")]
    return _as_gradient(source, node, checked, owners)


def _check_annotated(source: Source, arg: Any, known: Parameter) -> None:
    """What a backward takes has the types that it has in the forward; saying so again is allowed."""
    if arg.annotation is None:
        return
    found = parse_annotation(arg.annotation, source, Fresh())
    pairs = zip(found.text.split(), known.shape_text.split(), found.type.shape, known.type.shape, strict=False)
    same = all("_" in (a, b) or x == y for a, b, x, y in pairs) and found.type.rank == known.type.rank
    if not same or found.type.dtype != known.type.dtype:
        shape = construct.shape_text(known.type.shape)
        raise Mistake(
            span_of(arg, source.path),
            "backward",
            f"{arg.id} is {known.type.dtype} of shape {shape} here",
            "leave the annotation out: the forward says it",
        )


def _check_memory(where: Span, function: Function, custom: Function | None) -> None:
    """Memory is for a backward, and for nobody else."""
    held = [r.name for r in function.results if r.role == "memory"]
    if held and not any(p.name in held for p in (custom.params if custom else ())):
        raise Mistake(
            where,
            "backward",
            f"no backward of {function.name} asks for its {held[0]}",
            f"define one that does, backward(dy, {held[0]}), or return no Memory",
        )


def replace_returns(node: Any) -> Any:
    copied = gast.FunctionDef(**{f: getattr(node, f, None) for f in node._fields})
    gast.copy_location(copied, node)
    copied.returns = None
    return copied


def _as_gradient(source: Source, node: Any, checked: Function, owners: list[Parameter]) -> Function:
    differentiable = [p for p in owners if p.type.is_float]
    final = checked.body[-1]
    assert isinstance(final, Return)
    values = list(final.values)
    where = span_of(node, source.path)
    if len(values) != len(differentiable):
        raise Mistake(
            where,
            "backward",
            f"the backward returns {len(values)} gradients, {len(differentiable)} are needed",
            "one each for: " + ", ".join(p.name for p in differentiable),
        )
    results = []
    for k, (owner, value) in enumerate(zip(differentiable, values, strict=True)):
        if value.type.shape != owner.type.shape:
            raise Mistake(
                where,
                "backward",
                f"the gradient of {owner.name} has shape {construct.shape_text(value.type.shape)},"
                f" not {construct.shape_text(owner.type.shape)}",
                f"it has the shape of {owner.name}: sum over the other axes, or broadcast",
            )
        if value.type.dtype == "bool":
            help = "convert it: .astype(real)"
            raise Mistake(where, "type", f"the gradient of {owner.name} is boolean, not {owner.type.dtype}", help)
        values[k] = construct.cast(value, owner.type.dtype)
        results.append(Result(f"d_{owner.name}", owner.role, owner.type, owner.shape_text, of=owner.name))
    return replace(checked, body=(*checked.body[:-1], replace(final, values=tuple(values))), results=tuple(results))


__all__ = ["Static", "TypingError", "check_file", "stored"]
