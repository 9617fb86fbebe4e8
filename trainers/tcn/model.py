"""The network: dilated causal convolutions with residual connections."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from trainers.tuning.causal import causal_relu_conv
from trainers.tuning.causal_native import causal_stack

Kernels = Literal["library", "products", "native"]


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
    """(batch, time, inputs) → (batch, time, state).

    native: all layers in one call, see `trainers.tuning.causal_native`; again the same weights.
    """

    def __init__(
        self, inputs: int, states: int, channels: int, levels: int, kernels: Kernels = "library"
    ) -> None:
        super().__init__()
        self.native, products = kernels == "native", kernels == "products"
        self.turn = (2, 1, 0) if products else (0, 2, 1)
        self.lift = CausalConv(inputs, channels, 1, products)
        self.first = nn.ModuleList(CausalConv(channels, channels, 2**n, products) for n in range(levels))
        self.second = nn.ModuleList(CausalConv(channels, channels, 2**n, products) for n in range(levels))
        self.head = nn.Linear(channels, states)

    def forward(self, inputs: Tensor) -> Tensor:
        if self.native:
            return self._stacked(inputs)
        state: Tensor = self.head(self._by_layer(inputs))
        return state

    def _stacked(self, inputs: Tensor) -> Tensor:
        pairs = zip(self.first, self.second, strict=True)
        layers = [self.lift, *(layer for pair in pairs for layer in pair), self.head]
        return causal_stack(inputs, [part for layer in layers for part in layer.parameters()])

    def _by_layer(self, inputs: Tensor) -> Tensor:
        x: Tensor = self.lift(inputs.permute(self.turn).contiguous())
        for first, second in zip(self.first, self.second, strict=True):
            x = second(first(x), x)
        return x.permute(self.turn)
