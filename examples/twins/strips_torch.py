"""examples/strips.py in PyTorch."""

import jobs
import same
import strips
import torch
from torch import nn
from torch.nn import functional as F


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both = nn.GRU(8, strips.HIDDEN, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * strips.HIDDEN, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(self.both(x)[0])


def run(epochs: int = strips.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    (x, t), (x_test, t_test) = [[torch.from_numpy(a) for a in part] for part in strips.data()]
    net = Reader()
    same.start(net)
    total = epochs * -(-len(x) // strips.BATCH)
    solver = torch.optim.Adam(net.parameters(), 6e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(strips.BATCH):
                log_p = net(x[rows]).log_softmax(2).swapaxes(0, 1)
                lengths = torch.full((len(rows),), strips.WIDTH)
                targets = t[rows]
                loss = F.ctc_loss(log_p, targets.clamp(min=0), lengths, (targets >= 0).sum(1), reduction="sum") / len(
                    rows
                )
                same.step(loss, solver, rates, clip=5.0)
    with torch.no_grad():
        scores = net(x_test).numpy()
    return clock.result("digits read right", strips.right(scores, t_test.numpy()), total)
