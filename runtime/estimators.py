"""`LayercClassifier`, `LayercRegressor`: nets with scikit-learn's interface, for its pipelines and searches.

scikit-learn is imported by what is called, not by this module: it asks for methods, not for a base class.
"""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from layerc.runtime import weights
from layerc.runtime.inner_product import InnerProduct
from layerc.runtime.label_losses import SoftmaxLoss
from layerc.runtime.layer import Layer
from layerc.runtime.losses import SquareLoss
from layerc.runtime.net import Net
from layerc.runtime.neurons import ReLU
from layerc.runtime.solvers import Adam, Solver


def _sklearn(module: str) -> Any:
    return weights.need(f"sklearn.{module}", "scikit-learn", "sklearn")


class Estimator:
    """Base of both.

    net: layers as for `Net.chain`, without data and loss, the last making the scores (N, classes) or values (N,
    outputs); None: `InnerProduct(100)` with ReLU, then one to the outputs. solver: None means `Adam(lr=0.01,
    max_epoch=100)`; each `fit` trains with a copy. float64 data are trained in float64, all others in float32.

    After `fit`: `net_`, the trained Net; `solver_`, the copy that trained it; `n_features_in_`, `n_iter_`.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        net: Sequence[Any] | None = None,
        solver: Solver | None = None,
        batch_size: int = 64,
        seed: int = 0,
    ) -> None:
        self.net = net
        self.solver = solver
        self.batch_size = batch_size
        self.seed = seed

    # -- what scikit-learn asks of an estimator ------------------------------------------------------------

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(set(inspect.signature(cls.__init__).parameters) - {"self"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> "Estimator":
        """ValueError for an unknown one."""
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"{type(self).__name__}: no parameter {name!r}; there is {', '.join(names)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        first = inspect.signature(type(self).__init__).parameters
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if v is not first[n].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        utils = _sklearn("utils")
        return utils.Tags(
            estimator_type=self.kind,
            target_tags=utils.TargetTags(required=True),
            classifier_tags=utils.ClassifierTags() if self.kind == "classifier" else None,
            regressor_tags=utils.RegressorTags() if self.kind == "regressor" else None,
        )

    def __getstate__(self) -> dict[str, Any]:
        """A net is pickled as its arrays and made anew from the layers."""
        state = dict(self.__dict__)
        if "net_" in state:
            state["net_"] = weights.collect(state["net_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "net_" in state:
            x = np.zeros((1, self.n_features_in_), self._dtype)
            self.net_ = self._made([x, self._targets(1)])
            weights.put(self.net_, state["net_"])

    # -- training and using it -----------------------------------------------------------------------------

    n_features_in_: int
    _outputs: int
    _dtype: np.dtype

    def _targets(self, count: int) -> np.ndarray:
        """As the loss takes them, all zero."""
        raise NotImplementedError

    def _loss(self) -> Layer:
        raise NotImplementedError

    def _made(self, data: list[np.ndarray]) -> Net:
        given = self.net
        if given is None:
            layers: list[Any] = [InnerProduct(100, neuron=ReLU()), InnerProduct(self._outputs)]
        elif isinstance(given, Layer | str) or not isinstance(given, Sequence):
            raise TypeError(f"{type(self).__name__}: net={given!r} must be a list of layers, without data and loss")
        else:
            layers = list(given)
            losses = [layer for layer in layers if getattr(layer, "has_loss", False)]
            if losses:
                raise ValueError(f"{type(self).__name__}: net has a loss, {losses[0]!r}; it must end before it")
        net = Net.chain(
            "estimator",
            [*layers, self._loss()],
            data,
            batch_size=self.batch_size,
            shuffle=True,
            seed=self.seed,
        )
        made = net.blobs[net.layers[-1].bottoms[0]].shape
        if made[1:] != (self._outputs,):
            wanted = f"(N, {self._outputs})"
            raise ValueError(f"{type(self).__name__}: the last layer of net makes {made}, but must make {wanted}")
        return net

    def _trained(self, x: np.ndarray, targets: np.ndarray) -> None:
        if self.solver is not None and not isinstance(self.solver, Solver):
            raise TypeError(
                f"{type(self).__name__}: solver={self.solver!r} must be a solver, such as Adam(max_epoch=10)"
            )
        self._dtype = x.dtype
        net = self._made([x, targets])
        solver = Adam(lr=0.01, max_epoch=100) if self.solver is None else copy.deepcopy(self.solver)
        solver.solve(net)
        self.net_, self.solver_, self.n_iter_ = net, solver, solver.state.iter

    def _checked(self, x: Any, **more: Any) -> Any:
        """`x`, or what `more` asks for too, as scikit-learn validates it."""
        return _sklearn("utils.validation").validate_data(self, x, dtype=[np.float64, np.float32], **more)

    def _predicted(self, x: Any) -> np.ndarray:
        """(N, outputs)."""
        _sklearn("utils.validation").check_is_fitted(self)
        x = self._checked(x, reset=False)
        return self.net_.predict(x.astype(self._dtype, copy=False))


class LayercClassifier(Estimator):
    """A net for classes of any kind of label, trained with `SoftmaxLoss`. `classes_`: the labels, sorted."""

    kind = "classifier"
    _estimator_type = "classifier"
    classes_: np.ndarray

    def _targets(self, count: int) -> np.ndarray:
        return np.zeros(count, np.int64)

    def _loss(self) -> Layer:
        return SoftmaxLoss()

    def fit(self, X: Any, y: Any) -> "LayercClassifier":
        """X (N, D), y (N,). ValueError for what cannot be trained with."""
        X, y = self._checked(X, y=y)
        _sklearn("utils.multiclass").check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._outputs = len(self.classes_)
        self._trained(X, codes.astype(np.int64))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(N, classes), in the order of `classes_`."""
        scores = self._predicted(X)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        best = self._predicted(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share that is right."""
        return _sklearn("metrics").accuracy_score(y, self.predict(X), sample_weight=sample_weight)


class LayercRegressor(Estimator):
    """A net for one value a row, or several, trained with `SquareLoss`."""

    kind = "regressor"
    _estimator_type = "regressor"
    _is_flat: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _targets(self, count: int) -> np.ndarray:
        return np.zeros((count, self._outputs), self._dtype)

    def _loss(self) -> Layer:
        return SquareLoss()

    def fit(self, X: Any, y: Any) -> "LayercRegressor":
        """X (N, D), y (N,) or (N, outputs). ValueError for what cannot be trained with."""
        X, y = self._checked(X, y=y, multi_output=True, y_numeric=True)
        self._is_flat = y.ndim == 1
        values = y.reshape(len(y), -1)
        self._outputs = values.shape[1]
        self._trained(X, values.astype(X.dtype))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(N,) or (N, outputs), as y was."""
        values = self._predicted(X)
        return values.ravel() if self._is_flat else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination."""
        return _sklearn("metrics").r2_score(y, self.predict(X), sample_weight=sample_weight)
