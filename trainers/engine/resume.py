"""Everything a bit-equal continuation needs: taken from a trainer, and put back."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from trainers.engine import sharding
from trainers.engine.checkpoint import rng_state, set_rng_state
from trainers.engine.state import Position

if TYPE_CHECKING:
    from trainers.loop import Trainer

KEYS = ("position", "model", "optimizer", "scaler", "running_norm", "recipe", "rng", "config")


def state(trainer: Trainer) -> dict[str, Any]:
    """The content of a checkpoint."""
    return {
        "position": dataclasses.asdict(trainer.at),
        "model": sharding.model_state(trainer.model),
        "optimizer": sharding.optimizer_state(trainer.model, trainer.optimizer),
        "scaler": trainer.precision.scaler.state_dict(),
        "running_norm": trainer.clipper.running,
        "recipe": dict(trainer.recipe.state()),
        "rng": rng_state(),
        "config": dataclasses.asdict(trainer.config),
    }


def restore(trainer: Trainer) -> None:
    """Go on from the last checkpoint, if there is one; a part that does not fit is one sentence."""
    records = trainer.records
    content = records.load(KEYS)
    if content is None:
        return
    with records.fitting("model"):
        sharding.load_model(trainer.model, content["model"])
    with records.fitting("optimizer state"):
        sharding.load_optimizer(trainer.model, trainer.optimizer, content["optimizer"])
        trainer.precision.scaler.load_state_dict(content["scaler"])
        trainer.clipper.running = content["running_norm"]
    with records.fitting("run"):
        trainer.recipe.load_state(content["recipe"])
        trainer.at = Position(**content["position"])
        set_rng_state(content["rng"])
    if trainer.memory is not None:
        trainer.memory.batch_size = trainer.at.batch_size
    trainer.recipe.say(f"resumed at epoch {trainer.at.epoch}, step {trainer.at.step}")
