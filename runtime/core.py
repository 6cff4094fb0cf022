"""What compiled functions and compiled class layers have in common: checking a call, finding its case,
running it.

A call whose arrays have the shapes and types of one before it is recognised by them alone and nothing is
checked twice. Everything else goes through `prepare`, where every message to the user is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.acceleration import checked
from layerc.runtime.interpreted import Interpreted
from layerc.runtime.kernel import Case, Launch, is_public
from layerc.runtime.library import Library
from layerc.runtime.settings import Settings
from layerc.runtime.shapes import Shape, batch_size, bind, parse
from layerc.runtime.specialise import Variants

_MOST_CASES = 512

# All that a kernel's correctness hangs on, but contiguity, which `from_buffer` checks itself.
key_of = attrgetter("__class__", "shape", "dtype", "flags.aligned")


def settings_key(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """With the types: 2, 2.0 and True are equal keys of a dict, but not the same argument."""
    return (*settings.items(), *map(type, settings.values())) if settings else ()


def is_plain(given: Any, taken: np.ndarray) -> bool:
    """Whether a kernel may read an array as it was given, if it is contiguous."""
    return (
        isinstance(given, np.ndarray)
        and given.shape == taken.shape
        and given.dtype == taken.dtype
        and given.flags.aligned
    )


@dataclass(frozen=True)
class Call:
    """A checked call: its case, the arrays as the kernels take them, and how results go back.

    exports: for each array, how to give its gradient in its own kind; shared: positions of the scalars that
    were repeated over the batch, so that their gradients have to be summed.
    """

    case: Case
    arrays: list[np.ndarray]
    exports: list[ar.Export | None]
    shared: tuple[int, ...]
    seed: int | None

    @property
    def export(self) -> ar.Export | None:
        """How results are given: as the first array that is not NumPy's own."""
        return next((export for export in self.exports if export), None)


_OPTIONS = ("out", "batch", "acceleration")  # what every call takes by keyword


class Core:
    """One layer of a package: its kernels and the rules for calling them."""

    def __init__(self, library: Library | Interpreted, layer: Mapping[str, Any]) -> None:
        self.library, self.manifest = library, layer
        self.name: str = layer["name"]
        self.batched: bool = layer["batched"]
        self.methods: dict[str, Any] = dict(layer["methods"])
        self.methods.setdefault("predict", self.methods.get("forward"))
        self.methods.setdefault("forward", self.methods["predict"])
        parameters = layer["parameters"]
        arrays = [p for p in parameters if p["role"] in ("input", "param", "state")]
        self.array_names = tuple(p["name"] for p in arrays)
        self.dtypes = {p["name"]: p["dtype"] for p in arrays}
        self.declared: dict[str, Shape] = {p["name"]: parse(p["shape"]) for p in arrays}
        self.roles = {p["name"]: p["role"] for p in parameters}
        self.input_names = tuple(p["name"] for p in arrays if p["role"] == "input")
        self.settings = Settings([p for p in parameters if p["role"] == "config"])
        self.random: str | None = next((p["name"] for p in parameters if p["role"] == "random"), None)
        called = [p["name"] for p in parameters if p["role"] in ("input", "random")]
        self.generator_at = None if self.random is None else called.index(self.random)  # among the inputs of a class
        outputs = self.methods["forward"]["outputs"]
        self.output_names = tuple(o["name"] for o in outputs)
        # The forward of a training, which may leave more for its pullback.
        record = self.methods["vjp" if "vjp" in self.methods else "forward"]
        self.kept_names = tuple(o["name"] for o in record["outputs"])
        self.public = tuple(o["name"] for o in outputs if is_public(o))
        self.outputs = {o["name"]: o for o in outputs}
        self.cotangent_names = tuple(self.outputs[name]["cotangent"] for name in self.public)
        self.all_names = (*self.array_names, *self.output_names, *self.cotangent_names)
        self.gradient_names = tuple(name for name in self.array_names if self.roles[name] != "state")
        self.gradient_params = self.gradient_names[len(self.input_names) :]
        self.gradient_slots = self._gradient_slots()
        self.all_gradients = "backward" in self.methods and self.gradient_slots == tuple(
            range(len(self.methods["backward"]["outputs"]))
        )
        self.only_gradient = self.all_gradients and len(self.gradient_slots) == 1
        self.new_states = tuple((i, o.get("of", o["name"])) for i, o in enumerate(outputs) if o["role"] == "state")
        self.positional = tuple(p["name"] for p in parameters if p["role"] != "config")
        self._cases: dict[Any, Case] = {}
        self.variants = Variants()
        self.last: Case | None = None  # of the plain call before: most calls are like it

    def _gradient_slots(self) -> tuple[int | None, ...]:
        """For each input and param, in the signature's order: which output of backward is its gradient."""
        if "backward" not in self.methods:
            return ()
        of = [output["of"] for output in self.methods["backward"]["outputs"]]
        return tuple(of.index(name) if name in of else None for name in self.gradient_names)

    # -- calls -------------------------------------------------------------------------------------------

    def sort(
        self, where: str, args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments by name: arrays (and the random one); the others. TypeError where they do not add up."""
        if len(args) > len(self.positional):
            hint = "; configuration is passed by keyword" if self.settings.names else ""
            names = ", ".join(self.positional)
            raise TypeError(f"{where}: takes {len(self.positional)} arguments ({names}), got {len(args)}{hint}")
        values = dict(zip(self.positional, args))
        rest: dict[str, Any] = {}
        for name, value in options.items():
            if name in values:
                raise TypeError(f"{where}: argument {name!r} is given twice")
            if name not in self.positional and name not in self.settings.names:
                known = ", ".join([*self.positional, *self.settings.names])
                raise TypeError(f"{where}: no argument {name!r}; it takes {known}")
            (values if name in self.positional else rest)[name] = value
        for name in self.array_names:
            if name not in values:
                raise self.missing(where, name)
        return values, rest

    def missing(self, where: str, name: str) -> TypeError:
        """The error for an argument that is not given; one by keyword may have been taken for a call's own."""
        hint = f"; give it by position: {name}= is an option of every call" if name in _OPTIONS else ""
        return TypeError(f"{where}: argument {name!r} is missing{hint}")

    def acceleration(self, where: str, choice: Any) -> str:
        """Of a call. TypeError for what was meant as an argument of this name, ValueError for no choice."""
        if "acceleration" in self.array_names and not isinstance(choice, str):
            raise self.missing(where, "acceleration")
        return checked(where, choice)

    def inputs(self, where: str, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of a class layer by name. TypeError where they do not add up."""
        names = self.input_names
        values = dict(zip(names, args))
        for name in options:
            if name not in names or name in values:
                reason = f"argument {name!r} is given twice" if name in values else f"no argument {name!r}"
                raise TypeError(f"{where}: {reason}; it takes {', '.join(names)}")
        values.update(options)
        for name in names:
            if name in _OPTIONS and name not in values:
                raise self.missing(where, name)
        if len(args) > len(names) or len(values) < len(names):
            raise TypeError(
                f"{where}: takes {len(names)} inputs ({', '.join(names)}), got {max(len(args), len(values))}"
            )
        return values

    def find(
        self, args: Sequence[Any], batch: bool | None, options: Mapping[str, Any]
    ) -> tuple[Case, Sequence[Any]] | None:
        """A call like one before, by shapes and types alone: its case and the arrays' addresses."""
        from_buffer = self.library.from_buffer
        try:
            if options or batch is not None:
                key: Any = tuple(map(key_of, args)), batch, settings_key(options)
            elif len(args) == 1:  # what most layers are called with, in half the time
                key = key_of(args[0])
            else:
                key = tuple(map(key_of, args))
            case = self._cases[key]
            if batch is None and not options:
                self.last = case
            return case, list(map(from_buffer, args))
        except (KeyError, AttributeError, TypeError, ValueError):  # ValueError: an array is not contiguous
            return None

    def learn(self, args: Sequence[Any], batch: bool | None, options: Mapping[str, Any], call: "Call") -> None:
        """Let `find` find calls like this one, if nothing was converted in it but the order in memory."""
        plain = len(args) == len(self.array_names) and self.random is None and options.keys() <= self.settings.names
        if not plain or not all(map(is_plain, args, call.arrays)):
            return
        if options or batch is not None:
            key: Any = tuple(map(key_of, args)), batch, settings_key(options)
        else:
            key = key_of(args[0]) if len(args) == 1 else tuple(map(key_of, args))
        self.remember(key, call.case)

    def remember(self, key: Any, case: Case) -> None:
        """Find the case by this key from now on. The oldest keys are forgotten beyond a bound."""
        while len(self._cases) >= _MOST_CASES:
            self._cases.pop(next(iter(self._cases)), None)
        self._cases[key] = case

    def known(self, key: Any) -> Case:
        """The case of that key; KeyError."""
        return self._cases[key]

    def prepare(
        self,
        where: str,
        values: Mapping[str, Any],
        config: Mapping[str, Any],
        batch: bool | None = None,
        ranks: Sequence[int] | None = None,
        seed: int | None = None,
    ) -> Call:
        """Check a call. values: what the caller gave for each array; config: checked; ranks: of one example's
        inputs, where known. Raises TypeError and ValueError naming `where` and the argument."""
        exports = [ar.exporter(values[name]) for name in self.array_names]
        taken = {n: v if ar.is_weak(v) else ar.take(where, n, v) for n, v in values.items()}
        real = self._real(where, taken)
        arrays = {name: self._fitted(where, name, value, real) for name, value in taken.items()}
        size, shared = self._batch(where, arrays, batch, ranks)
        case = self._case(where, arrays, config, size, shared, real)
        for name in shared:
            arrays[name] = np.full(case.batch or 0, arrays[name])
        places = tuple(self.array_names.index(name) for name in shared)
        return Call(case, [arrays[name] for name in self.array_names], exports, places, seed)

    def _real(self, where: str, values: Mapping[str, Any]) -> str:
        """Whether `real` is float32 or float64 in this call: the arrays say, and must agree."""
        found, first = "", ""
        for name, value in values.items():
            if self.dtypes[name] != "real" or ar.is_weak(value):
                continue
            kind = ar.REALS.get(value.dtype.newbyteorder("="))
            if kind is None:
                raise TypeError(f"{where}: argument {name!r}: expected float32 or float64, got {value.dtype}")
            if found and kind != found:
                raise TypeError(
                    f"{where}: argument {name!r} is {ar.DTYPES[kind]}, but {first!r} is {ar.DTYPES[found]}: "
                    "all real arrays of a call have one type"
                )
            found, first = kind, first or name
        if found:
            return found
        kernels = self.methods["predict"]["kernels"]
        return "f64" if "f64" in kernels else next(iter(kernels))

    def _fitted(self, where: str, name: str, value: Any, real: str) -> np.ndarray:
        dtype = ar.DTYPES[real if self.dtypes[name] == "real" else self.dtypes[name]]
        if ar.is_weak(value):
            return ar.weak(where, name, value, dtype)
        return ar.fit(where, name, value, dtype)

    def _batch(
        self, where: str, arrays: Mapping[str, np.ndarray], batch: bool | None, ranks: Sequence[int] | None
    ) -> tuple[int | None, tuple[str, ...]]:
        """The number of examples, None for a single one; and the scalars that all examples share."""
        if self.batched:
            if batch is False:
                raise ValueError(f"{where}: takes whole batches (batched=True); batch=False cannot be had")
            return None, ()
        scalar = [n for n in self.input_names if arrays[n].ndim == 0 and not self.declared[n].dims]
        rest = [i for i, n in enumerate(self.input_names) if n not in scalar or len(scalar) == len(self.input_names)]
        names = [self.input_names[i] for i in rest]
        inputs = [(n, self.declared[n], arrays[n].shape) for n in names]
        size = batch_size(inputs, where, batch, None if ranks is None else [ranks[i] for i in rest])
        return size, () if size is None else tuple(scalar)

    def _case(
        self,
        where: str,
        arrays: Mapping[str, np.ndarray],
        config: Mapping[str, Any],
        size: int | None,
        shared: Sequence[str],
        real: str,
    ) -> Case:
        shapes = {n: (size, *a.shape) if n in shared and size is not None else a.shape for n, a in arrays.items()}
        key = (tuple(shapes.items()), tuple(config.items()), size, real)
        case = self._cases.get(key)
        if case is None:
            case = self.case(where, shapes, config, size, real)
            self.remember(key, case)
        return case

    def case(
        self,
        where: str,
        shapes: Mapping[str, tuple[int, ...]],
        config: Mapping[str, Any],
        size: int | None,
        real: str,
    ) -> Case:
        """Bind the dimensions. shapes: of arrays and outputs, batch axis included. Raises ValueError."""
        declared = []
        for name, shape in shapes.items():
            lead = size is not None and self.is_batched(name)
            declared.append((name, self.shape_of(name), shape[1:] if lead else shape))
        binding = bind(declared, config, where)
        try:
            return Case(self, real, binding, size, config, shapes)
        except KeyError as error:
            raise ValueError(f"{where}: nothing gives the dimension {error.args[0]}") from None
        except ValueError as error:
            raise ValueError(f"{where}: the arguments do not fit: {error}") from None

    def method(self, name: str, want: str = "all") -> Mapping[str, Any]:
        """A METHOD of the manifest; the variant for only some gradients where there is one."""
        spec: Mapping[str, Any] = self.methods[name]
        variant: Mapping[str, Any] = spec.get("variants", {}).get(want, spec)
        return variant

    def output_of(self, name: str) -> Mapping[str, Any]:
        """The OUTPUT that an output or a cotangent belongs to."""
        owners = dict(zip(self.cotangent_names, self.public, strict=True))
        output: Mapping[str, Any] = self.outputs[owners.get(name, name)]
        return output

    def shape_of(self, name: str) -> Shape:
        """The declared shape of an array, an output or a cotangent."""
        return self.declared[name] if name in self.declared else parse(self.output_of(name)["shape"])

    def is_batched(self, name: str) -> bool:
        """Whether axis 0 of an array, an output or a cotangent is the batch in a function of one example."""
        role = self.roles[name] if name in self.roles else self.output_of(name)["role"]
        return role in ("input", "output", "memory")

    def specialize(self, case: Case, c_text: str) -> None:
        """Make kernels for the sizes of this case; calls of these sizes take them from now on."""
        self.variants.add(case, c_text)
        self._cases.clear()
        self.last = None

    # -- running -----------------------------------------------------------------------------------------

    def by_name(
        self, names: Sequence[str], arrays: Sequence[np.ndarray], config: Mapping[str, Any], batched: bool
    ) -> Case:
        """The case for whole batches given by name, kept for the next time. config: given by the caller."""
        key = (names, tuple(map(key_of, arrays)), settings_key(config), batched)
        case = self._cases.get(key)
        if case is not None:
            return case
        settings = self.settings.read(self.name, config)
        # A rate that changes at each iteration must not fill the table: shapes do not depend on floats.
        is_float = self.settings.types
        near = (*key[:2], tuple((n, v) for n, v in settings.items() if is_float[n] != "float"), batched, "near")
        like = None if self.variants else self._cases.get(near)
        if like is not None:
            return like.told(settings)
        given = dict(zip(names, arrays))
        real = self._real(self.name, {n: a for n, a in given.items() if n in self.dtypes})
        for name, array in given.items():
            kind = self.dtypes[name] if name in self.dtypes else self.output_of(name)["dtype"]
            expected = ar.DTYPES[real if kind == "real" else kind]
            if array.dtype != expected:
                raise TypeError(f"{self.name}: argument {name!r}: expected {expected}, got {array.dtype}")
        size = None
        if batched and not self.batched:
            inputs = [(n, self.declared[n], given[n].shape) for n in self.input_names if n in given]
            size = batch_size(inputs, self.name, True)
        case = self.case(self.name, {n: a.shape for n, a in given.items()}, settings, size, real)
        self.remember(key, case)
        if "float" in is_float.values():
            self.remember(near, case)
        return case

    def addresses(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Of contiguous arrays."""
        return list(map(self.library.from_buffer, arrays))

    def start(self, launch: Launch, addresses: Sequence[Any]) -> tuple[Any, Sequence[np.ndarray]]:
        """Run a forward kernel on all arrays of a call: the result for the caller, and all outputs."""
        if launch.keep is not None:
            addresses = [addresses[i] for i in launch.keep]
        outputs = launch.fresh(addresses)
        return (outputs[0] if launch.single else launch.result(outputs)), outputs
