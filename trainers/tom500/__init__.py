"""TOM500: segmentation of orbital MRI, slices of NIfTI volumes through a UNet (S1).

    python -m trainers.tom500 --data_dir TOM500 --batch_size 8 --num_workers 16 --compile_model \\
        --validation_interval 20
    python -m trainers.tom500 --synthetic --rung naive

Data: `images/NAME.nii.gz` with `labels/NAME.nii.gz` beside it (any folders named image…, label…).
A sample is one slice; intensities are clipped to the volume's 0.5–99.5 percentiles and standardised.
"""

from __future__ import annotations

from trainers.tom500.recipe import Tom500Recipe as RECIPE

__all__ = ["RECIPE"]
