"""What a run leaves behind: last.pt to go on from, best.pt to use, metrics.jsonl to read."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.engine import checkpoint
from trainers.engine.distributed import World
from trainers.engine.recipe import Recipe
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from trainers.engine.trainer import Trainer

SAME = ("batch_size", "seed", "gradient_accumulation_steps", "validation_fraction", "lr", "weight_decay")
"""Options a continued run must share with the one it continues."""


class Records:
    """Files in `--out/<recipe>/`; only rank 0 writes."""

    def __init__(self, recipe: Recipe[Any], world: World) -> None:
        self.folder = Path(recipe.config.out) / recipe.name
        self.world = world
        self.recipe = recipe
        self.norms: list[float] = []
        self._epoch_began = time.perf_counter()

    def save(self, trainer: Trainer) -> None:
        """The checkpoint to go on from."""
        if not self.world.first:
            return
        content = {
            "position": dataclasses.asdict(trainer.at),
            "model": trainer.model_state(),
            "update": trainer.updater.state(),
            "recipe": dict(self.recipe.state()),
            "rng": checkpoint.rng_state(),
            "config": dataclasses.asdict(self.recipe.config),
        }
        checkpoint.save(self.folder / "last.pt", content)

    def restore(self, trainer: Trainer) -> None:
        """Go on from last.pt if there is one."""
        path = self.folder / "last.pt"
        if not path.exists():
            self.recipe.say(f"no checkpoint in {self.folder}: starting afresh")
            return
        content = checkpoint.load(path, self.recipe.device)
        self._check_same(content["config"], path)
        try:
            trainer.model.load_state_dict(content["model"])
        except RuntimeError as error:
            raise TrainerError(
                f"checkpoint {path} holds another model than these options build",
                hint="the options it was made with are in it; or --resume never",
            ) from error
        trainer.updater.load_state(content["update"])
        self.recipe.load_state(content["recipe"])
        for name, value in content["position"].items():
            setattr(trainer.at, name, value)
        if trainer.memory is not None:
            trainer.memory.batch_size = trainer.at.batch_size
        checkpoint.set_rng_state(_on_cpu(content["rng"]))
        self.recipe.say(f"resumed at epoch {trainer.at.epoch}, step {trainer.at.step}")

    def _check_same(self, before: dict[str, Any], path: Path) -> None:
        for name in SAME:
            now = getattr(self.recipe.config, name)
            if before.get(name) != now:
                raise TrainerError(
                    f"checkpoint {path} was made with --{name} {before.get(name)}, not {now}",
                    hint=f"--{name} {before.get(name)} goes on with it; --resume never starts afresh",
                )

    def validated(self, trainer: Trainer, metrics: dict[str, float], seconds: float) -> None:
        """Note the figures; export the model when it is the best so far."""
        name, better = self.recipe.metric
        value, best = metrics.get(name), trainer.at.best
        improved = value is not None and (best is None or (value < best if better == "min" else value > best))
        trainer.at.bad = 0 if improved else trainer.at.bad + 1
        if improved:
            trainer.at.best = value
        if not self.world.first:
            return
        if improved:
            export = {"model": trainer.model_state(), "metrics": metrics}
            export["config"] = dataclasses.asdict(self.recipe.config)
            checkpoint.save(self.folder / "best.pt", export)
        self._append(trainer, metrics, seconds)

    def _append(self, trainer: Trainer, metrics: dict[str, float], seconds: float) -> None:
        rates = trainer.result.samples_per_second
        line = {
            "epoch": trainer.at.epoch,
            "step": trainer.at.step,
            "train_loss": trainer.result.losses[-1] if trainer.result.losses else None,
            **metrics,
            "samples_per_second": rates and round(rates, 1),
            "validate_seconds": round(seconds, 4),
            "grad_norm": self.norms[-1] if self.norms else None,
            "overflows": trainer.updater.overflows,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        figures = ", ".join(f"{key} {value:.4g}" for key, value in metrics.items())
        self.recipe.say(f"epoch {trainer.at.epoch}: {figures} (validation took {seconds:.2f} s)")


def _on_cpu(state: dict[str, Any]) -> dict[str, Any]:
    """Generator states are host tensors, wherever the model was loaded to."""
    state["torch"] = state["torch"].cpu()
    state["cuda"] = [part.cpu() for part in state["cuda"]]
    state["numpy"][1] = state["numpy"][1].cpu()
    return state
