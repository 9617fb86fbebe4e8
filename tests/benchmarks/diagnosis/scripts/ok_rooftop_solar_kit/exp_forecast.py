"""The experiment."""

import time

import torch
from torch import nn

from ok_rooftop_solar_kit.data_provider import data_provider, make_table
from ok_rooftop_solar_kit.model import Forecaster
from ok_rooftop_solar_kit.tools import EarlyStopping, adjust_learning_rate


class Exp_Basic:
    def __init__(self, args):
        self.args = args
        table, marks = make_table(args)
        self.loaders = {flag: data_provider(table, marks, args, flag) for flag in ("train", "val", "test")}
        self.model = self._build_model()

    def _build_model(self):
        raise NotImplementedError


class Exp_Forecast(Exp_Basic):
    def _build_model(self):
        return Forecaster(self.args)

    def _process_one_batch(self, x, y, x_marks, y_marks):
        """The decoder begins with what is known and zeros for what is not."""
        truth = y[:, -self.args.pred_len :]
        start = torch.cat([y[:, : self.args.label_len], torch.zeros_like(truth)], 1)
        return self.model(x, x_marks, start, y_marks), truth

    @torch.no_grad()
    def _score(self, flag):
        self.model.eval()
        squares = absolutes = count = 0
        for batch in self.loaders[flag]:
            guess, truth = self._process_one_batch(*batch)
            squares += (guess - truth).square().sum()
            absolutes += (guess - truth).abs().sum()
            count += truth.numel()
        return (squares / count).item(), (absolutes / count).item()

    def train(self):
        criterion = nn.MSELoss()
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.args.learning_rate, fused=True)
        stopping, loader = EarlyStopping(self.args.patience), self.loaders["train"]
        for epoch in range(1, self.args.train_epochs + 1):
            self.model.train()
            total, since = torch.zeros(()), time.time()
            for i, batch in enumerate(loader, 1):
                optimizer.zero_grad()
                loss = criterion(*self._process_one_batch(*batch))
                loss.backward()
                optimizer.step()
                total += loss.detach()
                if i % 25 == 0:
                    print(f"\titers: {i}, epoch: {epoch} | loss: {total.item() / i:.5f}")
            val, _ = self._score("val")
            print(f"epoch {epoch}: {time.time() - since:.1f} s, train {total.item() / i:.4f}, val {val:.4f}")
            if stopping(val, self.model):
                break
            adjust_learning_rate(optimizer, epoch + 1, self.args)
        self.model.load_state_dict(stopping.weights)

    def test(self):
        return self._score("test")
