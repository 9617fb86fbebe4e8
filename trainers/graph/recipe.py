"""The graph recipe: which data, which model, which loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sdk import units
from trainers import native, rungs
from trainers.datasets import knn, tables, windows
from trainers.datasets.cache import clear
from trainers.datasets.plan import Plan, SequentialPlan, ShuffledPlan
from trainers.datasets.scaler import StandardScaler
from trainers.datasets.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.errors import TrainerError
from trainers.graph.data import GraphWindows, synthetic_series
from trainers.graph.layer import numbered
from trainers.graph.model import Graph, GraphForecaster
from trainers.graph.native_layer import Near
from trainers.graph.options import GraphConfig, apply_tier
from trainers.metrics import Means, mean_of
from trainers.options import listed
from trainers.recipe import Data, Recipe


class GraphRecipe(Recipe[GraphConfig]):
    name = "graph"
    shape_options = ("window_size", "time_k", "hidden_channels", "transformer_layers", "use_optimized_model")
    file_options = ("fill", "dates", "columns")
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
            name="native",
            seed="beyond",
            rung="best",
            text="graph and transformer layers in C (on a CPU)",
            measured=True,
        ),
        rungs.Optimization(
            name="neighbour_sums",
            seed="beyond",
            rung="best",
            text="sums over neighbour lists, forth and back (on a CPU)",
            measured=True,
        ),
        rungs.Optimization(
            name="dense",
            seed="beyond",
            rung="best",
            text="dense batched products instead of edge lists",
            measured=True,
        ),
        rungs.Optimization(
            name="lean_attention",
            seed="beyond",
            rung="best",
            text="attention cut without zero-filled gradients",
            measured=True,
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
        names = listed("columns", config.columns) if config.columns else None
        settings = config.table_settings(3 * config.window_size)
        return tables.read_tables(files, names, settings, self.skip, self.say)[0]

    def _loader(self, rows: np.ndarray, starts: np.ndarray, plan: Plan) -> BatchSource:
        config, cached = self.config, None
        if self.on("graph_cache"):
            cache = knn.GraphCache(
                Path(config.cache_dir), rows, starts, time_k=config.time_k, window_size=config.window_size
            )
            cached = cache.open()
            if cache.built:
                self.say(f"graph cache built: {len(starts)} graphs in {units.seconds(cache.seconds)}")
        dataset = GraphWindows(rows, starts, config, cached)
        return LoaderSource(dataset, plan, self.loader_settings(), collate=dataset.collate)

    def _resident(self, rows: np.ndarray, starts: np.ndarray, plan: Plan) -> BatchSource:
        size, device = self.config.window_size, self.device
        begin = torch.from_numpy(starts).to(device)
        graphs = knn.neighbours_batched(torch.from_numpy(rows).to(device), begin, size, self.config.time_k)
        store = windows.WindowStore(rows, size, device)
        back = knn.reversed_lists(graphs) if self._listed else None

        def gather(items: Tensor) -> Batch:
            at, near = begin.index_select(0, items), graphs.index_select(0, items)
            batch = {"x": store.gather(at), "y": store.rows.index_select(0, at + size)}
            if self._native:
                return batch | {"near": near}
            if back is not None and self._listed:
                far, counts = (part.index_select(0, items) for part in back)
                return batch | {"near": near, "far": far, "far_counts": counts}
            return batch | (
                {"graph": knn.adjacency_of(near)} if self.on("dense") else {"edges": _edges(near)}
            )

        return ResidentSource(gather, plan, device)

    @property
    def _listed(self) -> bool:
        return self.on("neighbour_sums") and self.device.type == "cpu" and not self.on("amp")

    @property
    def _native(self) -> bool:
        return self.on("native") and self.plain and native.fits(self.config.hidden_channels)

    def build_model(self) -> nn.Module:
        return GraphForecaster(
            self.channels, self.config, lean=self.on("lean_attention"), kernels=self._native
        )

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        error: Tensor = model(batch["x"], graph_of(batch, self.device)).float() - batch["y"]
        return (error.square() * self.need).mean()

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        means = Means(self.device)
        for batch in source.epoch(0):
            predicted = model(batch["x"].to(self.device), graph_of(batch, self.device)).float()
            error = predicted - batch["y"].to(self.device)
            means.add("square", error.square())
            means.add("absolute", error.abs())
        values = mean_of(self.gather(means.totals()))
        return {"rmse": values["square"] ** 0.5, "mae": values["absolute"]}

    def baseline(self, data: Data) -> dict[str, float]:
        means = Means(self.device)
        for batch in data.validation.epoch(0):
            means.add("square", (batch["x"][:, -1] - batch["y"]).square())
        return {"rmse_last_value": mean_of(self.gather(means.totals()))["square"] ** 0.5}

    @torch.no_grad()
    def on_epoch_end(self, model: nn.Module, epoch: int, batches: int = 8) -> None:
        """Move the need vector towards the channels with the largest error, in training data only."""
        if not self.config.need_rate:
            return
        total = torch.zeros_like(self.need)
        for number, batch in enumerate(self.train.epoch(epoch)):
            if number == batches:
                break
            predicted = model(batch["x"].to(self.device), graph_of(batch, self.device)).float()
            total += (predicted - batch["y"].to(self.device)).abs().mean(dim=0)
        total = self.world.mean(total)
        target = total / total.mean().clamp(min=1e-12)
        self.need.lerp_(target, self.config.need_rate)

    def without_effect(self) -> Iterator[tuple[str, str]]:
        yield from super().without_effect()
        if self.on("graph_cache") or self.on("resident"):
            yield "naive_graph", "graphs are built once"
        if self.on("resident"):
            yield "cache_dir", "graphs are kept in memory, not on disk"

    def state(self) -> Mapping[str, Any]:
        return {"need": self.need}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.need.copy_(state["need"])


def graph_of(batch: Batch, device: torch.device) -> Graph:
    """The batch's graphs in the form the model's layers take."""
    if "near" in batch and "far" not in batch:
        return Near(batch["near"])
    if "near" in batch:
        return numbered(batch["near"], batch["far"], batch["far_counts"])
    graph: Tensor = batch["graph"] if "graph" in batch else batch["edges"]
    return graph.to(device)


def _edges(neighbours: Tensor) -> Tensor:
    batch, window, k = neighbours.shape
    node = torch.arange(batch * window, device=neighbours.device)
    source = neighbours.long() + (node // window * window).view(batch, window, 1)
    return torch.stack([source.reshape(-1), node.repeat_interleave(k)])
