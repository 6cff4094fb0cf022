"""examples/lenet.py in PyTorch: the same net, data, batches and rates."""

import jobs
import lenet
import numpy as np
import same
import torch
from torch import nn
from torch.nn import functional as F


class ScaledTanh(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1.7159 * torch.tanh(2 / 3 * x)


def run(epochs: int = lenet.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    (x, t), (x_test, t_test) = [[torch.from_numpy(a) for a in part] for part in lenet.data()]
    net = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), ScaledTanh(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), ScaledTanh(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, 120), ScaledTanh(), nn.Dropout(0.5), nn.Linear(120, 10)),
    )
    same.start(net)
    matrices = [p for p in net.parameters() if p.ndim > 1]
    total = epochs * -(-len(x) // lenet.BATCH)
    solver = torch.optim.Adam(net.parameters(), 2e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(lenet.BATCH):
                loss = F.cross_entropy(net(shifted(x[rows])), t[rows])
                loss = loss + 1e-4 * sum((w * w).sum() for w in matrices)
                same.step(loss, solver, rates)
    return clock.result("test accuracy", same.accuracy(net, x_test[:, :, 1:9, 1:9], t_test), total)


def shifted(x: torch.Tensor) -> torch.Tensor:
    """A random 8x8 part of each 10x10 image."""
    place = torch.from_numpy(np.random.default_rng().integers(0, 3, (2, len(x), 1, 1)))
    rows, columns = torch.arange(8)[:, None] + place[0], torch.arange(8) + place[1]
    return x[torch.arange(len(x))[:, None, None], 0, rows, columns][:, None]
