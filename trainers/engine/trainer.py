"""The loop. Every recipe and every rung goes through it, top to bottom:

    batch → device → forward → backward → (group complete) clip, step, zero → now and then: log

The only device sync inside an epoch is reading the loss every `log_every` steps. A checkpoint is
taken between groups, so a resumed run continues with the very next sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from trainers.config import TrainConfig
from trainers.data.source import Batch, batch_length, move_batch_to_device
from trainers.engine.convergence import ConvergenceWatch
from trainers.engine.distributed import World, unwrap
from trainers.engine.interrupt import Interrupt
from trainers.engine.progress import Progress
from trainers.engine.recipe import Recipe
from trainers.engine.records import Records
from trainers.engine.update import Updater
from trainers.engine.watch import make_watch
from trainers.errors import EXIT_FAILED, TrainerError
from trainers.tuning import memory
from trainers.tuning.compiling import compile_model, fall_back


@dataclass
class Position:
    """Where a run is; with the states of model, optimizer and generators this is a checkpoint."""

    epoch: int = 0
    sample: int = 0
    """Samples of this epoch that are already trained on, over all ranks."""
    step: int = 0
    best: float | None = None
    bad: int = 0
    """Validations since the best one."""
    batch_size: int = 0


@dataclass
class Result:
    """What a run gave."""

    steps: int = 0
    samples: int = 0
    seconds: float = 0.0
    """Training time of the steady part: the first two steps (compile, caches) are left out."""
    losses: list[float] = field(default_factory=list)
    """Every batch's loss, in order."""
    metrics: dict[str, float] = field(default_factory=dict)
    validate_seconds: float = 0.0
    interrupted: bool = False
    stopped_early: bool = False
    skipped_files: int = 0
    lines: list[str] = field(default_factory=list)
    memory_halvings: int = 0

    @property
    def samples_per_second(self) -> float | None:
        return self.samples / self.seconds if self.seconds else None


WARMUP_STEPS = 2


class Trainer:
    """Trains one recipe. `fit()` returns when done, interrupted, or stopped early."""

    def __init__(self, recipe: Recipe[Any], world: World | None = None) -> None:
        self.recipe, self.config, self.device = recipe, recipe.config, recipe.device
        self.world = recipe.world = world or World()
        self.data = recipe.build_data()
        self.data.train.plan.share(self.world.rank, self.world.size)
        self.model = recipe.build_model().to(self.device)
        mode = self.config.compile_mode or recipe.compile_mode
        self.compiled = compile_model(self.model, wanted=recipe.on("compile"), mode=mode, device=self.device)
        self.wrapped = self.world.wrap(self.model, self.device)
        self.updater = Updater(self.wrapped, self.config, self.device, recipe.switches)
        self.at = Position(batch_size=self.config.batch_size)
        self.result = Result(skipped_files=len(recipe.skipped))
        self.memory = self._memory_optimizer()
        self.records = Records(recipe, self.world)
        self._intervals(self.config)
        name = self.config.run_name or f"{recipe.name}-{self.config.rung}"
        self.watch = make_watch(self.config.monitor, name, self.config.batch_size)
        quiet = self.config.quiet or not self.world.first
        self.progress = Progress(quiet=quiet, bottleneck=self.watch.bottleneck)
        self._pending: list[Tensor] = []
        self.limit = self.config.max_steps
        self.convergence = ConvergenceWatch(mixed_precision=self.updater.amp)
        self.interrupt = Interrupt()

    def _intervals(self, config: TrainConfig) -> None:
        calm = self.recipe.on("throttle")
        self.log_every = config.log_every or (100 if calm else 1)
        self.norm_every = config.norm_every or (200 if calm else 1)
        self.progress_every = config.progress_every or (10 if calm else 1)

    def _memory_optimizer(self) -> memory.MemoryOptimizer | None:
        if not self.config.use_memory_optimizer:
            return None
        if self.world.size > 1:
            self.recipe.say("memory optimizer off: ranks must keep equal batches")
            return None
        return memory.MemoryOptimizer(batch_size=self.config.batch_size, unit=self.recipe.batch_unit)

    # ── the run ──────────────────────────────────────────────────────────────────────────────────

    def fit(self) -> Result:
        if self.config.resume == "auto":
            self.records.restore(self)
        with self.interrupt, self.watch:
            for _ in self._epochs():
                self._train_epoch()
                if self._stopping():
                    break
                self._end_epoch()
        self.result.interrupted = self.interrupt.asked
        self.result.steps = self.at.step
        return self.result

    def train_steps(self, count: int) -> Result:
        """So many optimizer steps and nothing else: for measuring. Epochs follow one another."""
        self.limit = self.at.step + count
        while not self._full():
            self._train_epoch()
            if self.at.sample >= self._end:
                self.at.epoch, self.at.sample = self.at.epoch + 1, 0
        return self.result

    def _epochs(self) -> Iterator[int]:
        while self.at.epoch < self.config.epochs and not self.result.stopped_early:
            self.progress.restart()
            yield self.at.epoch

    def _stopping(self) -> bool:
        """Ctrl-C or --max_steps inside an epoch: save where we are."""
        full = self._full()
        if not (full or self.interrupt.asked):
            return False
        if self.interrupt.asked:
            self.recipe.say(f"interrupted: saving at step {self.at.step} (--resume auto goes on from here)")
        self._save()
        if full and not self.interrupt.asked:
            self._validate()
        return True

    def _end_epoch(self) -> None:
        epoch = self.at.epoch
        self.recipe.on_epoch_end(self.model, epoch)
        self.at.epoch, self.at.sample = epoch + 1, 0
        if self.at.epoch % self.config.validation_interval == 0 or self.at.epoch == self.config.epochs:
            self._validate()
        self._save()

    # ── an epoch ─────────────────────────────────────────────────────────────────────────────────

    def _train_epoch(self) -> None:
        self.wrapped.train()
        plan = self.data.train.plan
        plan.batch_size = self.at.batch_size
        self._end = plan.length(self.at.epoch)
        if not self._end:
            raise TrainerError(
                f"no batch can be made: {len(plan.order(self.at.epoch))} samples, batch {plan.batch_size}",
                hint="a smaller --batch_size or more data",
            )
        while self.at.sample < self._end and not self._must_stop():
            try:
                self._run_batches()
            except (RuntimeError, MemoryError) as error:
                self._recover(error)
        self._read_losses()
        self.progress.end()

    def _full(self) -> bool:
        return self.limit is not None and self.at.step >= self.limit

    def _must_stop(self) -> bool:
        return self._full() or self.interrupt.asked

    def _run_batches(self) -> None:
        """Batches from the current position until the epoch, the batch size or the run ends."""
        watch, updater, size = self.watch, self.updater, self.data.train.plan.batch_size
        group, micro = self._group_samples(size), 0
        watch.epoch(self.at.epoch)  # the loader counts on from it
        for raw in watch.loader(self.data.train.epoch(self.at.epoch, self.at.sample)):
            self._tick()
            watch.lap("transfer")
            batch = self._to_device(raw)
            samples = batch_length(batch) * self.world.size
            micro += samples
            last = micro >= group
            loss = self._forward_backward(batch, samples / group, last=last)
            if last:
                watch.lap("optimizer")
                updater.apply(watch.lap)
                self.at.sample += micro
                self.at.step += 1
                group, micro = self._group_samples(size), 0
            self._after_batch(loss, samples, updated=last)
            if last and (self._must_stop_together() or self._batch_size_changed()):
                return

    def _group_samples(self, size: int) -> int:
        """Samples of the group of micro-batches that makes the next update; ragged at the end."""
        return max(1, min(size * self.config.gradient_accumulation_steps, self._end - self.at.sample))

    def _to_device(self, batch: Batch) -> Batch:
        if self.device.type == "cpu":
            return batch
        return move_batch_to_device(batch, self.device, non_blocking=self.recipe.on("pinned"))

    def _forward_backward(self, batch: Batch, weight: float, *, last: bool) -> Tensor:
        self.watch.lap("forward")
        try:
            with self.updater.precision():
                loss = self.recipe.loss(self.wrapped, batch)
            self.watch.lap("backward")
            self.updater.backward(loss, weight, last=last)
        except RuntimeError as error:
            if not fall_back(self.model, self.compiled, error):
                raise
            self.recipe.say(self.compiled.sentence())
            return self._forward_backward(batch, weight, last=last)
        return loss.detach()

    def _after_batch(self, loss: Tensor, samples: int, *, updated: bool) -> None:
        """Bookkeeping; the loss is read only when it is logged."""
        self._pending.append(loss)
        self.progress.add(samples)
        value, step = None, self.at.step
        if updated:
            if step % self.log_every == 0:
                self.watch.lap("log")
                value = self._checked(float(loss))  # sync point
                self.updater.note_scale()
                self._warn(self.convergence.add(value))
            if self.updater.norm is not None and step % self.norm_every == 0:
                self.watch.lap("log")
                self.records.norms.append(float(self.updater.norm))  # sync point
                self.watch.scalars({"grad_norm": self.records.norms[-1]})
            self._show(value)
            if self.config.checkpoint_every and step % self.config.checkpoint_every == 0:
                self._save()
        self.watch.step(samples, value)
        self._count(samples)

    def _warn(self, text: str | None) -> None:
        if text:
            self.recipe.say(text)

    def _show(self, loss: float | None) -> None:
        due = self.progress_every if self.progress.live else self.log_every
        if self.at.step % due == 0:
            self.watch.lap("log")
            self.progress.show(self.at.epoch, self.at.step, self.at.sample / self._end, loss)
        if self.at.step == 1 and self.compiled.asked:
            self.recipe.say(self.compiled.sentence())

    def _tick(self) -> None:
        """Steady training time begins with the third batch of the run."""
        if self._batches == WARMUP_STEPS and self._steady is None:
            self._steady = time.perf_counter()

    _batches = 0
    _steady: float | None = None

    def _count(self, samples: int) -> None:
        self._batches += 1
        if self._steady is not None:
            now = time.perf_counter()
            self.result.seconds += now - self._steady
            self.result.samples += samples
            self._steady = now

    def _checked(self, loss: float) -> float:
        if math.isfinite(loss):
            return loss
        raise TrainerError(
            f"the loss became {loss} at step {self.at.step}; the last checkpoint is from before",
            hint="a lower --lr, --clip_norm 1.0, or without mixed precision: --no-use_amp",
            code=EXIT_FAILED,
        )

    def _read_losses(self) -> None:
        """All losses of the epoch in one transfer; a NaN between two logs is found here at the latest."""
        if self._pending:
            values = torch.stack(self._pending).float().tolist()
            self._pending.clear()
            self.result.losses += values
            self._checked(sum(values))

    def _must_stop_together(self) -> bool:
        """Under ranks an interrupt counts at the same step for all, or they would wait for ever."""
        if self.world.size > 1 and self.at.step % self.log_every == 0:
            self.interrupt.asked = self.world.any(self.interrupt.asked)
        elif self.world.size > 1:
            return self._full()
        return self._must_stop()

    # ── memory ───────────────────────────────────────────────────────────────────────────────────

    def _batch_size_changed(self) -> bool:
        if self.memory is None or not self.memory.on_step(memory.used_ratio(self.device)):
            return False
        self._use_batch_size(self.memory.batch_size)
        self.recipe.say(f"batch size back to {self.memory.batch_size}")
        return True

    def _use_batch_size(self, size: int) -> None:
        self.at.batch_size = self.data.train.plan.batch_size = size

    def _recover(self, error: BaseException) -> None:
        """Out of memory: halve the batch and do the interrupted group again. Else: not ours."""
        if not memory.is_out_of_memory(error):
            raise error
        size = self.data.train.plan.batch_size
        if self.memory is None or not self.memory.on_out_of_memory():
            raise TrainerError(
                f"out of memory with batch {size}",
                hint="--use_memory_optimizer halves the batch by itself; or a smaller --batch_size",
                code=EXIT_FAILED,
            ) from error
        self.updater.zero()
        memory.release(self.device)
        self._use_batch_size(self.memory.batch_size)
        self.result.memory_halvings = self.memory.halvings
        self.recipe.say(f"out of memory with batch {size}: going on with {self.memory.batch_size}")

    # ── between epochs ───────────────────────────────────────────────────────────────────────────

    def _validate(self) -> None:
        begun = time.perf_counter()
        with self.watch.phase("validate"):
            metrics = self._evaluate() if self.world.first else {}
            metrics = self.world.share(metrics)
        seconds = time.perf_counter() - begun
        self.result.validate_seconds += seconds
        self.result.metrics = metrics
        self.watch.scalars(metrics)
        self.records.validated(self, metrics, seconds)
        if self.config.patience and self.at.bad >= self.config.patience:
            self.recipe.say(f"stopped early: no better {self.recipe.metric[0]} in {self.at.bad} validations")
            self.result.stopped_early = True

    @torch.no_grad()
    def _evaluate(self) -> dict[str, float]:
        self.model.eval()
        with self.updater.precision():
            metrics = self.recipe.evaluate(self.model, self.data.validation)
        self.model.train()
        return metrics

    def _save(self) -> None:
        self._read_losses()
        with self.watch.phase("checkpoint"):
            self.records.save(self)

    def model_state(self) -> dict[str, Tensor]:
        return unwrap(self.wrapped).state_dict()
