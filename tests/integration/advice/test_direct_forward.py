"""A layer that calls its own `forward`: no hook of torch's sees it, and it is the model all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.advice.changes import report

SCRIPT = """
import torch
from torch import nn

class Layer(nn.Linear):
    def forward(self, x):
        x = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return torch.relu(torch.mm(x, self.weight.T) + self.bias)

    def fit(self, good, bad, rounds):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.03, fused=True)
        for _ in range(rounds):
            high = self.forward(good).pow(2).mean(1)
            low = self.forward(bad).pow(2).mean(1)
            loss = torch.log1p(torch.exp(torch.cat([2 - high, low - 2]))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

torch.manual_seed(0)
torch.set_num_threads(1)
print(Layer(256, 256).fit(torch.randn(1500, 256), torch.randn(1500, 256), 150))
"""


@pytest.mark.slow
def test_it_is_not_called_own_code(tmp_path: Path) -> None:
    script = tmp_path / "layers.py"
    script.write_text(SCRIPT)
    found = report(script, tmp_path)["findings"]
    assert "compute.user_code" not in [one["id"] for one in found]
