"""Windowed kNN graphs: graph encoder, transformer, graph decoder; forecasts the next step (S3, "V11").

    python -m trainers.graph --data_dir series.csv --config config.yaml
    python -m trainers.graph --synthetic --tier auto --use_memory_optimizer
    python -m trainers.graph_benchmark            # writes graph_benchmark.png

Data: CSV or NPZ tables, every column a channel. A sample is a window of `window_size` steps with a
graph over them: each step's `time_k` nearest in feature space. Channels the model serves badly get
more weight through a "need" vector, which is updated from the training split only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset

from trainers import cli, rungs
from trainers.config import TrainConfig
from trainers.data import knn, tables, windows
from trainers.data.cache import clear
from trainers.data.plan import Plan, SequentialPlan, ShuffledPlan
from trainers.data.scaler import StandardScaler
from trainers.data.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.engine.recipe import Data, Recipe
from trainers.errors import TrainerError
from trainers.metrics import Means
from trainers.tuning.memory import device_memory_bytes, pick_tier


@dataclass(kw_only=True)
class GraphConfig(TrainConfig):
    """Options of the graph trainer."""

    batch_size: int = 16
    """Windows in a batch."""
    window_size: int = 96
    """Steps of a window: the nodes of its graph."""
    time_k: int = 8
    """Neighbours of a node."""
    hidden_channels: int = 64
    """Width of the model."""
    encoder_layers: int = 2
    """Graph layers before the transformer."""
    decoder_layers: int = 2
    """Graph layers after it."""
    transformer_layers: int = 1
    """Transformer layers."""
    attention_heads: int = 2
    """Heads of each transformer layer."""
    use_optimized_model: bool = True
    """The light variant: narrow transformer feed-forward, shared decoder weights."""
    use_gradient_checkpoint: bool = False
    """Recompute activations in backward: less memory, more time."""
    tier: Literal["none", "auto", "low", "medium", "high"] = "none"
    """Sizes by memory: < 8 GB low, 8–16 GB medium, > 16 GB high; options given explicitly win."""
    cache_dir: str = "graph_cache"
    """Folder of the graph cache."""
    clear_cache: bool = False
    """Remove the graph cache first."""
    naive_graph: Literal["numpy", "python"] = "numpy"
    """How the naive rung builds each graph."""
    columns: str | None = None
    """Columns to use. Unset: all of the first file."""
    need_rate: float = 0.5
    """How fast the need vector follows the training error; 0 switches it off."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time_k >= self.window_size:
            raise TrainerError(
                f"--time_k {self.time_k} must be smaller than --window_size {self.window_size}"
            )
        if self.hidden_channels % self.attention_heads:
            raise TrainerError("--hidden_channels must be a multiple of --attention_heads")


def apply_tier(config: GraphConfig, device: torch.device) -> GraphConfig:
    """Fill what is still at its default from the tier that fits the memory."""
    if config.tier == "none":
        return config
    tier = pick_tier(config.tier, device_memory_bytes(device))
    defaults = {field.name: field.default for field in fields(config)}
    names = [field.name for field in fields(tier) if field.name != "name"]
    changes = {name: getattr(tier, name) for name in names if getattr(config, name) == defaults[name]}
    return config.replace(**changes)  # type: ignore[return-value]


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def synthetic_series(rows: int, channels: int, seed: int) -> np.ndarray:
    """Seasonal channels that follow each other with delay, plus noise."""
    generator = np.random.default_rng(seed)
    steps = np.arange(rows)[:, None]
    periods, phases = generator.uniform(12, 96, channels), generator.uniform(0, 6, channels)
    waves = np.sin(2 * np.pi * steps / periods + phases) + 0.3 * np.sin(2 * np.pi * steps / 24)
    return waves + 0.2 * np.cumsum(generator.normal(0, 0.05, (rows, channels)), axis=0)


class GraphWindows(Dataset[Batch]):
    """A window, its graph as an edge list, and the next step.

    Without `cached` neighbours the graph is built for every sample, every time.
    """

    def __init__(
        self, rows: np.ndarray, starts: np.ndarray, config: GraphConfig, cached: np.ndarray | None
    ) -> None:
        self.rows, self.starts, self.config, self.cached = rows, starts, config, cached

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> Batch:
        at, size = self.starts[index], self.config.window_size
        window = self.rows[at : at + size]
        return {
            "x": torch.tensor(window, dtype=torch.float32),
            "edges": torch.from_numpy(knn.edges_of(self._neighbours(index, window))),
            "y": torch.tensor(self.rows[at + size], dtype=torch.float32),
        }

    def _neighbours(self, index: int, window: np.ndarray) -> np.ndarray:
        if self.cached is not None:
            return self.cached[index].astype(np.int64)
        build = knn.neighbours_python if self.config.naive_graph == "python" else knn.neighbours_numpy
        return build(window, self.config.time_k)

    def collate(self, samples: list[Batch]) -> Batch:
        """One large graph: node numbers shifted by the windows before."""
        size = self.config.window_size
        edges = [sample["edges"] + number * size for number, sample in enumerate(samples)]
        return {
            "x": torch.stack([sample["x"] for sample in samples]),
            "edges": torch.cat(edges, dim=1),
            "y": torch.stack([sample["y"] for sample in samples]),
        }


# ── model ────────────────────────────────────────────────────────────────────────────────────────


class GraphLayer(nn.Module):
    """h + relu(own(h) + mean of neighbours through near(h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, h: Tensor, graph: Tensor, k: int) -> Tensor:
        if graph.is_floating_point():
            mean = torch.bmm(graph, h)
        else:
            flat = h.reshape(-1, h.shape[-1])
            mean = torch.zeros_like(flat).index_add_(0, graph[1], flat[graph[0]]).view_as(h) / k
        return h + F.relu(self.own(h) + self.near(mean))


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
        return self.norm2(h + self.linear2(F.relu(self.linear1(h))))


class GraphForecaster(nn.Module):
    """Encoder – transformer – decoder over the steps of a window; forecasts the next step."""

    def __init__(self, channels: int, config: GraphConfig, lean: bool = False) -> None:
        super().__init__()
        width, light = config.hidden_channels, config.use_optimized_model
        self.k, self.checkpointing = config.time_k, config.use_gradient_checkpoint
        self.lift = nn.Linear(channels, width)
        self.encoder = nn.ModuleList(GraphLayer(width) for _ in range(config.encoder_layers))
        self.transformer = nn.ModuleList(
            (LeanEncoderLayer if lean else nn.TransformerEncoderLayer)(
                width,
                config.attention_heads,
                width // 2 if light else 4 * width,
                dropout=0.0,
                batch_first=True,
            )
            for _ in range(config.transformer_layers)
        )
        distinct = 1 if light else config.decoder_layers
        self.decoder = nn.ModuleList(GraphLayer(width) for _ in range(distinct))
        self.decoder_layers = config.decoder_layers
        self.head = nn.Linear(2 * width, channels)

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        h = self.lift(x)
        for layer in self.encoder:
            h = self._run(layer, h, graph, self.k)
        for layer in self.transformer:
            h = self._run(layer, h)
        for number in range(self.decoder_layers):
            h = self._run(self.decoder[number % len(self.decoder)], h, graph, self.k)
        return x[:, -1] + self.head(torch.cat([h.mean(dim=1), h[:, -1]], dim=-1))

    def _run(self, layer: nn.Module, *inputs: Any) -> Tensor:
        if self.checkpointing and self.training:
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)


# ── recipe ───────────────────────────────────────────────────────────────────────────────────────


class GraphRecipe(Recipe[GraphConfig]):
    name = "graph"
    config_class = GraphConfig
    metric = ("rmse", "min")
    workers = 2
    optimizations = (
        rungs.Optimization(
            name="graph_cache", seed="S3.1", rung="document", text="graphs precomputed, kept on disk"
        ),
        *rungs.COMMON,
        rungs.Optimization(
            name="resident", seed="beyond", rung="best", text="batched kNN, graphs and windows resident"
        ),
        rungs.Optimization(
            name="dense", seed="beyond", rung="best", text="dense batched products instead of edge lists"
        ),
        rungs.Optimization(
            name="lean_attention",
            seed="beyond",
            rung="best",
            text="attention cut without zero-filled gradients",
        ),
    )

    def __init__(self, config: GraphConfig, device: torch.device) -> None:
        super().__init__(apply_tier(config, device), device)

    def build_data(self) -> Data:
        config, size = self.config, self.config.window_size
        if config.clear_cache:
            self.say(f"graph cache cleared: {clear(Path(config.cache_dir))} files")
        series = self._read()
        lengths = [len(part) for part in series]
        rows = np.concatenate(series)
        seen = windows.train_rows(lengths, size + 1, config.validation_fraction)
        starts = windows.split_starts(lengths, size + 1, config.validation_fraction)
        if not len(starts[1]):
            raise TrainerError("no validation window fits", hint="longer series or a smaller --window_size")
        rows = StandardScaler().fit(rows[seen]).transform(rows)
        self.channels = rows.shape[1]
        self.need = torch.ones(self.channels, device=self.device)
        plans = (
            ShuffledPlan(len(starts[0]), config.batch_size, seed=config.seed),
            SequentialPlan(len(starts[1]), 4 * config.batch_size),
        )
        make = self._resident if self.on("resident") else self._loader
        train, held_out = (make(rows, begin, plan) for begin, plan in zip(starts, plans, strict=True))
        self.train = train
        return Data(train=train, validation=held_out)

    def _read(self) -> list[np.ndarray]:
        config = self.config
        if config.synthetic:
            rows = max(6 * config.window_size, int(4000 * config.synthetic_size))
            return [synthetic_series(rows, 16, config.seed)]
        files = tables.find_files(config.data_dir or "")
        columns = (config.columns or ",".join(tables.column_names(files[0]))).split(",")
        return tables.read_tables(files, columns, 3 * config.window_size, self.skip)

    def _loader(self, rows: np.ndarray, starts: np.ndarray, plan: Plan) -> BatchSource:
        config, cached = self.config, None
        if self.on("graph_cache"):
            cache = knn.GraphCache(
                Path(config.cache_dir), rows, starts, time_k=config.time_k, window_size=config.window_size
            )
            cached = cache.open()
            if cache.built:
                self.say(f"graph cache built: {len(starts)} graphs in {cache.seconds:.1f} s")
        dataset = GraphWindows(rows, starts, config, cached)
        return LoaderSource(dataset, plan, self.loader_settings(), collate=dataset.collate)

    def _resident(self, rows: np.ndarray, starts: np.ndarray, plan: Plan) -> BatchSource:
        size, device = self.config.window_size, self.device
        begin = torch.from_numpy(starts).to(device)
        graphs = knn.neighbours_batched(torch.from_numpy(rows).to(device), begin, size, self.config.time_k)
        store = windows.WindowStore(rows, size, device)

        def gather(items: Tensor) -> Batch:
            at, near = begin.index_select(0, items), graphs.index_select(0, items)
            batch = {"x": store.gather(at), "y": store.rows.index_select(0, at + size)}
            batch.update({"graph": knn.adjacency_of(near)} if self.on("dense") else {"edges": _edges(near)})
            return batch

        return ResidentSource(gather, plan, device)

    def build_model(self) -> nn.Module:
        return GraphForecaster(self.channels, self.config, lean=self.on("lean_attention"))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        error = model(batch["x"], _graph(batch)).float() - batch["y"]
        return (error.square() * self.need).mean()

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        means = Means(self.device)
        for batch in source.epoch(0):
            predicted = model(batch["x"].to(self.device), _graph(batch).to(self.device)).float()
            error = predicted - batch["y"].to(self.device)
            means.add("square", error.square())
            means.add("absolute", error.abs())
        values = means.read()
        return {"rmse": values["square"] ** 0.5, "mae": values["absolute"]}

    @torch.no_grad()
    def on_epoch_end(self, model: nn.Module, epoch: int, batches: int = 8) -> None:
        """Move the need vector towards the channels with the largest error, in training data only."""
        if not self.config.need_rate:
            return
        total = torch.zeros_like(self.need)
        for number, batch in enumerate(self.train.epoch(epoch)):
            if number == batches:
                break
            predicted = model(batch["x"].to(self.device), _graph(batch).to(self.device)).float()
            total += (predicted - batch["y"].to(self.device)).abs().mean(dim=0)
        total = self.world.mean(total)
        target = total / total.mean().clamp(min=1e-12)
        self.need.lerp_(target, self.config.need_rate)

    def state(self) -> Mapping[str, Any]:
        return {"need": self.need}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.need.copy_(state["need"])


def _graph(batch: Batch) -> Tensor:
    return batch["graph"] if "graph" in batch else batch["edges"]


def _edges(neighbours: Tensor) -> Tensor:
    batch, window, k = neighbours.shape
    node = torch.arange(batch * window, device=neighbours.device)
    source = neighbours.long() + (node // window * window).view(batch, window, 1)
    return torch.stack([source.reshape(-1), node.repeat_interleave(k)])


def main(arguments: list[str] | None = None) -> int:
    return cli.main(GraphRecipe, __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
