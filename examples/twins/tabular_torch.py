"""examples/tabular.py in PyTorch."""

import jobs
import same
import tabular
import torch
from torch import nn
from torch.nn import functional as F


class Gaussians(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.centers = nn.Parameter(torch.randn(tabular.CENTERS, columns))
        self.log_width = nn.Parameter(torch.zeros(tabular.CENTERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        d = x[:, None, :] - self.centers
        return torch.exp(-(d * d).mean(-1) * torch.exp(-2 * self.log_width))


def net(table: str, columns: int) -> nn.Sequential:
    if table == "wine":
        return nn.Sequential(Gaussians(columns), nn.Linear(tabular.CENTERS, 3))
    return nn.Sequential(nn.Linear(columns, tabular.HIDDEN), nn.GELU(), nn.Linear(tabular.HIDDEN, 1))


def run(epochs: int = tabular.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    clock, means, iterations = jobs.Clock(), [], 0
    for table, held in tabular.TABLES.items():
        accuracies = []
        for part in tabular.parts(table):
            (x, t), (x_test, t_test) = [[torch.from_numpy(a) for a in pair] for pair in part]
            one = net(table, x.shape[1])
            same.start(one)
            weights = [m.weight for m in one if isinstance(m, nn.Linear)]
            total = epochs * -(-len(x) // tabular.BATCH)
            solver = torch.optim.Adam(one.parameters(), 1e-2)
            rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
            with clock:
                for _ in range(epochs):
                    for rows in torch.randperm(len(x)).split(tabular.BATCH):
                        y = one(x[rows])
                        loss = F.cross_entropy(y, t[rows]) if table == "wine" else F.relu(1 - t[rows] * y).mean()
                        loss = loss + held * sum((w * w).sum() for w in weights)
                        same.step(loss, solver, rates)
            with torch.no_grad():
                y = one(x_test)
            right = y.argmax(1) == t_test if table == "wine" else (y > 0) == (t_test > 0)
            accuracies.append(right.double().mean().item())
            iterations += total
        means.append(sum(accuracies) / len(accuracies))
    return clock.result("test accuracy", min(means), iterations)
