"""A smaller program that fails in the same way: statements taken out, expressions replaced by parts of them."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzzing.programs import HEAD, Program

Fails = Callable[[Program], bool]  # in the same way


def shrink(program: Program, fails: Fails, seconds: float = 30.0, most: int = 100000) -> Program:
    """The smallest program found in that time, or after that many trials. `fails` must hold for `program`."""
    until = time.monotonic() + seconds
    trials = 0
    again = True
    while again:
        again = False
        for candidate in _smaller(program):
            trials += 1
            if time.monotonic() > until or trials > most:
                return program
            if fails(candidate):
                program, again = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Smaller programs, those that are much smaller first."""
    tree = ast.parse(program.text)
    seen = {program.text}
    for make in (_without_functions, _without_statements, _unwrapped, _shorter, _parts, _plain):
        for changed in make(tree):
            try:
                text = ast.unparse(ast.fix_missing_locations(changed)) + "\n"
            except Exception:
                continue
            if len(text) <= len(program.text) and text not in seen:
                seen.add(text)
                names = {
                    a.arg
                    for f in changed.body
                    if isinstance(f, ast.FunctionDef) and f.name == program.name
                    for a in f.args.args
                }
                kept = tuple(a for a in program.arguments if a.name in names)
                yield replace(program, text=text, arguments=kept)


def _without_functions(tree: ast.Module) -> Iterator[ast.Module]:
    for k in range(len(tree.body) - 1):
        changed = copy.deepcopy(tree)
        del changed.body[k]
        yield changed
    for k in range(len(tree.body[-1].args.args)):  # type: ignore[attr-defined]
        changed = copy.deepcopy(tree)
        arguments = changed.body[-1].args  # type: ignore[attr-defined]
        if len(arguments.args) - k > len(arguments.defaults):
            del arguments.args[k]
            yield changed


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    return [
        block
        for node in ast.walk(tree)
        for name in ("body", "orelse")
        if isinstance(block := getattr(node, name, None), list) and node is not tree and block
    ]


def _without_statements(tree: ast.Module) -> Iterator[ast.Module]:
    """Halves of blocks, then single statements."""
    for b, block in enumerate(_blocks(tree)):
        sizes = [n for n in (len(block) // 2, 1) if n]
        for size in dict.fromkeys(sizes):
            for start in range(0, len(block), size):
                changed = copy.deepcopy(tree)
                mine = _blocks(changed)[b]
                del mine[start : start + size]
                if not mine:
                    mine.append(ast.Pass())
                yield changed


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """The body of a loop or of a branch in its place; a branch without its else."""
    for b, block in enumerate(_blocks(tree)):
        for k, stmt in enumerate(block):
            for name in ("body", "orelse"):
                if isinstance(stmt, (ast.For, ast.While, ast.If)) and getattr(stmt, name):
                    changed = copy.deepcopy(tree)
                    mine = _blocks(changed)[b]
                    mine[k : k + 1] = getattr(mine[k], name)
                    yield changed
            if isinstance(stmt, ast.If) and stmt.orelse:
                changed = copy.deepcopy(tree)
                _blocks(changed)[b][k].orelse = []  # type: ignore[attr-defined]
                yield changed


def _expressions(tree: ast.Module) -> list[tuple[ast.AST, str, int | None]]:
    """Where expressions stand: node, field, position in it."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.arguments, ast.arg)) or (isinstance(node, (ast.Assign, ast.AugAssign)) and False):
            continue
        for name, value in ast.iter_fields(node):
            if name in ("func", "annotation", "decorator_list", "returns", "targets", "target", "ctx"):
                continue
            if isinstance(value, ast.expr):
                found.append((node, name, None))
            elif isinstance(value, list):
                found += [(node, name, k) for k, v in enumerate(value) if isinstance(v, ast.expr)]
    return found


def _get(place: tuple[ast.AST, str, int | None]) -> ast.expr:
    node, name, k = place
    value = getattr(node, name)
    return value if k is None else value[k]


def _set(place: tuple[ast.AST, str, int | None], new: ast.expr) -> None:
    node, name, k = place
    if k is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[k] = new


def _replaced(tree: ast.Module, choose: Callable[[ast.expr], list[ast.expr]]) -> Iterator[ast.Module]:
    for n, place in enumerate(_expressions(tree)):
        for option in range(len(choose(_get(place)))):
            changed = copy.deepcopy(tree)
            mine = _expressions(changed)[n]
            _set(mine, choose(_get(mine))[option])
            yield changed


def _shorter(tree: ast.Module) -> Iterator[ast.Module]:
    """A returned tuple with fewer items."""
    for n, place in enumerate(_expressions(tree)):
        value = _get(place)
        if isinstance(value, ast.Tuple) and isinstance(place[0], ast.Return):
            for k in range(len(value.elts)):
                changed = copy.deepcopy(tree)
                elts = _get(_expressions(changed)[n]).elts  # type: ignore[attr-defined]
                del elts[k]
                if len(elts) == 1:
                    _set(_expressions(changed)[n], elts[0])
                yield changed


def _parts(tree: ast.Module) -> Iterator[ast.Module]:
    def choose(e: ast.expr) -> list[ast.expr]:
        if isinstance(e, (ast.Name, ast.Constant, ast.Lambda)):
            return []
        found: list[ast.expr] = []
        for child in ast.iter_child_nodes(e):
            if isinstance(child, ast.keyword):
                found.append(child.value)
            elif isinstance(child, ast.expr) and not (
                isinstance(e, ast.Call) and child is e.func and not isinstance(child, ast.Attribute)
            ):
                found.append(
                    child.value
                    if isinstance(e, ast.Call) and child is e.func and isinstance(child, ast.Attribute)
                    else child
                )
        return [
            f
            for f in found
            if not (isinstance(f, ast.Name) and f.id in ("np", "special", "math"))
            and not isinstance(f, (ast.Slice, ast.Tuple))
        ]

    yield from _replaced(tree, choose)


def _plain(tree: ast.Module) -> Iterator[ast.Module]:
    """Numbers for expressions."""

    def choose(e: ast.expr) -> list[ast.expr]:
        if isinstance(e, (ast.Constant, ast.Slice, ast.Tuple)):
            return []
        return [ast.Constant(1.0), ast.Constant(0), ast.Constant(True)]

    yield from _replaced(tree, choose)


__all__ = ["HEAD", "shrink"]
