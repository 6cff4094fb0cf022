"""The C text of a library in several units, which are compiled side by side.

A library is one C file to its readers. Its functions do not call each other, so that any of them may share a unit with
any others; what stands before the first is in all units, and costs the compiler next to nothing.
"""

import re

FUNCTION = re.compile(r"^int LC_NAME\(", re.MULTILINE)
MOST = 8  # units
SMALLEST = 30_000  # characters of a unit


def parts(name: str, text: str) -> dict[str, str]:
    """File name -> C text. `name`: the whole file's, which compilers and debuggers are told for every line.

    The same text always gives the same units, however many processors there are."""
    starts = [found.start() for found in FUNCTION.finditer(text)]
    number = min(MOST, len(starts), len(text[starts[0] :]) // SMALLEST if starts else 0)
    if number < 2:
        return {name: text}
    units = [[text[: starts[0]]] for _ in range(number)]
    sizes = [0] * number
    spans = zip(starts, [*starts[1:], len(text)])
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span)):  # the longest first
        least = sizes.index(min(sizes))
        line = text.count("\n", 0, start) + 1
        units[least].append(f'#line {line} "{name}"\n{text[start:end]}\n')
        sizes[least] += end - start
    stem = name.removesuffix(".c")
    return {f"{stem}_part{k}.c": "".join(unit) for k, unit in enumerate(units)}
