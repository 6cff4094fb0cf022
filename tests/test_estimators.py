"""`LayercClassifier` and `LayercRegressor`: scikit-learn's own checks, and its tools with them."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from layerc.runtime import LBFGS, Adam, InnerProduct, LayercClassifier, LayercRegressor, Neurons

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone, is_classifier, is_regressor  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

RNG = np.random.default_rng(0)
QUICK = Adam(lr=0.01, max_epoch=5)


@parametrize_with_checks([LayercClassifier(), LayercRegressor()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_kinds():
    assert is_classifier(LayercClassifier())
    assert is_regressor(LayercRegressor())


def test_classes_of_any_label_in_a_pipeline():
    x, t = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[t]
    pipeline = make_pipeline(StandardScaler(), LayercClassifier(solver=Adam(lr=0.01, max_epoch=80)))
    assert cross_val_score(pipeline, x, names, cv=3).mean() > 0.93
    pipeline.fit(x, names)
    assert set(pipeline.predict(x)) == set(names)
    p = pipeline.predict_proba(x)
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(1), 1)
    assert np.array_equal(pipeline[-1].classes_[p.argmax(1)], pipeline.predict(x))


def test_search_over_nets_and_solvers():
    x, t = load_iris(return_X_y=True)
    nets = [[InnerProduct(3)], [InnerProduct(8, neuron=Neurons.Tanh()), InnerProduct(3)]]
    grid = {"net": nets, "batch_size": [16, 150]}
    search = GridSearchCV(LayercClassifier(solver=QUICK), grid, cv=2, error_score="raise")
    search.fit(StandardScaler().fit_transform(x), t)
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert QUICK.state.iter == 0  # a fit trains with a copy
    assert search.best_estimator_.n_iter_ == search.best_estimator_.solver_.state.iter > 0


def test_regression_of_one_value_and_of_several():
    x, y = load_diabetes(return_X_y=True)
    x, y = StandardScaler().fit_transform(x), (y - y.mean()) / y.std()
    one = LayercRegressor(solver=Adam(lr=0.01, max_epoch=20)).fit(x, y)
    assert one.predict(x).shape == y.shape
    assert one.score(x, y) > 0.5
    two = LayercRegressor(solver=QUICK).fit(x, np.stack([y, -y], axis=1))
    assert two.predict(x).shape == (len(x), 2)
    linear = LayercRegressor([InnerProduct(1)], LBFGS(max_iter=60), batch_size=len(x)).fit(x, y)
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(linear.predict(x), x @ exact, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_type_and_seed(dtype):
    x, t = RNG.normal(size=(20, 3)).astype(dtype), np.arange(20) % 2
    first, again, other = (LayercClassifier(solver=QUICK, seed=s).fit(x, t).predict_proba(x) for s in (0, 0, 1))
    assert first.dtype == dtype
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("made", [LayercClassifier, LayercRegressor])
def test_pickled_it_predicts_the_same(made):
    x, t = RNG.normal(size=(20, 3)), np.arange(20) % 3
    fitted = made([InnerProduct(4, neuron=Neurons.ReLU()), InnerProduct(3 if made is LayercClassifier else 1)], QUICK)
    fitted.fit(x, t)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(x), fitted.predict(x))
    assert again.fit(x, t).n_iter_ == fitted.n_iter_
    assert not hasattr(clone(fitted), "net_")


@pytest.mark.parametrize(
    ("estimator", "error", "text"),
    [
        (LayercClassifier([InnerProduct(5)]), ValueError, r"makes .*5.*must make \(N, 2\)"),
        (LayercClassifier(InnerProduct(2)), TypeError, "list of layers"),
        (LayercClassifier(solver="adam"), TypeError, "must be a solver"),
        (LayercRegressor(batch_size=0), ValueError, "batch_size"),
    ],
)
def test_what_cannot_be_fitted(estimator, error, text):
    with pytest.raises(error, match=text):
        estimator.fit(RNG.normal(size=(10, 3)), np.arange(10) % 2)


def test_unknown_parameter():
    with pytest.raises(ValueError, match="no parameter 'units'; there is batch_size, net, seed, solver"):
        LayercClassifier().set_params(units=3)


def test_scikit_learn_is_not_imported_before_it_is_needed():
    code = "from layerc.runtime import *; import sys; LayercClassifier().get_params(); print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
