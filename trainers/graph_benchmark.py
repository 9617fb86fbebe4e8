"""The graph trainer's performance test: graph construction, training, inference; graph_benchmark.png.

python -m trainers.graph_benchmark [--out graph_benchmark.png]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from trainers.data import knn
from trainers.engine import checkpoint
from trainers.engine.trainer import Trainer
from trainers.graph import GraphConfig, GraphRecipe, _graph, synthetic_series
from trainers.tuning import cuda
from trainers.tuning.saved import saved_bytes

WINDOW, K, WINDOWS = 64, 8, 48


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


def model_figures(device: torch.device, *, light: bool, checkpointing: bool) -> dict[str, float]:
    """Training and inference of one model variant."""
    config = GraphConfig(
        synthetic=True,
        synthetic_size=0.2,
        use_optimized_model=light,
        use_gradient_checkpoint=checkpointing,
        monitor=False,
        quiet=True,
        out=tempfile.gettempdir(),
    )
    checkpoint.seed_everything(0)
    recipe = GraphRecipe(config, device)
    trainer = Trainer(recipe)
    trainer.train_steps(2)
    step = timed(lambda: trainer.train_steps(1), 9)
    batch = next(iter(trainer.data.train.epoch(0)))
    single = {key: value[:1] for key, value in batch.items()}
    trainer.model.train()
    kept = saved_bytes(lambda: recipe.loss(trainer.model, batch))
    trainer.model.eval()
    with torch.no_grad():
        latency = timed(lambda: trainer.model(single["x"], _graph(single)), 15)
        whole = timed(lambda: trainer.model(batch["x"], _graph(batch)), 9)
    return {
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "training samples/s": config.batch_size / step,
        "inference latency ms": latency * 1e3,
        "inference batches/s": 1 / whole,
        "saved for backward MB": kept / 1e6,
    }


def draw(graphs: dict[str, float], models: dict[str, dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = {"graphs built per second": graphs}
    for key in ("training samples/s", "inference latency ms", "saved for backward MB", "parameters"):
        panels[key] = {name: figures[key] for name, figures in models.items()}
    figure, axes = plt.subplots(len(panels), 1, figsize=(8, 1.6 * len(panels)))
    for axis, (title, values) in zip(axes, panels.items(), strict=True):
        bars = axis.barh(list(values), list(values.values()), color="#4a7ab5")
        axis.bar_label(bars, [f"{value:,.3g}" for value in values.values()], padding=3, fontsize=8)
        axis.set_title(title, fontsize=9, loc="left")
        axis.margins(x=0.15)
    axes[0].set_xscale("log")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="trainers.graph_benchmark", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("graph_benchmark.png"), help="the picture")
    parser.add_argument("--device", default="auto", help="cpu, cuda, auto")
    args = parser.parse_args(arguments)
    device = cuda.choose_device(args.device)
    with tempfile.TemporaryDirectory() as folder:
        graphs = construction(Path(folder))
    models = {
        "heavy": model_figures(device, light=False, checkpointing=False),
        "light": model_figures(device, light=True, checkpointing=False),
        "light, checkpointing": model_figures(device, light=True, checkpointing=True),
    }
    for name, rate in graphs.items():
        print(f"{name:<28}{rate:>12,.0f} graphs/s")
    for name, figures in models.items():
        print(f"{name:<28}" + ", ".join(f"{key} {value:,.4g}" for key, value in figures.items()))
    draw(graphs, models, args.out)
    print(f"written: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
