"""The grammar of shape strings, binding, and the rule that tells one example from a batch."""

import pytest

from layerc.runtime.shapes import Anything, Group, Size, batch_size, bind, linear, parse

READS = [
    ("", ()),
    ("3", (Size,)),
    ("N C H W", (Size, Size, Size, Size)),
    ("2*C", (Size,)),
    ("H-K+1", (Size,)),
    ("(H+2*pad-k)//stride+1 _", (Size, Anything)),
    ("C *S", (Size, Group)),
    ("*S", (Group,)),
    ("  N   D ", (Size, Size)),
    ("-C+5", (Size,)),
    ("N%2", (Size,)),
]


@pytest.mark.parametrize(("text", "kinds"), READS)
def test_reads(text, kinds):
    shape = parse(text)
    assert tuple(type(dim) for dim in shape.dims) == kinds
    assert parse(str(shape)) == shape


REFUSED = [
    "*S *T",
    "C*",
    "a.b",
    "f(x)",
    "3.5",
    "N/2",
    "N**M",
    "N**-1",
    "N**99",
    "x=3",
    "...",
    "'a'",
    "True",
    "__import__('os')",
    "[1]",
]


@pytest.mark.parametrize("text", REFUSED)
def test_refuses(text):
    with pytest.raises(ValueError, match="shape"):
        parse(text)


EVALUATES = [
    ("3 N", {"N": 4}, (3, 4)),
    ("2*C H-K+1", {"C": 3, "H": 8, "K": 3}, (6, 6)),
    ("(2*w-1)**2 w**0 -w**2+9", {"w": 2}, (9, 1, 5)),
    ("(H+2*pad-k)//stride+1", {"H": 28, "pad": 1, "k": 3, "stride": 2}, (14,)),
    ("C *S", {"C": 2, "S": (5, 6)}, (2, 5, 6)),
    ("C *S", {"C": 2, "S": ()}, (2,)),
    ("-C+5 N%4", {"C": 2, "N": 7}, (3, 3)),
    ("", {}, ()),
]


@pytest.mark.parametrize(("text", "binding", "expected"), EVALUATES)
def test_evaluates(text, binding, expected):
    assert parse(text).evaluate(binding) == expected


@pytest.mark.parametrize(
    ("text", "binding", "error"),
    [
        ("N", {}, KeyError),
        ("_", {}, ValueError),
        ("N-5", {"N": 3}, ValueError),
        ("N//k", {"N": 3, "k": 0}, ValueError),
        ("N", {"N": 1.5}, ValueError),
    ],
)
def test_evaluation_errors(text, binding, error):
    with pytest.raises(error):
        parse(text).evaluate(binding)


LINEAR = [
    ("C", {}, "C", (0, 1)),
    ("2*C", {}, "C", (0, 2)),
    ("H-K+1", {"K": 3}, "H", (-2, 1)),
    ("3-(C-1)*2", {}, "C", (5, -2)),
    ("C*C", {}, "C", None),
    ("C//2", {}, "C", None),
    ("7//2+C", {}, "C", (3, 1)),
    ("C%2", {}, "C", None),
]


@pytest.mark.parametrize(("text", "binding", "unknown", "expected"), LINEAR)
def test_linear(text, binding, unknown, expected):
    (dim,) = parse(text).dims
    assert isinstance(dim, Size)
    assert linear(dim.tree, binding, unknown) == expected


# declared and actual shapes of x, y, ...; config; the names bound
BINDS = [
    (["N D"], [(2, 3)], {}, {"N": 2, "D": 3}),
    (["N D", "K D", "K"], [(2, 3), (4, 3), (4,)], {}, {"N": 2, "D": 3, "K": 4}),
    (["C *S"], [(2, 5, 6)], {}, {"C": 2, "S": (5, 6)}),
    (["*S C"], [(5, 6, 2)], {}, {"C": 2, "S": (5, 6)}),
    (["A *S B"], [(1, 2)], {}, {"A": 1, "B": 2, "S": ()}),
    (["*S", "*S"], [(5, 6), (5, 6)], {}, {"S": (5, 6)}),
    (["2*C"], [(6,)], {}, {"C": 3}),  # solved
    (["H-K+1", "K"], [(6,), (3,)], {}, {"K": 3, "H": 8}),  # solved, once K is known
    (["H-K+1"], [(6,)], {"K": 3}, {"K": 3, "H": 8}),
    (["A+B", "A"], [(5,), (2,)], {}, {"A": 2, "B": 3}),
    (["A+B", "B+A"], [(5,), (5,)], {}, {}),  # two unknowns: nothing to say
    (["N//2"], [(3,)], {}, {}),  # not linear: nothing to say
    (["N//2", "N"], [(3,), (7,)], {}, {"N": 7}),  # but checked once N is known
    (["_ _"], [(3, 4)], {}, {}),
    (["3"], [(3,)], {}, {}),
    ([""], [()], {}, {}),
    (["N"], [(0,)], {}, {"N": 0}),
    (["N"], [(3,)], {"slope": 0.5}, {"N": 3}),
]


@pytest.mark.parametrize(("declared", "actual", "config", "expected"), BINDS)
def test_binds(declared, actual, config, expected):
    shapes = [(name, parse(text), shape) for name, text, shape in zip("xyz", declared, actual)]
    assert bind(shapes, config, "f") == expected


# declared; actual; config; what the message tells besides the layer
REFUSES = [
    (["N D"], [(2,)], {}, ["'x'", '"N D"', "(2,)", "rank 1 instead of 2"]),
    (["N D *S"], [(2,)], {}, ["'x'", "rank 1 instead of at least 2"]),
    (["3"], [(4,)], {}, ["'x'", "4, expected 3"]),
    (["N N"], [(3, 4)], {}, ["'x'", "N is 4 here, but 3"]),
    (["N D", "K D"], [(2, 3), (4, 5)], {}, ["'y'", "D is 5 here, but 3 in argument 'x'"]),
    (["*S", "*S"], [(2, 3), (3, 2)], {}, ["'y'", "(3, 2)", "(2, 3)"]),
    (["2*C"], [(5,)], {}, ["'x'", "no C gives 2*C = 5"]),
    (["C+3"], [(2,)], {}, ["'x'", "no C gives"]),
    (["H-K+1", "H", "K"], [(5,), (8,), (3,)], {}, ["'x'", "expected H-K+1 = 6 (with H=8, K=3)"]),
    (["N//2", "N"], [(3,), (8,)], {}, ["'x'", "N//2 = 4"]),
    (["K"], [(4,)], {"K": 3}, ["'x'", "K is 4 here, but 3 in the configuration"]),
    (["2*K"], [(4,)], {"K": 1.5}, ["'x'", "K must be an integer, not 1.5"]),
    (["N//k", "N"], [(4,), (4,)], {"k": 0}, ["'x'", "division by zero"]),
]


@pytest.mark.parametrize(("declared", "actual", "config", "tells"), REFUSES)
def test_binding_errors(declared, actual, config, tells):
    shapes = [(name, parse(text), shape) for name, text, shape in zip("xyz", declared, actual)]
    with pytest.raises(ValueError) as caught:
        bind(shapes, config, "mylayer")
    for word in ["mylayer", *tells]:
        assert word in str(caught.value)


FLATTENS = [
    ("C *S", (2, 5, 6), (2, 30)),
    ("*S C", (5, 6, 2), (30, 2)),
    ("*S", (), (1,)),
    ("A *S B", (1, 2), (1, 1, 2)),
    ("N D", (3, 4), (3, 4)),
]


@pytest.mark.parametrize(("text", "actual", "expected"), FLATTENS)
def test_flattens(text, actual, expected):
    assert parse(text).flatten(actual) == expected


# declared; actual; batch=; ranks=; the answer
EXAMPLE_OR_BATCH = [
    (["T D"], [(5, 3)], None, None, None),
    (["T D"], [(2, 5, 3)], None, None, 2),
    (["T D"], [(2, 5, 3)], False, None, None),
    (["*S"], [(2, 5, 3)], None, None, None),  # rank cannot tell: one example
    (["*S"], [(2, 5, 3)], True, None, 2),
    (["*S"], [(2, 5, 3)], None, [2], 2),  # initialize has told
    (["*S"], [(2, 5, 3)], None, [3], None),
    (["*S", ""], [(2, 5), (2,)], None, None, 2),  # the scalar tells
    (["*S", ""], [(2, 5), ()], None, None, None),
    ([""], [(7,)], None, None, 7),
    (["N"], [(0, 4)], None, None, 0),
]


@pytest.mark.parametrize(("declared", "actual", "batch", "ranks", "expected"), EXAMPLE_OR_BATCH)
def test_example_or_batch(declared, actual, batch, ranks, expected):
    inputs = [(name, parse(text), shape) for name, text, shape in zip("xyz", declared, actual)]
    assert batch_size(inputs, "f", batch, ranks) == expected


@pytest.mark.parametrize(
    ("declared", "actual", "batch", "tells"),
    [
        (["N", "N"], [(2, 3), (3,)], None, ["'y'", "rank 2"]),
        (["N", "N"], [(2, 3), (4, 3)], None, ["'y'", "batch of 4", "'x' has 2"]),
        (["*S"], [()], True, ["'x'", "one axis more"]),
        ([], [], True, ["no input"]),
    ],
)
def test_batch_errors(declared, actual, batch, tells):
    inputs = [(name, parse(text), shape) for name, text, shape in zip("xyz", declared, actual)]
    with pytest.raises(ValueError) as caught:
        batch_size(inputs, "mylayer", batch)
    for word in ["mylayer", *tells]:
        assert word in str(caught.value)
