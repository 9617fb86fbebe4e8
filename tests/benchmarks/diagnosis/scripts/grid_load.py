"""Load of a power grid for the next half day: encoder, attention decoder, scheduled teacher forcing."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.rnn = nn.GRU(n_in, hidden, batch_first=True)

    def forward(self, past):
        return self.rnn(past)


class Decoder(nn.Module):
    def __init__(self, n_out, hidden):
        super().__init__()
        self.cell = nn.GRUCell(n_out + hidden, hidden)
        self.query = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, n_out)

    def forward(self, previous, state, memory):
        weights = torch.bmm(memory, self.query(state).unsqueeze(2)).softmax(dim=1)
        state = self.cell(torch.cat([previous, (weights * memory).sum(1)], dim=1), state)
        return self.out(state), state


class Forecaster(nn.Module):
    def __init__(self, stations, hidden):
        super().__init__()
        self.encoder, self.decoder = Encoder(stations, hidden), Decoder(stations, hidden)

    def forward(self, past, future, forcing):
        memory, state = self.encoder(past)
        state, previous, outputs = state[0], past[:, -1], []
        for t in range(future.shape[1]):
            predicted, state = self.decoder(previous, state, memory)
            outputs.append(predicted)
            previous = future[:, t] if torch.rand(()) < forcing else predicted
        return torch.stack(outputs, dim=1)


class Meter:
    """Symmetric relative error, station by station, the mean over what was seen."""

    def __init__(self, stations):
        self.sums, self.counts = [0.0] * stations, [0] * stations

    def update(self, predicted, truth):
        for p_series, t_series in zip(predicted.detach().tolist(), truth.tolist()):
            for p_hour, t_hour in zip(p_series, t_series):
                for s, (p, t) in enumerate(zip(p_hour, t_hour)):
                    self.sums[s] += 2 * abs(p - t) / (abs(p) + abs(t) + 1e-6)
                    self.counts[s] += 1

    def value(self):
        return sum(a / max(b, 1) for a, b in zip(self.sums, self.counts)) / len(self.sums)


def make_series(stations, hours, generator):
    t = torch.arange(hours)[:, None] / 24 * 2 * torch.pi
    phase = torch.rand(stations, generator=generator) * 6
    return (
        2
        + torch.sin(t + phase)
        + 0.3 * torch.sin(t / 7 + 2 * phase)
        + 0.1 * torch.randn(hours, stations, generator=generator)
    )


def main(args):
    generator = torch.Generator().manual_seed(args.seed)
    torch.manual_seed(args.seed)
    series = make_series(args.stations, 6000, generator)
    model = Forecaster(args.stations, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
    meter = Meter(args.stations)
    span = args.past + args.ahead
    for step in range(args.steps):
        begins = torch.randint(len(series) - span, (args.batch,), generator=generator)
        window = series[begins[:, None] + torch.arange(span)]
        past, future = window[:, : args.past], window[:, args.past :]
        predicted = model(past, future, forcing=max(0.0, 1 - step / args.steps))
        loss = F.mse_loss(predicted, future)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % args.measure_every == 0:
            meter.update(predicted, future)
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}, sMAPE {meter.value():.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--stations", type=int, default=48)
    p.add_argument("--past", type=int, default=24)
    p.add_argument("--ahead", type=int, default=12)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=21)
    p.add_argument("--measure-every", type=int, default=1)
    p.add_argument("--fixed", action="store_true", help="measure every 50 steps")
    options = p.parse_args()
    if options.fixed:
        options.measure_every = 50
    main(options)
