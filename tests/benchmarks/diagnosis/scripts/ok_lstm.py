"""Next-value prediction with an LSTM, gradient clipping and rare logging."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LOG_EVERY = 50


class Forecaster(nn.Module):
    def __init__(self, features=8, hidden=96):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, features)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def main():
    series = torch.randn(2000, 40, 8).cumsum(1) / 10
    loader = DataLoader(
        TensorDataset(series[:, :-1], series[:, -1]), batch_size=64, shuffle=True, drop_last=True
    )
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6 * len(loader))
    step = 0
    for epoch in range(6):
        for window, target in loader:
            loss = nn.functional.smooth_l1_loss(model(window), target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            if step % LOG_EVERY == 0:
                print(f"{step:5d} {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
