"""Implicit-state TCN: infer a system's hidden state from measured windows, held to its physics (S0).

    python -m trainers.tcn --data_dir "data_simulation_*" --epochs 100 --batch_size 512 --lr 1e-3 \\
        --lambda_physics 0.5 --num_workers 8 --prefetch_factor 8 --cache_data --use_amp
    python -m trainers.tcn --synthetic --rung naive      # the slow twin
    torchrun --nproc-per-node 2 -m trainers.tcn --synthetic

Data: CSV or NPZ tables of a driven oscillator (force, noisy measurement, parameters → position and
velocity). Loss: data term + lambda_physics × residual of  x' = v,  v' = F − c·v − k·x.
"""

from __future__ import annotations

from trainers.tcn.recipe import TcnRecipe as RECIPE

__all__ = ["RECIPE"]
