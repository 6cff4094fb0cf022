"""A layer's validity suite: MATLAB's checkLayer, and more.

report = L.mish.check((4, 5))
assert report.passed, report
"""

import time
from collections.abc import Callable, Iterator

import numpy as np

from layerc.runtime import differences, threads
from layerc.runtime.check_report import Report, Row, relative_error
from layerc.runtime.check_subject import Arrays, Subject

_ENOUGH = 20000  # elements with which threads are worth it
_TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


class _Skip(Exception):
    """The test does not apply; the message says why."""


class _Fail(Exception):
    def __init__(self, note: str, figure: str = "") -> None:
        super().__init__(note)
        self.figure = figure


Outcome = tuple[str, str]  # figure, note


def check(subject: Subject, observations: int = 3) -> Report:
    """Run every test on a layer. observations: examples in a batch, for layers of one example."""
    started = time.perf_counter()
    shapes = ", ".join(f"{n} {_shape(subject.shapes[n])}" for n in subject.core.array_names)
    report = Report(f"{subject.compiled.name}  {shapes}")
    suite = _Suite(subject, max(observations, 2))
    for test, run in suite.tests():
        try:
            figure, note = run()
            report.rows.append(Row(test, "passed", figure, note))
        except _Skip as why:
            report.rows.append(Row(test, "skipped", "", str(why)))
        except _Fail as why:
            report.rows.append(Row(test, "FAILED", why.figure, str(why)))
        except Exception as error:  # whatever a layer raises is a result, not the end of the suite
            report.rows.append(Row(test, "FAILED", "", f"{type(error).__name__}: {error}"))
    report.seconds = time.perf_counter() - started
    return report


class _Suite:
    def __init__(self, subject: Subject, several: int) -> None:
        self.subject, self.core, self.several = subject, subject.core, several
        self.wide = np.dtype(subject.widest)

    def tests(self) -> Iterator[tuple[str, Callable[[], Outcome]]]:
        yield "predict runs", lambda: self.runs("predict")
        yield "forward runs", lambda: self.runs("forward")
        if self.subject.has_backward:
            yield "backward runs", lambda: self.runs("backward")
        yield "sizes and types", self.sizes_and_types
        yield "as the file under NumPy", self.reference
        if self.subject.has_backward:
            for name in self.subject.differentiable:
                yield f"gradient of {name}", lambda name=name: self.gradient(name)  # type: ignore[misc]
            yield "gradient linear in dy", self.linear
        yield "one observation", self.one
        yield "several observations", self.many
        yield "examples independent", self.independent
        yield "1 and 2 threads", self.threads
        yield "float32 and float64", self.types
        yield "non-contiguous inputs", self.strided
        yield "arguments unchanged", self.unchanged
        if any(role == "state" for role in self.core.roles.values()):
            yield "states", self.states

    # -- running -----------------------------------------------------------------------------------------
    def runs(self, method: str) -> Outcome:
        for dtype in self.dtypes():
            arrays = self.subject.arrays(dtype, self.several)
            if method != "backward":
                found = self.subject.run(method, arrays)
            else:
                outputs = self.subject.run("forward", arrays)
                found = self.subject.pull(arrays, outputs, self.subject.cotangents(outputs))
            bad = [n for n, y in found.items() if y.dtype.kind == "f" and not np.isfinite(y).all()]
            if bad and method == "backward":
                raise _Fail(f"NaN or infinity in the gradient of {', '.join(bad)} ({dtype})")
            if bad:
                return "", f"not finite: {', '.join(bad)}"
        return "", "" if self.subject.draw == "normal" else f"values {self.subject.draw}"

    def dtypes(self) -> list[np.dtype]:
        kernels = self.core.methods["predict"]["kernels"]
        return [np.dtype({"f32": "float32", "f64": "float64"}[k]) for k in kernels]

    def sizes_and_types(self) -> Outcome:
        for dtype in self.dtypes():
            arrays = self.subject.arrays(dtype, self.several)
            predicted, outputs = self.subject.run("predict", arrays), self.subject.run("forward", arrays)
            for name in self.core.public:
                a, b = predicted[name], outputs[name]
                if (a.shape, a.dtype) != (b.shape, b.dtype):
                    raise _Fail(f"{name}: predict gives {_kind(a)}, forward {_kind(b)}")
            for name in self.core.public:
                if (
                    self.lead(arrays) is not None
                    and self.core.is_batched(name)
                    and outputs[name].shape[:1] != (self.lead(arrays),)
                ):
                    raise _Fail(f"{name}: shape {outputs[name].shape} does not begin with the batch")
            if not self.subject.has_backward:
                continue
            gradients = self.subject.pull(arrays, outputs, self.subject.cotangents(outputs))
            for name in self.subject.differentiable:
                if name not in gradients:
                    raise _Fail(f"there is no gradient of {name}")
                if (gradients[name].shape, gradients[name].dtype) != (arrays[name].shape, arrays[name].dtype):
                    raise _Fail(f"{name} is {_kind(arrays[name])}, its gradient {_kind(gradients[name])}")
        return "", ""

    def lead(self, arrays: Arrays) -> int | None:
        if self.core.batched or not self.subject.batched(arrays):
            return None
        return next(arrays[n].shape[0] for n in self.core.input_names if arrays[n].ndim)

    def reference(self) -> Outcome:
        outcome = self._as_numpy(self.subject.arrays(self.wide))
        for arrays in self.subject.masked(self.wide):
            self._as_numpy(arrays)
        return outcome

    def _as_numpy(self, arrays: Arrays) -> Outcome:
        compiled = [self.subject.run("predict", arrays)[n] for n in self.core.public]
        try:
            given = self.subject.reference(arrays)
        except ImportError as error:
            raise _Skip(str(error)) from None
        for name, ours, theirs in zip(self.core.public, compiled, map(np.asarray, given)):
            if ours.shape != theirs.shape:
                raise _Fail(f"{name}: compiled {ours.shape}, NumPy {theirs.shape}")
            kinds = ours.dtype.kind + theirs.dtype.kind
            if self.core.outputs[name]["dtype"] != "real" and kinds != "ff" and ours.dtype != theirs.dtype:
                raise _Fail(f"{name}: compiled {ours.dtype}, NumPy {theirs.dtype}")
        return self.close(dict(zip(self.core.public, compiled)), dict(zip(self.core.public, given)))

    # -- gradients ---------------------------------------------------------------------------------------
    def gradient(self, name: str) -> Outcome:
        subject = self.subject
        precision = differences.SINGLE if subject.narrow else differences.DOUBLE
        arrays = subject.arrays(self.wide, self.several)
        outputs = subject.run("forward", arrays)
        dy = subject.cotangents(outputs)
        gradients = subject.pull(arrays, outputs, dy)
        if name not in gradients:
            raise _Fail("there is none")

        def f(x: np.ndarray) -> list[np.ndarray]:
            return subject.public(subject.run("forward", {**arrays, name: x}))

        rng = np.random.default_rng(3)
        found = differences.compare(f, arrays[name], list(dy.values()), gradients[name], rng, precision)
        figure = f"{found.error:.1e}"
        if not found.passed:
            raise _Fail(found.text, figure)
        return figure, found.text

    def linear(self) -> Outcome:
        arrays = self.subject.arrays(self.wide, self.several)
        outputs = self.subject.run("forward", arrays)
        one, other = (self.subject.cotangents(outputs, draw) for draw in (0, 1))
        both = {n: one[n] - 2 * other[n] for n in one}
        g, h, sum_ = (self.subject.pull(arrays, outputs, dy) for dy in (one, other, both))
        return self.close(sum_, {n: g[n] - 2 * h[n] for n in g}, scale={n: abs(g[n]) + abs(h[n]) for n in g})

    # -- observations ------------------------------------------------------------------------------------
    def one(self) -> Outcome:
        """A batch of one, and one example without a batch."""
        subject = self.subject
        if self.core.batched:
            return self._whole_batch_of_one()
        single = subject.arrays(self.wide)
        alone = subject.all(single)
        batch = {n: a[None] if self.core.roles[n] == "input" else a for n, a in single.items()}
        found = subject.all(batch)
        return self.close({n: found[n].reshape(alone[n].shape) for n in found}, alone)

    def _whole_batch_of_one(self) -> Outcome:
        arrays = self.subject.arrays(self.wide)
        names = [n for n in self.core.input_names if arrays[n].ndim]
        try:
            self.subject.all({n: a[:1] if n in names else a for n, a in arrays.items()})
        except ValueError as error:
            raise _Skip(f"these shapes do not allow it: {error}") from None
        return "", ""

    def many(self) -> Outcome:
        """A batch gives what its examples give one by one; gradients of params are summed."""
        subject = self.subject
        if self.core.batched:
            subject.all(subject.arrays(self.wide))
            return "", ""
        if not self.core.input_names:
            raise _Skip("takes no inputs")
        if self.core.random is not None:
            subject.all(subject.arrays(self.wide, self.several))
            return "", "draws random numbers: not compared"
        arrays = subject.arrays(self.wide, self.several)
        outputs = subject.run("forward", arrays)
        dy = subject.cotangents(outputs)
        if subject.has_backward:
            outputs = {**outputs, **_of(subject.pull(arrays, outputs, dy))}
        singles = [self._single(arrays, dy, at) for at in range(self.several)]
        states = {o for _, s in self.core.new_states for o in (s, *self._state_outputs())}
        expected = {}
        for name in outputs:
            if name in states:
                continue
            rows = [s[name] for s in singles]
            shared = not self.core.is_batched(name.removeprefix("of "))
            expected[name] = np.sum(rows, axis=0) if shared else np.stack(rows)
        return self.close({n: outputs[n] for n in expected}, expected)

    def _state_outputs(self) -> list[str]:
        return [self.core.output_names[i] for i, _ in self.core.new_states]

    def _single(self, arrays: Arrays, dy: Arrays, at: int) -> Arrays:
        one = {n: a[at] if self.core.roles[n] == "input" else a for n, a in arrays.items()}
        one = {n: np.ascontiguousarray(a).reshape(np.shape(one[n])) for n, a in one.items()}
        found = self.subject.run("forward", one)
        if self.subject.has_backward:
            found = {
                **found,
                **_of(
                    self.subject.pull(
                        one, found, {n: np.array(d[at] if self.core.is_batched(n) else d) for n, d in dy.items()}
                    )
                ),
            }
        return found

    def independent(self) -> Outcome:
        """Changing one example changes no other's results."""
        if self.core.batched:
            raise _Skip("takes whole batches")
        if not self.core.input_names:
            raise _Skip("takes no examples")
        arrays = self.subject.arrays(self.wide, self.several)
        other = self.subject.arrays(self.wide, self.several, draw=1)
        at = self.several // 2
        changed = {n: a.copy() for n, a in arrays.items()}
        for name in self.core.input_names:
            changed[name][at] = other[name][at]
        before, after = self.subject.all(arrays), self.subject.all(changed)
        for name, a in before.items():
            _, _, what = name.partition(": " if ": " in name else " of ")
            role = self.core.roles.get(what, self.core.outputs.get(what, {}).get("role"))
            if role not in ("input", "output"):
                continue
            same = np.array_equal(np.delete(a, at, 0), np.delete(after[name], at, 0), equal_nan=a.dtype.kind == "f")
            if not same:
                raise _Fail(f"{name} of other examples depends on example {at}")
        return "", ""

    # -- the machine -------------------------------------------------------------------------------------
    def threads(self) -> Outcome:
        """Bit for bit the same, on a batch large enough for two to be used."""
        size = max(sum(int(np.prod(self.subject.shapes[n])) for n in self.core.input_names), 1)
        examples = min(max(_ENOUGH // size, self.several), 1024)
        arrays = self.subject.arrays(np.dtype(self.dtypes()[0]), examples)
        known, found = threads.get_num_threads(), []
        try:
            for count in (1, 2):
                threads.set_num_threads(count)
                found.append(self.subject.all(arrays))
        finally:
            threads.set_num_threads(known)
        for name, a in found[0].items():
            if a.tobytes() != found[1][name].tobytes():
                raise _Fail(f"{name} differs", f"{relative_error(a, found[1][name]):.1e}")
        return "", f"{examples} examples" if not self.core.batched else ""

    def types(self) -> Outcome:
        """The median of three draws: a jump that rounding takes the other way is no error."""
        if len(self.dtypes()) < 2:
            raise _Skip("built for one float type")
        errors = []
        for draw in range(3):
            narrow = self.subject.arrays(np.dtype("float32"), self.several, draw)
            wide = {n: a.astype("float64") if self.core.dtypes[n] == "real" else a for n, a in narrow.items()}
            a, b = self.subject.run("forward", narrow), self.subject.run("forward", wide)
            both = {n: (a[n], b[n]) for n in a}
            if self.subject.has_backward:
                dy = self.subject.cotangents(a)
                ga = self.subject.pull(narrow, a, dy)
                of = dict(zip(self.core.cotangent_names, self.core.public))
                gb = self.subject.pull(wide, b, {n: d.astype(b[of[n]].dtype) for n, d in dy.items()})
                both |= {f"gradient of {n}": (ga[n], gb[n]) for n in ga}
            errors.append(max((relative_error(x, y), n) for n, (x, y) in both.items()))
        error, name = sorted(errors)[1]
        if not error <= 1e-3:
            raise _Fail(f"{name} differs", f"{error:.1e}")
        return f"{error:.1e}", ""

    def strided(self) -> Outcome:
        """Inputs as views with gaps, and backwards: through the call that users make."""
        for view in (_gaps, _backwards):
            arrays = self.subject.arrays(self.wide, self.several)
            plain = self.subject.call(arrays)
            odd = {n: view(a) for n, a in arrays.items()}
            for name, a, b in zip(self.core.public, plain, self.subject.call(odd)):
                if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                    raise _Fail(f"{name} differs from that of contiguous inputs")
        return "", ""

    def unchanged(self) -> Outcome:
        arrays = self.subject.arrays(self.wide, self.several)
        copies = {n: a.copy() for n, a in arrays.items()}
        self.subject.all(arrays)
        for name, a in arrays.items():
            if a.tobytes() != copies[name].tobytes():
                raise _Fail(f"{name} was written to")
        return "", ""

    def states(self) -> Outcome:
        """Updated by forward alone, of one shape and type for ever, and reset."""
        wrong = self.subject.states(self.subject.arrays(self.wide, self.several), self.wide)
        if wrong is None:
            raise _Skip("a function's states are its caller's")
        if wrong:
            raise _Fail(wrong)
        return "", ""

    # -- comparing ---------------------------------------------------------------------------------------
    def close(self, found: Arrays, expected: Arrays, scale: Arrays | None = None) -> Outcome:
        errors = [(relative_error(found[n], expected[n], None if scale is None else scale[n]), n) for n in found]
        error, name = max(errors, default=(0.0, ""))
        allowed = _TOLERANCE["float32" if self.subject.narrow else "float64"]
        if not error <= allowed:
            raise _Fail(f"{name} differs", f"{error:.1e}")
        return f"{error:.1e}", ""


def _of(gradients: Arrays) -> Arrays:
    return {f"of {n}": g for n, g in gradients.items()}


def _gaps(a: np.ndarray) -> np.ndarray:
    """The same values, every other element of a larger array."""
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]) if a.ndim else (), a.dtype)
    if not a.ndim:
        return a
    wide[..., ::2] = a
    return wide[..., ::2]


def _backwards(a: np.ndarray) -> np.ndarray:
    """The same values, stored from the last to the first, columns before rows."""
    flip = tuple(slice(None, None, -1) for _ in a.shape)
    return np.asfortranarray(a[flip])[flip] if a.ndim else a


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _kind(a: np.ndarray) -> str:
    return f"{a.dtype}{list(a.shape)}"
