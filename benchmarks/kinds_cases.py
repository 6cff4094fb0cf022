"""The cases of `make bench-kinds`: what layer authors write.

A new case is one row here, its layer in kinds.py, twins in kinds_torch.py and kinds_jax.py and, where it is loops by
nature, kernels in kinds_numba.py or kinds_numba_steps.py.
"""

import numpy as np
from case import Case, Draw, function, labels, normal, uniform

SOURCE = "benchmarks/kinds.py"


def positive_definite(n: int, d: int) -> Draw:
    def values(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        a = rng.standard_normal(shape)
        return (a @ a.transpose(0, 2, 1) / d + 2 * np.eye(d)).astype(np.float32)

    return Draw((n, d, d), values)


def lengths(low: int, high: int, *shape: int) -> Draw:
    return Draw(shape, lambda rng, s: rng.integers(low, high, s).astype(np.int32))


def kind(
    name: str,
    arguments: dict[str, Draw],
    torch: str | None = "",
    jax: str | None = "",
    numba: str | None = None,
    **rest,
) -> Case:
    """A row; its twins are called as it is, unless named. None: there is none."""
    named = {"torch": torch, "jax": jax, "numba": numba}
    twins = {key: (value or name,) for key, value in named.items() if value is not None}
    return Case(name, arguments, function(name), **twins, source=SOURCE, suite="kinds", **rest)


UNROLLED = ()  # torch.compile writes every step out: graphs of a hundred steps take minutes to compile
PIXELS = normal(16, 64, 28, 28)
LAST = normal(16, 28, 28, 64)
CHANNELS = {"weight": normal(64), "bias": normal(64)}
ATTENTION = {"q": normal(32, 128, 64), "k": normal(32, 128, 64), "v": normal(32, 128, 64)}

KINDS = (
    kind("group_norm", {"x": PIXELS, **CHANNELS}, own="group_norm_own"),
    kind("batch_norm_last", {"x": LAST, **CHANNELS}, own="batch_norm_last_own"),
    kind("rms_norm", {"x": normal(32, 128, 256), "weight": normal(256)}, own="rms_norm_own"),
    kind("weight_standard", {"w": normal(256, 256, 3, 3)}),
    kind("hard_swish", {"x": PIXELS}, own="hard_swish_own"),
    kind("prelu_last", {"x": LAST, "slope": uniform(0, 0.5, 64)}, own="prelu_last_own"),
    kind("masked_softmax", {"x": normal(32, 128, 128), "length": lengths(1, 129, 32)}),
    kind("focal_loss", {"x": normal(4096, 100), "label": labels(100, 4096)}, outputs=((4096,),)),
    kind(
        "contrastive",
        {"a": normal(2048, 128), "b": normal(2048, 128), "same": labels(2, 2048)},
        own="contrastive_own",
        outputs=((2048,),),
    ),
    kind(
        "ctc",
        {"x": normal(32, 100, 32), "label": lengths(1, 32, 32, 20)},
        numba="",
        own="ctc_own",
        compiled=UNROLLED,
        outputs=((32,),),
    ),
    kind(
        "hmm",
        {"emission": normal(32, 128, 16), "transition": normal(16, 16), "initial": normal(16)},
        numba="",
        compiled=UNROLLED,
        outputs=((32,),),
    ),
    kind("biquad", {"x": normal(64, 1024), "b": normal(3), "a": uniform(-0.3, 0.3, 2)}, numba="", compiled=UNROLLED),
    kind(
        "lstm",
        {
            "x": normal(32, 64, 64),
            "w_input": normal(64, 256, scale=0.1),
            "w_hidden": normal(64, 256, scale=0.1),
            "bias": normal(256),
        },
        own="lstm_own",
        compiled=UNROLLED,
    ),
    kind("linear_attention", {k: normal(32, 128, 32) for k in "qkv"}),
    kind("cholesky", {"a": positive_definite(4096, 8)}, numba="", own="cholesky_own"),
    kind("gauss_jordan", {"a": positive_definite(4096, 8)}, numba="", torch=None, own="inverse_own", jax="inverse"),
    kind("causal_attention", ATTENTION, own="causal_attention_own"),
    kind(
        "embedding_bag",
        {"index": labels(5000, 256, 20), "table": normal(5000, 64)},
        numba="",
        own="embedding_bag_own",
        outputs=((256, 64),),
    ),
    kind(
        "neighbour_sum",
        {"x": normal(2000, 64), "source": labels(2000, 20000), "target": labels(2000, 20000)},
        numba="",
    ),
    kind("lp_pool", {"x": uniform(0.1, 2, 16, 32, 32, 32)}, numba="", own="lp_pool_own", outputs=((16, 32, 30, 30),)),
    kind("depthwise", {"x": normal(16, 32, 32, 32), "weight": normal(32, 3, 3)}, own="depthwise_own"),
    kind("upsample", {"x": normal(16, 16, 32, 32)}, torch=None, own="upsample_own", outputs=((16, 16, 64, 64),)),
    kind("lambert_w", {"x": uniform(0, 20, 256, 256)}, numba="", compiled=("lambert_w_fixed",)),
)
