"""examples/digits.py in PyTorch: the SReLU by hand, as PyTorch has none."""

import digits
import jobs
import same
import torch
from torch import nn
from torch.nn import functional as F


class SReLU(nn.Module):
    """S-shaped rectifier, learnable in each channel (Jin et al. 2016)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.left_threshold = nn.Parameter(torch.empty(channels).uniform_(-1, 0))
        self.left_slope = nn.Parameter(torch.empty(channels).uniform_(0, 1))
        self.right_threshold = nn.Parameter(torch.empty(channels).uniform_(0, 1))
        self.right_slope = nn.Parameter(torch.empty(channels).uniform_(0, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = self.left_threshold + self.left_slope * (x - self.left_threshold)
        right = self.right_threshold + self.right_slope * (x - self.right_threshold)
        return torch.where(x <= self.left_threshold, left, torch.where(x >= self.right_threshold, right, x))


def run(epochs: int = digits.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    (x, t), (x_test, t_test) = [[torch.from_numpy(a) for a in part] for part in digits.digits()]
    wide = 256
    net = nn.Sequential(
        *(nn.Dropout(0.1), nn.Linear(64, wide), SReLU(wide), nn.Dropout(0.5)),
        *(nn.Linear(wide, wide), SReLU(wide), nn.Dropout(0.5), nn.Linear(wide, 10)),
    )
    same.start(net)
    matrices = [p for p in net.parameters() if p.ndim > 1]
    total = epochs * -(-len(x) // digits.BATCH)
    solver = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(digits.BATCH):
                loss = F.cross_entropy(net(x[rows]), t[rows]) + 1e-4 * sum((w * w).sum() for w in matrices)
                same.step(loss, solver, rates)
    return clock.result("test accuracy", same.accuracy(net, x_test, t_test), total)
