"""Phase ids, the events of a loop, and what the recorder needs to know about each of them."""

from __future__ import annotations

from . import ring

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
"""No named phase. Its time lands in a word behind the record, which is never written out."""
SCRATCH_WORDS = ring.W_PHASES + OTHER + 1

STARTS = tuple(
    phase in (DATA, TRANSFER, FORWARD, BACKWARD, OPTIMIZER, ZERO_GRAD) for phase in range(OTHER + 1)
)
"""Whether this phase, seen after `step()`, is the begin of the next step. The others (validation, a
checkpoint, logging, a user's own) belong to the step they follow."""

SHIFT = 56
LOW = (1 << SHIFT) - 1
"""A mark is one integer: the phase or event in the top byte, CLOCK_MONOTONIC ns below."""
LIVE = tuple(phase << SHIFT for phase in range(OTHER + 1))

# Events on the tape that are not the begin of a phase.
STEP = 128
"""`step()`: the work of this record is done."""
COMPLETE = 129
"""The same, and the next batch is asked for."""
END_STEP = 130
"""The step ends here and the next one begins: for loops whose begin nobody sees."""
SAMPLES = 131
TOKENS = 132
"""So many more in the open record."""


class PhaseNames:
    """Name → id. The fixed names are known; four more are the user's; the rest fold into `OTHER`."""

    def __init__(self) -> None:
        self.bits: dict[str, int] = {"other": LIVE[OTHER]}
        """Name → its mark without the time."""
        self.own: list[str] = []
        self.folded: dict[str, int] = {}
        """Names there was no id for → how often they were looked up the slow way (once per name)."""

    def register(self, name: str) -> int:
        """Id for a name not in `bits` yet."""
        phase = self._new_id(name)
        self.bits[name] = LIVE[phase]
        return phase

    def _new_id(self, name: str) -> int:
        if name in ring.PHASES:
            return ring.PHASES.index(name)
        if len(ring.PHASES) + len(self.own) < ring.PHASE_SLOTS:
            self.own.append(name)
            return len(ring.PHASES) + len(self.own) - 1
        self.folded[name] = self.folded.get(name, 0) + 1
        return OTHER

    def name(self, phase: int) -> str:
        if phase < len(ring.PHASES):
            return ring.PHASES[phase]
        at = phase - len(ring.PHASES)
        return self.own[at] if at < len(self.own) else "other"
