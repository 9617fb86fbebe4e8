"""A vision transformer of timm that recomputes its activations."""

import sys

from tests.frameworks.torchvision_operators import declare

declare()

import timm
import torch
from timm.optim import create_optimizer_v2
from torch.utils.data import DataLoader, TensorDataset

model = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=10)
model.set_grad_checkpointing("--fixed" not in sys.argv)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3)
images = TensorDataset(torch.randn(640, 3, 64, 64), torch.randint(0, 10, (640,)))
model.train()
for images, labels in DataLoader(images, batch_size=8, shuffle=True):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
