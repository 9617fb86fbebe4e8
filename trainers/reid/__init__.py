"""Multi-modal re-identification: P×K batches, identity and triplet losses, mAP and rank-k (S2).

    python -m trainers.reid --data_dir DATA --batch_size 32 --num_instances 4
    python -m trainers.reid --synthetic --rung naive

Data: `MODALITY/IDENTITY/SAMPLE.jpg`; a sample is the same name under several modalities, of which
some may be missing. Identities held out for validation are never trained on.
"""

from __future__ import annotations

from trainers.reid.recipe import ReidRecipe as RECIPE

__all__ = ["RECIPE"]
