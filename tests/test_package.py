"""Writing packages: all or nothing, the same bytes, no compiler; and loading them in other processes."""

# ruff: noqa: E501  (the programs of other processes are written as they are)
import functools
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import handmade
import pytest

from layerc.build import compiler as cc
from layerc.build import portable
from layerc.build.compiler import CompilerFailed, NoCompiler, NoPythonHeader
from layerc.build.writer import UnusableOutput
from layerc.runtime import updates_compiled

FILES = [
    *("__init__.py", "__init__.pyi", "_native.abi3.so", "_source.py", "gradients.py"),
    *("layers.c", "layers.h", "manifest.json"),
]


build = functools.partial(handmade.build, small=True)


def small_manifest():
    return {**handmade.manifest(), "layers": handmade.layers()[:1]}


@pytest.fixture
def target(tmp_path):
    return tmp_path / "a dir" / "layers_compiled"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A package to be read, or copied."""
    directory = tmp_path_factory.mktemp("built") / "layers_compiled"
    handmade.build(directory)
    return directory


def run(code, directory, **env):
    """Run Python code in a process of its own, with the directory's packages importable."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    paths = os.pathsep.join([str(directory), str(Path(__file__).parent)])
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": paths, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def contents(directory):
    return {p.name: p.read_bytes() for p in directory.iterdir()}


def times(directory):
    return {p.name: p.stat().st_mtime_ns for p in directory.iterdir()}


def beside(target):
    return sorted(p.name for p in target.parent.iterdir())


# -- writing ---------------------------------------------------------------------------------------------


def test_files(built):
    assert sorted(p.name for p in built.iterdir()) == FILES
    assert beside(built) == ["layers_compiled"]
    manifest = json.loads((built / "manifest.json").read_text())
    assert manifest["native"]["flags"][0] == "-std=gnu11"
    assert "-ffast-math" not in manifest["native"]["flags"]


def test_same_input_same_bytes(target, tmp_path):
    build(target)
    build(tmp_path / "elsewhere" / "layers_compiled")
    assert contents(target) == contents(tmp_path / "elsewhere" / "layers_compiled")


def test_no_path_in_the_library(target):
    build(target)
    library = (target / "_native.abi3.so").read_bytes()
    assert b"a dir" not in library
    assert b".tmp" not in library


def test_unchanged_output_is_not_written(target, monkeypatch):
    assert build(target) is True
    before = times(target)
    monkeypatch.setattr(cc.Compiler, "compile", None)  # not even compiled
    assert build(target) is False
    assert times(target) == before


def test_only_what_changed_is_written(target):
    build(target)
    before = times(target)
    manifest = small_manifest()
    manifest["layers"][0]["doc"] = "Other words."
    assert build(target, manifest=manifest) is True
    after = times(target)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"manifest.json", "__init__.pyi"}
    assert beside(target) == ["layers_compiled"]


def test_changed_c_is_compiled(target):
    build(target)
    before = contents(target)
    c_text = (target / "layers.c").read_text()
    assert build(target, c_text=c_text.replace("dy[i] *", "2 * dy[i] *"))
    after = contents(target)
    assert {n for n in before if before[n] != after[n]} == {"_native.abi3.so", "layers.c", "manifest.json"}


def test_damaged_library_is_built_again(target):
    build(target)
    before = contents(target)
    (target / "_native.abi3.so").write_bytes(b"junk")
    assert build(target) is True
    assert contents(target) == before


def test_a_failed_build_leaves_the_old_package(target):
    build(target)
    before, stamps = contents(target), times(target)
    with pytest.raises(CompilerFailed, match=r"layers\.c"):
        build(target, c_text="#include <stdint.h>\nint oops(;\n")
    assert contents(target) == before
    assert times(target) == stamps
    assert beside(target) == ["layers_compiled"]


def test_a_failed_first_build_leaves_nothing(target):
    with pytest.raises(CompilerFailed):
        build(target, c_text="int oops(;\n")
    assert beside(target) == []


@pytest.mark.parametrize("step", ["_write", "_carry", "_swap"])
def test_interrupted_anywhere(target, monkeypatch, step):
    from layerc.build import writer

    build(target)
    before = contents(target)
    manifest = small_manifest()
    manifest["layers"][0]["doc"] = "Other words."

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, step, stop)
    with pytest.raises(KeyboardInterrupt):
        build(target, manifest=manifest)
    assert contents(target) == before
    assert beside(target) == ["layers_compiled"]


def test_without_renameat2(target, monkeypatch):
    from layerc.build import writer

    build(target)
    monkeypatch.setattr(writer, "_exchange", lambda a, b: False)
    manifest = small_manifest()
    manifest["layers"][0]["doc"] = "Other words."
    assert build(target, manifest=manifest)
    assert "Other words." in (target / "manifest.json").read_text()
    assert beside(target) == ["layers_compiled"]


def test_flags_of_the_user(target, monkeypatch):
    monkeypatch.setenv("LAYERC_CFLAGS", "-O0 -g")
    build(target)
    flags = json.loads((target / "manifest.json").read_text())["native"]["flags"]
    assert flags.index("-O0") > flags.index("-O2")
    for wrong in ("-fno-such-thing", "'"):
        monkeypatch.setenv("LAYERC_CFLAGS", wrong)
        with pytest.raises(NoCompiler, match="does not take LAYERC_CFLAGS"):
            build(target)


def test_files_of_others_stay(target):
    build(target)
    (target / "notes.txt").write_text("mine")
    (target / "more").mkdir()
    (target / "more" / "a").write_text("mine")
    manifest = small_manifest()
    manifest["source"] = "other.py"
    c_text = (target / "layers.c").read_text()
    build(target, manifest=manifest, c_text=c_text.replace('"layers.h"', '"other.h"'))
    assert (target / "notes.txt").read_text() == "mine"
    assert (target / "more" / "a").read_text() == "mine"
    assert not (target / "layers.c").exists()
    assert (target / "other.c").exists()


def test_what_is_no_package_is_not_replaced(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(UnusableOutput, match="no package built by layerc"):
        build(tmp_path / "work")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnusableOutput, match="there is a file of this name"):
        build(tmp_path / "file")
    with pytest.raises(UnusableOutput):
        build(tmp_path / "file" / "below")
    with pytest.raises(UnusableOutput):
        build(Path("/proc/nowhere/layers_compiled"))
    (tmp_path / "empty").mkdir()
    assert build(tmp_path / "empty")


# -- the compiler ----------------------------------------------------------------------------------------


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"cc \(not found\), gcc \(not found\), clang \(not found\)") as caught:
        cc.find()
    assert "install" in str(caught.value)


@pytest.mark.parametrize("command", ["/nonexistent/cc", "/bin/false", "/bin/true", "/bin/echo", "/etc/passwd"])
def test_cc_is_authoritative(monkeypatch, command):
    monkeypatch.setenv("CC", command)
    with pytest.raises(NoCompiler, match=f"variable CC.*{command}"):
        cc.find()


def test_cc_may_carry_flags(monkeypatch):
    monkeypatch.setenv("CC", "gcc -DLAYERC_TEST=1")
    assert cc.find().has_macro("LAYERC_TEST")


def test_no_python_header(monkeypatch, tmp_path):
    monkeypatch.setattr(cc.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    cc._find.cache_clear()
    try:
        with pytest.raises(NoPythonHeader, match=r"Python\.h is not in"):
            cc.find()
    finally:
        cc._find.cache_clear()


def test_flags_that_are_not_known_are_dropped(monkeypatch, tmp_path):
    """A compiler that knows neither OpenMP nor vector widths still works."""
    script = tmp_path / "oldcc"
    script.write_text(
        '#!/bin/sh\nfor a in "$@"; do case $a in -fopenmp|-mprefer*|-march=*) echo "unknown option $a" >&2; exit 1;; '
        'esac; done\nexec gcc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    compiler = cc.find()
    assert not compiler.openmp
    assert compiler.native == ()
    assert "-fno-math-errno" in compiler.flags
    build(tmp_path / "old_compiled", compiler=compiler)
    assert run("import old_compiled as L; print(L.mish(1.0).round(3))", tmp_path) == "0.865"


def test_openmp_without_its_library(monkeypatch, tmp_path):
    script = tmp_path / "noomp"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *-shared*-fopenmp*) echo "cannot find -lgomp" >&2; exit 1;; esac\nexec gcc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    assert not cc.find().openmp


# -- loading ---------------------------------------------------------------------------------------------


def test_needs_no_compiler_and_no_framework(built):
    code = """
        import os, sys
        for name in ("gast", "astor", "torch", "jax", "setuptools", "pycparser", "layerc.build", "layerc.transpile"):
            sys.modules[name] = None
        os.environ["PATH"] = ""
        import numpy as np, layers_compiled as L
        x = np.linspace(-1, 1, 5)
        y, pullback = L.mish.vjp(x)
        pullback(y)
        np.testing.assert_allclose(L.mish.reference(x), y)
        s = L.SReLU(); s.initialize((3, 4)); s(np.zeros((2, 3, 4), "f"))
        print(sorted(m for m in sys.modules if m.startswith(("layerc.build", "layerc.transpile")) and sys.modules[m]))
    """
    assert run(code, built.parent) == "[]"


def test_import_is_quick_and_lazy(built):
    code = """
        import sys, layers_compiled
        print([m for m in sys.modules if m in ("layerc.runtime.net", "torch", "layers_compiled._source", "layerc.init")])
    """
    assert run(code, built.parent) == "[]"


def test_built_again_in_one_process(tmp_path):
    code = f"""
        import sys, importlib
        import handmade
        from pathlib import Path
        target = Path({str(tmp_path)!r}) / "again_compiled"
        handmade.build(target, small=True)
        import again_compiled as L
        print(L.mish(1.0).round(3))
        c_text = (target / "layers.c").read_text()
        handmade.build(target, small=True, c_text=c_text.replace("y[i] = x[i] *", "y[i] = 2 * x[i] *"))
        L = importlib.reload(L)
        print(L.mish(1.0).round(3))
    """
    assert run(code, tmp_path).split() == ["0.865", "1.73"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "manifest.json").unlink(), "manifest.json: cannot be read"),
        (lambda d: (d / "manifest.json").write_text("{"), "manifest.json: cannot be read"),
        (lambda d: (d / "manifest.json").write_text("[]"), "manifest.json: cannot be read (it is no manifest)"),
        (lambda d: (d / "manifest.json").write_text('{"format": 1}'), "manifest.json: cannot be read (it has no"),
        (lambda d: _cut(d / "_native.abi3.so"), "when built); build the package again"),
        (lambda d: _foreign(d / "_native.abi3.so"), "when built); build the package again"),
        (lambda d: (_foreign(d / "_native.abi3.so"), _edit(d, native={})), "is of another package"),
        (lambda d: _edit(d, format=99), "which this one cannot read; build the package again"),
        (lambda d: (d / "_native.abi3.so").unlink(), "the compiled library is missing"),
        (lambda d: (d / "_native.abi3.so").write_bytes(b"junk"), "cannot be loaded here"),
        (lambda d: _edit(d, layers=[]), "the manifest has no function 'mish'"),
    ],
)
def test_damaged_packages(built, tmp_path, damage, message):
    shutil.copytree(built, tmp_path / "bad_compiled")
    damage(tmp_path / "bad_compiled")
    code = """
        try:
            import bad_compiled
        except ImportError as error:
            print(error)
    """
    assert message in run(code, tmp_path)


LOST = [None, "", "[]", '"layers"', "null", "{}"]


@pytest.mark.parametrize("text", LOST)
def test_a_package_without_its_manifest_is_built_again(target, text):
    build(target)
    before, path = contents(target), target / "manifest.json"
    path.unlink() if text is None else path.write_text(text)
    build(target)
    assert contents(target) == before
    path.write_text("[]")
    (target / "notes.txt").write_text("mine")
    with pytest.raises(UnusableOutput, match="holds other files"):
        build(target)


def _cut(library):
    library.write_bytes(library.read_bytes()[:8192])


def _foreign(library):
    shutil.copy(Path(updates_compiled.__file__).parent / library.name, library)


def _edit(directory, **changes):
    path = directory / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_foreign_cpu(tmp_path, monkeypatch):
    """A library for a CPU that this one is not says so, instead of dying of an illegal instruction."""
    from layerc.build import guard

    monkeypatch.setitem(guard._FEATURES, "__linux__", "avx512er")  # of Xeon Phi alone
    build(tmp_path / "far_compiled")
    code = """
        try:
            import far_compiled
        except ImportError as error:
            print(error)
    """
    assert "built for a CPU with avx512er, which this one lacks" in run(code, tmp_path)


# -- portable --------------------------------------------------------------------------------------------


def test_portable(tmp_path):
    assert build(tmp_path / "any_compiled", portable=True)
    assert not build(tmp_path / "any_compiled", portable=True)
    manifest = json.loads((tmp_path / "any_compiled" / "manifest.json").read_text())
    assert manifest["native"]["portable"] is True
    code = """
        import numpy as np, any_compiled as L
        x = np.linspace(-3, 3, 40000).astype("f")
        y, pullback = L.mish.vjp(x)
        np.testing.assert_allclose(y, x * np.tanh(np.log1p(np.exp(x))), rtol=1e-5, atol=1e-6)
        print(pullback(y)[0].shape)
    """
    assert run(code, tmp_path) == "(40000,)"


def test_every_level_of_a_portable_library(tmp_path, monkeypatch):
    """Each level, forced in turn, computes the same."""
    for first in range(len(portable.X86_LEVELS)):
        monkeypatch.setattr(portable, "X86_LEVELS", portable.X86_LEVELS[first:])
        build(tmp_path / f"level{first}_compiled", portable=True)
        assert run(f"import level{first}_compiled as L; print(L.mish(1.0).round(3))", tmp_path) == "0.865"
        monkeypatch.undo()


def test_prototypes_of_a_header():
    header = "/* int no(int a); */\nint f(int64_t n, const float *x,\n      lc_call *call);\nint LC_NAME(g)(lc_call *c); // int h(int);\n"
    assert portable.read_prototypes(header) == [
        ("f", "int64_t n, const float *x, lc_call *call"),
        ("g", "lc_call *c"),
    ]


def test_the_header_serves_a_c_program(built, tmp_path):
    """cc main.c layers.c -lm"""
    for name in ("layers.c", "layers.h"):
        shutil.copy(built / name, tmp_path)
    (tmp_path / "main.c").write_text(
        '#include "layers.h"\n#include <stdio.h>\nint main(void) { float x = 1, y; mish_f32(1, 1, &x, &y, 0); '
        'printf("%.3f\\n", y); return 0; }\n'
    )
    subprocess.run(["cc", "main.c", "layers.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.check_output([tmp_path / "main"], text=True) == "0.865\n"


# -- processes and threads -------------------------------------------------------------------------------


def test_threads(built):
    code = """
        import numpy as np, layers_compiled as L, layerc
        from layerc.runtime import set_num_threads, get_num_threads
        assert layerc.set_num_threads is set_num_threads
        x = np.random.default_rng(0).standard_normal(100_000)
        results = []
        for n in (1, 2, 7):
            set_num_threads(n)
            assert get_num_threads() == n
            results.append(L.mish(x).tobytes())
        assert len(set(results)) == 1
        for bad, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError), (True, TypeError)):
            try:
                set_num_threads(bad)
            except error:
                pass
            else:
                raise AssertionError(bad)
        print(get_num_threads())
    """
    assert run(code, built.parent) == "7"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"LAYERC_NUM_THREADS": "3"}, "3"),
        ({"LAYERC_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"}, "3"),
        ({"LAYERC_NUM_THREADS": "", "OMP_NUM_THREADS": "1,2"}, "1"),
        ({"LAYERC_NUM_THREADS": "many", "OMP_NUM_THREADS": "5"}, "5"),
        ({"LAYERC_NUM_THREADS": "", "OMP_NUM_THREADS": ""}, str(len(os.sched_getaffinity(0)))),
    ],
)
def test_threads_of_the_environment(env, expected):
    assert run("import layerc; print(layerc.get_num_threads())", ".", **env) == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(built, method):
    """OpenMP's threads run in the parent first; a forked child must not wait for them."""
    code = f"""
        import multiprocessing, sys, warnings
        import numpy as np, layers_compiled as L, layerc

        def child(queue, x):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                layerc.set_num_threads(4)
            queue.put((layerc.get_num_threads(), len(caught), float(L.mish(x).sum()), float(L.mish.vjp(x)[1](x)[0].sum())))

        if __name__ == "__main__":
            layerc.set_num_threads(4)
            x = np.linspace(-1, 1, 200_000)
            expected = float(L.mish(x).sum())
            context = multiprocessing.get_context({method!r})
            queue = context.Queue()
            workers = [context.Process(target=child, args=(queue, x)) for _ in range(2)]
            for w in workers: w.start()
            got = [queue.get(timeout=60) for _ in workers]
            for w in workers: w.join(60)
            assert all(g[2] == expected for g in got), got
            assert float(L.mish(x).sum()) == expected
            print(*got[0][:2])
    """
    script = built.parent / f"main_{method}.py"
    script.write_text(textwrap.dedent(code))
    paths = os.pathsep.join([str(built.parent)])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == (["1", "1"] if method == "fork" else ["4", "0"])


# -- stubs -----------------------------------------------------------------------------------------------


def test_texts_are_python(built):
    for name in ("__init__.py", "__init__.pyi"):
        compile((built / name).read_text(), name, "exec")


def test_awkward_docstrings(tmp_path):
    manifest = handmade.manifest()
    manifest["layers"][0]["doc"] = 'Ends in a quote"'
    manifest["layers"][2]["doc"] = 'Has """ inside, and \\alpha, and ends in "'
    handmade.build(tmp_path / "quoted_compiled", manifest=manifest)
    assert "ends in" in run("import quoted_compiled as L; print(L.SReLU.__doc__)", tmp_path)


@pytest.mark.slow
def test_stub_types(built):
    (built.parent / "use.py").write_text(
        "import numpy as np\nimport layers_compiled as L\nx = np.zeros(3)\nreveal_type(L.mish(x))\n"
        "y, pullback = L.mish.vjp(x)\nL.scale(x, 2.0, power=3)\ns = L.Running(rate=0.5)\ns.initialize((3, 4))\n"
        "L.scale(x, 2.0, power='a')\n"
    )
    house = Path(__file__).parent.parent  # mypy cannot follow the editable installation: see .ci/typecheck
    (built.parent / "layerc").mkdir()
    for path in [*(house / "layerc").iterdir(), house / "runtime"]:
        (built.parent / "layerc" / path.name).symlink_to(path)
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", "use.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=built.parent)
    assert "numpy.ndarray" in done.stdout
    assert 'Argument "power" to "__call__" of "_scale" has incompatible type "str"' in done.stdout
    assert done.stdout.count("error:") == 1, done.stdout
