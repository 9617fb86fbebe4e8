"""Which days count: the attention of a trained sequence model, as a table and a plot (S4.5).

    python -m trainers.sequence.attention --out out

Takes best.pt of a run (its options are in it), goes once over the validation data, and writes
attention.json and attention.png beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from sdk.units import percent
from trainers.engine import checkpoint
from trainers.errors import EXIT_FAILED, TrainerError, report
from trainers.sequence.evaluation import extract_attention_importance
from trainers.sequence.options import SequenceConfig
from trainers.sequence.recipe import SequenceRecipe
from trainers.tuning import cuda


def importance_of(folder: Path, device_name: str = "auto") -> np.ndarray:
    """Mean attention per day of the window, the oldest day first; sums to 1."""
    path = folder / "sequence" / "best.pt"
    if not path.exists():
        raise TrainerError(f"no {path}", hint="train first; --out is the folder that was given there")
    device = cuda.choose_device(device_name)
    content = checkpoint.load(path, device, keys=("model", "config"))
    try:
        recipe = SequenceRecipe(SequenceConfig(**{**content["config"], "quiet": True}), device)
        data, model = recipe.build_data(), recipe.build_model().to(device)
        model.load_state_dict(content["model"])
    except (RuntimeError, TypeError) as error:
        raise TrainerError(f"{path} does not fit the data and options it was made with") from error
    return extract_attention_importance(model.eval(), data.validation, device)


def draw(importance: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 3))
    axis.bar(np.arange(-len(importance), 0), importance, color="#4a7ab5")
    axis.axhline(1 / len(importance), color="grey", linewidth=0.8, linestyle="--", label="all days alike")
    axis.set(xlabel="days before the forecast", ylabel="share of the attention")
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _write(importance: np.ndarray, folder: Path) -> None:
    days = {str(day - len(importance)): round(float(share), 6) for day, share in enumerate(importance)}
    try:
        (folder / "attention.json").write_text(json.dumps(days, indent=1) + "\n", encoding="utf-8")
        draw(importance, folder / "attention.png")
    except OSError as error:
        raise TrainerError(f"cannot write to {folder}: {error.strerror}", code=EXIT_FAILED) from error


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="trainers.sequence.attention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help="the run's --out")
    parser.add_argument("--device", default="auto", help="cpu, cuda, auto")
    args = parser.parse_args(arguments)
    folder = args.out / "sequence"
    try:
        importance = importance_of(args.out, args.device)
        _write(importance, folder)
    except TrainerError as error:
        return report(parser.prog, error)
    for day in np.argsort(importance)[::-1][:5]:
        print(f"day {day - len(importance):>4}: {percent(importance[day])} of the attention")
    print(f"written: {folder / 'attention.json'}, {folder / 'attention.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
