"""Standardisation: mean 0, deviation 1 per column."""

from __future__ import annotations

from typing import Any

import numpy as np


class StandardScaler:
    """Fitted on training rows only. Checks what it is given, as the usual library one does."""

    def fit(self, rows: np.ndarray) -> StandardScaler:
        self.mean = rows.mean(axis=0, dtype=np.float64)
        deviation = rows.std(axis=0, dtype=np.float64)
        self.scale = np.where(deviation > 0, deviation, 1.0)
        return self

    def transform(self, rows: np.ndarray) -> np.ndarray:
        rows = np.array(rows, dtype=np.float64, copy=True)
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ValueError(f"{len(self.mean)} columns expected, shape {rows.shape} given")
        if not np.isfinite(rows).all():
            raise ValueError("NaN or infinity in the data")
        rows -= self.mean
        rows /= self.scale
        return rows

    def as_library(self) -> Any:
        """The same scaler as scikit-learn's, whose validation is what the documents' per-sample call
        pays for; without that package: this one."""
        try:
            from sklearn.preprocessing import StandardScaler as LibraryScaler
        except ImportError:
            return self
        scaler = LibraryScaler()
        scaler.mean_, scaler.scale_, scaler.var_ = self.mean, self.scale, self.scale**2
        scaler.n_features_in_ = len(self.mean)
        return scaler
