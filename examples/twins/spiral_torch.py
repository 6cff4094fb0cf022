"""examples/spiral.py in PyTorch: the same steps of Dormand and Prince, differentiated by autograd."""

import jobs
import numpy as np
import same
import spiral
import torch
from torch import nn

A = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
RTOL, ATOL = 1e-4, 1e-5


class Rate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(0.1 * torch.randn(2, spiral.HIDDEN))
        self.b1 = nn.Parameter(torch.zeros(spiral.HIDDEN))
        self.w2 = nn.Parameter(0.1 * torch.randn(spiral.HIDDEN, 2))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh((y * y * y) @ self.w1 + self.b1) @ self.w2


def flow(rate: Rate, y: torch.Tensor) -> torch.Tensor:
    """The solution after a STEP, in steps as layerc's ODE takes them."""
    t, h = 0.0, 0.01 * spiral.STEP
    while True:
        is_last = h >= spiral.STEP - t
        h = min(h, spiral.STEP - t)
        stages: list[torch.Tensor] = []
        for row in A:
            after = y + sum(h * a * k for a, k in zip(row, stages) if a) if row else y
            stages.append(rate(after))
        with torch.no_grad():
            off = h * sum(e * k for e, k in zip(ERROR, stages) if e)
            scale = ATOL + RTOL * torch.maximum(y.abs(), after.abs())
            size = (off / scale).square().mean().sqrt().item()
        if size <= 1:
            t, y = t + h, after
            if is_last:
                return y
        h *= min(10.0, max(0.2, 0.9 * size**-0.2)) if size else 10.0


def run(epochs: int = spiral.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    pieces = [torch.from_numpy(piece) for piece in spiral.data()]
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
                    loss = loss + 0.5 * (y - piece[rows]).square().sum() / len(rows)
                same.step(loss, solver, rates)
    places = [torch.tensor([[2.0, 0.0]])]
    with torch.no_grad():
        for _ in range(spiral.POINTS - 1):
            places.append(flow(rate, places[-1]))
    return clock.result("error of the path", spiral.error(np.concatenate([p.numpy() for p in places])), total)
