"""A transformer encoder layer in one call, window by window: see trainers/native/encoder.c."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trainers import native


class Encoder(torch.autograd.Function):
    """x is (batch, nodes, width); weights: of the four products, each with its bias, then of both norms."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: int, *weights: Tensor) -> Tensor:
        x, (batch, nodes, width) = x.contiguous(), x.shape
        sizes = nodes, width, heads, len(weights[5])
        threads = native.thread_count(batch)
        turned = [part.T.contiguous() if part.dim() == 2 else part for part in weights]
        kept = x.new_empty(batch, native.number("encoder_kept", *sizes))
        scratch, y = x.new_empty(threads, native.number("encoder_scratch", *sizes)), torch.empty_like(x)

        def some(thread: int, first: int, last: int) -> None:
            native.call("encoder_forth", x, turned, kept, y, scratch[thread], first, last, *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(x, kept, *weights)
        ctx.sizes = sizes
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, kept, *weights = ctx.saved_tensors
        gradient, batch, sizes = gradient.contiguous(), len(x), ctx.sizes
        threads, to_x = native.thread_count(batch), torch.empty_like(x)
        scratch = x.new_empty(threads, native.number("encoder_scratch", *sizes))
        cuts = [part.numel() for part in weights]
        sums = x.new_zeros(threads, sum(cuts))

        def some(thread: int, first: int, last: int) -> None:
            given = x, weights[:8:2], weights[8:], kept, gradient
            mine = to_x, sums[thread].split(cuts), scratch[thread]
            native.call("encoder_back", *given, *mine, first, last, *sizes)

        native.shared_out(batch, some)
        found = zip(torch.split(native.total(sums), cuts), weights, strict=True)
        return to_x, None, *(part.view_as(weight) for part, weight in found)


class NativeEncoderLayer(nn.TransformerEncoderLayer):
    """The library's layer with its own parameters."""

    def forward(self, src: Tensor, *_: Any, **__: Any) -> Tensor:
        attention = self.self_attn
        layers = attention.out_proj, self.linear1, self.linear2, self.norm1, self.norm2
        weights: list[Tensor] = [attention.in_proj_weight, attention.in_proj_bias]
        weights += [part for layer in layers for part in (layer.weight, layer.bias)]
        out: Tensor = Encoder.apply(src, attention.num_heads, *weights)  # type: ignore[no-untyped-call]
        return out


def fits(width: int, heads: int, inner: int) -> bool:
    return all(native.fits(size) for size in (width, width // heads, inner))
