"""Syntax colouring: source text to lines of HTML, every token in a <span> of one letter's class.

k keyword   t type   f function   s string   c comment   n number   p preprocessor   o decorator
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from html import escape

from layerc.transpile.lines import lines_of

_Piece = tuple[int, int, int, int, str]  # line, column, end line, end column, class
_TYPES = {
    *("real", "f32", "f64", "i32", "i64", "bool_", "Param", "State", "Memory", "Random", "Layer"),
    *("float", "int", "bool", "tuple"),
}
_C_KEYWORDS = {
    *("if", "else", "for", "while", "do", "break", "continue", "return", "goto", "sizeof", "const"),
    *("restrict", "static", "inline", "struct", "typedef"),
}
_C_TYPES = {
    *("int", "float", "double", "void", "char", "size_t", "int64_t", "int32_t", "uint64_t", "_Bool"),
    *("lc_call", "lc_fault_t"),
}
_C_TOKEN = re.compile(
    r"(?P<c>/\*.*?\*/|//[^\n]*)"
    r"|(?P<p>(?m:^[ \t]*\#[^\n]*))"
    r"|(?P<s>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|(?P<n>\b(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[fFuUlL]*\b|\b\d+\.f?)"
    r"|(?P<w>[A-Za-z_]\w*)(?P<call>(?=\())?",
    re.DOTALL,
)


def python(text: str) -> list[str]:
    """Lines of HTML; plain ones where Python's own tokenizer does not get through."""
    lines = lines_of(text)
    try:
        return _painted(lines, list(_python_pieces(text)))
    except (tokenize.TokenError, SyntaxError):
        return [escape(line, quote=False) for line in lines]


def c(text: str) -> list[str]:
    starts = [0]
    for line in lines_of(text, keepends=True):
        starts.append(starts[-1] + len(line))
    pieces: list[_Piece] = []
    row = 0
    for match in _C_TOKEN.finditer(text):
        while starts[row + 1] <= match.start():
            row += 1
        end = row
        while starts[end + 1] < match.end():
            end += 1
        if kind := _c_kind(match):
            pieces.append((row, match.start() - starts[row], end, match.end() - starts[end], kind))
    return _painted(lines_of(text), pieces)


def _c_kind(match: re.Match[str]) -> str:
    word = match["w"]
    if word is None:
        return str(match.lastgroup)
    if word in _C_KEYWORDS:
        return "k"
    if word in _C_TYPES:
        return "t"
    return "f" if match["call"] is not None else ""


def _python_pieces(text: str) -> Iterator[_Piece]:
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for at, token in enumerate(tokens):
        kind = ""
        if token.type == tokenize.COMMENT:
            kind = "c"
        elif token.type == tokenize.NUMBER:
            kind = "n"
        elif token.type == tokenize.STRING:
            before = tokens[at - 1].type if at else tokenize.NEWLINE
            stands_alone = before in (tokenize.INDENT, tokenize.NEWLINE, tokenize.NL)
            kind = "c" if stands_alone else "s"  # a docstring is prose
        elif token.type == tokenize.NAME:
            kind = _python_name(tokens, at)
        elif token.string == "@" and token.line.lstrip().startswith("@"):
            kind = "o"
        if kind:
            yield token.start[0] - 1, token.start[1], token.end[0] - 1, token.end[1], kind


def _python_name(tokens: list[tokenize.TokenInfo], at: int) -> str:
    word, before, after = tokens[at].string, tokens[at - 1].string, tokens[at + 1].string
    if keyword.iskeyword(word):
        return "k"
    if before in ("def", "class"):
        return "f d"
    if tokens[at].line.lstrip().startswith("@"):
        return "o"
    if word in _TYPES and before != ".":
        return "t"
    return "f" if after == "(" else ""


def _painted(lines: list[str], pieces: list[_Piece]) -> list[str]:
    """Pieces that span lines are cut at the line ends: each line is whole by itself."""
    cuts: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    for row, column, end_row, end_column, kind in pieces:
        for at in range(row, min(end_row, len(lines) - 1) + 1):
            start = column if at == row else 0
            stop = end_column if at == end_row else len(lines[at])
            if stop > start:
                cuts[at].append((start, stop, kind))
    return [_line(text, found) for text, found in zip(lines, cuts)]


def _line(text: str, cuts: list[tuple[int, int, str]]) -> str:
    done, out = 0, []
    for start, stop, kind in cuts:
        out.append(escape(text[done:start], quote=False))
        out.append(f'<span class="{kind}">{escape(text[start:stop], quote=False)}</span>')
        done = stop
    return "".join([*out, escape(text[done:], quote=False)])
