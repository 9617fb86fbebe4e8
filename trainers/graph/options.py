"""Options of the graph trainer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import torch

from trainers.datasets.table_options import TableConfig
from trainers.errors import TrainerError
from trainers.tuning.memory import device_memory_bytes, pick_tier


@dataclass(kw_only=True)
class GraphConfig(TableConfig):
    """Options of the graph trainer."""

    LEAST: ClassVar[dict[str, float]] = {"need_rate": 0, "window_size": 2}

    batch_size: int = 16
    """Windows in a batch."""
    window_size: int = 96
    """Steps of a window: the nodes of its graph."""
    time_k: int = 8
    """Neighbours of a node."""
    hidden_channels: int = 64
    """Width of the model."""
    encoder_layers: int = 2
    """Graph layers before the transformer."""
    decoder_layers: int = 2
    """Graph layers after it."""
    transformer_layers: int = 1
    """Transformer layers."""
    attention_heads: int = 2
    """Heads of each transformer layer."""
    use_optimized_model: bool = True
    """The light variant: narrow transformer feed-forward, shared decoder weights."""
    use_gradient_checkpoint: bool = False
    """Recompute activations in backward: less memory, more time."""
    tier: Literal["none", "auto", "low", "medium", "high"] = "none"
    """Sizes by memory: < 8 GB low, 8–16 GB medium, > 16 GB high; options given explicitly win."""
    cache_dir: str = "graph_cache"
    """Folder of the graph cache."""
    clear_cache: bool = False
    """Remove the graph cache first."""
    naive_graph: Literal["numpy", "python"] = "numpy"
    """How the naive rung builds each graph."""
    columns: str | None = None
    """Columns to use. Unset: all of the first file."""
    need_rate: float = 0.5
    """How fast the need vector follows the training error; 0 switches it off."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time_k >= self.window_size:
            raise TrainerError(
                f"--time_k {self.time_k} must be smaller than --window_size {self.window_size}"
            )
        if self.hidden_channels % self.attention_heads:
            raise TrainerError("--hidden_channels must be a multiple of --attention_heads")


def apply_tier(config: GraphConfig, device: torch.device) -> GraphConfig:
    """Fill what was not given from the tier that fits the memory."""
    if config.tier == "none":
        return config
    tier = pick_tier(config.tier, device_memory_bytes(device))
    names = {field.name for field in fields(tier)} - {"name"} - config.explicit
    return config.replace(**{name: getattr(tier, name) for name in names})
