"""examples/spiral.py in PyTorch: Dormand and Prince's method by hand, all examples with one step size."""

import jobs
import spiral
import torch
from torch import nn

# The table of Dormand and Prince 1980: what each stage takes of those before; the fifth order, less the fourth.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
RTOL, ATOL = 1e-4, 1e-5


class Rate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(0.1 * torch.randn(2, spiral.HIDDEN))
        self.b1 = nn.Parameter(torch.zeros(spiral.HIDDEN))
        self.w2 = nn.Parameter(0.1 * torch.randn(spiral.HIDDEN, 2))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(y**3 @ self.w1 + self.b1) @ self.w2


def flow(rate: Rate, y: torch.Tensor, time: float = spiral.STEP) -> torch.Tensor:
    """The solution after that time, by steps as long as the error allows."""
    t, h = 0.0, time
    first = rate(y)
    while t < time:
        h = min(h, time - t)
        k = [first]
        for stage in STAGES:
            ahead = y + h * sum(a * f for a, f in zip(stage, k))
            k.append(rate(ahead))
        with torch.no_grad():
            off = h * sum(e * f for e, f in zip(ERROR, k))
            bound = ATOL + RTOL * torch.maximum(y.abs(), ahead.abs())
            error = (off / bound).square().mean(1).sqrt().max().item()
        if error <= 1:
            t, y, first = t + h, ahead, k[-1]
        h *= min(5.0, max(0.2, 0.9 * (error + 1e-12) ** -0.2))
    return y


def run(epochs: int = spiral.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    pieces = [torch.from_numpy(a) for a in spiral.data()]
    rate = Rate()
    total = epochs * -(-len(pieces[0]) // spiral.BATCH)
    solver = torch.optim.Adam(rate.parameters(), 1e-2)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for rows in torch.randperm(len(pieces[0])).split(spiral.BATCH):
                y, loss = pieces[0][rows], torch.zeros(())
                for piece in pieces[1:]:
                    y = flow(rate, y)
                    loss = loss + (y - piece[rows]).square().sum() / (2 * len(rows))
                solver.zero_grad()
                loss.backward()
                solver.step()
                rates.step()
    places = [torch.tensor([[2.0, 0.0]])]
    with torch.no_grad():
        for _ in range(spiral.POINTS - 1):
            places.append(flow(rate, places[-1]))
    return clock.result("error of the path", spiral.error(torch.cat(places).numpy()), total)
