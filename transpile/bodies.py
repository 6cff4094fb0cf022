"""A function from its parameters to its results: what it is entered with, its body checked, what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gast

from . import construct
from .aliasing import HiddenWrite, hidden_writes, mistakes_of
from .choices import without_unread
from .errors import Mistake, Reporter, Suppressed, span_of
from .functions import Agreements, FunctionChecker
from .lists import Key, Plan
from .program import (
    Assign,
    Function,
    Name,
    Parameter,
    Return,
    Store,
    stored,
    walk_stmts,
)
from .results import results_of
from .signatures import entering
from .source import Source
from .triangular import triangular
from .values import Fresh


def check_function(
    source: Source,
    node: Any,
    params: list[Parameter],
    reporter: Reporter,
    batched: bool,
    name: str,
    fields: list[Parameter] | None = None,
    methods: dict[str, tuple[Source, Any]] | None = None,
) -> Function:
    """Types a function; once more where it matters which array a name is on a branch or in an iteration, with such
    names as choices, or where a loop of few iterations has a mistake, with those one by one. A mistake is told as it
    was found at first."""
    body = _Body(source, node, params, batched, name, fields or [], methods or {})
    first: _Typing | None = None
    chosen: set[str] = set()
    apart: set[int] = set()
    while True:
        typing = body.typed(Reporter(reporter.sources), chosen, apart)
        if not typing.undecided and not typing.few:
            break
        first = first or typing
        if typing.undecided <= chosen and typing.few <= apart:
            typing = first
            break
        chosen |= typing.undecided
        apart |= typing.few
    if first and ((first.few and typing.reporter.mistakes) or (typing.error and not typing.reporter.mistakes)):
        typing = first  # which says why
    for mistake in typing.reporter.mistakes:
        reporter.add(mistake)
    if typing.error is not None:
        raise typing.error
    assert typing.function is not None
    for mistake in mistakes_of(typing.function, typing.hidden):
        reporter.add(mistake)
    return typing.function


@dataclass
class _Typing:
    """What came of it. `undecided`: names that are one array here and another there, where one is written into;
    `few`: loops of few iterations with a mistake."""

    reporter: Reporter
    function: Function | None = None
    hidden: list[HiddenWrite] = field(default_factory=list)
    error: Mistake | Suppressed | None = None
    undecided: set[str] = field(default_factory=set)
    few: set[int] = field(default_factory=set)


@dataclass
class _Body:
    """The text of a function, and what it is typed with."""

    source: Source
    node: Any
    params: list[Parameter]
    batched: bool
    name: str
    fields: list[Parameter]
    methods: dict[str, tuple[Source, Any]]

    def typed(self, reporter: Reporter, chosen: set[str], apart: set[int]) -> _Typing:
        found = _Typing(reporter)
        checker = self._checked(reporter, chosen, apart)
        for mistake in self._forbidden(checker):
            if all(m.span.line != mistake.span.line or mistake.kind != m.kind for m in reporter.mistakes):
                reporter.add(mistake)
        try:
            function = self._function(checker)
        except (Mistake, Suppressed) as error:
            found.error = error
        else:
            found.function = function
            found.hidden = hidden_writes(function)
            found.undecided = {checker.meant.get(name, name) for write in found.hidden for name in write.names}
        if reporter.mistakes or found.error:
            found.undecided |= checker.undecided
            found.few = checker.few
        return found

    def _checked(self, reporter: Reporter, chosen: set[str], apart: set[int]) -> FunctionChecker:
        """Types the statements: again, as long as that finds out more about how long its lists become, or which extents
        agree."""
        plans: dict[Key, Plan] = {}
        agreed: Agreements = {}
        may_agree = True
        overwritten: set[str] = set()
        changeable = [p for p in [*self.params, *self.fields] if p.role not in ("param", "config")]
        changeable = [p for p in changeable if p in self.params or p.role == "state"]
        for last in (False, False, False, False, False, True):
            scratch = Reporter(reporter.sources)
            checker = FunctionChecker(self.source, scratch, Fresh(), self.node, plans, chosen, agreed, apart)
            checker.methods = self.methods
            _enter(checker, self.source, self.node, self.params, self.fields, overwritten)
            with checker.agreed_in(self.node.body):
                checker.block(self.node.body)
            through_views = {p.name for p in changeable} & stored(tuple(checker.out))
            may_agree = may_agree and not (agreed and scratch.mistakes)  # else as it is written
            more = dict(checker.agreeing) if may_agree and not scratch.mistakes else {}
            if (checker.found == plans and not through_views and more == agreed) or last:
                break
            plans, agreed = dict(checker.found), more
            overwritten |= through_views
        for mistake in scratch.mistakes:
            reporter.add(mistake)
        checker.reporter = reporter
        return checker

    def _forbidden(self, checker: FunctionChecker) -> Iterator[Mistake]:
        """Writes into Params, and assignments to their names."""
        fixed = {p.name for p in self.params if p.role == "param"} | {f.name for f in self.fields}
        for stmt in walk_stmts(tuple(checker.out)):
            if isinstance(stmt, Store) and stmt.base.id in fixed:
                message = f"this writes into {stmt.base.id}, a Param of the layer, which it cannot change"
                yield Mistake(stmt.span, "role", message, "take a copy: .copy(); solvers change Params")
        yield from _rebound(self.source, self.node, self.params)

    def _function(self, checker: FunctionChecker) -> Function:
        source, node, everything = self.source, self.node, [*self.params, *self.fields]
        if any(m.kind == "role" for m in checker.reporter.mistakes):
            raise Suppressed
        for key in node.returns.keys if isinstance(node.returns, gast.Dict) else ():
            if isinstance(key, gast.Constant) and any(key.value == p.name for p in self.params):
                message = f"{key.value!r} names an input and an output"
                checker.reporter.add(Mistake(span_of(key, source.path), "annotation", message, "take another name"))
        results, values = results_of(source, node, checker, everything)
        if any(p.role == "broken" for p in everything):
            raise Suppressed
        body = triangular(without_unread((*checker.out, Return(values, _return_span(source, node))), checker.shown_by))
        doc = gast.get_docstring(node) or ""
        span = span_of(node, source.path)
        return Function(self.name, tuple(everything), body, results, self.batched, doc, span)


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
        entry = entering(param)
        if isinstance(entry, Name) and param.role == "random":
            checker.env[param.name] = checker.new_generator(entry)
        else:
            checker.env[param.name] = entry
    for own in fields:
        checker.env[f"self.{own.name}"] = entering(own)
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
    checker.meant[own] = id or param.name


def _reserve(checker: FunctionChecker, params: list[Parameter], source: Source) -> None:
    seen: set[str] = set()
    extents = {d.symbol for p in params for d in p.type.shape}
    for param in params:
        if param.name in seen:
            raise Mistake(param.span, "name", f"{param.name} is both an argument and a field", "rename one")
        seen.add(param.name)
        checker.fresh.used.add(param.name)
        if param.role == "config" and param.type.dtype == "int" and param.name not in extents:
            checker.facts[param.name] = construct.any_config(param.name)
    for param in params:
        for dim in param.type.shape:
            checker.sizes |= dim.symbols()
    checker.fresh.used |= checker.sizes


__all__ = ["check_function", "entering"]
