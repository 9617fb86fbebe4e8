"""An LSTM with clipping, a schedule, and a moving average of its weights now and then."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(2000, 64)
        self.reader = nn.LSTM(64, 128, batch_first=True)
        self.tags = nn.Linear(128, 12)

    def forward(self, ids):
        return self.tags(self.reader(self.words(ids))[0])


def main():
    model = Tagger()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=160)
    for step in range(160):
        ids, tags = torch.randint(0, 2000, (32, 24)), torch.randint(0, 12, (32, 24))
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            average.update_parameters(model)
    print(loss.item())


if __name__ == "__main__":
    main()
