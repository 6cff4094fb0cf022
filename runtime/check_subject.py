"""A layer to be checked, with arrays to check it on: shapes that fit, values at which it is defined."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.check_owner import ClassOwner, Owner
from layerc.runtime.shapes import Anything, Binding, Group, Shape, Size, bind, evaluate

SEED = 20240229  # of random layers: the same at every evaluation
_TRIES = 24
_REFUSALS = (ValueError, IndexError, AssertionError, ZeroDivisionError, FloatingPointError)
Arrays = dict[str, np.ndarray]

# Ways to draw real values: where a layer is not finite on one, the next is tried.
_DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "in 0.1..0.9": lambda rng, shape: rng.uniform(0.1, 0.9, shape),
    "in 1.1..2": lambda rng, shape: rng.uniform(1.1, 2.0, shape),
}


class Subject:
    """A layer with a configuration, and shapes of one example (whole ones if batched); sizes that are not
    given are chosen. ValueError, as the layer says it, where no shapes fit."""

    def __init__(self, owner: Owner, config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.owner, self.compiled = owner, owner.compiled
        self.core = self.compiled.core
        self.config = self.core.settings.read(self.compiled.name, config)
        self.draw, self.top = "normal", 1
        self.shapes = self._fitting(shapes)
        self.shapes = {n: a.shape for n, a in self.arrays(np.dtype(self.widest)).items()}

    # -- shapes and values -------------------------------------------------------------------------------
    def _fitting(self, given: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Shapes and a way to draw values with which the layer runs. ValueError, as the layer says it, if
        none is found."""
        reason: Exception | None = None
        for sizes in _sizes(self.core.declared.values(), _TRIES):
            try:
                shapes = self._shapes(given, sizes)
                extents = [n for s in shapes.values() for n in s if n]
                for top in dict.fromkeys((min(extents, default=1), 2, 1)):
                    for draw in _DRAWS:
                        self.shapes, self.draw, self.top = shapes, draw, max(top, 1)
                        try:
                            finite = self._finite()
                        except _REFUSALS as error:
                            reason = reason or error
                            continue
                        if finite:
                            return shapes
            except _REFUSALS as error:
                reason = reason or error
            if given.keys() >= set(self.core.input_names):
                break
        return self._anything(given, reason)

    def _anything(self, given: Mapping[str, tuple[int, ...]], reason: Exception | None) -> dict[str, tuple[int, ...]]:
        """Shapes with which it runs at least, finite or not."""
        self.draw = "normal"
        for sizes in _sizes(self.core.declared.values(), _TRIES):
            for self.top in (2, 1):
                try:
                    self.shapes = self._shapes(given, sizes)
                    self._finite()
                    return self.shapes
                except _REFUSALS as error:
                    reason = reason or error
        raise reason if reason is not None else ValueError(f"{self.compiled.name}: no shapes fit")

    def _finite(self) -> bool:
        outputs = self.run("predict", self.arrays(np.dtype(self.widest)))
        return all(np.isfinite(y).all() for y in outputs.values() if y.dtype.kind == "f")

    def _shapes(self, given: Mapping[str, tuple[int, ...]], sizes: Callable[[str], int]) -> dict[str, tuple[int, ...]]:
        """One for every array: as given, or of the sizes that the given ones and `sizes` say."""
        declared = self.core.declared
        known = bind([(n, declared[n], s) for n, s in given.items()], self.config, self.compiled.name)
        binding = _Filled(known, self.config, sizes)
        return {n: given[n] if n in given else _evaluated(s, binding, sizes) for n, s in declared.items()}

    @property
    def widest(self) -> str:
        kernels = self.core.methods["predict"]["kernels"]
        return "float64" if "f64" in kernels else "float32"

    @property
    def narrow(self) -> bool:
        """Whether something in it is float32 at any rate."""
        dtypes = [*self.core.dtypes.values(), *(o["dtype"] for o in self.core.outputs.values())]
        return "f32" in dtypes or self.widest == "float32"

    def arrays(self, dtype: np.dtype, examples: int | None = None, draw: int = 0) -> Arrays:
        """All arrays: of one example, or of a batch; the same values for every float type."""
        rng = np.random.default_rng((7, draw))
        lead = () if examples is None or self.core.batched else (examples,)
        made = {}
        for name, shape in self.shapes.items():
            role = self.core.roles[name]
            made[name] = self._values(name, (*lead, *shape) if role == "input" else shape, dtype, rng)
        for name, array in self.owner.first(self.shapes, dtype).items():
            learns = self.core.roles[name] == "param" and array.dtype.kind == "f"
            noise = 0.05 * rng.standard_normal(array.shape) if learns and self.draw == "normal" else 0
            made[name] = np.asarray(array + noise, array.dtype)  # all zeros or ones would hide mistakes
        return made

    def masked(self, dtype: np.dtype) -> Iterator[Arrays]:
        """Arrays of one example whose masks are all True or all False, which random ones hardly ever are: those that
        are given, and those that the layer makes of signs. Only such as the layer takes."""
        plain = self.arrays(dtype)
        masks = [n for n, a in plain.items() if a.dtype.kind == "b" and self.core.roles[n] == "input"]
        signed = [n for n, a in plain.items() if a.dtype.kind == "f" and self.core.roles[n] == "input"]
        variants = [{n: np.full_like(plain[n], mask) for n in masks} for mask in (True, False) if masks]
        variants += [{n: abs(plain[n]) for n in signed}] if self.draw == "normal" and signed else []
        for variant in variants:
            with suppress(*_REFUSALS):
                self.run("predict", plain | variant)
                yield plain | variant

    def _values(self, name: str, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
        kind = dtype if self.core.dtypes[name] == "real" else ar.DTYPES[self.core.dtypes[name]]
        if kind.kind == "f":
            return np.asarray(_DRAWS[self.draw](rng, shape)).astype(kind)
        high = 2 if kind.kind == "b" else self.top
        return np.asarray(rng.integers(0, high, shape)).astype(kind)

    # -- evaluations -------------------------------------------------------------------------------------
    @property
    def has_backward(self) -> bool:
        return "backward" in self.core.methods

    @property
    def differentiable(self) -> tuple[str, ...]:
        floats = ("real", "f32", "f64")
        return tuple(n for n in self.core.gradient_names if self.core.dtypes[n] in floats)

    def batched(self, arrays: Arrays) -> bool:
        """Whether the inputs have an axis more than one example."""
        names = self.core.input_names
        return not self.core.batched and any(arrays[n].ndim == len(self.shapes[n]) + 1 for n in names)

    def run(self, method: str, arrays: Arrays) -> Arrays:
        """All outputs by name; "forward" gives new states and memory too."""
        return self.compiled.run(method, arrays, self.config, self.batched(arrays), seed=SEED)

    def public(self, outputs: Arrays) -> list[np.ndarray]:
        """The outputs that have a gradient."""
        return [outputs[n] for n in self.core.public if outputs[n].dtype.kind == "f"]

    def cotangents(self, outputs: Arrays, draw: int = 0) -> Arrays:
        rng = np.random.default_rng((11, draw))
        return {
            dy: np.asarray(rng.standard_normal(outputs[n].shape)).astype(outputs[n].dtype)
            for n, dy in zip(self.core.public, self.core.cotangent_names, strict=True)
            if outputs[n].dtype.kind == "f"
        }

    def pull(self, arrays: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        """The gradients by the names of what they are of."""
        made = {n: y for n, y in outputs.items() if n not in arrays}
        batched = self.batched(arrays)
        return self.compiled.pull({**arrays, **made, **cotangents}, self.config, batched=batched, seed=SEED)

    def call(self, arrays: Arrays) -> tuple[np.ndarray, ...]:
        """The outputs, by the call that users make."""
        batch = None if self.core.batched else self.batched(arrays)
        return _tuple(self.owner.call(arrays, self._options(), batch))

    def reference(self, arrays: Arrays) -> tuple[Any, ...]:
        """The outputs for one example, by NumPy."""
        return _tuple(self.owner.reference(arrays, self._options()))

    def _options(self) -> dict[str, Any]:
        return {**self.config, **({} if self.core.random is None else {self.core.random: SEED})}

    def states(self, arrays: Arrays, dtype: np.dtype) -> str | None:
        """What is wrong with the states; None where the layer has no say in them."""
        if not isinstance(self.owner, ClassOwner):
            return None
        batch = None if self.core.batched else self.batched(arrays)
        return self.owner.states(arrays, self.shapes, dtype, batch)

    def all(self, arrays: Arrays) -> Arrays:
        """Everything it computes: outputs of predict and forward, and gradients."""
        found = {f"predict: {n}": y for n, y in self.run("predict", arrays).items()}
        outputs = self.run("forward", arrays)
        found |= {f"forward: {n}": y for n, y in outputs.items()}
        if self.has_backward:
            gradients = self.pull(arrays, outputs, self.cotangents(outputs))
            found |= {f"gradient of {n}": g for n, g in gradients.items()}
        return found


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


class _Filled(dict[str, Any]):
    """Sizes by name; those that nothing gives are chosen."""

    def __init__(self, known: Binding, config: Mapping[str, Any], sizes: Callable[[str], int]) -> None:
        super().__init__({**{k: v for k, v in config.items() if isinstance(v, int)}, **known})
        self.sizes = sizes

    def __missing__(self, name: str) -> int:
        self[name] = size = self.sizes(name)
        return size


def _evaluated(shape: Shape, binding: _Filled, sizes: Callable[[str], int]) -> tuple[int, ...]:
    found: list[int] = []
    for dim in shape.dims:
        match dim:
            case Anything():
                found.append(sizes("_"))
            case Group(name):
                if name not in binding:
                    binding[name] = (sizes(name), 2)
                group = binding[name]
                found += group if isinstance(group, tuple) else (group,)
            case Size(tree=tree):
                found.append(evaluate(tree, {n: binding[n] for n in dim.names}))
    if any(size < 0 for size in found):
        raise ValueError(f'shape "{shape.text}" comes out negative: {tuple(found)}')
    return tuple(found)


def _sizes(declared: Any, tries: int) -> Iterator[Callable[[str], int]]:
    """Ways to choose sizes: all different, all equal, at random."""
    yield _Cycle((4, 3, 5, 6, 2, 7))
    yield lambda name: 4
    rng = np.random.default_rng(0)
    for _ in range(tries - 2):
        yield _Cycle(tuple(int(n) for n in rng.integers(2, 10, 8)))


class _Cycle:
    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes, self.known = sizes, dict[str, int]()

    def __call__(self, name: str) -> int:
        return self.known.setdefault(name, self.sizes[len(self.known) % len(self.sizes)])
