"""The engine: accumulation, clipping, bit-exact resume, early stop, memory, NaN."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trainers.helpers import make
from trainers.engine import checkpoint
from trainers.engine.convergence import ConvergenceWatch
from trainers.errors import TrainerError
from trainers.loop import Trainer
from trainers.tuning import memory
from trainers.tuning.memory import MemoryOptimizer, is_out_of_memory, measured_batch, pick_tier
from trainers.tuning.optimizers import Clipper


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def assert_equal(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    for name, value in one.items():
        assert torch.equal(value, two[name]), name


def test_accumulated_small_batches_equal_one_large_batch_ragged_tail_included(tmp_path: Path) -> None:
    # GIVEN a data set whose size neither 64 nor 16 divides
    large = make("sequence", tmp_path, batch_size=64, sequence_length=11, epochs=1)
    small = make(
        "sequence", tmp_path, batch_size=16, sequence_length=11, gradient_accumulation_steps=4, epochs=1
    )
    assert large.data.train.plan.length(0) % 16
    # WHEN both train one epoch
    large.fit()
    small.fit()
    # THEN both made the same number of updates and end with the same weights
    assert large.result.steps == small.result.steps
    for name, value in large.model.state_dict().items():
        if name != "score.2.bias":  # softmax ignores it: its gradient is rounding, which Adam blows up
            assert torch.allclose(value, small.model.state_dict()[name], atol=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize("rung", ["naive", "best"])
@pytest.mark.parametrize("name", ["tcn", "reid"])
def test_a_resumed_run_is_bit_equal_to_an_uninterrupted_one(name: str, rung: str, tmp_path: Path) -> None:
    whole = make(name, tmp_path / "whole", rung=rung, epochs=2)
    whole.fit()
    # WHEN a second run stops in the middle of the first epoch, and a third resumes from there
    half = make(name, tmp_path / "half", rung=rung, epochs=2, max_steps=2)
    half.fit()
    assert half.at.sample > 0
    torch.rand(7)  # whatever happened to the generators in between
    rest = make(name, tmp_path / "half", rung=rung, epochs=2, resume="auto")
    rest.fit()
    # THEN weights and losses are bit-identical
    assert_equal(weights(whole), weights(rest))
    assert half.result.losses + rest.result.losses == whole.result.losses


def test_a_resumed_graph_run_keeps_its_need_vector(tmp_path: Path) -> None:
    whole = make("graph", tmp_path / "whole", epochs=3)
    whole.fit()
    make("graph", tmp_path / "half", epochs=1).fit()
    rest = make("graph", tmp_path / "half", epochs=3, resume="auto")
    rest.fit()
    assert_equal(weights(whole), weights(rest))
    assert torch.equal(whole.recipe.need, rest.recipe.need)  # type: ignore[attr-defined]


def test_resuming_with_other_options_is_refused_in_a_sentence(tmp_path: Path) -> None:
    make("sequence", tmp_path, epochs=1).fit()
    with pytest.raises(TrainerError, match="batch_size"):
        make("sequence", tmp_path, epochs=2, batch_size=16, resume="auto").fit()
    with pytest.raises(TrainerError, match="another model"):
        make("sequence", tmp_path, epochs=2, hidden_size=4, resume="auto").fit()


def test_a_broken_checkpoint_is_a_sentence_and_a_failed_write_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"a": torch.ones(3)})

    class Unsavable:
        def __reduce__(self) -> Any:
            raise OSError(28, "No space left on device")

    with pytest.raises(TrainerError, match="No space left"):
        checkpoint.save(path, {"a": Unsavable()})
    assert torch.equal(checkpoint.load(path)["a"], torch.ones(3))
    assert list(tmp_path.iterdir()) == [path]
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TrainerError, match="broken"):
        checkpoint.load(path)


def test_the_best_model_is_exported_and_figures_are_written(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path, epochs=3)
    trainer.fit()
    lines = [json.loads(line) for line in (tmp_path / "sequence" / "metrics.jsonl").read_text().splitlines()]
    best = checkpoint.load(tmp_path / "sequence" / "best.pt")
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert best["metrics"]["rmse"] == min(line["rmse"] for line in lines)


def test_training_stops_early_when_nothing_gets_better(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path, epochs=50, patience=2, lr=1e-12)
    trainer.recipe.evaluate = lambda model, source: {"rmse": 1.0}  # type: ignore[method-assign]
    result = trainer.fit()
    assert result.stopped_early
    assert trainer.at.epoch == 3


def test_a_loss_that_is_not_a_number_stops_with_a_sentence(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path, epochs=3)
    original = trainer.recipe.loss
    calls = []

    def poisoned(model: nn.Module, batch: Any) -> Tensor:
        calls.append(1)
        return original(model, batch) * (float("nan") if len(calls) == 2 else 1.0)

    trainer.recipe.loss = poisoned  # type: ignore[method-assign]
    with pytest.raises(TrainerError, match="the loss became nan"):
        trainer.fit()
    assert not (tmp_path / "sequence" / "last.pt").exists()


def out_of_memory_above(trainer: Trainer, limit: int) -> None:
    """Make the loss fail as an allocator does if the batch is larger than `limit`."""
    original = trainer.recipe.loss

    def limited(model: nn.Module, batch: Any) -> Tensor:
        if len(batch["x"]) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return original(model, batch)

    trainer.recipe.loss = limited  # type: ignore[method-assign]


def test_out_of_memory_halves_the_batch_and_every_sample_is_still_trained_once(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path, batch_size=64, epochs=1, use_memory_optimizer=True)
    out_of_memory_above(trainer, 20)
    seen: list[int] = []
    gather = trainer.data.train.gather  # type: ignore[attr-defined]

    def counting(items: Any) -> Any:
        seen.append(len(items))
        return gather(items)

    trainer.data.train.gather = counting  # type: ignore[attr-defined]
    result = trainer.fit()
    assert result.memory_halvings == 2
    assert trainer.data.train.plan.batch_size == 16
    assert sum(size for size in seen if size <= 20) == trainer.data.train.plan.length(0)


def test_out_of_memory_without_the_optimizer_is_a_sentence(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path, batch_size=64)
    out_of_memory_above(trainer, 20)
    with pytest.raises(TrainerError, match="out of memory with batch 64") as caught:
        trainer.fit()
    assert "use_memory_optimizer" in (caught.value.hint or "")


def test_the_memory_optimizer_grows_back_and_keeps_the_unit() -> None:
    optimizer = MemoryOptimizer(batch_size=32, unit=4, grow_after=3)
    assert optimizer.shrink() and optimizer.batch_size == 16
    assert [optimizer.on_check(0.3) for _ in range(3)] == [False, False, True]
    assert optimizer.batch_size == 32
    while optimizer.shrink():
        assert optimizer.batch_size % 4 == 0
    assert optimizer.batch_size == 4


def test_memory_helpers() -> None:
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 3 bytes"))
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert [pick_tier("auto", size * 10**9).name for size in (6, 8, 16, 24)] == [
        "low",
        "medium",
        "medium",
        "high",
    ]
    assert pick_tier("low", 10**11).name == "low"
    assert measured_batch({2: 300, 4: 500}, 10_000) == 79  # 100 + 100·B below 8,000


def test_adaptive_clipping_follows_the_running_norm_without_reading_it() -> None:
    parameter = nn.Parameter(torch.zeros(4))
    clipper = Clipper(None, adaptive=True)
    for size in (1.0, 1.0, 10.0):
        parameter.grad = torch.full((4,), size / 2)
        norm = clipper.clip([parameter])
    assert float(norm) == pytest.approx(10.0)
    assert parameter.grad is not None
    assert float(parameter.grad.norm()) == pytest.approx(2 * (0.95 * 1 + 0.05 * 10), rel=1e-3)


def test_a_rising_loss_is_said_once() -> None:
    watch = ConvergenceWatch(mixed_precision=True, patience=3)
    said = [watch.add(loss) for loss in [1.0, 0.5, 0.4, *[5.0] * 20]]
    warnings = [text for text in said if text]
    assert len(warnings) == 1
    assert "--no-use_amp" in warnings[0]


def test_throttled_logging_reads_the_loss_only_now_and_then(tmp_path: Path) -> None:
    naive, best = make("sequence", tmp_path, rung="naive"), make("sequence", tmp_path, rung="best")
    assert (naive.log_every, naive.norm_every, naive.progress_every) == (1, 1, 1)
    assert (best.log_every, best.norm_every, best.progress_every) == (100, 200, 10)


def test_memory_above_the_mark_shrinks_the_batch_before_it_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([0.5, 0.85, 0.7])
    monkeypatch.setattr(memory, "used_ratio", lambda device: next(readings, 0.5))
    trainer = make("sequence", tmp_path, batch_size=8, epochs=1, use_memory_optimizer=True)
    result = trainer.fit()
    assert result.memory_halvings == 1
    assert trainer.at.batch_size == 4
    assert len(result.losses) > trainer.data.train.plan.length(0) / 8  # and every sample was trained on


def test_the_share_of_memory_in_use_is_a_share() -> None:
    assert 0 < memory.used_ratio(torch.device("cpu")) < 1


def test_the_progress_line_has_an_eta_and_the_norms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = make("reid", tmp_path, epochs=1, log_every=1, norm_every=2)
    trainer.progress.quiet = False
    trainer.fit()
    lines = [line for line in capsys.readouterr().err.splitlines() if "it/s" in line]
    assert all(re.search(r"ETA \d+ (s|min|h|d)\b", line) for line in lines)
    assert "ETA 0 s" in lines[-1]
    assert re.search(r"grad norm [\d.e+-]+ · fused norm [\d.e+-]+ · bn norm", lines[1])
    assert set(trainer.result.norms) == {"grad_norm", "fused_norm", "bn_norm"}


def test_an_interrupted_group_leaves_no_losses_behind(tmp_path: Path) -> None:
    trainer = make(
        "sequence",
        tmp_path,
        batch_size=32,
        gradient_accumulation_steps=2,
        epochs=1,
        use_memory_optimizer=True,
    )
    original, calls = trainer.recipe.loss, []

    def second_fails(model: nn.Module, batch: Any) -> Tensor:
        calls.append(len(batch["x"]))
        if len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(model, batch)

    trainer.recipe.loss = second_fails  # type: ignore[method-assign]
    result = trainer.fit()
    assert len(result.losses) == len(calls) - 2


PAGES = """
import resource, torch
from trainers.tuning.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(2**26, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
assert keep_freed_memory()
faults()  # small blocks take a piece of it at first
print(given_back, faults())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_kept_memory_is_not_mapped_again() -> None:
    done = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    given_back, kept = map(int, done.stdout.split())
    assert kept < given_back / 10
