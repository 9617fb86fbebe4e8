"""To be called behind every optimizer step of this process."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def after_step(then: Callable[[], None]) -> None:
    """Call `then` behind every optimizer step."""
    after_optimizer(lambda _: then())


def after_optimizer(then: Callable[[Any], None]) -> None:
    """Call `then` with every optimizer that has stepped."""
    module = importlib.import_module("torch.optim.optimizer")
    module.register_optimizer_step_post_hook(lambda optimizer, *_: then(optimizer))


def after_first_step(then: Callable[[], None]) -> None:
    """Once. The hook stays: torch is going through its hooks when it is called, and they must not change."""
    waiting = [then]
    after_step(lambda: waiting.pop()() if waiting else None)
