"""One epoch, and a look at the pictures kept aside."""

import math

import torch

from ok_set_kit.misc import MetricLogger


def train_one_epoch(model, criterion, data_loader, optimizer, epoch, max_norm):
    model.train()
    metric_logger = MetricLogger()
    for samples, targets in metric_logger.log_every(data_loader, 20, f"Epoch: [{epoch}]"):
        losses = criterion(model(samples), targets)
        total = criterion.total(losses)
        loss_value = total.item()
        if not math.isfinite(loss_value):
            raise SystemExit(f"Loss is {loss_value}, stopping training")
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        metric_logger.update(
            loss=loss_value, loss_ce=losses["loss_ce"].detach(), giou=losses["loss_giou"].detach()
        )


@torch.no_grad()
def evaluate(model, criterion, data_loader):
    model.eval()
    metric_logger = MetricLogger()
    for samples, targets in data_loader:
        losses = criterion(model(samples), targets)
        metric_logger.update(loss=criterion.total(losses), giou=losses["loss_giou"])
    return metric_logger
