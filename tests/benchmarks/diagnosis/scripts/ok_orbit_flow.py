"""How a pendulum on a spring moves: a neural differential equation, integrated by Runge and Kutta's four slopes."""

import torch
from torch import nn

settings = {
    "data": {"paths": 4096, "moments": 12, "dt": 0.15, "noise": 0.01},
    "model": {"width": 256, "steps_between": 1},
    "fit": {"iterations": 440, "batch": 256, "lr": 2e-3, "report": 88, "horizon": 6},
}


class Field(nn.Module):
    """The slope at a state."""

    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus())
        self.last = nn.Linear(width, 4)

    def forward(self, state):
        return self.last(self.net(state))


def true_field(state):
    angle, stretch, turn, pull = state.unbind(-1)
    return torch.stack([turn, pull, -angle.sin() - 0.2 * stretch, -2 * stretch + 0.3 * turn**2], -1)


def rk4(field, state, dt):
    k1 = field(state)
    k2 = field(state + dt / 2 * k1)
    k3 = field(state + dt / 2 * k2)
    k4 = field(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrate(field, state, moments, dt, between):
    path = [state]
    for _ in range(moments - 1):
        for _ in range(between):
            state = rk4(field, state, dt / between)
        path.append(state)
    return torch.stack(path, 1)


def main(data, model, fit):
    torch.manual_seed(60)
    with torch.no_grad():
        start = torch.randn(data["paths"], 4) * torch.tensor([1.0, 0.3, 0.5, 0.3])
        paths = integrate(true_field, start, data["moments"], data["dt"], 8)
        paths += data["noise"] * torch.randn_like(paths)
    field = Field(model["width"])
    optimizer = torch.optim.Adam(field.parameters(), lr=fit["lr"], fused=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.995)
    for iteration in range(1, fit["iterations"] + 1):
        rows = torch.randint(len(paths), (fit["batch"],))
        begin = int(torch.randint(data["moments"] - fit["horizon"] + 1, ()))
        truth = paths[rows, begin : begin + fit["horizon"]]
        guess = integrate(field, truth[:, 0], fit["horizon"], data["dt"], model["steps_between"])
        loss = (guess - truth).abs().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if iteration % fit["report"] == 0:
            with torch.no_grad():
                far = integrate(field, paths[:256, 0], data["moments"], data["dt"], model["steps_between"])
            print(iteration, f"loss {loss.item():.4f}", f"whole path {(far - paths[:256]).abs().mean():.4f}")


main(**settings)
