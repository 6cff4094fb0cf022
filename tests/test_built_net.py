"""A package of a whole net: its module, its weights, its C without Python."""

import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from ahead import MLP, build, changed, middle, package, run
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from layerc import get_num_threads, set_num_threads
from layerc.cli import main
from layerc.runtime import Snapshot
from layerc.runtime.arena import Lifetime, pack

pytestmark = pytest.mark.optimised


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlp")
    scope, _ = build(folder, MLP)
    return folder / "built", scope


@pytest.fixture
def opened(mlp):
    return package(mlp[0])


def test_a_second_build_writes_nothing_and_a_failed_one_leaves_the_first(mlp, capsys):
    folder, script = mlp[0], mlp[0].parent / "net.py"
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.iterdir() if p.is_file()}
    assert main(["build", f"{script}:net", "-o", str(folder)]) == 0
    bad = script.with_name("bad.py")
    bad.write_text(MLP.replace("Neurons.Tanh()", "Neurons.Tahn()"))
    assert main(["build", f"{bad}:net", "-o", str(folder)]) == 1
    assert {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.iterdir() if p.is_file()} == before


def test_info(mlp, capsys):
    assert main(["info", str(mlp[0])]) == 0
    text = capsys.readouterr().out
    assert "net_predict(data: float32[batch, 12]) -> ip2: float32[batch, 5]\n    arena 128 bytes an example" in text
    assert "net_train_step(data: float32[batch, 12], label: int64[batch]) -> loss" in text
    assert "param   ip1.weight: float32[12, 9]" in text


def test_it_needs_numpy_and_cffi_only(mlp):
    probe = (
        f"import sys; sys.path.insert(0, {str(mlp[0].parent)!r}); import numpy as np, built\n"
        "built.predict(np.zeros((3, 12), np.float32)); built.train_step(np.ones((2, 12)), [1, 2])\n"
        "print([m for m in ('gast', 'astor', 'safetensors', 'layerc.build', 'layerc.runtime.net') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


BAD_CALLS = [
    (lambda b, x, t: b.predict(), TypeError, r"takes 1 arrays \(data\), got 0"),
    (lambda b, x, t: b.predict(x[:, :5]), ValueError, r"blob 'data' has shape \(12,\) .* cannot take \(50, 5\)"),
    (lambda b, x, t: b.predict(x[0]), ValueError, "cannot take"),
    (lambda b, x, t: b.predict(x[:0]), ValueError, "has no examples"),
    (lambda b, x, t: b.predict(x.astype(complex)), TypeError, "is float32, cannot take complex128"),
    (lambda b, x, t: b.train_step(x, t.astype(float)), TypeError, "'label' is int64, cannot take float64"),
    (lambda b, x, t: b.train_step(x, t[:3]), ValueError, "blob 'label' has 3 examples, 'data' 50"),
    (lambda b, x, t: b.train_step(x, t + 5), IndexError, r"layer 'loss' \(SoftmaxLoss\): label \d is outside 0..4"),
    (lambda b, x, t: b.train_step(x, t - 1), IndexError, "label -1 is outside"),
    (lambda b, x, t: b.train_step(x * np.nan, t), FloatingPointError, "the objective is NaN"),
    (lambda b, x, t: b.load("nowhere.safetensors"), OSError, "nowhere.safetensors: No such file"),
    (lambda b, x, t: b.save("/nowhere/at/all.safetensors"), OSError, "No such file"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS)
def test_bad_calls_change_nothing(call, error, text, mlp, opened):
    x, t = mlp[1]["DATA"]
    before = {k: p.copy() for k, p in opened.params.items()}
    with pytest.raises(error, match=text):
        call(opened, x, t)
    for k, p in opened.params.items():
        np.testing.assert_array_equal(p, before[k])
    assert opened._net.iteration == 0


def test_arrays_of_any_layout(mlp, opened):
    x, t = mlp[1]["DATA"]
    expected = opened.predict(x)
    for same in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x.astype(np.float64), x[::-1][::-1], list(x)):
        np.testing.assert_array_equal(opened.predict(same), expected)
    opened.train_step(x, t.astype(np.int32))
    opened.train_step(x, t.astype(np.uint8))


def test_nets_of_one_package_are_apart(mlp, opened):
    x, t = mlp[1]["DATA"]
    other = opened.open()
    before = opened.predict(x)
    for _ in range(3):
        other.train_step(x, t)
    np.testing.assert_array_equal(opened.predict(x), before)
    assert not np.array_equal(other.predict(x), before)
    assert (opened._net.iteration, other.iteration) == (0, 3)
    weight = opened.open().params["ip1.weight"]  # outlives its net
    assert np.isfinite(weight).all()


def test_rates_can_be_set(mlp, opened):
    x, t = mlp[1]["DATA"]
    before = opened.params["ip1.weight"].copy()
    opened.set_learning_rate(0.0)
    opened.set_momentum(0.0)
    opened.train_step(x, t)
    np.testing.assert_array_equal(opened.params["ip1.weight"], before)
    for rate in (-1, np.nan, "a"):
        with pytest.raises(ValueError, match=f"net 'mlp': learning_rate={rate!r} must be a number, 0 or more"):
            opened.set_learning_rate(rate)
    with pytest.raises(ValueError, match=r"momentum=1\.0 must .* below 1"):
        opened.set_momentum(1.0)
    opened.set_learning_rate(None)
    opened.train_step(x, t)
    assert not np.array_equal(opened.params["ip1.weight"], before)


def test_threads_change_no_bit(mlp, opened):
    x = np.random.default_rng(3).standard_normal((700, 12)).astype(np.float32)
    t = np.arange(700) % 5
    count, found = get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            net = opened.open()
            found.append((net.train_step(x, t), net.predict(x)))
    finally:
        set_num_threads(count)
    for loss, y in found[1:]:
        assert loss == found[0][0]
        np.testing.assert_array_equal(y, found[0][1])


def test_weights_go_back_and_forth(mlp, opened, tmp_path):
    x, t = mlp[1]["DATA"]
    net = run(mlp[0].parent / "net.py")["net"]
    opened.train_step(x, t)
    opened.save(tmp_path / "w.safetensors")
    net.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(net.predict(x), opened.predict(x))
    solver = run(mlp[0].parent / "net.py")["solver"]
    solver.add(Snapshot(tmp_path / "snaps", every_n_iter=2))
    solver.init(net)
    solver.step(net)
    solver.step(net)
    other = opened.open()
    other.load(tmp_path / "snaps" / "snapshot-000002.safetensors")  # with history and data position
    np.testing.assert_array_equal(net.predict(x), other.predict(x))
    assert [p.name for p in tmp_path.glob("w*")] == ["w.safetensors"]


def tensors(built):
    return {k: np.array(p) for k, p in built.params.items()}


BAD_FILES = {
    "missing": (lambda d: {k: v for k, v in d.items() if k != "ip1.bias"}, "missing: ip1.bias"),
    "unexpected": (lambda d: {**d, "new": np.zeros(3, np.float32)}, "unexpected: new"),
    "shape": (lambda d: {**d, "ip1.bias": np.zeros((3, 3), np.float32)}, r"ip1.bias \(3,3\) instead of \(9\)"),
    "transposed": (lambda d: {**d, "ip1.weight": d["ip1.weight"].T.copy()}, r"ip1.weight \(9,12\) instead of \(12,9\)"),
    "all at once": (lambda d: dict.fromkeys(("x", "ip1.bias"), np.zeros(1)), "missing: .*; unexpected: x; of another"),
    "half": (lambda d: {k: v.astype(np.float16) for k, v in d.items()}, "has type F16; F32, F64"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_weights_that_do_not_fit(name, mlp, opened, tmp_path):
    change, text = BAD_FILES[name]
    before = tensors(opened)
    save_file(change(before), tmp_path / "bad.safetensors")
    with pytest.raises(ValueError, match=text):
        opened.load(tmp_path / "bad.safetensors")
    for k, p in opened.params.items():
        np.testing.assert_array_equal(p, before[k])


def test_weights_of_another_float_type(opened, tmp_path):
    wide = {k: np.random.default_rng(1).standard_normal(v.shape) for k, v in tensors(opened).items()}
    save_file(wide, tmp_path / "wide.safetensors")
    opened.load(tmp_path / "wide.safetensors")
    for k, p in opened.params.items():
        np.testing.assert_array_equal(p, wide[k].astype(np.float32))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "libnet.so").write_bytes((d / "libnet.so").read_bytes()[:5000]), "when built"),
        (lambda d: (d / "libnet.so").unlink(), "cannot be loaded here"),
        (lambda d: (d / "manifest.json").write_text("[]"), "it is no manifest"),
        (lambda d: (d / "manifest.json").write_text('{"format": 1}'), "it has no 'net'"),
    ],
)
def test_damaged_packages(mlp, tmp_path, damage, message):
    shutil.copytree(mlp[0], tmp_path / "built")
    damage(tmp_path / "built")
    with pytest.raises(ImportError, match=f"{message}.*; build the net again"):
        package(tmp_path / "built")
    script = mlp[0].parent / "net.py"
    assert main(["build", f"{script}:net", "-o", f"{tmp_path}/built"]) == 0
    assert package(tmp_path / "built").predict(mlp[1]["DATA"][0]).shape[0] == len(mlp[1]["DATA"][0])


def test_damaged_files_never_crash(mlp, opened, tmp_path):
    good = (mlp[0] / "weights.safetensors").read_bytes()
    before, rng, path = tensors(opened), np.random.default_rng(0), tmp_path / "w.safetensors"
    header = 8 + int.from_bytes(good[:8], "little")
    damaged = [good[:n] for n in (0, 3, 8, 9, header - 1, header, header + 5, len(good) - 1)]
    damaged += [n.to_bytes(8, "little") + good[8:] for n in (0, 1, 2**62, 2**64 - 1, len(good))]
    damaged += [
        good[:8] + text + good[8 + len(text) :] for text in (b"{{{{", b'{"a":', b"[" * 300, b'{"\\u12', b"\0\0\0\0")
    ]
    for _ in range(300):
        bytes_ = bytearray(good)
        for at in rng.integers(0, header, rng.integers(1, 4)):
            bytes_[at] = rng.integers(256)
        damaged.append(bytes(bytes_))
    refused = 0
    for one in damaged:
        path.write_bytes(one)
        message = None
        try:
            opened.load(path)
        except (ValueError, OSError) as error:
            message = str(error)
        if message is not None:
            assert "w.safetensors" in message
            refused += 1
            for k, p in opened.params.items():
                np.testing.assert_array_equal(p, before[k])
        opened.load(mlp[0] / "weights.safetensors")
    assert refused > 200


def test_top_and_no_solver(tmp_path, capsys):
    scope, built = build(tmp_path, changed(("solver = SGD", "made_elsewhere = dict")), "--top", "ip1")
    x = scope["DATA"][0]
    np.testing.assert_array_equal(built.predict(x), scope["net"].predict(x, top="ip1"))
    assert "no train_step: the script makes no solver" in capsys.readouterr().out
    assert not hasattr(built, "train_step")
    with pytest.raises(NotImplementedError):
        built._net.train_step(x)
    assert main(["build", f"{tmp_path}/net.py:net", "--top", "nothing"]) == 2
    assert "no blob 'nothing'" in capsys.readouterr().err


def test_one_example_cannot_be_normalised(tmp_path):
    script = middle('BatchNorm(name="drop", bottoms=["ip1"], tops=["m"])')
    scope, built = build(tmp_path, script)
    x, t = scope["DATA"]
    with pytest.raises(ValueError, match="variance of one number per channel is not known"):
        built.train_step(x[:1], t[:1])
    built.train_step(x[:2], t[:2])
    np.testing.assert_array_equal(built.predict(x[:1]).shape, (1, 5))


def test_names_that_are_no_identifiers(tmp_path):
    script = changed(
        ('"data")', '"data", tops=["in put", "double"])'),
        ('["data"]', '["in put"]'),
        ('"label"]', '"double"]'),
        ("net = Net", "é = Net"),
        ('"ip1"', '"?\\\\"'),
    )
    scope, built = build(tmp_path, script.replace('"ip2"', '"größe \\"x\\""'), name="é")
    x, t = scope["DATA"]
    np.testing.assert_array_equal(built.predict(x), scope["é"].predict(x))
    built.train_step(x, t)
    assert {k.partition(".")[0] for k in built.params} == {"?\\", 'größe "x"'}


# -- C without Python -----------------------------------------------------------------------------------------------

MAIN = r"""
#include "net.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    float x[50 * 12], y[50 * 5];
    int64_t t[50];
    double loss = 0;
    struct net *net = net_open();
    (void)argc;
    printf("%d %s\n", net_load_safetensors(net, argv[2]), net_message(net));
    printf("%d %s\n", net_load_safetensors(net, argv[3]), net_message(net));
    if (net_load_safetensors(net, argv[1])) return 1;
    for (int i = 0; i < 50 * 12; i++) x[i] = (float)((i * 37 % 101) - 50) / 32;
    for (int i = 0; i < 50; i++) t[i] = i % 5;
    for (int n = 50; n > 0; n -= 7) {
        if (net_predict(net, x, y, n)) return 2;
        if (net_train_step(net, x, t, n, n % 2 ? &loss : 0)) return 3;
    }
    t[3] = 9;
    printf("%d %s\n", net_train_step(net, x, t, 50, &loss), net_message(net));
    printf("%d %d %d\n", net_predict(net, x, y, 0), net_predict(net, 0, y, 3), net_predict(net, x, y, INT64_MAX / 2));
    printf("%d %d\n", net_predict(0, x, y, 1), (int)net_arena_size(-1, 0));
    for (int k = 0; k < net_tensors(net); k++) printf("%s ", net_tensor_name(net, k));
    printf("%d %d\n", net_tensor_name(net, -1) == 0, net_tensor_data(net, 99) == 0);
    if (net_predict(net, x, y, 50)) return 4;
    for (int i = 0; i < 250; i++) printf("%.9g ", y[i]);
    printf("\n%.17g %d\n", loss, (int)net_iteration(net));
    printf("%d %d\n", net_save_safetensors(net, argv[4]), net_save_safetensors(net, "/nowhere/x"));
    net_close(net);
    net_close(0);
    return 0;
}
"""


def compiled(folder, mlp, *flags):
    (folder / "main.c").write_text(MAIN)
    command = [
        "cc",
        *flags,
        str(folder / "main.c"),
        str(mlp[0] / "net.c"),
        f"-I{mlp[0]}",
        "-lm",
        "-o",
        str(folder / "main"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    good = (mlp[0] / "weights.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(good[:-4])
    paths = [
        mlp[0] / "weights.safetensors",
        folder / "cut.safetensors",
        folder / "none.safetensors",
        folder / "out.safetensors",
    ]
    return [str(folder / "main"), *map(str, paths)]


@pytest.mark.parametrize("kind", ["sanitized", "valgrind", "plain"])
def test_a_c_program(kind, mlp, tmp_path):
    if kind == "valgrind" and shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    manifest = json.loads((mlp[0] / "manifest.json").read_text())
    flags = {
        "sanitized": ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        "valgrind": ["-g", "-O1"],
        "plain": [f for f in manifest["native"]["flags"] if f != "-fPIC"],
    }[kind]
    command = compiled(tmp_path, mlp, *flags)
    if kind == "valgrind":
        command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("3 ")
    assert "the data of ip2.bias are not all there" in lines[0]
    assert lines[1].endswith("none.safetensors: No such file or directory")
    assert lines[2] == "6 layer 'loss' (SoftmaxLoss): label 9 is outside 0..4"
    assert lines[3:6] == ["2 2 2", "2 -1", "ip1.weight ip1.bias ip2.weight ip2.bias 1 1"]
    assert lines[8] == "0 3"
    built = package(mlp[0])
    x = ((np.arange(600) * 37 % 101 - 50) / 32).astype(np.float32).reshape(50, 12)
    losses = []
    for n in range(50, 0, -7):
        losses.append(built.train_step(x[:n], np.arange(n) % 5))
    y, (loss, steps) = np.array(lines[6].split(), np.float64).reshape(50, 5), lines[7].split()
    assert int(steps) == len(losses)
    if kind == "plain":  # the very flags of the library: the very bits
        np.testing.assert_array_equal(y.astype(np.float32), built.predict(x))
        assert float(loss) == losses[-1]
        built.load(tmp_path / "out.safetensors")
        np.testing.assert_array_equal(y.astype(np.float32), built.predict(x))
    else:
        np.testing.assert_allclose(y, built.predict(x), rtol=1e-4, atol=1e-5)


def test_the_c_is_free_of_warnings_and_the_header_is_c_plus_plus(mlp, tmp_path):
    strict = ["-Wall", "-Wextra", "-Werror", "-O1", "-c", "-o", str(tmp_path / "x.o")]
    subprocess.run(["cc", "-std=c11", *strict, str(mlp[0] / "net.c")], check=True)
    (tmp_path / "x.cpp").write_text('#include "net.h"\nint main() { return net_open() == nullptr; }\n')
    if shutil.which("c++"):
        subprocess.run(["c++", *strict, f"-I{mlp[0]}", str(tmp_path / "x.cpp")], check=True)


# -- places in the arena ---------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_what_lives_together_lies_apart(triples):
    lives = [Lifetime(size, min(a, b), max(a, b)) for size, a, b in triples]
    at, total = pack(lives)
    for (i, one), (j, two) in itertools.combinations(enumerate(lives), 2):
        if one.first <= two.last and two.first <= one.last and one.size and two.size:
            assert at[i] + one.size <= at[j] or at[j] + two.size <= at[i]
    assert total == max((p + one.size for p, one in zip(at, lives)), default=0)
    busiest = max((sum(x.size for x in lives if x.first <= k <= x.last) for k in range(10)), default=0)
    assert total >= busiest


def test_the_net_tells_the_same_plan(mlp):
    assert "built ahead of time  128 bytes for each example" in mlp[1]["net"].memory()


def test_the_arena_is_smaller_than_its_parts(mlp, opened):
    manifest = json.loads((mlp[0] / "manifest.json").read_text())["net"]
    assert opened.arena_size(100) == 100 * manifest["predict"]["arena"][0]
    assert manifest["predict"]["arena"] == [128, 0]  # 9 floats are a line; the scores go to the caller
