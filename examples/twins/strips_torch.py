"""examples/strips.py in PyTorch, with its own CTC."""

import jobs
import same
import strips
import torch
from torch import nn
from torch.nn import functional as F


class Reader(nn.Module):
    """Two GRUs, as PyTorch's two directions are, and the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, strips.HIDDEN, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * strips.HIDDEN, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(self.gru(x)[0])


def run(epochs: int = strips.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    (x, label), test = strips.data()
    x, label = torch.from_numpy(x), torch.from_numpy(label)
    lengths = (label > 0).sum(1)
    net = Reader()
    same.start(net)
    total = epochs * -(-len(x) // strips.BATCH)
    solver = torch.optim.Adam(net.parameters(), 6e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(strips.BATCH):
                p = F.log_softmax(net(x[rows]), 2).transpose(0, 1)
                columns = torch.full((len(rows),), strips.WIDTH)
                loss = F.ctc_loss(p, label[rows].clamp(min=0), columns, lengths[rows], reduction="sum") / len(rows)
                solver.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 5.0)
                solver.step()
                rates.step()
    with torch.no_grad():
        scores = net(torch.from_numpy(test[0])).numpy()
    return clock.result("digits read right", strips.right(scores, test[1]), total)
