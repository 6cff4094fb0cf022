"""Names that are one array or another, as a branch or an iteration decided.

    if c:            c holds: which = 0          reading v:   if which == 0: v_2 = a
        v = a        else:    which = 1                       else: v_2 = b
    else:                                        v[0] = 1:    if which == 0: a[0] = 1
        v = b                                                 else: b[0] = 1

An array that is made on the branch, and has no other name, is one more of them: memory of v's own. A row x[i] that
outlives its i is a row at a place, which is a variable beside `which`. Only names for which
it matters are typed so: those of which one is written into while another is read (`chosen`, from an earlier typing).
`hidden_writes` has the last word on what comes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from . import construct
from .construct import const
from .dims import of_either
from .program import (
    Assign,
    At,
    Call,
    Const,
    Expr,
    For,
    If,
    Index,
    Item,
    Name,
    Pop,
    Slice,
    Stmt,
    Type,
    assigned,
    names,
    read,
    walk,
    walk_stmts,
)
from .renaming import map_stmt
from .values import RETURN, VALUE, Choice, Later, Value, View, plain
from .views import root_of, view_of

_INT = Type("int")
_SOMEWHERE = Name("<place>", _INT)  # in an option: the index that a variable will say
MOST = 6  # arrays; z = z[::-1] in a loop would be a new one in every round


@dataclass
class Selection:
    """What makes a choice the value it shall be: first all is read, then all is assigned."""

    read: list[Stmt] = field(default_factory=list)
    bind: list[Stmt] = field(default_factory=list)


class Choices:
    """Mixed into the checker of functions."""

    def called(self: Any, id: str) -> str:
        """A fresh name for what the program calls `id`."""
        name = self.fresh("y" if id == RETURN else plain(id))
        self.meant[name] = id
        return name

    def read_choice(self: Any, choice: Choice, node: Any) -> Name:
        """The array that it is now, which a store finds again."""
        name = Name(self.fresh("view"), self._type(choice), None, self.span(node))
        self._one_of(choice, lambda k: [Assign(name.id, self.as_expr(choice.options[k], node), self.span(node))], node)
        self.shown_by[name.id] = choice
        if not all(map(self._in_order, self._shown_as(choice))):
            self.unordered.add(name.id)
        return name

    def store_choice(
        self: Any, choice: Choice, items: tuple[Item, ...], value: Expr, op: str | None, node: Any, scatter: bool
    ) -> None:
        """A store into the one that it is."""
        if not isinstance(value, (Name, Const)):
            name = self.fresh("held")
            self.emit(Assign(name, value, self.span(node)))
            value = Name(name, value.type)

        def stored(k: int) -> list[Stmt]:
            with self.aside() as statements:
                self.store_items(self.as_expr(choice.options[k], node), items, value, node, op, scatter)
            return statements

        self._one_of(choice, stored, node)

    def settled_choice(self: Any, choice: Choice, node: Any) -> Choice:
        """The same arrays, and the one that it is now."""

        def now(variable: Name) -> Name:
            name = Name(self.fresh(plain(variable.id)), _INT, None, self.span(node))
            self.emit(Assign(name.id, variable, self.span(node)))
            return name

        places = tuple(tuple(map(now, found)) for found in choice.places)
        kept = tuple(_placed(_unplaced(v, a), b) for v, a, b in zip(choice.options, choice.places, places, strict=True))
        return replace(choice, which=now(choice.which), options=kept, places=places)

    def choice_of_parts(self: Any, value: Expr, node: Any) -> Choice | None:
        """A part of what a choice shows is a part of one array or another."""
        name = root_of(value) if self._is_view(value) else None
        choice = self.shown_by.get(name)
        if choice is None:
            return None
        settled = self._settled(value, node)

        def part(array: Expr, whole: Expr) -> Expr:
            match array:
                case Index(base=base, items=items):
                    return construct.index(part(base, whole), items, array.span)
                case Call(args=(base,)):
                    return replace(array, args=(part(base, whole),))
            return whole

        now = self.settled_choice(choice, node)
        views = tuple(view_of(part(settled, self.as_expr(option, node))) for option in now.options)
        return Choice(now.which, views, None, tuple(() for _ in views))

    def _one_of(self: Any, choice: Choice, make: Any, node: Any) -> None:
        """One branch for each of the arrays."""
        last = len(choice.options) - 1
        statements = make(last)
        for k in reversed(range(last)):
            test = construct.call("equal", choice.which, const(k))
            statements = [If(test, tuple(make(k)), tuple(statements), self.span(node))]
        self.out += statements

    # -- branches ------------------------------------------------------------------------------------------------
    def choice_of_branches(
        self: Any, id: str, a: Value, b: Value, then_out: list[Stmt], else_out: list[Stmt], node: Any
    ) -> Value | None:
        """What a name is after two branches; None: no matter which array it is."""
        if not self.chosen:
            return None
        sides = [(self._as_array(v, out, node), out) for v, out in ((a, then_out), (b, else_out))]
        if not all(isinstance(v, Later) or _is_array(v) for v, _ in sides):
            return None
        options: list[View | None] = []
        for value, out in sides:
            for view in _arrays(value):
                _add(options, _lasting(view, bound_by(out)))
        if not any(options) or len({self._type(v) for v, _ in sides if not isinstance(v, Later)}) > 1:
            return None
        if len(options) == 1 and not _holes(options[0]):
            return options[0]
        if id not in self.chosen and id != VALUE and not any(isinstance(v, Choice) for v, _ in sides):
            return None
        choice = self._choice(id, options, node)
        for value, out in sides:
            selection = self.selected(value, choice, bound_by(out), node)
            out += [*selection.read, *selection.bind]
        return choice

    def _as_array(self: Any, value: Value, out: list[Stmt], node: Any) -> Value:
        """A part of an array is a view of it."""
        if not isinstance(value, (Index, Call)) or not self._is_view(value):
            return value
        with self.aside() as settled:
            view = self._as_view(value, node)
        out += settled
        return view

    # -- loops ---------------------------------------------------------------------------------------------------
    def carried_choice(self: Any, id: str, value: Value, offered: tuple[View | None, ...], node: Any) -> Value | None:
        """The variables for a name that a loop binds, and their values before it; None: it is no choice."""
        if not (id in self.chosen or isinstance(value, Choice)) or not (isinstance(value, Later) or _is_array(value)):
            return None
        if not offered and not isinstance(value, Choice):
            return None if isinstance(value, Later) else value
        options: list[View | None] = []
        for view in (*_arrays(value), *offered):
            _add(options, view)
        if not any(options) or not self._of_one_type(options):
            return None
        if len(options) == 1 and not _holes(options[0]):
            return options[0]
        choice = self._choice(id, sorted(options, key=lambda view: view is None), node)
        selection = self.selected(value, choice, set(), node)
        self.out += [*selection.read, *selection.bind]
        return choice

    def offer(self: Any, id: str, before: Value, after: Value, bound: Set[str]) -> tuple[View | None, ...]:
        """The arrays that the body of a loop leaves a name, and that it was not known to be: its body is to be typed
        again. None stands for what is made there."""
        if not (id in self.chosen or isinstance(before, Choice)) or not _is_array(after):
            return ()
        if not (isinstance(before, Later) or _is_array(before)):
            return ()
        known = _patterns(before)
        more: list[View | None] = []
        for view in _arrays(after):
            lasting = _lasting(view, bound) if len(known) + len(more) < MOST else None
            if lasting not in known and view not in known:
                _add(more, lasting)
        return tuple(more)

    # -- both ----------------------------------------------------------------------------------------------------
    def _choice(self: Any, id: str, options: Sequence[View | None], node: Any) -> Choice:
        """Variables for one of these arrays."""
        type = next(self.as_expr(view, node).type for view in options if view is not None)
        own = Name(self.called(id), type, None, self.span(node)) if None in options else None
        which = Name(self.fresh("which"), _INT, None, self.span(node))
        known = [view for view in options if view is not None]
        places = [tuple(Name(self.fresh("at"), _INT, None, self.span(node)) for _ in _holes(view)) for view in known]
        views = [_placed(view, found) for view, found in zip(known, places, strict=True)]
        if own is not None:
            views, places = [*views, View(own, None)], [*places, ()]
        return Choice(which, tuple(views), own, tuple(places))

    def selected(self: Any, value: Value, choice: Choice, bound: Set[str], node: Any) -> Selection:
        """Statements that make the choice this value, at the end of a block that has bound these names."""
        made, span = Selection(), self.span(node)
        shown, patterns = _arrays(value), _patterns(choice)
        at = [_number_of(view, choice, patterns, bound) for view in shown]
        if choice.own is None and None in at:
            what = "this name is one array or another, and here one that nothing stands for"
            raise self.fail(node, "aliasing", what, "take a copy: np.copy(...)")
        last = len(patterns) - 1
        numbers = [last if k is None else k for k in at]
        made.bind.append(Assign(choice.which.id, _chosen(value, [const(k) for k in numbers]), span))
        for k, places in enumerate(choice.places):
            self._put_places(
                made,
                value,
                [v if n == k else None for v, n in zip(shown, at, strict=True)],
                places,
                choice.options[k],
                node,
            )
        if choice.own is None:
            return made
        if any(k == last and v != View(choice.own, None) for k, v in zip(numbers, shown, strict=True)):
            if not all(map(self._in_order, self._shown_as(value))):
                self.unordered.add(choice.own.id)
            own = Name(self.fresh(plain(choice.own.id)), choice.own.type, None, span)
            made.read += self._content(value, [k == last for k in numbers], own, node)
            made.bind.append(Assign(choice.own.id, own, span))
        elif View(choice.own, None) not in shown:
            made.bind.append(Assign(choice.own.id, construct.zeros(choice.own.type), span))
        return made

    def _put_places(
        self: Any,
        made: Selection,
        value: Value,
        shown: Sequence[View | None],
        places: Sequence[Name],
        option: View,
        node: Any,
    ) -> None:
        """Where in its array an option is now. shown: the arrays of the value that it stands for."""
        for place, hole in zip(places, _holes(_unplaced(option, places)), strict=True):
            indices = [const(0) if view is None else _index_at(view, hole) for view in shown]
            now = Name(self.fresh("at"), _INT, None, self.span(node))
            made.read.append(Assign(now.id, construct.cast(_chosen(value, indices), "int"), self.span(node)))
            made.bind.append(Assign(place.id, now, self.span(node)))

    def _content(self: Any, value: Value, moves: list[bool], own: Name, node: Any) -> list[Stmt]:
        """What becomes memory of a choice's own: the value, where it is one of the arrays that move there."""
        if not isinstance(value, Choice):
            return [Assign(own.id, self._of_its_shape(value, own, node), self.span(node))]

        def taken(k: int) -> list[Stmt]:
            array = self._of_its_shape(value.options[k], own, node) if moves[k] else construct.zeros(own.type)
            return [Assign(own.id, array, self.span(node))]

        with self.aside() as statements:
            self._one_of(value, taken, node)
        return statements

    def _of_its_shape(self: Any, value: Value, own: Name, node: Any) -> Expr:
        array: Expr = self.as_expr(value, node)
        if of_either(array.type.shape, own.type.shape) is None:
            what = f"this name is {own.type} before and {array.type} here, and a choice of arrays has one shape"
            raise self.fail(node, "type", what, "use a name of its own for each")
        return array

    def _of_one_type(self: Any, options: Sequence[View | None]) -> bool:
        return len({self._type(view) for view in options if view is not None}) == 1

    def _type(self: Any, value: Value) -> Type:
        array = value.options[0] if isinstance(value, Choice) else value
        return self.as_expr(array, self.current).type


def without_unread(body: tuple[Stmt, ...], views: Iterable[str]) -> tuple[Stmt, ...]:
    """Without the choices that were only written into: their arrays were read for nothing."""
    dead = set(views) - read(body)

    def block(statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
        kept = (s for s in statements if not (isinstance(s, If) and set() < assigned((s,)) <= dead))
        return tuple(map_stmt(s, lambda e: e, block, lambda name: name) for s in kept)

    return block(body) if dead else body


def _chosen(value: Value, numbers: Sequence[Expr]) -> Expr:
    """The number that belongs to the array which a value is."""
    if not isinstance(value, Choice):
        return numbers[0] if numbers else const(0)
    if list(numbers) == [const(k) for k in range(len(numbers))]:
        return value.which
    found = numbers[-1]
    for k in reversed(range(len(numbers) - 1)):
        if found != numbers[k]:
            found = construct.call("where", construct.call("equal", value.which, const(k)), numbers[k], found)
    return found


def _number_of(view: View | None, choice: Choice, patterns: Sequence[View | None], bound: Set[str]) -> int | None:
    """Which option of a choice an array is after a block that binds these names; None: none, or memory of its own."""
    if view in choice.options and _lasts(view, bound):
        return choice.options.index(view)
    lasting = _lasting(view, bound)
    return patterns.index(lasting) if lasting is not None and lasting in patterns else None


def _arrays(value: Value) -> tuple[View | None, ...]:
    """Those that a value may be; None: one that is made for it."""
    match value:
        case Choice(options=options):
            return options
        case View():
            return (value,)
        case Name():
            return (View(value, None),)
        case Index() | Call():
            return (None,)
    return ()


def _is_array(value: Value) -> bool:
    return isinstance(value, (View, Choice)) or (isinstance(value, (Name, Index, Call)) and bool(value.type.rank))


def _add(options: list[View | None], view: View | None) -> None:
    if view not in options:
        options.append(view)


def bound_by(block: Sequence[Stmt]) -> set[str]:
    """The names that mean something else after a block than before it."""
    inside = [s for s in walk_stmts(tuple(block)) if isinstance(s, (Assign, Pop, For))]
    return {s.var if isinstance(s, For) else s.name for s in inside}


def _lasting(view: View | None, bound: Set[str]) -> View | None:
    """The view as it can be said after a block that binds these names: with indices that variables will say; None: it
    cannot be."""
    if view is None or _lasts(view, bound) or view.items is None:
        return view if _lasts(view, bound) else None
    items = tuple(At(_SOMEWHERE) if isinstance(i, At) and names(i.index) & bound else i for i in view.items)
    placed = View(view.base, items)
    return placed if _lasts(placed, bound) else None


def _holes(view: View | None) -> list[int]:
    """Which of its items are places."""
    items = view.items if view is not None else None
    return [k for k, item in enumerate(items or ()) if item == At(_SOMEWHERE)]


def _placed(view: View, places: Sequence[Name]) -> View:
    """With variables for its places."""
    if view.items is None:
        return view
    found = dict(zip(_holes(view), places, strict=True))
    return (
        View(view.base, tuple(At(found[k]) if k in found else i for k, i in enumerate(view.items))) if found else view
    )


def _unplaced(view: View, places: Sequence[Name]) -> View:
    """Without them."""
    if not places:
        return view
    return View(
        view.base, tuple(At(_SOMEWHERE) if isinstance(i, At) and i.index in places else i for i in view.items or ())
    )


def _patterns(value: Value) -> tuple[View | None, ...]:
    """The arrays that a value may be, whatever the places."""
    if not isinstance(value, Choice):
        return _arrays(value)
    return tuple(_unplaced(view, places) for view, places in zip(value.options, value.places, strict=True))


def _index_at(view: View, k: int) -> Expr:
    item = view.items[k] if view.items is not None else None
    assert isinstance(item, At)
    return item.index


def _lasts(view: View | None, bound: Set[str]) -> bool:
    """Whether the view means the same after a block that binds these names as before it."""
    if view is None:
        return False
    whole = construct.index(view.base, view.items) if view.items is not None else view.base
    return not _needed(whole) & bound


def _needed(expr: Expr) -> set[str]:
    """Names that an expression depends on, those of counters in its slices too."""
    found = names(expr)
    for part in walk(expr):
        if isinstance(part, Index):
            for item in part.items:
                if isinstance(item, Slice):
                    found |= item.first.symbols() | item.extent.symbols()
        if isinstance(part, (Index, Call, Name)):
            found |= {s for d in part.type.shape for s in d.symbols()}
    return found


__all__ = ["Choices", "Selection", "bound_by", "without_unread"]
