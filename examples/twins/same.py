"""What the twins share."""

import torch
from torch import nn


@torch.no_grad()
def start(net: nn.Module) -> None:
    """Layerc's first values: matrices uniform in ±sqrt(3 / fan-in), biases 0; embeddings as PyTorch's, normal."""
    for module in net.modules():
        for name, p in module.named_parameters(recurse=False):
            if name.startswith("bias"):
                p.zero_()
            elif name.startswith("weight") and not isinstance(module, nn.Embedding):
                bound = (3 / p[0].numel()) ** 0.5
                p.uniform_(-bound, bound)


def step(
    loss: torch.Tensor,
    solver: torch.optim.Optimizer,
    rates: torch.optim.lr_scheduler.LRScheduler,
    clip: float | None = None,
) -> None:
    """One step of training; `clip`: the largest norm of all gradients together."""
    solver.zero_grad()
    loss.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_([p for group in solver.param_groups for p in group["params"]], clip)
    solver.step()
    rates.step()


@torch.no_grad()
def accuracy(net: nn.Module, x: torch.Tensor, t: torch.Tensor) -> float:
    """The part of the examples whose largest score (N, classes) is that of their class (N,)."""
    net.eval()
    return (net(x).argmax(1) == t).double().mean().item()
