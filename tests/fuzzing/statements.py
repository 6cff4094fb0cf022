"""Statements: assignments, stores, loops, branches, lists, helpers and closures."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import fuzzing.arrays  # adds its productions
import fuzzing.elementwise  # noqa: F401  as well
from fuzzing.expressions import Expressions
from fuzzing.lines import Lines, indented
from fuzzing.scope import ONE, Dead, Scope, Shape, Variable
from layerc.transpile.dims import Dim

# NumPy gives a new array for these, whatever they are given.
_MAKERS = set(
    "abs arctan arctan2 cbrt clip cos cumprod cumsum exp exp2 expm1 hypot log1p logaddexp maximum minimum power"
    " reciprocal sin sinh softmax sort sqrt square tan tanh where".split()
)


def _makes_array(text: str) -> bool:
    match ast.parse(text, mode="eval").body:
        case ast.BinOp():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "special"), attr=name)):
            return name in _MAKERS
    return False


@dataclass(frozen=True)
class Place:
    """Where a block stands. `loop`: "for" or "while"; `plain`: no break, continue or return may leave it."""

    depth: int = 0
    loop: str = ""
    plain: bool = False

    def inside(self, loop: str = "", plain: bool = False) -> Place:
        return Place(self.depth + 1, loop or self.loop, self.plain or plain)


class Statements(Expressions):
    def __init__(self, rng: random.Random, results: list[tuple[Shape, str]]) -> None:
        super().__init__(rng)
        self.results = results
        self.size = rng.choice([0, 1, 1, 2])  # depth of expressions

    # -- blocks ------------------------------------------------------------------------------------------------
    def block(self, count: int, place: Place) -> Lines:
        lines: Lines = []
        for _ in range(count):
            lines += self.statement(place)
        return lines

    def statement(self, place: Place) -> Lines:
        for _ in range(12):
            production, _, deepest = self.rng.choices(_STATEMENTS, [w for _, w, _ in _STATEMENTS])[0]
            if place.depth > deepest:
                continue
            before = self.scope.copy()
            try:
                return production(self, place)
            except Dead:
                self.scope = before
        return self.assign(place)

    def nested(self, count: int, place: Place, *more: Variable) -> Lines:
        """A block with a scope of its own; what it assigned that stood before, stays."""
        outer, helpers = self.scope, list(self.helpers)
        self.scope = outer.copy()
        for v in more:
            self.scope.add(v)
        try:
            return self.block(count, place)
        finally:
            for name, v in outer.variables.items():
                inner = self.scope.variables[name]
                if not inner.owns or inner.domain != v.domain:
                    outer.variables[name] = replace(v, owns=v.owns and inner.owns, domain=inner.domain and v.domain)
            self.scope, self.helpers = outer, helpers

    def free(self, kind: str = "real") -> list[Variable]:
        """What may be assigned."""
        return [v for v in self.scope.having(kind) if not v.fixed]

    def writable(self) -> Variable:
        return self.pick([v for v in self.scope.having() if v.owns and v.rank])

    def value(self, shape: Shape, most: float = 4.0) -> str:
        return self.limited(shape, self.size, most).text

    # -- assignments -------------------------------------------------------------------------------------------
    def assign(self, place: Place) -> Lines:
        shape = self.any_shape()
        name = self.fresh()
        e = self.limited(shape, self.size, 4)
        owns = not e.text.isidentifier() and self.chance(0.5)
        text = e.text
        if owns and not (_makes_array(text) and self.chance(0.7)):
            text = f"({text}).copy()" if shape and self.chance(0.5) else f"{text} * 1.0"
        self.scope.add(Variable(name, shape, mag=max(e.mag, 1), owns=owns and bool(shape)))
        if place.depth == 0 and self.chance(0.06):
            other = self.fresh()
            self.scope.add(Variable(other, shape, mag=4))
            return [f"{name} = {other} = {text}"]
        return [f"{name} = {text}"]

    def maker(self, place: Place) -> Lines:
        """A new array to be written into."""
        shape = self.any_shape()
        if not shape:
            name = self.fresh("s")
            self.scope.add(Variable(name, ()))
            return [f"{name} = {self.pick(['0.0', '1.0', '0.5'])}"]
        name, where = self.fresh("y"), self.scope.shape(shape)
        like = self.scope.having("real", shape)
        options = [f"np.zeros({where})", f"np.zeros({where})", f"np.ones({where})", f"np.full({where}, 0.5)"]
        if like:
            options += [f"np.zeros_like({like[0].name})", f"{like[-1].name}.copy()", f"np.ones_like({like[0].name})"]
        if len(shape) == 1:
            options.append(f"np.zeros({self.scope.extent(shape[0])})")
        text = self.pick(options)
        lines = [f"{name} = {text}"]
        if self.chance(0.15):
            filled = self.value(shape)
            lines = [f"{name} = np.empty({where})", f"{name}[...] = {filled}"]
        self.scope.add(Variable(name, shape, owns=True))
        return lines

    def again(self, place: Place) -> Lines:
        """A new value for a variable, of the type it had."""
        v = self.pick(self.free())
        text = self.value(v.shape)
        self.scope.add(replace(v, owns=False, mag=4, domain=""))
        return [f"{v.name} = {text}"]

    def in_place(self, place: Place) -> Lines:
        v = self.pick([v for v in self.free() if v.owns or not v.shape])
        op, text = self.update(v.shape, place)
        self.scope.add(replace(v, domain=""))
        return [f"{v.name} {op}= {text}"]

    def update(self, shape: Shape, place: Place) -> tuple[str, str]:
        """An operator and its right side, small enough for a loop."""
        op = self.pick("++--*/")
        small = shape if self.chance(0.5) else self.smaller(shape)
        if op == "/":
            return op, f"(1.5 + np.sin({self.real(small, self.size - 1).text}))"
        return op, self.value(small, 1.2 if op == "*" or place.loop else 4.0)

    def exchange(self, place: Place) -> Lines:
        first = self.pick(self.free())
        second = self.pick([v for v in self.free() if v.shape == first.shape and v.name != first.name])
        if self.chance(0.5):
            texts = second.name, first.name
        else:
            texts = self.value(first.shape), self.value(first.shape)
        for v in (first, second):
            self.scope.add(replace(v, owns=False, mag=4, domain=""))
        return [f"{first.name}, {second.name} = {texts[0]}, {texts[1]}"]

    def view(self, place: Place) -> Lines:
        """Another name for an array, or for a part of it."""
        v = self.pick([v for v in self.scope.having() if v.rank])
        name, d = self.fresh("u"), v.shape[0]
        options: list[tuple[str, Shape]] = [
            (v.name, v.shape),
            (f"{v.name}[{self.place(d)}]", v.shape[1:]),
            (f"{v.name}[::-1]", v.shape),
        ]
        if d.value is None or d.value > 1:
            options.append((f"{v.name}[1:]", (d - 1, *v.shape[1:])))
            options.append((f"{v.name}[:-1]", (d - 1, *v.shape[1:])))
        if v.rank >= 2:
            options += [(f"{v.name}.T", v.shape[::-1]), (f"{v.name}[:, {self.place(v.shape[1])}]", (d, *v.shape[2:]))]
        options.append((f"{v.name}[None]", (ONE, *v.shape)))
        text, shape = self.pick(options)
        if any(c < 0 for x in shape for _, c in x.terms) and place.depth:
            raise Dead
        self.scope.add(Variable(name, shape, mag=v.mag, owns=v.owns and bool(shape)))
        return [f"{name} = {text}"]

    def choice(self, place: Place) -> Lines:
        """A name for one array or another, as a condition says; each may be written into afterwards."""
        first = self.writable()
        others = [v for v in self.scope.having() if v.owns and v.shape == first.shape and v.name != first.name]
        made = self.value(first.shape)
        if not _makes_array(made):
            made = f"({made}) * 1.0"
        second = self.pick(others).name if others and self.chance(0.7) else made
        if second == made:
            first = replace(first, mag=max(first.mag, 4))
        cond, name = self.condition(), self.fresh("u")
        self.scope.add(replace(first, name=name, owns=True, fixed=False, domain=""))
        return self.pick(
            [
                [f"if {cond}:", f"    {name} = {first.name}", "else:", f"    {name} = {second}"],
                [f"{name} = {first.name} if {cond} else {second}"],
                [f"{name} = {first.name}", f"if {cond}:", f"    {name} = {second}"],
                [f"{name} = one_of({first.name}, {second}, {cond})"],
            ]
        )

    def bind_again(self, place: Place) -> Lines:
        """A name for another array from here on; in a loop, from the next iteration on."""
        first = self.writable()
        others = [v for v in self.free() if v.owns and v.shape == first.shape and v.name != first.name]
        second = self.pick(others)
        self.scope.add(replace(first, mag=max(first.mag, second.mag), domain=""))
        self.scope.add(replace(second, mag=max(first.mag, second.mag), domain=""))
        if self.chance(0.4):
            return [f"{first.name}, {second.name} = {second.name}, {first.name}"]
        return [f"{second.name} = {first.name}"]

    def integers(self, place: Place) -> Lines:
        """An integer, or another value for one."""
        old = [v for v in self.free("int") if not v.shape]
        if old and self.chance(0.6):
            v = self.rng.choice(old)
            self.scope.add(replace(v, below=None, wraps=False))
            return [
                self.pick(
                    [
                        f"{v.name} += 1",
                        f"{v.name} = {v.name} + 2",
                        f"{v.name} = {self.integer((), 1)}",
                        f"{v.name} *= -1",
                    ]
                )
            ]
        name = self.fresh("n")
        shape: Shape = () if self.chance(0.7) else (self.dim(),)
        text = self.integer(shape, 2)
        d = self.dim() if self.chance(0.4) else None
        text = text if d is None else f"{text} % {self.scope.extent(d)}"
        self.scope.add(Variable(name, shape, "int", below=d, weak=not shape))
        return [f"{name} = {text}"]

    def flag(self, place: Place) -> Lines:
        shape = self.any_shape(2) if self.chance(0.6) else ()
        name, text = self.fresh("c"), self.boolean(shape, 2)
        self.scope.add(Variable(name, shape, "bool", weak=not shape))
        return [f"{name} = {text}"]

    # -- stores ------------------------------------------------------------------------------------------------
    def store(self, place: Place) -> Lines:
        y = self.writable()
        target, shape = self.pick(
            [self._item, self._item, self._item, self._slice, self._slice, self._all, self._item]
        )(y)
        self.scope.add(replace(self.scope.variables[y.name], domain="", mag=max(y.mag, 4)))
        if self.chance(0.45):
            op, text = self.update(shape, place)
            return [f"{target} {op}= {text}"]
        text = self.value(shape if self.chance(0.8) else self.smaller(shape))
        if len(shape) == 1 and y.rank > 1 and text.endswith("]"):
            text += " * 1.0"  # NumPy itself gets y[0] = y[:, 0] wrong
        return [f"{target} = {text}"]

    def _item(self, y: Variable) -> tuple[str, Shape]:
        n = self.rng.randint(1, y.rank)
        at = [self.place(d) for d in y.shape[:n]]
        rest = list(y.shape[n:])
        if y.rank >= 2 and self.chance(0.3):
            at, rest = [":", self.place(y.shape[1])], [y.shape[0], *y.shape[2:]]
        return f"{y.name}[{', '.join(at)}]", tuple(rest)

    def _slice(self, y: Variable) -> tuple[str, Shape]:
        """A part whose extent is not that of any variable takes a row for all."""
        d = y.shape[0]
        counters = [v.name for v in self.scope.having("int", ()) if v.below == d]
        options = ["::2", "1::2", "::-2", ":1", "1:", ":-1", "-2:"]
        options += [f"{c}:" for c in counters] + [f":{c}" for c in counters] + [f"{c} + 1:" for c in counters]
        if self.chance(0.3) and (d.value is None or d.value > 1):
            cut = self.pick(["1:", ":-1"])
            return f"{y.name}[{cut}]", (d - 1, *y.shape[1:])
        if y.rank >= 2 and self.chance(0.3):
            return f"{y.name}[:, {self.pick(options[:6])}]", (y.shape[0], ONE, *y.shape[2:])
        return f"{y.name}[{self.pick(options)}]", y.shape[1:]

    def _all(self, y: Variable) -> tuple[str, Shape]:
        return f"{y.name}[{self.pick(['...', ':', '::-1'])}]", y.shape

    def mask(self, place: Place) -> Lines:
        y = self.writable()
        shape = y.shape if self.chance(0.8) else y.shape[:1]
        condition = self.boolean(shape, self.size)
        if self.chance(0.4):
            return [f"{y.name}[{condition}] {self.pick('+-*')}= {self.value((), 1)}"]
        return [f"{y.name}[{condition}] = {self.value(())}"]

    def scatter(self, place: Place) -> Lines:
        y = self.writable()
        i = self.pick([v for v in self.scope.having("int") if v.rank == 1])
        index = i.name if i.below == y.shape[0] else f"{i.name} % {self.scope.extent(y.shape[0])}"
        shape = (*i.shape, *y.shape[1:])
        text = self.value(shape if self.chance(0.7) else self.smaller(shape), 1.5)
        if self.chance(0.4):
            return [f"np.add.at({y.name}, {index}, {text})"]
        return [f"{y.name}[{index}] {self.pick(['', '', '+', '-', '*'])}= {text}"]

    # -- branches and ways out -----------------------------------------------------------------------------------
    def branch(self, place: Place) -> Lines:
        inside = place.inside()
        new = Variable(self.fresh(), self.any_shape(2)) if self.chance(0.4) else None

        def arm() -> Lines:
            lines = self.nested(self.rng.randint(0 if new else 1, 2), inside)
            return indented([*lines, f"{new.name} = {self.value(new.shape)}"] if new else lines)

        lines = [f"if {self.condition()}:", *arm()]
        while self.chance(0.25):
            lines += [f"elif {self.condition()}:", *arm()]
        if new or self.chance(0.5):
            lines += ["else:", *arm()]
        if new:
            self.scope.add(new)
        return lines

    def condition(self) -> str:
        return self.boolean((), self.size)

    def way_out(self, place: Place) -> Lines:
        if place.plain:
            raise Dead
        if place.loop and self.chance(0.75):
            return [f"if {self.condition()}:", f"    {self.pick(['break', 'continue'])}"]
        return [f"if {self.condition()}:", *indented(self.finish())]

    def finish(self) -> Lines:
        texts = []
        for shape, kind in self.results:
            match kind:
                case "real":
                    texts.append(self.result(shape))
                case "bool":
                    texts.append(self.boolean(shape, 2))
                case _:
                    texts.append(f"{self.integer(shape, 2)} + 0" if shape else f"int({self.integer((), 2)})")
        return [f"return {', '.join(texts)}"]

    def result(self, shape: Shape) -> str:
        """A variable itself, where there is one: the gradient may be given it; or an expression."""
        own = [v.name for v in self.scope.having("real", shape) if not v.fixed and not v.weak and v.mag <= 1e3]
        if own and self.chance(0.5):
            return self.pick(own)
        if self.chance(0.6):
            return self.limited(shape, self.size, 1e3).text
        return f"{self.leaf(shape).text} + {self.real(shape, 1).text}"

    def check(self, place: Place) -> Lines:
        return [f"assert {self.scope.extent(self.dim())} >= 0" + self.pick(["", ', "an extent"'])]

    # -- loops -----------------------------------------------------------------------------------------------------
    def head(self, plain: bool = False) -> tuple[str, list[Variable], Dim | None]:
        """The head of a `for`, its variables, and how many trips it makes, if that is an extent."""
        style = self.rng.randrange(14 if not plain else 8)
        if style >= 4 and self.chance(0.7):
            style = self.rng.randrange(4)
        rows = [v for v in self.scope.having() if v.rank]
        if style in (4, 5, 6, 7) and not rows:
            style = 0
        i, d = self.fresh("i"), self.dim()
        counter = Variable(i, (), "int", below=d, fixed=True, weak=True)

        def row(v: Variable) -> Variable:
            return Variable(self.fresh("r"), v.shape[1:], mag=v.mag, fixed=True, owns=v.owns and v.rank > 1)

        match style:
            case 0 | 1 | 2:
                return f"for {i} in range({self.scope.extent(d)})", [counter], d
            case 3:
                n = self.scope.extent(d)
                return (
                    self.pick([f"for {i} in range({n} - 1, -1, -1)", f"for {i} in reversed(range({n}))"]),
                    [counter],
                    d,
                )
            case 4:
                v = self.pick(rows)
                r = row(v)
                return f"for {r.name} in {v.name}", [r], v.shape[0]
            case 5:
                v = self.pick(rows)
                r = row(v)
                return f"for {i}, {r.name} in enumerate({v.name})", [replace(counter, below=v.shape[0]), r], v.shape[0]
            case 6:
                v = self.pick(rows)
                w = self.pick([w for w in rows if w.shape[0] == v.shape[0]])
                r, s = row(v), row(w)
                return f"for {r.name}, {s.name} in zip({v.name}, {w.name})", [r, s], v.shape[0]
            case 7:
                v = self.pick(rows)
                r = row(v)
                return f"for {r.name} in reversed({v.name})", [r], v.shape[0]
            case 8:
                before = replace(counter, name=f"({i} - 1)")
                return f"for {i} in range(1, {self.scope.extent(d)})", [counter, before], None
            case 9:
                after = replace(counter, name=f"({i} + 1)")
                return f"for {i} in range({self.scope.extent(d)} - 1)", [counter, after], None
            case 10:
                step = self.pick(["2", "3"])
                n = self.scope.extent(d)
                return (
                    self.pick(
                        [
                            f"for {i} in range(0, {n}, {step})",
                            f"for {i} in range({n} - 1, -1, -{step})",
                            f"for {i} in range({n} - 1, 0, -1)",
                        ]
                    ),
                    [counter],
                    None,
                )
            case 11:
                outer = self.pick(
                    [
                        v
                        for v in self.scope.having("int", ())
                        if v.below is not None and v.fixed and v.name.isidentifier()
                    ]
                )
                bounds = self.pick([outer.name, f"{outer.name} + 1", f"{outer.name}, {self.scope.extent(outer.below)}"])
                return f"for {i} in range({bounds})", [replace(counter, below=outer.below)], None
            case 12:
                k = self.pick([v for v in self.scope.having("int") if v.rank == 1 and v.below is not None])
                return f"for {i} in {k.name}", [replace(counter, below=k.below, wraps=k.wraps)], None
        return f"for {i} in range({self.pick(['0', '2', '3', '1'])})", [replace(counter, below=None)], None

    def loop(self, place: Place) -> Lines:
        head, variables, _ = self.head()
        lines = [f"{head}:", *indented(self.nested(self.rng.randint(1, 3), place.inside("for"), *variables))]
        return lines

    def until(self, place: Place) -> Lines:
        """A `while` that makes a few trips at most."""
        k, most = self.fresh("k"), self.rng.randint(0, 3)
        counter = Variable(k, (), "int", fixed=True, weak=True)
        condition = self.condition() if self.chance(0.7) else None
        self.scope.add(counter)
        body = indented([f"{k} += 1", *self.nested(self.rng.randint(1, 3), place.inside("while"))])
        if condition is None:
            return [f"{k} = 0", f"while {k} < {most}:", *body]
        if self.chance(0.3):
            first, *others = body  # counted before anything can continue
            return [f"{k} = 0", f"while {condition}:", first, f"    if {k} > {most}:", "        break", *others]
        return [f"{k} = 0", f"while {k} < {most} and {condition}:", *body]

    def collect(self, place: Place) -> Lines:
        """A list of what each trip gives, then stacked."""
        head, variables, n = self.head(plain=True)
        if n is None:
            raise Dead
        name, result = self.fresh("ys"), self.fresh()
        shape = self.any_shape(2)
        outer, helpers = self.scope, list(self.helpers)
        self.scope = outer.copy()
        for v in variables:
            self.scope.add(v)
        body = self.block(self.rng.randint(0, 2), place.inside("for", plain=True))
        item = self.value(shape)
        self.scope, self.helpers = outer, helpers
        for v in list(outer.variables.values()):
            outer.variables[v.name] = replace(v, domain="", owns=False)  # the body may have assigned it
        axis = self.rng.randint(0, len(shape))
        at = "" if axis == 0 else f", axis={axis}"
        stack = f"np.stack({name}{at})" if shape or self.chance(0.5) else f"np.array({name})"
        self.scope.add(Variable(result, (*shape[:axis], n, *shape[axis:])))
        return [f"{name} = []", f"{head}:", *indented([*body, f"{name}.append({item})"]), f"{result} = {stack}"]

    def recurrence(self, place: Place) -> Lines:
        """The pattern of layers: a state that is carried along an axis, and written."""
        x = self.pick([v for v in self.scope.having() if v.rank in (1, 2)])
        h, y, t = self.fresh("h"), self.fresh("y"), self.fresh("t")
        n, rest = x.shape[0], x.shape[1:]
        start = f"np.zeros({self.scope.shape(rest)})" if rest else "0.5"
        lines = [f"{h} = {start}", f"{y} = np.zeros({self.scope.shape(x.shape)})"]
        self.scope.add(Variable(h, rest))
        self.scope.add(Variable(y, x.shape, owns=True))
        counter = Variable(t, (), "int", below=n, fixed=True, weak=True)
        outer = self.scope
        self.scope = outer.copy()
        self.scope.add(counter)
        step = [f"{h} = {self.limited(rest, self.size, 2).text} + 0.5 * {h} + {x.name}[{t}]"]
        middle = self.block(self.rng.randint(0, 1), place.inside("for"))
        self.scope = outer
        self.settle()
        head = self.pick([f"range({self.scope.extent(n)})", f"reversed(range({self.scope.extent(n)}))"])
        return [*lines, f"for {t} in {head}:", *indented([*step, *middle, f"{y}[{t}] = {h}"])]

    def settle(self) -> None:
        """After a block whose assignments were not followed one by one."""
        for v in list(self.scope.variables.values()):
            self.scope.variables[v.name] = replace(v, domain="", owns=v.owns and v.name.startswith("y"))

    # -- functions ---------------------------------------------------------------------------------------------------
    def local(self, place: Place) -> Lines:
        """A nested function or a lambda that reads what is around it."""
        name = self.fresh("f")
        shapes = tuple(self.any_shape(2) for _ in range(self.rng.randint(1, 2)))
        result = self.any_shape(2)
        outer, helpers = self.scope, list(self.helpers)
        self.scope = outer.copy().fix()
        arguments = [self.fresh("p") for _ in shapes]
        for a, s in zip(arguments, shapes, strict=True):
            self.scope.add(Variable(a, s, mag=5))
        try:
            if self.chance(0.5):
                lines = [f"{name} = lambda {', '.join(arguments)}: {self.value(result)}"]
            else:
                body = [line for _ in range(self.rng.randint(0, 2)) for line in self.assign(Place(9))]
                lines = [f"def {name}({', '.join(arguments)}):", *indented([*body, f"return {self.value(result)}"])]
        finally:
            self.scope = outer
        self.helpers = [*helpers, (name, shapes, result, 4.0)]
        return lines

    def local_write(self, place: Place) -> Lines:
        """A nested function that writes into an array around it, and its call."""
        y = self.writable()
        name, p, v = self.fresh("f"), self.fresh("p"), self.fresh()
        outer, helpers = self.scope, list(self.helpers)
        self.scope = outer.copy().fix()
        self.scope.add(replace(y, domain=""))
        self.scope.add(Variable(p, (), mag=4))
        try:
            body = self.store(Place(9))
            result = self.value(())
        finally:
            self.scope, self.helpers = outer, helpers
        self.scope.add(replace(y, domain="", mag=max(y.mag, 4)))
        called = f"{name}({self.value(())})"
        lines = [f"def {name}({p}):", *indented([*body, f"return {result}"])]
        if self.chance(0.5):
            return [*lines, called, called]
        self.scope.add(Variable(v, ()))
        return [*lines, f"{v} = {called}"]

    def draw(self, place: Place) -> Lines:
        """Random numbers, in an array or one."""
        if not self.generator:
            raise Dead
        shape, g = self.any_shape(2), self.generator
        where = self.scope.shape(shape)
        options = [
            f"{g}.random({where})",
            f"{g}.standard_normal({where})",
            f"{g}.uniform(-1.0, {self.leaf(()).text}, {where})",
            f"{g}.bernoulli(0.5, {where}) * 1.5",
            f"{g}.integers(-2, 3, {where}) * 0.5",
        ]
        name = self.fresh()
        self.scope.add(Variable(name, shape))
        return [f"{name} = {self.pick(options)}"]

    def imported(self, place: Place) -> Lines:
        """A call of what another file defines."""
        name = self.fresh()
        if self.chance(0.3):
            y = self.writable()
            self.scope.add(replace(y, domain=""))
            self.scope.add(Variable(name, y.shape))
            return [f"{name} = bumped({y.name})"]
        shape = self.any_shape(2)
        a, b = self.value(shape), self.value(shape)
        options = [(f"squeezed({a})", shape), (f"mixed({a}, {b})", shape), (f"SHARE * ({a})", shape)]
        if shape:
            options.append((f"first_positive({a}, {self.leaf(()).text})", ()))
        text, shape = self.pick(options)
        self.scope.add(Variable(name, shape))
        return [f"{name} = {text}"]

    def write_through(self, place: Place) -> Lines:
        """A helper of the file that writes into its argument."""
        names = [h for h in self.helpers if h[3] < 0]
        name, shapes, result, _ = self.pick(names)
        texts = [self.pick([v for v in self.scope.having("real", s) if v.owns]).name for s in shapes]
        v = self.fresh()
        self.scope.add(Variable(v, result))
        return [f"{v} = {name}({', '.join(texts)})"]

    def helper(self) -> Lines:
        """A function of the file. Its arguments are of the shapes of some variables; it knows nothing else."""
        name = self.fresh("helper")
        shapes = tuple(self.any_shape(2) for _ in range(self.rng.randint(1, 3)))
        outer, helpers, results = self.scope, list(self.helpers), self.results
        writes = any(shapes) and self.chance(0.25)
        self.scope = Scope()
        for s in shapes:
            self.scope.add(Variable(self.fresh("p"), s, mag=5, owns=writes and bool(s)))
        names = list(self.scope.variables)
        try:
            result = self.any_shape(2)
            self.results = [(result, "real")]
            body: Lines = []
            if writes:
                body += self.store(Place(9))
            body += self.block(self.rng.randint(0, 2), Place(1))
            last = self.limited(result, self.size, 4).text
        finally:
            self.scope, self.helpers, self.results = outer, helpers, results
        self.helpers.append((name, shapes, result, -1.0 if writes else 4.0))
        return [f"def {name}({', '.join(names)}):", *indented([*body, f"return {last}"])]


_STATEMENTS: list[tuple[Callable[[Statements, Place], Lines], float, int]] = [
    # production, weight, deepest place
    (Statements.assign, 8, 9),
    (Statements.maker, 5, 9),
    (Statements.again, 5, 9),
    (Statements.in_place, 5, 9),
    (Statements.exchange, 1, 9),
    (Statements.view, 2.5, 9),
    (Statements.choice, 1, 9),
    (Statements.bind_again, 0.7, 9),
    (Statements.integers, 2, 9),
    (Statements.flag, 1, 9),
    (Statements.store, 9, 9),
    (Statements.mask, 1.5, 9),
    (Statements.scatter, 2.5, 9),
    (Statements.branch, 4, 2),
    (Statements.way_out, 2, 3),
    (Statements.check, 0.3, 9),
    (Statements.loop, 7, 1),
    (Statements.until, 2.5, 1),
    (Statements.collect, 1.5, 0),
    (Statements.recurrence, 2, 1),
    (Statements.local, 1.2, 1),
    (Statements.local_write, 0.7, 1),
    (Statements.draw, 6, 2),
    (Statements.imported, 1, 2),
    (Statements.write_through, 2, 1),
]
