"""Which line came from which: from the lines of a layer file to those of its gradient, and on to C.

The gradient's statements know the forward line they reverse, or repeat. C does not: its lines are linked by
the names of what they write, which lowering takes over from the source (`d_x`, and `d_x_2`, `d_x_part` made
of it); a line that writes a nameless temporary goes with the lines that read it. Where that says nothing, a
C line belongs to its kernel only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layerc.transpile.lines import lines_of
from layerc.transpile.program import (
    Assign,
    Comment,
    For,
    Function,
    If,
    Name,
    Pop,
    Push,
    Return,
    Stmt,
    Store,
    While,
    names,
    stmt_exprs,
    walk_stmts,
)

Lines = frozenset[int]
NONE: Lines = frozenset()
_MOST = 4  # a line that has to do with more lines than these tells nothing


# -- the gradient -----------------------------------------------------------------------------------------
def gradient_lines(function: Function, text: str, path: str) -> dict[int, Lines]:
    """For lines of a gradient's text, from 1: the lines of the layer file `path` that they come from.

    function: the gradient, whose statements have spans in the layer file.
    """
    written = list(_statements(ast.parse(text).body[0]))
    origins = [line for stmt, line in _origins(function.body, 0, path) if not isinstance(stmt, Comment)]
    own = written[len(written) - len(origins) :]  # the text begins with lines that name the sizes
    if len(own) != len(origins):
        return _by_comments(text)
    found: dict[int, Lines] = {}
    for node, line in zip(own, origins):
        if line:
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found |= dict.fromkeys(range(node.lineno, max(last, node.lineno) + 1), frozenset({line}))
    return {**_by_comments(text, comments_only=True), **found}


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a function in the order of their lines, docstrings left out."""
    for part in ("body", "orelse"):
        for stmt in getattr(node, part, []):
            if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)):
                yield stmt
                yield from _statements(stmt)


def _origins(body: tuple[Stmt, ...], line: int, path: str) -> Iterator[tuple[Stmt, int]]:
    """Every statement with its forward line: its own, or that of the comment or statement before it."""
    for stmt in body:
        if stmt.span.line and stmt.span.path in ("", path):
            line = stmt.span.line
        yield stmt, 0 if isinstance(stmt, Return) else line
        match stmt:
            case For(body=inner) | While(body=inner):
                yield from _origins(inner, line, path)
            case If(then=then, orelse=orelse):
                yield from _origins(then, line, path)
                yield from _origins(orelse, line, path)


def _by_comments(text: str, comments_only: bool = False) -> dict[int, Lines]:
    """From the text alone: the group under `# 45: ...` belongs to line 45."""
    found: dict[int, Lines] = {}
    line = 0
    for at, written in enumerate(lines_of(text), 1):
        quoted = re.match(r"\s*# (\d+): ", written)
        line = int(quoted[1]) if quoted else line
        if line and written.strip() and (quoted or not comments_only):
            found[at] = frozenset({line})
    return found


def sweep(text: str) -> int:
    """The first line of a gradient's text that is about derivatives: those before repeat the forward."""
    for at, written in enumerate(lines_of(text), 1):
        if re.match(r"\s*# \d+: |\s*d_\w+(\[.*\])? [-+*]?= ", written):
            return at
    return 0


# -- names ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Definition:
    """A line that gives a name a value, and the names it reads for that."""

    line: int
    reads: frozenset[str]


Names = Mapping[str, Sequence[Definition]]


def definitions(function: Function) -> Names:
    """Where a function gives its names their values."""
    found: dict[str, list[Definition]] = {}
    taken = {s.name for s in walk_stmts(function.body) if isinstance(s, Assign)}
    for stmt in walk_stmts(function.body):
        for name in _written(stmt, function, taken) if stmt.span.line else ():
            reads = frozenset().union(*(names(e) for e in stmt_exprs(stmt)))
            found.setdefault(name, []).append(Definition(stmt.span.line, reads))
    final = function.body[-1]
    for result, value in zip(function.results, final.values if isinstance(final, Return) else ()):
        if isinstance(value, Name) and value.id != result.name:  # they are one array in C
            found[result.name] = [*found.get(result.name, []), *found.get(value.id, [])]
    return found


def _written(stmt: Stmt, function: Function, taken: set[str]) -> list[str]:
    match stmt:
        case Assign(name=name) | Pop(name=name):
            return [name]
        case Store(base=base):
            return [base.id]
        case Push(list=made):
            return [made.id]
        case Return():
            return [r.name for r in function.results if r.name not in taken]
    return []


def known(name: str, found: Names) -> Sequence[Definition]:
    """The definitions of a C name: its own, or those of the name it was made of."""
    while name:
        if name in found:
            return found[name]
        shorter = re.sub(r"(_\d+|_part|_flat)$", "", name)
        name = shorter if shorter != name else ""
    return ()


# -- C ----------------------------------------------------------------------------------------------------
@dataclass
class _Line:
    text: str
    depth: int
    writes: str = ""
    reads: frozenset[str] = frozenset()
    lines: Lines = NONE


_WRITE = re.compile(
    r"^(?:const )?(?:[A-Za-z_]\w* )?(?P<name>[A-Za-z_]\w*)(?P<index>\[.*?\])?"
    r" (?:[-+*|&^]|<<)?= (?P<value>.*);$"
)


def c_lines(text: str, found: Names) -> dict[int, Lines]:
    """For lines of a C function, from 1: the lines of the Python source that their names come from."""
    lines = [_read(line) for line in lines_of(text)]
    for line in lines:
        line.lines = _named(line, found)
    _fed(lines)
    _headers(lines)
    return {at: line.lines for at, line in enumerate(lines, 1) if line.lines}


def _read(text: str) -> _Line:
    bare = text.strip()
    line = _Line(bare, len(text) - len(text.lstrip()))
    found = _WRITE.match(bare)
    if found and not bare.startswith(("for ", "if ", "return ", "goto ")) and "lc_" not in found["name"]:
        line.writes = found["name"]
        line.reads = frozenset(re.findall(r"[A-Za-z_]\w*", f"{found['index'] or ''} {found['value']}"))
    return line


def _named(line: _Line, found: Names) -> Lines:
    """Of several definitions of its name, a line goes with those that read most nearly what it reads."""
    candidates = known(line.writes, found)
    if len(candidates) < 2:
        return frozenset(d.line for d in candidates)
    reads = {re.sub(r"(_\d+)+$|v(_\d+)*$", "", name) for name in line.reads} | set(line.reads)
    spoken = set(found).union(*(d.reads for ds in found.values() for d in ds))
    far = [len(d.reads - reads) + len((reads & spoken) - d.reads) for d in candidates]
    return frozenset(d.line for d, distance in zip(candidates, far) if distance == min(far))


def _fed(lines: list[_Line]) -> None:
    """A temporary without a name in the source goes with what is computed from it."""
    waiting = [line for line in lines if line.writes and not line.lines]
    for _ in range(6):
        for line in reversed(waiting):
            readers = [r.lines for r in lines if r is not line and line.writes in r.reads and r.lines]
            union = frozenset().union(*readers) if readers else NONE
            if len(union) <= _MOST:
                line.lines = union


def _headers(lines: list[_Line]) -> None:
    """A loop, to its closing brace, goes with what is in it, if that comes from a few lines; a pragma with
    its loop."""
    for at in reversed(range(len(lines))):
        line = lines[at]
        if line.text.endswith("{") and line.text.startswith(("for ", "if ", "} else")):
            end = next(n for n in range(at + 1, len(lines)) if 0 <= lines[n].depth <= line.depth)
            inside = frozenset().union(*(inner.lines for inner in lines[at + 1 : end]))
            line.lines = inside if len(inside) <= _MOST else NONE
            if lines[end].text == "}":
                lines[end].lines = line.lines
        elif line.text.startswith("#pragma") and at + 1 < len(lines):
            line.lines = lines[at + 1].lines
