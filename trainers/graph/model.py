"""Graph encoder, transformer, graph decoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from trainers.graph import native_encoder
from trainers.graph.layer import Neighbours, first_graph_layer, listed_graph_layer
from trainers.graph.native_layer import Near, native_graph_layer
from trainers.graph.options import GraphConfig

Graph = Tensor | Neighbours | Near
"""Edges, a dense table, or lists of neighbours."""


class GraphLayer(nn.Module):
    """h + relu(own(h) + mean of neighbours through near(h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, h: Tensor, graph: Graph, k: int, lift: nn.Linear | None = None) -> Tensor:
        """With `lift`, h is the raw columns it is still to be applied to."""
        if isinstance(graph, (Neighbours, Near)):
            weights = self.own.weight, self.own.bias, self.near.weight
            if lift is not None:
                return first_graph_layer(h, lift, *weights, graph)
            if isinstance(graph, Near):
                return native_graph_layer(h, *weights, graph)
            return listed_graph_layer(h, *weights, graph)
        if graph.is_floating_point():
            mean = torch.bmm(graph, h)
        else:
            flat = h.reshape(-1, h.shape[-1])
            mean = torch.zeros_like(flat).index_add_(0, graph[1], flat[graph[0]]).view_as(h) / k
        return F.relu(self.own(h) + self.near(mean)) + h


class LeanEncoderLayer(nn.TransformerEncoderLayer):
    """The library's layer with its own parameters, but queries, keys and values cut in one piece: the
    library selects them one by one, and each selection fills a whole gradient with zeros."""

    def forward(self, src: Tensor, *_: Any, **__: Any) -> Tensor:
        batch, steps, width = src.shape
        attention = self.self_attn
        parts = F.linear(src, attention.in_proj_weight, attention.in_proj_bias).chunk(3, dim=-1)
        query, key, value = (p.view(batch, steps, attention.num_heads, -1).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, steps, width)
        h = self.norm1(src + attention.out_proj(mixed))
        out: Tensor = self.norm2(h + self.linear2(F.relu(self.linear1(h))))
        return out


class GraphForecaster(nn.Module):
    """Encoder – transformer – decoder over the steps of a window; forecasts the next step."""

    def __init__(self, channels: int, config: GraphConfig, lean: bool = False, kernels: bool = False) -> None:
        super().__init__()
        width, light = config.hidden_channels, config.use_optimized_model
        inner = width // 2 if light else 4 * width
        encoder = LeanEncoderLayer if lean else nn.TransformerEncoderLayer
        if kernels and native_encoder.fits(width, config.attention_heads, inner):
            encoder = native_encoder.NativeEncoderLayer
        self.k, self.checkpointing = config.time_k, config.use_gradient_checkpoint
        self.lift = nn.Linear(channels, width)
        self.encoder = nn.ModuleList(GraphLayer(width) for _ in range(config.encoder_layers))
        self.transformer = nn.ModuleList(
            encoder(width, config.attention_heads, inner, dropout=0.0, batch_first=True)
            for _ in range(config.transformer_layers)
        )
        distinct = 1 if light else config.decoder_layers
        self.decoder = nn.ModuleList(GraphLayer(width) for _ in range(distinct))
        self.decoder_layers = config.decoder_layers
        self.head = nn.Linear(2 * width, channels)
        nn.init.zeros_(self.head.weight)  # an untrained model repeats the last value: better only counts
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        narrow = isinstance(graph, (Neighbours, Near)) and 2 * self.lift.in_features <= self.lift.out_features
        h, lifts = (x, [self.lift]) if narrow else (self.lift(x), [])
        for number, layer in enumerate(self.encoder):
            h = self._run(layer, h, graph, self.k, *lifts[number:])
        for layer in self.transformer:
            h = self._run(layer, h)
        for number in range(self.decoder_layers):
            h = self._run(self.decoder[number % len(self.decoder)], h, graph, self.k)
        change: Tensor = self.head(torch.cat([h.mean(dim=1), h[:, -1]], dim=-1))
        return x[:, -1] + change

    def _run(self, layer: nn.Module, *inputs: Any) -> Tensor:
        again = self.checkpointing and self.training
        out: Tensor = checkpoint(layer, *inputs, use_reentrant=False) if again else layer(*inputs)
        return out
