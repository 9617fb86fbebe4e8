"""Accelerate: a loop of one's own, two micro-batches a step."""

from __future__ import annotations

from tests.frameworks.programs import BATCH, STEPS, data, model
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import torch
    from accelerate import Accelerator
    from torch.nn import functional
    from torch.utils.data import DataLoader

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    network = model()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    loader = DataLoader(data(2 * STEPS), batch_size=BATCH)
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    reference.during(torch.optim.AdamW, "step", "optimizer", then=REST)
    for x, y in reference.batches(loader):
        with accelerator.accumulate(network):
            reference.mark("forward")
            loss = functional.cross_entropy(network(x), y)
            reference.mark("backward")
            accelerator.backward(loss)
            reference.mark(REST)
            optimizer.step()
            optimizer.zero_grad()
