"""A library built for this very CPU must not crash on a lesser one: it says, when loaded, what is lacking."""

from layerc.build.compiler import Compiler

CDEF = "const char *lc_missing_feature(void);"

# Predefined macro of gcc and clang -> the name __builtin_cpu_supports knows.
_FEATURES = {
    "__SSE4_2__": "sse4.2",
    "__AVX__": "avx",
    "__AVX2__": "avx2",
    "__FMA__": "fma",
    "__BMI2__": "bmi2",
    "__AVX512F__": "avx512f",
    "__AVX512BW__": "avx512bw",
    "__AVX512DQ__": "avx512dq",
    "__AVX512VL__": "avx512vl",
    "__AVX512VBMI__": "avx512vbmi",
}


def guard(compiler: Compiler) -> str:
    """C text of `lc_missing_feature`: the first CPU feature that the library uses and this CPU lacks, or
    NULL.

    It belongs into a unit that is compiled for any CPU.
    """
    used = [name for macro, name in _FEATURES.items() if compiler.native and compiler.has_macro(macro)]
    checks = [f'    if (!__builtin_cpu_supports("{name}")) return "{name}";' for name in used]
    if checks:
        checks.insert(0, "    __builtin_cpu_init();")
    body = "\n".join([*checks, "    return 0;"])
    return f"static const char *lc_missing_feature(void)\n{{\n{body}\n}}\n"
