"""examples/letters.py in PyTorch."""

import math

import jobs
import letters
import same
import torch
from torch import nn
from torch.nn import functional as F


class Writer(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.embedded = nn.Embedding(classes, letters.EMBEDDED)
        self.gru = nn.GRU(letters.EMBEDDED, letters.HIDDEN, batch_first=True)
        self.readout = nn.Linear(letters.HIDDEN, classes)

    def forward(self, x: torch.Tensor, h: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        y, h = self.gru(self.embedded(x), h)
        return self.readout(y), h


def run(epochs: int = letters.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    alphabet, training, test = letters.data()
    (x, t), (x_test, t_test) = [[torch.from_numpy(a) for a in part] for part in (training, test)]
    net = Writer(len(alphabet))
    same.start(net)
    total = epochs * (len(x) // letters.STREAMS)
    solver = torch.optim.Adam(net.parameters(), 4e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    hidden = None
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for batch, target in zip(x.split(letters.STREAMS), t.split(letters.STREAMS)):
                scores, hidden = net(batch, hidden)
                hidden = hidden.detach()
                loss = F.cross_entropy(scores.flatten(0, 1), target.flatten())
                same.step(loss, solver, rates, clip=1.0)
    with torch.no_grad():
        scores, _ = net(x_test, None)
        bits = F.cross_entropy(scores.flatten(0, 1), t_test.flatten()).item() / math.log(2)
    return clock.result("bits per character", bits, total)
