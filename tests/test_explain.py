"""The page of `layerc explain`: what it holds, what it links, that it needs nothing else."""

from __future__ import annotations

import os
import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from layerc.adjoint.gradient import gradient, gradient_text
from layerc.build import driver
from layerc.cli import main
from layerc.explain import colour, links, page

ROOT = Path(__file__).resolve().parent.parent
SOURCE = '''import numpy as np
from layerc import Param, layer, real


def soft(x):
    """<b>Not markup</b> & so on"""
    return np.log1p(np.exp(x))


@layer
def mish(x: real["*S"]) -> real["*S"]:
    """x tanh(softplus(x))"""
    s = soft(x)
    return x * np.tanh(s)


@layer
def ema(x: real["T D"], decay: Param[real["D"]]) -> real["T D"]:
    y = np.zeros_like(x)
    h = np.zeros_like(decay)
    for t in range(x.shape[0]):
        h = decay * h + (1 - decay) * x[t]
        y[t] = h
    return y


@layer
def cube(x: real["N"]) -> real["N"]:
    return x * x * x


@cube.backward
def cube_backward(x, dy):
    return 3 * x * x * dy


@layer(backward=None)
def steps(x: real["N"]) -> real["N"]:
    return np.floor(x)
'''


def line(text: str) -> int:
    """The line of SOURCE that begins with this."""
    return next(n for n, written in enumerate(SOURCE.splitlines(), 1) if written.strip().startswith(text))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explain") / "some layers.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def module(file):
    return driver.read_module(file)


class Reader(HTMLParser):
    """The lines of a page: by layer and pane, (number, text, forward lines, gradient lines)."""

    VOID = ("meta", "br", "hr")

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.outside, self.section, self.pane = [], [], [], "", ""
        self.feed(text)
        assert self.open == [], "tags are not closed"

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.outside += [v for k, v in a.items() if k in ("src", "href") and not v.startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)
        words = (a.get("class") or "").split()
        if tag == "section":
            self.section = a["id"]
        elif "pane" in words:
            self.pane = words[1]
        elif "l" in words:
            numbers = [tuple(map(int, (a.get(k) or "").split())) for k in ("data-f", "data-g")]
            self.rows.append([self.section, self.pane, "", *numbers])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.rows and "code" in self.open and "pre" not in self.open and "main" in self.open:
            self.rows[-1][2] += data

    def lines(self, section, pane):
        return [(text, f, g) for s, p, text, f, g in self.rows if (s, p) == (section, pane)]


@pytest.fixture(scope="module")
def report(module):
    return Reader(page(module))


# -- the page ---------------------------------------------------------------------------------------------
def test_it_needs_nothing_else(module):
    text = page(module)
    assert Reader(text).outside == []
    assert not re.search(r"https?://|@import|url\(", text)
    assert text == page(module)


def test_the_source_is_there_as_it_is(report):
    source = SOURCE.splitlines()
    shown = [t for t, _, _ in report.lines("ema", "forward")]
    assert shown == source[line("def ema") - 2 : line("return y")]
    assert '    """<b>Not markup</b> & so on"""' in [t for t, _, _ in report.lines("mish", "forward")]


def test_helpers_are_shown_with_the_layers_that_use_them(report):
    shown = [t for t, _, _ in report.lines("mish", "forward")]
    assert "def soft(x):" in shown
    assert "def soft(x):" not in [t for t, _, _ in report.lines("ema", "forward")]


def test_the_facts(module):
    text = re.sub(r"<[^>]*>", " ", page(module))
    assert "gradients.py, derived" in text
    assert "written by hand" in text
    assert "The author disabled the gradient" in text
    assert "ema_backward_f32" in text


def test_one_layer(module):
    report = Reader(page(module, "cube"))
    assert {s for s, *_ in report.rows} == {"cube"}


def test_a_gradient_by_hand_is_linked_to_c_by_its_own_lines(report):
    (at,) = {g for t, _, g in report.lines("cube", "gradient") if "return 3" in t}
    assert at == (line("return 3 * x"),)
    assert [t for t, _, g in report.lines("cube", "native") if at[0] in g and "d_x[" in t]
    assert "cube_backward" not in "".join(t for t, _, _ in report.lines("cube", "forward"))


# -- links ------------------------------------------------------------------------------------------------
# layer | the gradient line that begins with this | comes from the forward line that begins with this
GRADIENT = [
    ("ema", "d_h = d_sum", "h = decay * h"),
    ("ema", "for t in reversed", "for t in range"),
    ("ema", "d_decay = np.zeros", "for t in range"),
    ("ema", "d_decay +=", "h = decay * h"),
]


@pytest.mark.parametrize(("layer", "written", "origin"), GRADIENT)
def test_gradient_lines(report, layer, written, origin):
    found = [f for t, f, _ in report.lines(layer, "gradient") if t.strip().startswith(written)]
    assert found == [(line(origin),)]


def test_quoting_comments_go_with_the_line_they_quote(report):
    for text, f, _ in report.lines("ema", "gradient"):
        if quoted := re.match(r"\s*# (\d+): ", text):
            assert f == (int(quoted[1]),)


def test_signature_and_return_are_linked_to_nothing(report):
    for text, f, _ in report.lines("ema", "gradient"):
        if text.startswith("def ") or text.strip().startswith("return"):
            assert f == ()


def test_every_example_is_linked_in_full():
    module = driver.read_module(ROOT / "examples/layers.py")
    for layer in module.layers:
        text = gradient_text(layer, module.source, module.path)
        found = links.gradient_lines(gradient(layer, module.source, module.path), text, module.path)
        lines = text.splitlines()
        body = next(n for n, t in enumerate(lines, 1) if '"""' in t) + 1
        loose = [t for n, t in enumerate(lines, 1) if n >= body and n not in found and t.strip()]
        assert all(t.strip().startswith("return") or ".shape" in t for t in loose), loose


# part of a C line of ema | the forward line it goes with
C = [("h[i_3] = ", "h = decay * h"), ("y[(b*T", "y[t] = h")]


@pytest.mark.parametrize(("written", "origin"), C)
def test_c_lines(report, written, origin):
    found = {f for t, f, g in report.lines("ema", "native") if t.strip().startswith(written) and not g}
    assert (line(origin),) in found


def test_backward_c_lines_go_with_gradient_lines(report):
    of = {g[0]: t for t, _, g in report.lines("ema", "gradient")}
    found = {of[n].strip() for t, _, g in report.lines("ema", "native") if "d_x[" in t and " = " in t for n in g}
    assert any(t.startswith("d_x[t] = ") for t in found)


def test_names_that_passes_made_of_others():
    found = {"d_x": [links.Definition(3, frozenset())], "h_2": [links.Definition(4, frozenset())]}
    assert [d.line for d in links.known("d_x_2_part", found)] == [3]
    assert [d.line for d in links.known("h_2", found)] == [4]
    assert links.known("h_3", found) == ()


# -- colour -----------------------------------------------------------------------------------------------
TEXTS = [
    "",
    "x",
    "x = '''a\nb'''\ny = 1\n",
    "def f(:\n",
    "a < b & c\n",
    '"""doc"""\n',
    "é = 'ü' # ö\n",
    "@layer\ndef f(): pass",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("paint", [colour.python, colour.c])
def test_colouring_changes_no_text(paint, text):
    from html import unescape

    plain = [unescape(re.sub(r"<[^>]*>", "", html)) for html in paint(text)]
    assert plain == text.splitlines()


def test_c_colours():
    (first, second) = colour.c("#pragma omp simd\nfor (int i = 0; i < 4; i++) y = lc_expf(1.5f); /* no */")
    assert first == '<span class="p">#pragma omp simd</span>'
    assert '<span class="k">for</span>' in second
    assert '<span class="n">1.5f</span>' in second
    assert '<span class="f">lc_expf</span>' in second
    assert '<span class="c">/* no */</span>' in second


# -- the command ------------------------------------------------------------------------------------------
def run(capsys, *words):
    status = main([str(w) for w in words])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return status, said.out, said.err


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "layers.py"
    path.write_text("from layerc import layer, real\n\n@layer\ndef twice(x: real['N']):\n    return x + x\n")
    return path


def test_the_command(capsys, small):
    status, out, err = run(capsys, "explain", small)
    assert (status, err) == (0, "")
    made = small.with_suffix(".html")
    assert f"wrote {made}" in out
    assert made.read_text().startswith("<!DOCTYPE html>")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(made.stat().st_mode) == 0o666 & ~mask
    assert run(capsys, "explain", small)[0] == 0  # its own page may be written again
    assert sorted(p.name for p in small.parent.iterdir()) == ["layers.html", "layers.py"]


def test_another_file_is_not_overwritten_by_chance(capsys, small):
    small.with_suffix(".html").write_text("my notes")
    status, _, err = run(capsys, "explain", small)
    assert status == 2
    assert "is no page of layerc" in err
    assert small.with_suffix(".html").read_text() == "my notes"
    assert run(capsys, "explain", small, "-o", small.with_suffix(".html"))[0] == 0


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("{folder}/none.py", 2, "there is no file"),
        ("{file}:none", 2, "has no layer none"),
        ("{file} -o {folder}", 2, "is a directory"),
        ("{file} -o {folder}/none/a.html", 2, "there is no directory"),
        ("{file} -o {file}", 2, "is the layer file itself"),
        ("{file} -o {folder}/../{folder.name}/layers.py", 2, "is the layer file itself"),
        ("{file} -o /dev/null", 2, "is no ordinary file"),
        ("{bad}", 1, "error["),
    ],
)
def test_what_it_refuses(capsys, small, words, status, message):
    bad = small.with_name("bad.py")
    bad.write_text(small.read_text().replace("x + x", "x + z"))
    found, _, err = run(capsys, "explain", *words.format(folder=small.parent, file=small, bad=bad).split())
    assert found == status
    assert message in err
    assert sorted(p.name for p in small.parent.iterdir()) == ["bad.py", "layers.py"]
