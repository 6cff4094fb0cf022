"""examples/tabular.py in PyTorch."""

import jobs
import numpy as np
import same
import tabular
import torch
from torch import nn
from torch.nn import functional as F


class Gaussians(nn.Module):
    """exp(-|x_n - c_k|² / (D w_k²))."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.centers = nn.Parameter(torch.randn(tabular.CENTERS, columns))
        self.log_width = nn.Parameter(torch.zeros(tabular.CENTERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-(x[:, None] - self.centers).square().mean(-1) * torch.exp(-2 * self.log_width))


def made(table: str, columns: int) -> nn.Sequential:
    if table == "wine":
        net = nn.Sequential(Gaussians(columns), nn.Linear(tabular.CENTERS, 3))
    else:
        net = nn.Sequential(nn.Linear(columns, tabular.HIDDEN), nn.GELU(), nn.Linear(tabular.HIDDEN, 1))
    same.start(net)
    return net


def loss_of(table: str, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    if table == "wine":
        return F.cross_entropy(scores, target)
    return (1 - target * scores).clamp(min=0).sum() / len(scores)


def right(table: str, scores: torch.Tensor, target: torch.Tensor) -> float:
    found = scores.argmax(1) == target if table == "wine" else (scores > 0) == (target > 0)
    return found.double().mean().item()


def run(epochs: int = tabular.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    clock, means, iterations = jobs.Clock(), [], 0
    for table, held in tabular.TABLES.items():
        accuracies = []
        for pair in tabular.parts(table):
            (x, t), (x_test, t_test) = [[torch.from_numpy(a) for a in part] for part in pair]
            net = made(table, x.shape[1])
            weights = [m.weight for m in net if isinstance(m, nn.Linear)]
            total = epochs * -(-len(x) // tabular.BATCH)
            solver = torch.optim.Adam(net.parameters(), 1e-2)
            rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
            with clock:
                for _ in range(epochs):
                    for rows in torch.randperm(len(x)).split(tabular.BATCH):
                        loss = loss_of(table, net(x[rows]), t[rows]) + held * sum((w * w).sum() for w in weights)
                        solver.zero_grad()
                        loss.backward()
                        solver.step()
                        rates.step()
            iterations += total
            with torch.no_grad():
                accuracies.append(right(table, net(x_test), t_test))
        means.append(float(np.mean(accuracies)))
    return clock.result("test accuracy", min(means), iterations)
