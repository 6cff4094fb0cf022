"""Linear algebra of many small matrices: sixteen examples at once, and substitution where a matrix is triangular."""

import importlib
import textwrap

import numpy as np
import pytest

from layerc.build.driver import build, compile_module, read_module
from layerc.transpile.dump import dump
from layerc.transpile.program import Call, stmt_exprs, walk, walk_stmts

HEAD = "import numpy as np\nfrom layerc import layer, real\n"
SOURCE = HEAD + textwrap.dedent(
    """
    @layer
    def solved(a: real["D D"], b: real["D"]) -> real["D"]:
        return np.linalg.solve(a, b)

    @layer
    def likelihood(x: real["D"], cov: real["D D"]) -> real[""]:
        l = np.linalg.cholesky(cov)
        z = np.linalg.solve(l, x)
        return 0.5 * np.sum(z * z) + np.sum(np.log(np.diagonal(l)))

    @layer
    def lower(a: real["D D"], b: real["D"]) -> real["D"]:
        return np.linalg.solve(np.tril(a), b)
    """
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrices")
    (folder / "matrices.py").write_text(SOURCE)
    build(folder / "matrices.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("matrices_compiled"), importlib.import_module("matrices")


def _matrices(batch, d):
    """Of which each needs other rows exchanged."""
    rng = np.random.default_rng(batch)
    a = 2 * np.eye(d) + 0.6 * rng.normal(size=(batch, d, d)) / np.sqrt(d)
    return np.stack([m[rng.permutation(d)] for m in a]), rng.normal(size=(batch, d))


@pytest.mark.parametrize("batch", [1, 3, 16, 21])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_each_example_has_its_own_pivots(built, batch, d):
    a, b = _matrices(batch, d)
    y, pull = built[0].solved.vjp(a, b)
    np.testing.assert_allclose(y, [np.linalg.solve(m, v) for m, v in zip(a, b, strict=True)], rtol=1e-11, atol=1e-12)
    dy = np.cos(b)
    back = np.stack([np.linalg.solve(m.T, v) for m, v in zip(a, dy, strict=True)])
    d_a, d_b = pull(dy)
    np.testing.assert_allclose(d_b, back, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(d_a, -back[:, :, None] * y[:, None, :], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 5, 33])
@pytest.mark.parametrize("d", [1, 3, 8, 40])
def test_a_likelihood_and_its_gradient(built, batch, d):
    """With S = inv(cov), alpha = S x: the gradient of x is alpha, of cov (S - alpha alpha^T) / 2."""
    rng = np.random.default_rng(d)
    r, x = rng.normal(size=(batch, d, d)), rng.normal(size=(batch, d))
    cov = r @ r.swapaxes(1, 2) / d + np.eye(d)
    y, pull = built[0].likelihood.vjp(x, cov)
    np.testing.assert_allclose(y, [built[1].likelihood(v, m) for v, m in zip(x, cov, strict=True)], rtol=1e-12)
    d_x, d_cov = pull(np.ones(batch))
    alpha = np.linalg.solve(cov, x[..., None])[..., 0]
    np.testing.assert_allclose(d_x, alpha, rtol=1e-10, atol=1e-12)
    exact = (np.linalg.inv(cov) - alpha[:, :, None] * alpha[:, None, :]) / 2
    np.testing.assert_allclose(d_cov, exact, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["solved", "lower"])
@pytest.mark.parametrize("at", [0, 7, 18])
def test_one_singular_matrix_among_many_is_told(built, name, at):
    a, b = _matrices(19, 4)
    a[at] = 0 if name == "solved" else np.triu(a[at], 1)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        getattr(built[0], name)(a, b)


def test_what_a_triangle_leaves_out_is_not_read(built):
    a, b = _matrices(17, 4)
    a += 5 * np.eye(4)
    expected = built[0].lower(a, b)
    np.testing.assert_allclose(
        expected, [np.linalg.solve(np.tril(m), v) for m, v in zip(a, b, strict=True)], rtol=1e-12
    )
    a += np.triu(np.full((4, 4), np.nan), 1)
    y, pull = built[0].lower.vjp(a, b)
    assert np.array_equal(y, expected)
    d_a, _ = pull(b)
    assert np.isfinite(d_a).all()
    assert (np.triu(d_a, 1) == 0).all()


def test_sixteen_matrices_go_side_by_side(tmp_path):
    """Rows that a pivot names lie in an array of each example's own, products of matrices are loops among others."""
    (tmp_path / "matrices.py").write_text(SOURCE)
    for part in compile_module(read_module(tmp_path / "matrices.py"), upto="lanes").parts:
        if part.method in ("forward", "backward"):
            assert "D, 16]" in dump(part.kernel), dump(part.kernel)


def _operations(tmp_path, body):
    """Of the layer f(a, b) with this body: what solves systems."""
    text = HEAD + '@layer\ndef f(a: real["D D"], b: real["D"]) -> real["D"]:\n' + textwrap.indent(body, "    ")
    (tmp_path / "one.py").write_text(text)
    (made,) = read_module(tmp_path / "one.py").layers
    calls = [
        e for s in walk_stmts(made.predict.body) for top in stmt_exprs(s) for e in walk(top) if isinstance(e, Call)
    ]
    return [c.op for c in calls if c.op.startswith("solve")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return np.linalg.solve(np.tril(a), b)", ["solve_lower"]),
        ("return np.linalg.solve(np.tril(a, 1), b)", ["solve"]),
        ("return np.linalg.solve(np.triu(a, 1) + np.eye(a.shape[0]), b)", ["solve_upper"]),
        ("return np.linalg.solve(np.tril(a) + np.eye(1), b)", ["solve"]),
        (
            "l = np.linalg.cholesky(a)\nreturn np.linalg.solve(l.T, np.linalg.solve(l, b))",
            ["solve_upper", "solve_lower"],
        ),
        ("l = np.linalg.cholesky(a)\nl[0, 1] = 2.0\nreturn np.linalg.solve(l, b)", ["solve"]),
        ("l = np.linalg.cholesky(a)\nv = l[0]\nv[1] = 2.0\nreturn np.linalg.solve(l, b)", ["solve"]),
        ("l = np.tril(a)\nif b[0] > 0:\n    l = a\nreturn np.linalg.solve(l, b)", ["solve"]),
        ("return np.linalg.solve(a, b)", ["solve"]),
    ],
)
def test_what_is_known_to_be_triangular(tmp_path, body, expected):
    assert _operations(tmp_path, body) == expected
