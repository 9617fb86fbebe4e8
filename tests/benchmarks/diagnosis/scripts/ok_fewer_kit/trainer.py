"""The task, and the loop around it."""

import torch
import torch.nn.functional as F


class FixMatch:
    """Labels where there are some; elsewhere what the network is sure of when the picture is hardly changed."""

    def __init__(self, model, sure=0.9, weight=1.0):
        self.model, self.sure, self.weight = model, sure, weight
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True, fused=True)

    def loss(self, labelled, unlabelled):
        (pictures, kinds), (soft, hard) = labelled, unlabelled
        scores = self.model(torch.cat([pictures, soft, hard])).split([len(pictures), len(soft), len(hard)])
        supervised = F.cross_entropy(scores[0], kinds)
        chance, guess = scores[1].detach().softmax(1).max(1)
        mask = (chance >= self.sure).float()
        consistency = (F.cross_entropy(scores[2], guess, reduction="none") * mask).mean()
        return supervised + self.weight * consistency, torch.stack(
            [supervised, consistency, mask.mean()]
        ).detach()

    @torch.no_grad()
    def accuracy(self, model, pictures, kinds):
        return (model(pictures).argmax(1) == kinds).float().mean().item()


class Trainer:
    def __init__(self, task, callbacks):
        self.task, self.callbacks, self.step = task, callbacks, 0

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, labelled, unlabelled, steps):
        self.steps = steps
        self.task.model.train()
        for batches in zip(labelled, unlabelled):
            self.call("before_step")
            loss, self.outcome = self.task.loss(*batches)
            self.task.optimizer.zero_grad()
            loss.backward()
            self.task.optimizer.step()
            self.step += 1
            self.call("after_step")
            if self.step == steps:
                return
