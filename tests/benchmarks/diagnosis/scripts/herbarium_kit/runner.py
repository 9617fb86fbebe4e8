import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from .registry import DATASETS, HOOKS, MODELS


class Hook:
    def after_iter(self, runner): ...

    def after_epoch(self, runner): ...


@HOOKS.register
class TextLogger(Hook):
    def __init__(self, interval):
        self.interval = interval

    def after_iter(self, runner):
        if runner.iter % self.interval == 0:
            print(f"[{runner.epoch}] {runner.iter}: {runner.outputs['loss'].item():.4f}")


@HOOKS.register
class LrDecay(Hook):
    def __init__(self, gamma):
        self.gamma = gamma

    def after_epoch(self, runner):
        for group in runner.optimizer.param_groups:
            group["lr"] *= self.gamma


class EpochRunner:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg["seed"])
        loader = dict(cfg["dataloader"])
        self.loader = DataLoader(DATASETS.build(cfg["dataset"]), shuffle=True, drop_last=True, **loader)
        self.model = MODELS.build(cfg["model"])
        self.optimizer = torch.optim.SGD(self.model.parameters(), foreach=True, **cfg["optimizer"])
        self.hooks = [HOOKS.build(one) for one in cfg["hooks"]]
        self.epoch = self.iter = 0

    def call_hook(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def run_iter(self, images, labels):
        loss = F.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.outputs = {"loss": loss.detach()}

    def run(self):
        self.model.train()
        for self.epoch in range(self.cfg["epochs"]):
            for images, labels in self.loader:
                self.run_iter(images, labels)
                self.iter += 1
                self.call_hook("after_iter")
            self.call_hook("after_epoch")
