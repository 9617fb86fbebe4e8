"""Calls of the model that are not a step's forward pass: evaluation, and playing or generating the data to
train on.

An evaluation lasts from its first call to its last. What lies between two calls belongs to it; what follows
the last does not, but that is known only when something else begins (`Loop.tail`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..core.phases import FORWARD, VALIDATE
from ._manual_updates import first_values

if TYPE_CHECKING:
    from ._recognizer import StepRecognizer

ROLLOUT = "rollout"
ENVIRONMENTS = ("gymnasium", "gym", "pettingzoo", "dm_env", "stable_baselines3", "torchrl")
"""If one of these is imported, a model called without gradients is playing."""


_OFTEN = 4
"""Chosen: a module called within so many steps of its last call is part of the steps."""


class PassesWithoutGradients:
    """Sorts such calls into `validate`, `rollout` and parts of the forward pass (a teacher, a target net)."""

    def __init__(self, steps: StepRecognizer) -> None:
        self._steps = steps
        self._recorder = steps.recorder
        self._inside = 0
        self._draws = False
        self._seen: dict[int, tuple[int, tuple[int, Any], bool]] = {}
        """Untrained module → the step of its last call, its state then, and whether it was tried out."""
        self.rollout = -1
        """Id of the phase `rollout`, once there is one."""

    def begins(self, module: Any) -> bool:
        """The module is called without gradients or in evaluation mode. Returns whether its end matters."""
        steps, recorder = self._steps, self._recorder
        if self._inside or steps.inside or not steps.training:
            return False
        if recorder.current == VALIDATE and not steps.tail:
            return False  # an evaluation over a loader, or successive calls with gradients
        if steps.grad_enabled():
            self._in_evaluation_mode()
            return False
        if self._is_part_of_forward(module):
            if recorder.current != FORWARD:
                steps.forward_begins()
            return False
        self._inside = self._phase_of(module)
        steps.tail = False
        recorder.mark(self._inside)
        return True

    def _in_evaluation_mode(self) -> None:
        """With gradients: either an evaluation whose author forgot `no_grad`, or a model trained in
        evaluation mode. If a backward pass follows, this was the forward pass."""
        steps = self._steps
        if steps.batches and not steps.had_update:
            if self._recorder.current != FORWARD:
                steps.forward_begins()
        else:
            steps.unsure_start()
            self._recorder.mark(VALIDATE)

    def _is_part_of_forward(self, module: Any) -> bool:
        """A training batch is here and not yet trained on, or this module is not the one being trained."""
        steps = self._steps
        if steps.batches and not steps.had_update:
            return True
        first = next(iter(module.parameters()), None)
        if not steps.stepped or first is None or steps.optimizers.trains(first):
            return False
        return not self._is_tried_out(module, first)

    def _is_tried_out(self, module: Any, first: Any) -> bool:
        """An average of the weights is called now and then and has changed meanwhile. A target network
        changes, too, but is called in every step; a teacher or a reference never changes."""
        now, state = self._recorder.steps, (first._version, first_values(first))
        last, before, tried = self._seen.get(id(module), (now, state, False))
        if now != last:
            tried = bool(now - last > _OFTEN and state != before)
        self._seen[id(module)] = now, state, tried
        return bool(tried)

    def _phase_of(self, module: Any) -> int:
        """A model is playing if an environment is imported, or if actions are drawn from its output."""
        plays = self._draws and module.training
        if plays or any(name in sys.modules for name in ENVIRONMENTS):
            return self.rollout_phase()
        return VALIDATE

    def distribution_made(self) -> None:
        """A `torch.distributions` object; without gradients it is for drawing actions. Text generated for
        inspection is drawn as well, but in evaluation mode."""
        if not self._steps.grad_enabled():
            self._draws = True

    def rollout_phase(self) -> int:
        """The phase `rollout`, created on first use because most trainings have none."""
        if self.rollout < 0:
            self.rollout = self._recorder.register(ROLLOUT)
            self._steps.session.phases_changed()
        return self.rollout

    def ends(self) -> None:
        """Such a call has returned; another may follow."""
        if self._inside:
            self._recorder.mark(self._inside)
            self._inside = 0
            self._steps.tail = True
