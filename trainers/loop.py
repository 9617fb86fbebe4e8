"""The training loop, top to bottom. Every recipe and every rung runs through this file.

    run     resume → epochs → result
    epoch   batches → the recipe's own update → validation → checkpoint
    batch   fetch → copy → forward → backward → (group complete) clip, step, zero → log

The host waits for the device only on the lines marked "sync". The first `WARM_UP_BATCHES` batches are
in no figure. A checkpoint is taken between updates, so a resumed run goes on with the very next sample.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor

from sdk.units import percent
from trainers.config import TrainConfig
from trainers.datasets.source import Batch, batch_length, move_batch_to_device
from trainers.engine import resume, sharding
from trainers.engine.convergence import ConvergenceWatch
from trainers.engine.distributed import World, whole
from trainers.engine.interrupt import Interrupt
from trainers.engine.marks import Marks, RecordedMarks
from trainers.engine.progress import Progress
from trainers.engine.records import Records
from trainers.engine.state import Position, Result, SteadyClock
from trainers.errors import EXIT_FAILED, TrainerError
from trainers.recipe import Recipe
from trainers.tuning import heap, memory, products
from trainers.tuning.compiling import compile_model, fall_back
from trainers.tuning.optimizers import Clipper, make_optimizer
from trainers.tuning.precision import Precision


class Trainer:
    """Trains one recipe. `fit()` returns when done, interrupted, or stopped early."""

    def __init__(self, recipe: Recipe[Any], world: World | None = None) -> None:
        self.recipe, self.device = recipe, recipe.device
        self.config: TrainConfig = recipe.config
        self.world = recipe.world = world or World()
        self._build()
        self.at = Position(batch_size=self.config.batch_size)
        self.result = Result(skipped_files=len(recipe.skipped))
        self.clock = SteadyClock(self.result)
        self.records = Records(recipe, first=self.world.first)
        self.interrupt = Interrupt()
        self.limit = self.config.max_steps
        self._observe()

    def _build(self) -> None:
        """Data, model, optimizer: what is trained with what."""
        recipe, config = self.recipe, self.config
        self.data = self.world.in_turn(recipe.build_data)
        self.data.train.plan.share(self.world.rank, self.world.size)
        recipe.split_validation = not self.world.sharded  # a shard's forward needs all ranks at once
        if recipe.split_validation:
            self.data.validation.plan.share(self.world.rank, self.world.size)
        if recipe.on("keep_memory") and self.device.type == "cpu" and not config.use_memory_optimizer:
            heap.keep_freed_memory()
        products.choose(recipe, self.data)
        self.model = recipe.build_model().to(self.device)
        mode = config.compile_mode or recipe.compile_mode
        self.compiled = compile_model(self.model, wanted=recipe.on("compile"), mode=mode, device=self.device)
        self.wrapped = self.world.wrap(self.model, self.device)
        self.optimizer = make_optimizer(
            self.wrapped, lr=config.lr, weight_decay=config.weight_decay, fused=recipe.on("fused")
        )
        self.precision = Precision(mixed=recipe.on("amp"), dtype=config.amp_dtype, device=self.device)
        self.clipper = Clipper(config.clip_norm, adaptive=config.adaptive_clip)
        self.memory: memory.MemoryOptimizer | None = None
        if config.use_memory_optimizer:
            unit = recipe.batch_unit * self.world.size
            self.memory = memory.MemoryOptimizer(batch_size=config.batch_size, unit=unit)

    def _observe(self) -> None:
        """Who is told what, and how often."""
        config, rare = self.config, self.recipe.on("throttle")
        self.log_every = config.log_every or (100 if rare else 1)
        self.norm_every = config.norm_every or (200 if rare else 1)
        self.progress_every = config.progress_every or (10 if rare else 1)
        name = config.run_name or f"{self.recipe.name}-{config.rung}"
        self.marks = RecordedMarks(name, config.batch_size) if config.monitor else Marks()
        quiet = config.quiet or not self.world.first
        self.progress = Progress(quiet=quiet, bottleneck=self.marks.bottleneck)
        self.convergence = ConvergenceWatch(mixed_precision=self.precision.mixed)
        self.norm: Tensor | None = None
        self.baseline: dict[str, float] = {}
        self.pending: list[Tensor] = []
        """Losses still on the device."""
        self.settled = 0
        """How many of them belong to completed updates."""

    # ── run ──────────────────────────────────────────────────────────────────────────────────────

    def fit(self) -> Result:
        """Train until all epochs are done or something ends the run earlier."""
        if self.config.resume == "auto":
            resume.restore(self)
        with self.interrupt, self.marks:
            while self.at.epoch < self.config.epochs and not self.result.stopped_early:
                self.train_epoch()
                if self._must_stop():
                    self._leave()
                    break
                self.recipe.on_epoch_end(self.model, self.at.epoch)
                self.at.epoch, self.at.sample = self.at.epoch + 1, 0
                last = self.at.epoch == self.config.epochs
                if last or self.at.epoch % self.config.validation_interval == 0:
                    self.validate()
                self.save()
        self.result.interrupted, self.result.steps = self.interrupt.asked, self.at.step
        return self.result

    def train_steps(self, count: int) -> Result:
        """Run this many optimizer steps and nothing else, for measuring. Epochs follow one another."""
        self.limit = self.at.step + count
        while not self._full():
            self.train_epoch()
            if self.at.sample >= self.epoch_samples:
                self.at.epoch, self.at.sample = self.at.epoch + 1, 0
        return self.result

    # ── epoch ────────────────────────────────────────────────────────────────────────────────────

    def train_epoch(self) -> None:
        """From the current position to the epoch's end, or to where the run stops."""
        self.wrapped.train()
        plan = self.data.train.plan
        plan.batch_size = self.at.batch_size
        self.epoch_samples = plan.length(self.at.epoch)
        if not self.epoch_samples:
            samples = len(plan.order(self.at.epoch))
            raise TrainerError(
                f"no batch can be made: {samples} samples, batch {plan.batch_size}",
                hint="a smaller --batch_size or more data",
            )
        self.progress.restart()
        self.clock.resume()
        while self.at.sample < self.epoch_samples and not self._must_stop():
            try:
                self.train_batches()
            except (RuntimeError, MemoryError) as error:
                self._recover(error)
        self._read_losses()
        self.progress.end()

    # ── batch ────────────────────────────────────────────────────────────────────────────────────

    def train_batches(self) -> None:
        """The inner loop. Returns when the epoch, the batch size or the run ends."""
        marks, scaler, optimizer = self.marks, self.precision.scaler, self.optimizer
        group, done = self._group_samples(), 0
        marks.epoch(self.at.epoch)  # the monitored loader counts on from it
        for raw in marks.loader(self.data.train.epoch(self.at.epoch, self.at.sample)):
            marks.lap("transfer")
            batch = self._to_device(raw)
            samples = batch_length(batch) * self.world.size
            done += samples
            complete = done >= group

            marks.lap("forward")
            with self.precision.autocast():
                loss = self.recipe.loss(self.wrapped, batch)

            marks.lap("backward")
            # A micro-batch counts by its share of the group's samples: many small batches give the
            # gradient of one large batch, a short last one included. Only the last one joins the ranks.
            share = samples / group
            with self.world.joined(self.wrapped, complete):
                scaled = scaler.scale(loss if share == 1.0 else loss * share)
                scaled.backward()  # type: ignore[no-untyped-call]
            loss = loss.detach()
            self.pending.append(loss)
            self.progress.add(samples)

            logged = None
            if complete:
                if self.clipper.active:
                    marks.lap("grad_norm")
                    scaler.unscale_(optimizer)
                    self.norm = self.clipper.clip(self.wrapped.parameters())
                marks.lap("optimizer")
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=self.recipe.on("set_to_none"))
                self.at.sample += done
                self.at.step += 1
                self.settled = len(self.pending)
                group, done = self._group_samples(), 0
                logged = self._log(loss)
            marks.step(samples, logged)
            self.clock.batch_done(samples)
            if complete and (self._must_stop_together() or self._batch_size_changed()):
                return

    def _group_samples(self) -> int:
        """Samples of the group of micro-batches that makes the next update; fewer at the epoch's end."""
        size = self.data.train.plan.batch_size * self.config.gradient_accumulation_steps
        return max(1, min(size, self.epoch_samples - self.at.sample))

    def _to_device(self, batch: Batch) -> Batch:
        if self.device.type == "cpu":
            return batch
        moved: Batch = move_batch_to_device(batch, self.device, non_blocking=self.recipe.on("pinned"))
        return moved

    # ── log ──────────────────────────────────────────────────────────────────────────────────────

    def _log(self, loss: Tensor) -> float | None:
        """What is due after this update; the loss if it was read."""
        step, value = self.at.step, None
        if step % self.log_every == 0:
            self.marks.lap("log")
            value = self._finite(float(loss))  # sync
            self.precision.note_scale()  # sync, with float16 only
            if warning := self.convergence.add(value):
                self.recipe.say(warning)
        if step % self.norm_every == 0:
            self.marks.lap("log")
            self._log_norms()
        self._show(value)
        if self.config.checkpoint_every and step % self.config.checkpoint_every == 0:
            self.save()
        return value

    def _log_norms(self) -> None:
        found = {} if self.norm is None else {"grad_norm": whole(self.norm)}
        found |= self.recipe.watched()
        if found:
            values = torch.stack([value.float() for value in found.values()]).tolist()  # sync
            self.result.norms = dict(zip(found, values, strict=True))
            self.marks.scalars(self.result.norms)

    def _show(self, loss: float | None) -> None:
        if self.at.step % (self.progress_every if self.progress.live else self.log_every) == 0:
            self.marks.lap("log")
            done = self.at.sample / self.epoch_samples
            self.progress.show(self.at, done, self._samples_left(), loss, self.result.norms)
        if self.at.step == 1 and self.compiled.asked:
            self.recipe.say(self.compiled.sentence())

    def _samples_left(self) -> int:
        """Until the run ends, by its epochs or by --max_steps."""
        left = (self.config.epochs - self.at.epoch) * self.epoch_samples - self.at.sample
        each = self.data.train.plan.batch_size * self.config.gradient_accumulation_steps
        return left if self.limit is None else min(left, (self.limit - self.at.step) * each)

    def _finite(self, loss: float) -> float:
        if math.isfinite(loss):
            return loss
        kept = f"; {self.records.last} is from before" if self.records.last.exists() else ""
        mixed = ", or without mixed precision: --no-use_amp" if self.precision.mixed else ""
        raise TrainerError(
            f"the loss became {loss} at step {self.at.step}{kept}",
            hint=f"a lower --lr, or --clip_norm 1.0{mixed}",
            code=EXIT_FAILED,
        )

    def _read_losses(self) -> None:
        """All pending losses in one transfer; a NaN between two logs is found here at the latest."""
        if self.pending:
            values = torch.stack(self.pending).float().tolist()  # sync
            self.pending.clear()
            self.settled = 0
            self.result.losses += values
            self._finite(sum(values))

    # ── stop ─────────────────────────────────────────────────────────────────────────────────────

    def _full(self) -> bool:
        return self.limit is not None and self.at.step >= self.limit

    def _must_stop(self) -> bool:
        return self._full() or self.interrupt.asked

    def _must_stop_together(self) -> bool:
        """Under ranks an interrupt counts at the same step for all, or they would wait forever."""
        if self.world.size > 1 and self.at.step % self.log_every == 0:
            self.interrupt.asked = self.world.any(self.interrupt.asked)  # sync
        elif self.world.size > 1:
            return self._full()
        return self._must_stop()

    def _leave(self) -> None:
        """Ctrl-C or --max_steps, perhaps in the middle of an epoch: save where we are."""
        if self.interrupt.asked:
            self.recipe.say(f"interrupted: saving at step {self.at.step} (--resume auto goes on from here)")
        self.save()
        if not self.interrupt.asked:
            self.validate()

    # ── recover ──────────────────────────────────────────────────────────────────────────────────

    def _recover(self, error: BaseException) -> None:
        """Make it possible to do the interrupted group again, or raise what cannot be helped."""
        if fall_back(self.model, self.compiled, error):
            self.recipe.say(self.compiled.sentence())
        elif memory.is_out_of_memory(error):
            self._shrink(error)
        else:
            raise error
        del self.pending[self.settled :]
        self.optimizer.zero_grad(set_to_none=True)

    def _shrink(self, error: BaseException) -> None:
        size = self.at.batch_size
        # A rank that ran out alone cannot go back: the others already wait for its gradients.
        if self.memory is None or self.world.size > 1 or not self.memory.shrink():
            raise TrainerError(
                f"out of memory with batch {size}",
                hint="--use_memory_optimizer halves the batch by itself; or a smaller --batch_size",
                code=EXIT_FAILED,
            ) from error
        self._use_batch_size(self.memory, "out of memory")

    def _batch_size_changed(self) -> bool:
        """Whether memory calls for another size; ranks decide by the fullest of them."""
        if self.memory is None or self.at.step % memory.CHECK_EVERY:
            return False
        used = self.world.largest(memory.used_ratio(self.device))
        changed = self.memory.on_check(used)
        if changed:
            self._use_batch_size(self.memory, f"memory {percent(used)} used")
        return changed

    def _use_batch_size(self, found: memory.MemoryOptimizer, why: str) -> None:
        self.recipe.say(f"{why}: batch {self.at.batch_size} → {found.batch_size}")
        memory.release(self.device)
        self.at.batch_size = self.data.train.plan.batch_size = found.batch_size
        self.result.memory_halvings = found.halvings

    # ── validate, save ───────────────────────────────────────────────────────────────────────────

    def validate(self) -> None:
        """Figures over the held-out data, each rank a piece of it; the best model is kept."""
        begun = time.perf_counter()
        with self.marks.phase("validate"):
            metrics = self._evaluate()
        seconds = time.perf_counter() - begun
        self.result.validate_seconds += seconds
        self.result.metrics = metrics
        self.marks.scalars(metrics)
        if self.at.improved(metrics.get(self.recipe.metric[0]), better=self.recipe.metric[1]):
            self.records.keep_best(sharding.model_state(self.model), metrics)
        self.records.append(self.at, self.result, seconds, self.precision.overflows)
        if self.config.patience and self.at.bad >= self.config.patience:
            self.recipe.say(f"stopped early: no better {self.recipe.metric[0]} in {self.at.bad} validations")
            self.result.stopped_early = True

    def _evaluate(self) -> dict[str, float]:
        """The metrics, and beside them what costs nothing reaches (looked at once)."""
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng(), self.precision.autocast():
            self.baseline = self.baseline or self.recipe.baseline(self.data)
            metrics = self.recipe.evaluate(self.model, self.data.validation)
        self.model.train()
        return metrics | self.baseline

    def save(self) -> None:
        """The checkpoint to go on from."""
        self._read_losses()
        with self.marks.phase("checkpoint"):
            if self.world.first or self.world.sharded:  # a shard is made whole by all ranks together
                self.records.save(resume.state(self))
