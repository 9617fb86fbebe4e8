"""Is the loss still going down? Said once when it is not: mixed precision can break it silently."""

from __future__ import annotations


class ConvergenceWatch:
    """Follows the logged losses; a smoothed loss well above its best is worth a sentence."""

    def __init__(self, *, mixed_precision: bool, factor: float = 2.0, patience: int = 5) -> None:
        self.mixed_precision = mixed_precision
        self.factor, self.patience = factor, patience
        self.smooth: float | None = None
        self.best: float | None = None
        self.bad = 0
        self.said = False

    def add(self, loss: float) -> str | None:
        """A warning, at most once a run."""
        self.smooth = loss if self.smooth is None else 0.7 * self.smooth + 0.3 * loss
        self.best = self.smooth if self.best is None else min(self.best, self.smooth)
        self.bad = self.bad + 1 if self.smooth > self.best * self.factor and self.best > 0 else 0
        if self.said or self.bad < self.patience:
            return None
        self.said = True
        cause = (
            "mixed precision may cost accuracy here: compare with --no-use_amp"
            if self.mixed_precision
            else ("a lower --lr or --clip_norm may help")
        )
        return f"the loss has risen to {self.smooth:.4g}, its best was {self.best:.4g}; {cause}"
