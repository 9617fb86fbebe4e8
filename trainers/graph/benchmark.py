"""The graph trainer's performance test: graph construction, training, inference; graph_benchmark.png.

python -m trainers.graph.benchmark [--out graph_benchmark.png]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from sdk import units
from trainers.datasets import knn
from trainers.engine import checkpoint
from trainers.engine.state import WARM_UP_BATCHES
from trainers.errors import TrainerError, report
from trainers.graph.data import synthetic_series
from trainers.graph.options import GraphConfig
from trainers.graph.recipe import GraphRecipe, graph_of
from trainers.loop import Trainer
from trainers.tuning import cuda
from trainers.tuning.peak import peak_bytes
from trainers.tuning.saved_bytes import saved_bytes

WINDOW, K, WINDOWS = 64, 8, 48
PANELS = ("training samples/s", "inference latency ms", "training peak MB", "inference peak MB",
          "saved for backward MB", "parameters")  # fmt: skip


def timed(action: Callable[[], object], repeat: int = 5) -> float:
    """Median seconds."""
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def construction(folder: Path) -> dict[str, float]:
    """Way to build graphs → graphs per second."""
    rows = synthetic_series(WINDOW + WINDOWS, 8, 0)
    starts = np.arange(WINDOWS)
    windows = [rows[at : at + WINDOW] for at in starts]
    cache = knn.GraphCache(folder, rows, starts, time_k=K, window_size=WINDOW)
    cached = cache.open()
    flat, begin = torch.from_numpy(rows), torch.from_numpy(starts)
    seconds = {
        "Python loops": timed(lambda: [knn.neighbours_python(w, K) for w in windows[:8]], 3) * WINDOWS / 8,
        "numpy, a window at a time": timed(lambda: [knn.neighbours_numpy(w, K) for w in windows]),
        "disk cache": timed(lambda: [cached[n].astype(np.int64) for n in range(WINDOWS)]),
        "batched, no cache": timed(lambda: knn.neighbours_batched(flat, begin, WINDOW, K)),
    }
    return {name: WINDOWS / value for name, value in seconds.items()}


def model_figures(device: torch.device, *, light: bool, checkpointing: bool) -> dict[str, float | None]:
    """Training and inference of one model variant; a peak is of everything the process holds."""
    config = GraphConfig(
        synthetic=True,
        synthetic_size=0.2,
        use_optimized_model=light,
        use_gradient_checkpoint=checkpointing,
        monitor=False,
        quiet=True,
        ablate="keep_memory",  # or inference would hold what training held
        out=tempfile.gettempdir(),
    )
    checkpoint.seed_everything(0)
    recipe = GraphRecipe(config, device)
    trainer = Trainer(recipe)
    trainer.train_steps(WARM_UP_BATCHES)
    training_peak = peak_bytes(lambda: trainer.train_steps(3), device)
    step = timed(lambda: trainer.train_steps(1), 9)
    batch = next(iter(trainer.data.train.epoch(0)))
    trainer.data.train.plan.batch_size = 1
    single = next(iter(trainer.data.train.epoch(0)))
    trainer.model.train()
    kept = saved_bytes(lambda: recipe.loss(trainer.model, batch))
    trainer.model.eval()
    with torch.no_grad():
        inference_peak = peak_bytes(lambda: trainer.model(batch["x"], graph_of(batch, device)), device)
        latency = timed(lambda: trainer.model(single["x"], graph_of(single, device)), 15)
        whole = timed(lambda: trainer.model(batch["x"], graph_of(batch, device)), 9)
    rate = config.batch_size / step
    return {
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "training samples/s": rate,
        "epochs/min": 60 * rate / trainer.data.train.plan.length(0),
        "inference latency ms": latency * 1e3,
        "inference batches/s": 1 / whole,
        "training peak MB": training_peak and training_peak / 1e6,
        "inference peak MB": inference_peak and inference_peak / 1e6,
        "saved for backward MB": kept / 1e6,
    }


def _apart(device: str, light: bool, checkpointing: bool) -> dict[str, float | None]:
    """`model_figures` in a fresh process: a peak is a process's own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        task = partial(model_figures, torch.device(device), light=light, checkpointing=checkpointing)
        return pool.submit(task).result()


def draw(graphs: dict[str, float], models: dict[str, dict[str, float | None]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = {"graphs built per second": graphs}
    for key in PANELS:
        panels[key] = {name: figures[key] or 0.0 for name, figures in models.items()}
    figure, axes = plt.subplots(len(panels), 1, figsize=(8, 1.6 * len(panels)))
    for axis, (title, values) in zip(axes, panels.items(), strict=True):
        bars = axis.barh(list(values), list(values.values()), color="#4a7ab5")
        axis.bar_label(bars, [units.number(value) for value in values.values()], padding=3, fontsize=8)
        axis.set_title(title, fontsize=9, loc="left")
        axis.margins(x=0.15)
    axes[0].set_xscale("log")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _check_writable(path: Path) -> None:
    """Minutes of measuring should not end with a picture that cannot be saved."""
    try:
        path.open("ab").close()
    except OSError as error:
        raise TrainerError(f"cannot write {path}: {error.strerror}", hint="--out FILE") from error


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="trainers.graph.benchmark", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("graph_benchmark.png"), help="the picture")
    parser.add_argument("--device", default="auto", help="cpu, cuda, auto")
    args = parser.parse_args(arguments)
    try:
        device = cuda.choose_device(args.device)
        _check_writable(args.out)
    except TrainerError as error:
        return report(parser.prog, error)
    with tempfile.TemporaryDirectory() as folder:
        graphs = construction(Path(folder))
    models = {
        "heavy": _apart(str(device), False, False),
        "light": _apart(str(device), True, False),
        "light, checkpointing": _apart(str(device), True, True),
    }
    for name, rate in graphs.items():
        print(f"{name:<28}{units.whole(rate):>12} graphs/s")
    for name, figures in models.items():
        known = {key: units.number(value) for key, value in figures.items()}
        print(f"{name:<28}" + ", ".join(f"{key} {value}" for key, value in known.items()))
    draw(graphs, models, args.out)
    print(f"written: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
