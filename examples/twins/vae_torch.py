"""examples/vae.py in PyTorch."""

import jobs
import same
import torch
import vae
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, vae.HIDDEN), nn.ReLU())
        self.mu, self.log_sigma = nn.Linear(vae.HIDDEN, vae.LATENT), nn.Linear(vae.HIDDEN, vae.LATENT)
        self.decode = nn.Sequential(nn.Linear(vae.LATENT, vae.HIDDEN), nn.ReLU(), nn.Linear(vae.HIDDEN, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Nats per image: likeness and prior."""
        hidden = self.encode(x)
        mu, log_sigma = self.mu(hidden), self.log_sigma(hidden)
        sigma = torch.exp(log_sigma)
        code = mu + sigma * torch.randn_like(mu)
        likeness = F.binary_cross_entropy(torch.sigmoid(self.decode(code)), x, reduction="sum")
        prior = 0.5 * (mu * mu + sigma * sigma - 2 * log_sigma - 1).sum()
        return (likeness + prior) / len(x)


def run(epochs: int = vae.EPOCHS) -> jobs.Result:
    torch.manual_seed(1)
    x, x_test = map(torch.from_numpy, vae.data())
    net = VAE()
    same.start(net)
    total = epochs * -(-len(x) // vae.BATCH)
    solver = torch.optim.Adam(net.parameters(), 3e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(solver, total)
    clock = jobs.Clock()
    with clock:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(vae.BATCH):
                loss = net(x[rows])
                same.step(loss, solver, rates)
    with torch.no_grad():
        nats = net(x_test).item()
    return clock.result("nats per image", nats, total)
