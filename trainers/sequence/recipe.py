"""The sequence recipe: which data, which model, which loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from trainers import native, rungs
from trainers.datasets import tables, windows
from trainers.datasets.plan import Plan, SequentialPlan, ShuffledPlan
from trainers.datasets.scaler import StandardScaler
from trainers.datasets.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.errors import TrainerError
from trainers.metrics import Means, mean_of
from trainers.options import listed
from trainers.recipe import Data, Recipe
from trainers.sequence.data import SYNTHETIC_COLUMNS, NaiveSequences, collate, synthetic_days
from trainers.sequence.evaluation import evaluate_by_batch, evaluate_model
from trainers.sequence.model import AttentionLstm
from trainers.sequence.options import SequenceConfig
from trainers.tuning.precision import amp_dtype, lstm_runs_in


class SequenceRecipe(Recipe[SequenceConfig]):
    name = "sequence"
    shape_options = ("sequence_length", "hidden_size", "layers")
    file_options = ("fill", "dates", "columns")
    config_class = SequenceConfig
    metric = ("rmse", "min")
    compile_mode = "max-autotune"
    optimizations = (
        rungs.Optimization(
            name="device_eval", seed="S4.5", rung="document", text="evaluation accumulates on the device"
        ),
        *rungs.COMMON,
        rungs.RESIDENT,
        rungs.Optimization(
            name="native",
            seed="beyond",
            rung="best",
            text="LSTM and attention in C (on a CPU)",
            measured=True,
        ),
        rungs.Optimization(
            name="pooling", seed="beyond", rung="best", text="attention pooled by one product", measured=True
        ),
    )

    def build_data(self) -> Data:
        config, length = self.config, self.config.sequence_length
        series, names = self._read()
        if config.target_column not in names:
            raise TrainerError(f"no column {config.target_column!r}: there are {', '.join(names)}")
        target = names.index(config.target_column)
        lengths = [len(part) for part in series]
        rows = np.concatenate(series)
        seen = windows.train_rows(lengths, length + 1, config.validation_fraction)
        starts = windows.split_starts(lengths, length + 1, config.validation_fraction)
        if not len(starts[1]):
            raise TrainerError(
                "no validation window fits", hint="longer series or a smaller --sequence_length"
            )
        self.scaler = StandardScaler().fit(rows[seen])
        rows = self.scaler.transform(rows)
        self.columns, self.target = len(names), target
        self.target_scale = float(self.scaler.scale[target])
        plans = (
            ShuffledPlan(len(starts[0]), config.batch_size, seed=config.seed),
            SequentialPlan(len(starts[1]), config.batch_size),
        )
        make = self._resident if self.on("resident") else self._loader
        train, held_out = (make(rows, begin, plan, target) for begin, plan in zip(starts, plans, strict=True))
        return Data(train=train, validation=held_out)

    def _read(self) -> tuple[list[np.ndarray], list[str]]:
        config = self.config
        if config.synthetic:
            rows = max(5 * config.sequence_length, int(3650 * config.synthetic_size))
            return [synthetic_days(rows, config.seed + n) for n in range(4)], SYNTHETIC_COLUMNS
        files = tables.find_files(config.data_dir or "")
        names = listed("columns", config.columns) if config.columns else None
        settings = config.table_settings(3 * config.sequence_length)
        return tables.read_tables(files, names, settings, self.skip, self.say)

    def _loader(self, rows: np.ndarray, starts: np.ndarray, plan: Plan, target: int) -> BatchSource:
        dataset = NaiveSequences(rows, starts, self.config.sequence_length, target)
        return LoaderSource(dataset, plan, self.loader_settings(), collate=collate)

    def _resident(self, rows: np.ndarray, starts: np.ndarray, plan: Plan, target: int) -> BatchSource:
        length = self.config.sequence_length
        store = windows.WindowStore(rows, length, self.device)
        begin = torch.from_numpy(starts).to(self.device)
        values = store.rows[:, target].contiguous()

        def gather(items: Tensor) -> Batch:
            at = begin.index_select(0, items)
            return {"x": store.gather(at), "y": values.index_select(0, at + length).unsqueeze(1)}

        return ResidentSource(gather, plan, self.device)

    def build_model(self) -> nn.Module:
        config = self.config
        dtype = amp_dtype(config.amp_dtype, self.device)
        float32 = self.on("amp") and not lstm_runs_in(dtype, self.device)
        if float32:
            self.say(f"this {self.device.type} has no LSTM in {str(dtype)[6:]}: that part runs in float32")
        return AttentionLstm(
            self.columns,
            config.hidden_size,
            config.layers,
            target=self.target,
            pooled=self.on("pooling"),
            native=self._native,
            float32_lstm=float32,
        )

    @property
    def _native(self) -> bool:
        wanted = self.on("native") and self.plain and self.config.layers == 1
        return wanted and native.fits(self.config.hidden_size, panels=True)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        predicted: Tensor = model(batch["x"])[0]
        error: Tensor = predicted.float() - batch["y"]
        return error.square().mean()

    def baseline(self, data: Data) -> dict[str, float]:
        days = {"last_value": 1, "week_ago": 7}
        means = Means(self.device)
        for batch in data.validation.epoch(0):
            for name, back in days.items():
                if back <= self.config.sequence_length:
                    error = batch["x"][:, -back, self.target] - batch["y"][:, 0]
                    means.add(name, error.square())
        found = mean_of(self.gather(means.totals()))
        return {f"rmse_{name}": value**0.5 * self.target_scale for name, value in found.items()}

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        evaluate = evaluate_model if self.on("device_eval") else evaluate_by_batch
        means = mean_of(self.gather(evaluate(model, source, self.device)))
        return {
            "rmse": means["square"] ** 0.5 * self.target_scale,
            "mae": means["absolute"] * self.target_scale,
        }
