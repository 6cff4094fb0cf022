"""Ill-typed programs, made of well-typed ones by one change. They are refused with a drawn mistake, or NumPy runs them too."""

from __future__ import annotations

import ast
import copy
import random
import re
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fuzzing.oracle import Failure, Overtime, at_most, crashed, generalised, run
from fuzzing.programs import PATH, Program, namespace
from layerc.adjoint.gradient import gradient_file
from layerc.transpile.errors import InvalidFile, Mistake
from layerc.transpile.layers import check_file
from layerc.transpile.program import Assert, Module, walk_stmts

Change = Callable[[ast.Module, random.Random], None]


class NoPlace(Exception):
    """The program has no place for this change."""


def mutated(program: Program, seed: int) -> Program | None:
    rng = random.Random(f"{program.seed}/{seed}")
    tree = ast.parse(program.text)
    change = rng.choice(CHANGES)
    try:
        change(tree, rng)
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (NoPlace, ValueError, AttributeError, IndexError):  # IndexError: a choice among none
        return None
    return replace(program, text=text)


def check_mutated(program: Program) -> str:
    """What became of it: refused, or accepted (and NumPy runs it, or raises what depends on values). Failure."""
    try:
        module = check_file(PATH, program.source)
        gradient_file(module)
    except (InvalidFile, Mistake) as error:
        _drawn(error)
        return "refused"
    except RecursionError:
        return "refused"
    except Exception as error:
        raise crashed("check of an ill-typed program", error) from error
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in range(program.points):
            try:
                with at_most(2):
                    run(program.function(namespace(program.source)), program.values(number))
            except (ArithmeticError, IndexError, AssertionError, np.linalg.LinAlgError, Overtime):
                continue
            except ValueError as error:
                asked = (
                    "reshape|negative integer powers|squeeze|same number of dimensions|must be non-negative|low >= high"
                )
                if re.search(asked, str(error)) and _asks(module, "ValueError"):
                    continue  # at the call
                if re.search(
                    "NaN to integer|infinity to integer|read-only|negative dimensions|equal division|empty sequence"
                    "|math domain",
                    str(error),
                ):
                    # A value, which compiled code takes as it comes, or an extent that it refuses at the call; what is
                    # broadcast may be written into.
                    continue
                if (
                    re.search(
                        "zero-size|at least one array|empty sequence|negative dimensions|broadcast|must be|mismatch|cannot|could not|math domain",
                        str(error),
                    )
                    and number
                ):
                    continue  # at sizes of one or none
                raise _accepted(error, program) from None
            except NameError as error:
                if re.search("'(real|Param|Random|bool_|i32|i64)'", str(error)):
                    continue  # a type, which is not imported here
                if isinstance(error, UnboundLocalError) and _asks(module, "UnboundLocalError"):
                    continue  # of a loop that did not run
                raise _accepted(error, program) from None
            except AttributeError as error:
                if re.search("'(float|int)' object has no", str(error)):
                    continue  # an array after a loop that did not run
                raise _accepted(error, program) from None
            except TypeError as error:
                if "loop of ufunc does not support argument" in str(error):
                    continue  # an integer of Python's that no array holds
                raise _accepted(error, program) from None
            except Exception as error:
                raise _accepted(error, program) from None
    return "accepted"


def _asks(module: Module, error: str) -> bool:
    """Whether compiled code raises such an error where sizes or values do not fit."""
    functions = [f for layer in module.layers for f in (layer.predict, layer.forward) if f is not None]
    return any(isinstance(s, Assert) and s.error == error for f in functions for s in walk_stmts(f.body))


def _accepted(error: Exception, program: Program) -> Failure:
    return Failure(
        f"accepted, but NumPy raises {type(error).__name__}: {generalised(str(error) or '-')}",
        f"{error!r}\n{program.sizes}",
    )


def _drawn(error: Exception) -> None:
    """A mistake of a file has a place, a caret and a kind."""
    if isinstance(error, InvalidFile):
        text = str(error)
        if "error[" not in text or "^" not in text:
            raise Failure("a mistake that is not drawn", text)


# -- changes -----------------------------------------------------------------------------------------------------------
def _nodes(tree: ast.Module, *kinds: type) -> list[ast.AST]:
    found = [n for n in ast.walk(tree) if isinstance(n, kinds)]
    if not found:
        raise NoPlace
    return found


def _names(tree: ast.Module) -> list[ast.Name]:
    names = [
        n
        for n in _nodes(tree, ast.Name)
        if isinstance(n.ctx, ast.Load)
        and n.id not in ("np", "special", "math", "real", "layer", "Param", "Random", "i64", "i32", "bool_")
    ]  # type: ignore[attr-defined]
    if not names:
        raise NoPlace
    return names  # type: ignore[return-value]


def _missing_name(tree: ast.Module, rng: random.Random) -> None:
    rng.choice(_names(tree)).id = "nowhere"


def _other_name(tree: ast.Module, rng: random.Random) -> None:
    names = _names(tree)
    rng.choice(names).id = rng.choice(names).id


def _unknown_function(tree: ast.Module, rng: random.Random) -> None:
    rng.choice(_nodes(tree, ast.Attribute)).attr = rng.choice(
        ["unique", "nonzero", "foo", "sum", "T", "shape", "sort", "reshape", "stack", "item"]
    )  # type: ignore[attr-defined]


def _other_shape(tree: ast.Module, rng: random.Random) -> None:
    shapes = [n for n in _nodes(tree, ast.Constant) if isinstance(n.value, str)]  # type: ignore[attr-defined]
    if not shapes:
        raise NoPlace
    rng.choice(shapes).value = rng.choice(
        ["N", "M K", "", "N M K", "2", "N+", "*S", "N N", "_", "i,ij->j", "-1", "N M-1"]
    )  # type: ignore[attr-defined]


def _other_constant(tree: ast.Module, rng: random.Random) -> None:
    rng.choice(_nodes(tree, ast.Constant)).value = rng.choice([0, -1, 7, 1e400, None, "text", True, 2.5, 10**30, ()])  # type: ignore[attr-defined]


def _without_argument(tree: ast.Module, rng: random.Random) -> None:
    call = rng.choice([n for n in _nodes(tree, ast.Call) if n.args])  # type: ignore[attr-defined]
    del call.args[rng.randrange(len(call.args))]  # type: ignore[attr-defined]


def _more_argument(tree: ast.Module, rng: random.Random) -> None:
    call = rng.choice(_nodes(tree, ast.Call))
    call.args.append(copy.deepcopy(rng.choice(_names(tree))))  # type: ignore[attr-defined]


def _other_keyword(tree: ast.Module, rng: random.Random) -> None:
    keyword = rng.choice(_nodes(tree, ast.keyword))
    if rng.random() < 0.5:
        keyword.arg = rng.choice(["axis", "keepdims", "dtype", "out", "foo", "initial"])  # type: ignore[attr-defined]
    else:
        keyword.value = rng.choice(
            [
                ast.Constant(9),
                ast.Constant(None),
                ast.Constant(True),
                ast.Constant(-4),
                copy.deepcopy(rng.choice(_names(tree))),
            ]
        )  # type: ignore[attr-defined]


def _without_statement(tree: ast.Module, rng: random.Random) -> None:
    blocks = [
        b
        for n in ast.walk(tree)
        for f in ("body", "orelse")
        if isinstance(b := getattr(n, f, None), list) and b and n is not tree
    ]
    block = rng.choice(blocks)
    block[rng.randrange(len(block))] = ast.Pass()


def _moved_statement(tree: ast.Module, rng: random.Random) -> None:
    blocks = [
        b
        for n in ast.walk(tree)
        for f in ("body", "orelse")
        if isinstance(b := getattr(n, f, None), list) and b and n is not tree
    ]
    source, target = rng.choice(blocks), rng.choice(blocks)
    stmt = copy.deepcopy(source[rng.randrange(len(source))])
    target.insert(rng.randint(0, len(target)), stmt)


def _other_expression(tree: ast.Module, rng: random.Random) -> None:
    """An expression of another place."""
    places = [
        (n, f)
        for n in ast.walk(tree)
        for f, v in ast.iter_fields(n)
        if isinstance(v, ast.expr) and f not in ("func", "annotation", "target")
    ]
    (node, name), (other, there) = rng.choice(places), rng.choice(places)
    setattr(node, name, copy.deepcopy(getattr(other, there)))


def _assign_fixed(tree: ast.Module, rng: random.Random) -> None:
    """An argument, perhaps a Param or configuration, is assigned."""
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    name = rng.choice(function.args.args).arg
    value = copy.deepcopy(rng.choice(_names(tree)))
    function.body.insert(
        rng.randint(0, len(function.body) - 1), ast.Assign(targets=[ast.Name(name, ast.Store())], value=value)
    )


def _value_dependent(tree: ast.Module, rng: random.Random) -> None:
    """A number becomes a value: an extent, an axis or a bound depends on it."""
    constants = [
        n
        for n in ast.walk(tree)
        for _, v in ast.iter_fields(n)
        if isinstance(v, ast.Constant) and isinstance(v.value, int)
    ]
    if not constants:
        raise NoPlace
    node = rng.choice(constants)
    for f, v in ast.iter_fields(node):
        if isinstance(v, ast.Constant):
            setattr(node, f, ast.parse(f"int(np.sum({rng.choice(_names(tree)).id}))", mode="eval").body)


def _statement_of(text: str) -> Change:
    def change(tree: ast.Module, rng: random.Random) -> None:
        function = tree.body[-1]
        assert isinstance(function, ast.FunctionDef)
        names = [rng.choice(_names(tree)).id for _ in range(3)]
        found = ast.parse(text.format(*names)).body
        at = rng.randint(0, len(function.body) - 1)
        function.body[at:at] = found

    return change


CHANGES: list[Change] = [
    _missing_name, _other_name, _other_name, _unknown_function, _other_shape, _other_constant, _other_constant, _without_argument,
    _more_argument, _other_keyword, _without_statement, _without_statement, _moved_statement, _moved_statement, _other_expression,
    _other_expression, _other_expression, _assign_fixed, _value_dependent,
    *map(_statement_of, (
        "{0} = {1}[{2}]", "{0} += {1}", "{0}[{1}] = {2}", "{0}[0] = {1}", "{0} = {1} @ {2}", "if {0}:\n    only = 1\n{1} = only",
        "with {0}: pass", "try:\n    pass\nexcept ValueError:\n    pass", "print({0})", "{0} = [{1}, {2}]", "{0} = {{1: 2}}", "global {0}",
        "while {0}:\n    {0} = {1}", "for {0} in {1}:\n    {2} = {0}", "del {0}", "{0}, {1} = {2}", "{0} = {1} if {2} else {0}",
        "{0} = np.zeros({1})", "{0} = {1}.reshape({2})", "{0} = np.concatenate([{1}, {2}])", "{0} = lambda q: {0}(q)", "{0}.append({1})",
        "assert {0}", "import os", "yield {0}", "{0} = not {1}", "{0} = -{1}", "{0} = {1}[{2} > 0]", "{0} = f'{{{1}}}'", "{0}: int = {1}",
        "{0}[{1} > 0] = {2}", "np.add.at({0}, {1}, {2})", "{0} = {1}.T.T[..., None][0]", "return {0}", "{0} = ({1} := {2})",
    )),
]  # fmt: skip
