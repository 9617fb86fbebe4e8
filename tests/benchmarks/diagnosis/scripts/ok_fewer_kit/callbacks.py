"""What happens around a step."""

import copy
import csv

import torch


class Callback:
    def before_step(self, trainer):
        """The batch is there."""

    def after_step(self, trainer):
        """The weights are new."""


class Average(Callback):
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay
        self.pairs = list(self.model.parameters()), [p.detach() for p in model.parameters()]

    def after_step(self, trainer):
        torch._foreach_lerp_(*self.pairs, 1 - self.decay)
        if trainer.step == trainer.steps:
            for mine, other in zip(self.model.buffers(), trainer.task.model.buffers()):
                mine.copy_(other)


class Warmup(Callback):
    def __init__(self, steps):
        self.steps, self.peak = steps, None

    def before_step(self, trainer):
        for group in trainer.task.optimizer.param_groups:
            self.peak = self.peak or group["lr"]
            group["lr"] = self.peak * min(1.0, (trainer.step + 1) / self.steps)


class Journal(Callback):
    def __init__(self, path, every):
        self.path, self.every, self.kept = path, every, []

    def after_step(self, trainer):
        self.kept.append(trainer.outcome)
        if trainer.step % self.every == 0:
            row = torch.stack(self.kept).mean(0).tolist()
            self.kept.clear()
            with open(self.path, "a", newline="") as out:
                csv.writer(out).writerow([trainer.step, *row])
            print(trainer.step, *(f"{value:.3f}" for value in row))
