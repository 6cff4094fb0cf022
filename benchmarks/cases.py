"""The cases of `make bench`, one row each.

A new case is one row here, one twin in twins_torch.py, one in twins_jax.py, and a forward and a backward in
twins_numba.py, rows_numba.py or steps_numba.py.
`make bench-kinds` has more of them: kinds_cases.py.
"""

from case import Case, Draw, Traffic, function, labels, module, normal, uniform
from kinds_cases import KINDS

# A peer computes what the layer computes. Another way to the same numbers (distances through a product of matrices,
# a derivative by the implicit function theorem) is a case of its own, in which layerc's layer goes that way too.
OTHER_WAYS = "benchmarks/other_ways.py"
FAMILIAR = "benchmarks/familiar.py"
# torch twins whose loop stays in Python: they compile what is inside it
COMPILES_ITSELF = {"kepler_compiled_step", "kepler_implicit_compiled_step", "lambert_w"}
SUITES = ("bench", "kinds")


def srelu(*shape: int) -> dict[str, Draw]:
    c = shape[1]
    return {
        "x": normal(*shape),
        "left_threshold": uniform(-1, 0, c),
        "left_slope": uniform(0, 1, c),
        "right_threshold": uniform(0, 1, c),
        "right_slope": uniform(0, 1, c),
    }


SRELU = {
    "layerc": module("SReLU"),
    "torch": ("srelu_where", "srelu_clamp"),
    "jax": ("srelu_where", "srelu_clamp"),
    "numba": ("srelu", "srelu_serial"),
}
MISH = {
    "layerc": function("mish"),
    "torch": ("mish_formula", "mish_softplus"),
    "own": "mish_own",
    "jax": ("mish_formula", "mish_softplus", "mish_own"),
    "numba": ("mish",),
}

CASES = {
    case.name: case
    for case in (
        # Forward reads x and writes y; backward reads x and dy and writes dx: 5 arrays of x's size in all.
        Case("srelu", srelu(32, 64, 28, 28), **SRELU, traffic=Traffic(2, 5)),
        Case("srelu_tiny", srelu(1, 16, 4, 4), **SRELU),
        Case("mish", {"x": normal(32, 64, 28, 28)}, **MISH, traffic=Traffic(2, 5)),
        Case(
            "rbf",
            {"x": normal(512, 64), "centers": normal(128, 64), "gamma": uniform(0.005, 0.02, 128)},
            function("rbf"),
            torch=("rbf_broadcast",),
            jax=("rbf_broadcast",),
            numba=("rbf",),
            outputs=((512, 128),),
        ),
        Case(
            "rbf_matmul",
            {"x": normal(512, 64), "centers": normal(128, 64), "gamma": uniform(0.005, 0.02, 128)},
            function("rbf_matmul"),
            torch=("rbf_matmul",),
            jax=("rbf_matmul",),
            numba=("rbf_matmul",),
            outputs=((512, 128),),
            source=OTHER_WAYS,
        ),
        Case(
            "ema",
            {"x": normal(64, 512, 64), "decay": uniform(0.8, 0.99, 64)},
            function("ema"),
            torch=("ema_loop", "ema_doubling", "ema_chunks"),
            jax=("ema_scan", "ema_scan_unrolled", "ema_associative", "ema_doubling", "ema_chunks"),
            numba=("ema",),
        ),
        Case(
            "kepler",
            {"mean": uniform(-3.14, 3.14, 256, 256), "e": uniform(0, 0.9, 256, 256)},
            function("kepler"),
            torch=("kepler_while",),
            compiled=("kepler_compiled_step", "kepler_fixed"),
            jax=("kepler_fixed", "kepler_scan"),
            numba=("kepler",),
        ),
        Case(
            "kepler_implicit",
            {"mean": uniform(-3.14, 3.14, 256, 256), "e": uniform(0, 0.9, 256, 256)},
            function("kepler_implicit"),
            torch=("kepler_implicit",),
            compiled=("kepler_implicit_compiled_step", "kepler_implicit_fixed"),
            jax=("kepler_implicit", "kepler_implicit_fixed"),
            numba=("kepler_implicit",),
            source=OTHER_WAYS,
        ),
        Case(
            "layer_norm",
            {"x": normal(4096, 768), "weight": normal(768), "bias": normal(768)},
            function("layer_norm"),
            torch=("layer_norm",),
            jax=("layer_norm",),
            numba=("layer_norm",),
            own="layer_norm_own",
            source=FAMILIAR,
            traffic=Traffic(2, 5),
        ),
        Case(
            "batch_norm",
            {"x": normal(32, 64, 28, 28), "weight": normal(64), "bias": normal(64)},
            function("batch_norm"),
            torch=("batch_norm",),
            jax=("batch_norm",),
            numba=("batch_norm",),
            own="batch_norm_own",
            source=FAMILIAR,
            traffic=Traffic(2, 5),
        ),
        Case(
            "cross_entropy",
            {"x": normal(4096, 1000), "label": labels(1000, 4096)},
            function("cross_entropy"),
            torch=("cross_entropy",),
            jax=("cross_entropy",),
            numba=("cross_entropy",),
            own="cross_entropy_own",
            outputs=((4096,),),
            source=FAMILIAR,
            traffic=Traffic(1, 3),
        ),
        Case(
            "gru",
            {
                "x": normal(32, 64, 64),
                "w_input": normal(64, 192, scale=0.1),
                "w_hidden": normal(64, 192, scale=0.1),
                "bias": normal(192),
            },
            function("gru"),
            torch=("gru",),
            jax=("gru",),
            numba=("gru",),
            own="gru_own",
            source=FAMILIAR,
        ),
        Case(
            "soft_dtw",
            {"a": normal(32, 64, 8), "b": normal(32, 64, 8)},
            function("soft_dtw"),
            torch=("soft_dtw_diagonals",),
            jax=("soft_dtw_diagonals",),
            numba=("soft_dtw",),
            outputs=((32,),),
            source=FAMILIAR,
        ),
        Case(
            "crf",
            {"score": normal(32, 64, 16), "transition": normal(16, 16)},
            function("crf"),
            torch=("crf",),
            jax=("crf",),
            numba=("crf",),
            outputs=((32,),),
            source=FAMILIAR,
        ),
        Case(
            "warp",
            {"image": normal(8, 16, 64, 64), "flow": normal(8, 2, 64, 64, scale=2.0)},
            function("warp"),
            torch=("warp_gather",),
            jax=("warp_gather",),
            numba=("warp",),
            own="warp_own",
            source=FAMILIAR,
        ),
        Case("mish_16", {"x": normal(16)}, **MISH, suite="calls"),
        # Where a second thread begins to pay: beside the others in ways.py.
        Case("mish_2k", {"x": normal(32, 64)}, **MISH, suite="ways"),
        Case("mish_16k", {"x": normal(64, 256)}, **MISH, suite="ways"),
        Case("mish_64k", {"x": normal(256, 256)}, **MISH, suite="ways"),
        Case(
            "layer_norm_small",
            {"x": normal(64, 128), "weight": normal(128), "bias": normal(128)},
            function("layer_norm"),
            source=FAMILIAR,
            suite="ways",
        ),
        Case(
            "rbf_small",
            {"x": normal(32, 16), "centers": normal(16, 16), "gamma": uniform(0.005, 0.02, 16)},
            function("rbf"),
            outputs=((32, 16),),
            suite="ways",
        ),
        *KINDS,
    )
}
