"""Calls outside the model that are timed as their own phase: checkpoints, logging, collectives, …"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..compiler.tracing import Compiling
from ..core.phases import CHECKPOINT, GRAD_NORM, LOG, VALIDATE
from ._trackers import Note, Trackers
from .import_hook import when_imported
from .patch import Undo, replace

if TYPE_CHECKING:
    from ._recognizer import StepRecognizer

COLLECTIVE = "collective"
_COLLECTIVES = (
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
)
_WRITER = (
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "add_image",
    "add_images",
    "add_figure",
    "add_text",
    "add_graph",
    "add_embedding",
    "add_video",
    "add_audio",
    "add_hparams",
    "flush",
)
LATER: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("torch.utils.tensorboard.writer", "SummaryWriter", _WRITER, LOG),
    ("tensorboardX.writer", "SummaryWriter", _WRITER, LOG),
    ("wandb.sdk.wandb_run", "Run", ("log", "log_artifact"), LOG),
    (
        "mlflow.tracking.client",
        "MlflowClient",
        ("log_metric", "log_batch", "log_artifact", "log_figure"),
        LOG,
    ),
    ("safetensors.torch", "", ("save_file", "save_model"), CHECKPOINT),
    ("torch.distributed.checkpoint.state_dict_saver", "", ("save",), CHECKPOINT),
    ("transformers.trainer", "Trainer", ("evaluate", "predict"), VALIDATE),
    ("transformers.trainer", "Trainer", ("_save_checkpoint", "save_model"), CHECKPOINT),
    ("trl.trainer.base_trainer", "_BaseTrainer", ("create_model_card",), CHECKPOINT),
    ("lightning.pytorch.trainer.trainer", "Trainer", ("save_checkpoint",), CHECKPOINT),
    ("pytorch_lightning.trainer.trainer", "Trainer", ("save_checkpoint",), CHECKPOINT),
    ("ultralytics.engine.trainer", "BaseTrainer", ("validate",), VALIDATE),
    ("ultralytics.engine.trainer", "BaseTrainer", ("save_model",), CHECKPOINT),
    ("fastai.learner", "Learner", ("_do_epoch_validate",), VALIDATE),
    ("fastai.learner", "Learner", ("save", "export"), CHECKPOINT),
    ("d3rlpy.base", "LearnableBase", ("save", "save_model"), CHECKPOINT),
    ("d3rlpy.logging.logger", "D3RLPyLogger", ("commit",), LOG),
)
"""Module, its class (empty: module functions), names, phase; hooked once the module is imported."""


def side_calls(steps: StepRecognizer, torch: Any) -> list[Undo]:
    """Time these calls; modules not yet imported are hooked when they are."""
    use = steps.recorder.totals.use
    for phase in (CHECKPOINT, GRAD_NORM, LOG):
        use(phase)
    undo = [
        replace(torch, "save", timed(steps, lambda: CHECKPOINT)),
        replace(torch.nn.utils, "clip_grad_norm_", timed(steps, lambda: GRAD_NORM)),
    ]
    trackers = Trackers(steps.session)
    for module, owner, names, phase in LATER:
        undo += when_there(module, owner, names, timed(steps, _always(phase), trackers.noting(module)))
    if torch.distributed.is_available():
        collective = timed(steps, _new_phase(steps, COLLECTIVE))
        undo += [replace(torch.distributed, name, collective) for name in _COLLECTIVES]
    undo.append(
        replace(torch.distributions.Distribution, "__init__", lambda original: _made(steps, original))
    )
    rollout = timed(steps, steps.evaluation.rollout_phase)
    undo += when_there("transformers.generation.utils", "GenerationMixin", ("generate",), rollout)
    return undo


def _made(steps: StepRecognizer, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not Compiling.check():
            steps.guarded(steps.evaluation.distribution_made)

    return __init__


def _always(phase: int) -> Callable[[], int]:
    return lambda: phase


def _new_phase(steps: StepRecognizer, name: str) -> Callable[[], int]:
    """A phase few trainings have: created on first use."""
    known: list[int] = []

    def phase() -> int:
        if not known:
            known.append(steps.recorder.register(name))
            steps.session.phases_changed()
        return known[0]

    return phase


def when_there(module: str, owner: str, names: tuple[str, ...], make: Callable[[Any], Any]) -> list[Undo]:
    """Wrap these names once the module is imported; returns what undoes all of it."""
    taken: list[Undo] = []

    def wrap(found: Any) -> None:
        holder = getattr(found, owner, None) if owner else found
        for name in names:
            if hasattr(holder, name):
                taken.append(replace(holder, name, make))

    def take_out() -> None:
        while taken:
            taken.pop()()

    return [when_imported(module, wrap), take_out]


def timed(steps: StepRecognizer, phase: Callable[[], int], note: Note | None = None) -> Callable[[Any], Any]:
    """A call timed as its own phase. Inside an evaluation or another such call, it is part of that. `note` is
    called with its arguments."""
    recorder = steps.recorder
    apart = (VALIDATE, CHECKPOINT, LOG)

    def make(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if note is not None and not Compiling.check():
                steps.guarded(note, *args, **kwargs)
            if (
                Compiling.check()
                or get_ident() != recorder.thread
                or recorder.current in apart
                or recorder.depth
            ):
                return original(*args, **kwargs)
            before, tail = recorder.current, steps.tail
            steps.tail = False
            recorder.mark(phase())
            recorder.depth = 1  # model calls in here are part of it
            try:
                return original(*args, **kwargs)
            finally:
                recorder.depth = 0
                recorder.mark(before)
                steps.tail = tail

        return call

    return make
