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
