"""The network: dilated causal convolutions with residual connections."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from trainers.tuning.causal import causal_relu_conv


class CausalConv(nn.Conv1d):
    """relu(causal dilated convolution [+ residual]).

    plain: (batch, channels, time), the library's convolution. products: (channels, time, batch), see
    `trainers.tuning.causal`. The weights are the same, and so is the result up to rounding.
    """

    def __init__(self, inputs: int, outputs: int, dilation: int, products: bool) -> None:
        super().__init__(inputs, outputs, 3, dilation=dilation)
        self.products = products

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        if self.products:
            return causal_relu_conv(x, self.weight, self.bias, residual, self.dilation[0])
        out = super().forward(F.pad(x, (2 * self.dilation[0], 0)))
        return F.relu(out if residual is None else residual + out)


class ImplicitStateTcn(nn.Module):
    """(batch, time, inputs) → (batch, time, state)."""

    def __init__(self, inputs: int, states: int, channels: int, levels: int, products: bool = False) -> None:
        super().__init__()
        self.turn = (2, 1, 0) if products else (0, 2, 1)
        self.lift = CausalConv(inputs, channels, 1, products)
        self.first = nn.ModuleList(CausalConv(channels, channels, 2**n, products) for n in range(levels))
        self.second = nn.ModuleList(CausalConv(channels, channels, 2**n, products) for n in range(levels))
        self.head = nn.Linear(channels, states)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.lift(inputs.permute(self.turn).contiguous())
        for first, second in zip(self.first, self.second, strict=True):
            x = second(first(x), x)
        state: Tensor = self.head(x.permute(self.turn))
        return state
