"""One C function through which all kernels of a library can be called: what the runtime's quick way needs.

int lc_run(int kernel, const int64_t *ints, const double *floats, void *const *arrays, lc_call *call)
int lc_number(const char *name)      the number of a kernel, or -1
"""

import re

CDEF = """
int lc_run(int kernel, const int64_t *ints, const double *floats, void *const *arrays, lc_call *call);
int lc_number(const char *name);
"""
_KERNEL = re.compile(r"^int (\w+)\((.*), lc_call \*call\);$", re.MULTILINE)


def entry(cdef: str) -> str:
    """The C text of both. cdef: the kernels, every array a `void *`."""
    kernels = _KERNEL.findall(cdef)
    names = "".join(f'    "{name}",\n' for name, _ in kernels)
    cases = "".join(f"    case {i}: return {name}({_passed(text)}, call);\n" for i, (name, text) in enumerate(kernels))
    return f"""#include <string.h>

static int lc_run(int kernel, const int64_t *ints, const double *floats, void *const *arrays, lc_call *call)
{{
    (void)ints, (void)floats, (void)arrays;
    switch (kernel) {{
{cases}    }}
    return -1;
}}

static int lc_number(const char *name)
{{
    static const char *const names[] = {{
{names}    }};
    for (int i = 0; i < {len(kernels)}; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}}
"""


def _passed(parameters: str) -> str:
    """Where each parameter is found: in the list of its kind, counted."""
    counts = {"ints": 0, "floats": 0, "arrays": 0}
    found = []
    for parameter in parameters.split(", "):
        kind = "arrays" if "*" in parameter else "floats" if parameter.startswith("double") else "ints"
        found.append(f"{kind}[{counts[kind]}]")
        counts[kind] += 1
    return ", ".join(found)
