"""Speech of whales without labels: masked stretches of sound are to be told from others of the same recording."""

import argparse
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CRITERIA = {}


def register_criterion(name):
    def keep(cls):
        CRITERIA[name] = cls
        return cls

    return keep


@dataclass
class ModelConfig:
    conv_layers: tuple = ((48, 10, 5), (48, 8, 4), (64, 4, 4))
    width: int = 96
    ffn: int = 256
    heads: int = 4
    layers: int = 2
    final_dim: int = 48
    mask_length: int = 6
    mask_spans: int = 7
    num_negatives: int = 20
    negatives: str = "listed"


@dataclass
class TrainConfig:
    recordings: int = 400
    samples: int = 8000
    batch_size: int = 12
    max_update: int = 200
    warmup: int = 30
    lr: float = 1e-3
    temperature: float = 0.1
    log_interval: int = 20
    seed: int = 97
    model: ModelConfig = field(default_factory=ModelConfig)


def recordings(cfg):
    """Chirps over the noise of the sea."""
    g = torch.Generator().manual_seed(cfg.seed)
    t = torch.linspace(0, 1, cfg.samples)
    low, sweep, beat = torch.rand(3, cfg.recordings, 1, generator=g)
    wave = torch.sin(2 * torch.pi * (40 + 200 * low) * t + 300 * sweep * t**2)
    wave = wave * (0.6 + 0.4 * torch.sin(2 * torch.pi * (2 + 6 * beat) * t))
    return wave + 0.2 * torch.randn(wave.shape, generator=g)


class ConvFeatures(nn.Module):
    def __init__(self, layers):
        super().__init__()
        blocks, before = [], 1
        for width, kernel, stride in layers:
            blocks.append(nn.Conv1d(before, width, kernel, stride, bias=False))
            blocks.append(nn.GroupNorm(1, width))
            blocks.append(nn.GELU())
            before = width
        self.blocks = nn.Sequential(*blocks)

    def forward(self, wave):
        return self.blocks(wave[:, None]).transpose(1, 2)


class PositionalConv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 15, padding=7, groups=8)

    def forward(self, x):
        return x + F.gelu(self.conv(x.transpose(1, 2)).transpose(1, 2))


class ListedNegatives:
    """For each masked step, other masked steps of its recording."""

    def __init__(self, count):
        self.count = count

    def __call__(self, batch, masked):
        table = []
        for _ in range(batch):
            rows = []
            for step in range(masked):
                others = np.setdiff1d(np.arange(masked), step)
                rows.append(torch.from_numpy(np.random.choice(others, self.count, replace=False)))
            table.append(torch.stack(rows))
        return torch.stack(table)


class DrawnNegatives:
    """The same, for all recordings in one draw."""

    def __init__(self, count):
        self.count = count

    def __call__(self, batch, masked):
        order = torch.rand(batch, masked, masked)
        order.diagonal(dim1=1, dim2=2).fill_(-1)
        return order.topk(self.count, -1, sorted=False).indices


NEGATIVES = {"listed": ListedNegatives, "drawn": DrawnNegatives}


class WaveUnits(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        features = cfg.conv_layers[-1][0]
        self.feature_extractor = ConvFeatures(cfg.conv_layers)
        self.layer_norm = nn.LayerNorm(features)
        self.post_extract_proj = nn.Linear(features, cfg.width)
        self.mask_emb = nn.Parameter(torch.empty(cfg.width).uniform_())
        self.pos_conv = PositionalConv(cfg.width)
        layer = nn.TransformerEncoderLayer(
            cfg.width, cfg.heads, cfg.ffn, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.final_proj = nn.Linear(cfg.width, cfg.final_dim)
        self.target_proj = nn.Linear(features, cfg.final_dim)
        self.sample_negatives = NEGATIVES[cfg.negatives](cfg.num_negatives)

    def mask_indices(self, batch, frames):
        """Spans that do not overlap: as many masked steps in every recording."""
        slots = frames // self.cfg.mask_length
        starts = torch.rand(batch, slots).topk(self.cfg.mask_spans).indices.sort().values
        steps = starts[..., None] * self.cfg.mask_length + torch.arange(self.cfg.mask_length)
        return steps.flatten(1)

    def forward(self, wave):
        features = self.layer_norm(self.feature_extractor(wave))
        masked = self.mask_indices(*features.shape[:2])
        rows = torch.arange(len(wave))[:, None]
        hidden = torch.zeros(features.shape[:2], dtype=torch.bool)
        hidden[rows, masked] = True
        x = torch.where(hidden[..., None], self.mask_emb, self.post_extract_proj(features))
        x = self.encoder(self.pos_conv(x))
        context = self.final_proj(x[rows, masked])
        units = self.target_proj(features[rows, masked])
        negatives = units[rows[..., None], self.sample_negatives(*masked.shape)]
        return context, units, negatives, features.square().mean()


@register_criterion("contrastive")
class ContrastiveCriterion(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.temperature = cfg.temperature

    def forward(self, model, wave):
        context, units, negatives, penalty = model(wave)
        choices = torch.cat([units[:, :, None], negatives], 2)
        logits = F.cosine_similarity(context[:, :, None], choices, -1) / self.temperature
        logits = logits.flatten(0, 1)
        loss = F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.long))
        return loss + 0.1 * penalty, {"loss": loss.detach(), "right": (logits.argmax(1) == 0).float().mean()}


def rate(step, cfg):
    return min((step + 1) / cfg.warmup, max(0.0, (cfg.max_update - step) / (cfg.max_update - cfg.warmup)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-update", type=int, default=TrainConfig.max_update)
    parser.add_argument("--fixed", action="store_true", help="all negatives in one draw")
    args = parser.parse_args()
    cfg = TrainConfig(
        max_update=args.max_update, model=ModelConfig(negatives="drawn" if args.fixed else "listed")
    )
    torch.manual_seed(cfg.seed)
    np.random.seed(cfg.seed)
    data = recordings(cfg)
    model = WaveUnits(cfg.model)
    criterion = CRITERIA["contrastive"](cfg)
    optimizer = torch.optim.AdamW(
        model.parameters(), cfg.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, cfg))
    update = 0
    while update < cfg.max_update:
        for batch in torch.randperm(len(data)).split(cfg.batch_size)[:-1]:
            loss, logs = criterion(model, data[batch])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            update += 1
            if update % cfg.log_interval == 0:
                print(f"update {update} | " + " | ".join(f"{k} {float(v):.3f}" for k, v in logs.items()))
            if update == cfg.max_update:
                break


if __name__ == "__main__":
    main()
