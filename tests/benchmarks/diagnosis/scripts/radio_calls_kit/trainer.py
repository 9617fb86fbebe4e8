"""Updates until there have been enough."""

import itertools

import torch

from radio_calls_kit.criterions import CRITERIONS
from radio_calls_kit.tasks import TASKS


class Meters:
    def __init__(self):
        self.reset()

    def reset(self):
        self.values = {}

    def log(self, output):
        for name, value in output.items():
            self.values.setdefault(name, []).append(float(value))

    def __str__(self):
        return " | ".join(f"{name} {sum(some) / len(some):.3f}" for name, some in self.values.items())


class Trainer:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(args.seed)
        self.task = TASKS[args.task](args)
        self.model = self.task.build_model()
        self.criterion = CRITERIONS[args.criterion](self.task, args)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=args.lr, betas=(0.9, 0.98), eps=1e-8, fused=True
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._inverse_square_root)
        self.meters = Meters()
        self.num_updates = 0

    def _inverse_square_root(self, update):
        warm = self.args.warmup_updates
        return min((update + 1) / warm, (warm / (update + 1)) ** 0.5)

    def train_step(self, sample):
        self.model.train()
        reported = not self.args.fixed or (self.num_updates + 1) % self.args.log_interval == 0
        loss, output = self.criterion(self.model, sample, report_errors=reported)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip_norm)
        self.optimizer.step()
        self.scheduler.step()
        self.num_updates += 1
        self.meters.log(output)

    def train(self):
        for epoch in itertools.count(1):
            for sample in self.task.epoch():
                self.train_step(sample)
                if self.num_updates % self.args.log_interval == 0:
                    print(f"epoch {epoch:03d} | update {self.num_updates} | {self.meters}")
                    self.meters.reset()
                if self.num_updates >= self.args.max_update:
                    return
