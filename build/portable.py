"""One library for every CPU: the C text compiled once per instruction set, and a dispatcher in front.

For each level there are units that include those of the functions, renamed (`#define mish_f32 mish_f32_v3`);
the dispatcher, compiled for any CPU, exports the plain names and finds the level when the library is loaded.
`target_clones` would not do: it does not reach the bodies that OpenMP takes out of a function.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layerc.build.compiler import Compiler, Unit, baseline

Prototype = tuple[str, str]  # name and C parameter list: ("mish_f32", "int64_t batch, const float *x, ...")


@dataclass(frozen=True)
class Level:
    """An instruction set: the suffix of its functions, the gcc flags, and the features that it stands for."""

    suffix: str
    flags: tuple[str, ...]
    features: tuple[str, ...]


# Best first. The features are those that every compiler can ask a CPU for; no CPU has them without the rest.
X86_LEVELS = (
    Level(
        "_v4",
        ("-march=x86-64-v4", "-mprefer-vector-width=512"),
        ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    ),
    Level("_v3", ("-march=x86-64-v3",), ("avx2", "fma", "bmi", "bmi2")),
    Level("_v1", ("-march=x86-64",), ()),
)


def variants(source: str, text: str, functions: Sequence[Prototype]) -> tuple[dict[str, str], list[Unit]]:
    """A C file for every level: the files that are needed besides it, and how they are compiled."""
    words = set(re.findall(r"\w+", text))
    names = [name for name, _ in functions if name in words]
    made, units = {}, []
    for level in X86_LEVELS:
        file = f"{source.removesuffix('.c')}{level.suffix}.c"
        renamed = "".join(f"#define {name} {name}{level.suffix}\n" for name in names)
        made[file] = f'{renamed}#include "{source}"\n'
        units.append(Unit(file, level.flags))
    return made, units


def has_levels(compiler: Compiler) -> bool:
    """Whether this kind of CPU has several instruction sets; elsewhere one unit serves all."""
    return compiler.has_macro("__x86_64__")


def any_cpu(compiler: Compiler) -> Compiler:
    """The compiler without flags for this CPU; each unit brings its own."""
    plain = baseline(compiler)
    kept = tuple(f for f in plain.flags if not f.startswith("-mprefer"))
    return Compiler(plain.command, kept, (), plain.version, plain.macros)


def read_prototypes(header: str) -> list[Prototype]:
    """The functions that a header declares as `int name(parameters);` or `int LC_NAME(name)(...);`."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.DOTALL)
    found = re.findall(r"\bint\s+(?:LC_NAME\()?(\w+)\)?\s*\(([^()]*)\)\s*;", text)
    return [(name, " ".join(parameters.split())) for name, parameters in found]


def dispatcher(header: str, functions: Sequence[Prototype]) -> str:
    """C text that exports every function and passes the call on to the variant for this CPU. header: its text."""
    return "\n\n".join([header, _choose(), *[_forward(*function) for function in functions]]) + "\n"


def _forward(name: str, parameters: str) -> str:
    arguments = ", ".join(re.findall(r"(\w+)\s*(?:\[\s*\])?\s*$", p)[0] for p in parameters.split(","))
    declared = "\n".join(f"int {name}{level.suffix}({parameters});" for level in X86_LEVELS)
    cases = "\n".join(
        f"    {f'if (lc_level == {number}) ' if number + 1 < len(X86_LEVELS) else ''}"
        f"return {name}{level.suffix}({arguments});"
        for number, level in enumerate(X86_LEVELS)
    )
    return f"{declared}\nint {name}({parameters})\n{{\n{cases}\n}}"


def _supported(level: Level) -> str:
    return " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in level.features) or "1"


def _choose() -> str:
    """C text that finds the level when the library is loaded."""
    conditions = [
        f"{_supported(level)} ? {number}" if level.features else str(number) for number, level in enumerate(X86_LEVELS)
    ]
    return (
        "static int lc_level;\n\n__attribute__((constructor)) static void lc_choose_level(void)\n{\n"
        f"    __builtin_cpu_init();\n    lc_level = {' : '.join(conditions)};\n}}"
    )
