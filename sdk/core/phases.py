"""Phase ids and what the recorder needs to know about each."""

from __future__ import annotations

from .. import ring

(
    DATA,
    TRANSFER,
    FORWARD,
    BACKWARD,
    OPTIMIZER,
    BETWEEN,
    VALIDATE,
    CHECKPOINT,
    LOG,
    GRAD_NORM,
    ZERO_GRAD,
    SYNC,
) = range(len(ring.PHASES))
OTHER = ring.LIVE_NONE
"""No named phase. Its time lands in a word past the record, which is never written out."""
SCRATCH_WORDS = ring.W_PHASES + OTHER + 1

STARTS = tuple(
    phase in (DATA, TRANSFER, FORWARD, BACKWARD, OPTIMIZER, ZERO_GRAD) for phase in range(OTHER + 1)
)
"""Whether this phase, seen after `step()`, begins the next step. The others (validation, checkpoints,
logging, the user's own) belong to the step they follow."""

LIVE = tuple(phase << 56 for phase in range(OTHER + 1))
"""The ring's live word without its time."""


class PhaseNames:
    """Name → id. Twelve names are fixed; the user gets four more; the rest fold into `OTHER`."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {"other": OTHER}
        self.own: list[str] = []
        self.folded: list[str] = []
        """Names for which no id was left."""

    def register(self, name: str) -> int:
        """Id of a name, assigned if the name is new."""
        phase = self.ids.get(name)
        if phase is None:
            phase = self.ids[name] = self._new_id(name)
        return phase

    def _new_id(self, name: str) -> int:
        if name in ring.PHASES:
            return ring.PHASES.index(name)
        if len(ring.PHASES) + len(self.own) < ring.PHASE_SLOTS:
            self.own.append(name)
            return len(ring.PHASES) + len(self.own) - 1
        self.folded.append(name)
        return OTHER

    def name(self, phase: int) -> str:
        if phase < len(ring.PHASES):
            return ring.PHASES[phase]
        at = phase - len(ring.PHASES)
        return self.own[at] if at < len(self.own) else "other"
