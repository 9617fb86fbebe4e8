"""What can be heard in the street: log-mel front end inside the network, convolutions, a bidirectional GRU, attention."""

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Hparams:
    sr: int = 8000
    seconds: float = 2.0
    n_fft: int = 512
    hop: int = 160
    n_mels: int = 48
    clips: int = 960
    classes: int = 8
    channels: int = 24
    rnn: int = 64
    batch: int = 16
    epochs: int = 5
    lr: float = 2e-3
    warmup: int = 40
    mixup: float = 0.3
    seed: int = 36


def street(hp):
    """Up to three events a clip, each a tone, a sweep or a burst somewhere in it."""
    g = torch.Generator().manual_seed(hp.seed)
    samples = int(hp.sr * hp.seconds)
    t = torch.arange(samples) / hp.sr
    kinds = torch.arange(hp.classes)[:, None]
    patterns = torch.sin(2 * torch.pi * (150 + 320 * kinds) * t + 40 * (kinds % 3) * torch.sin(4 * t))
    present = torch.rand(hp.clips, hp.classes, generator=g) < 0.25
    loud = present * (0.3 + torch.rand(present.shape, generator=g))
    clips = loud @ patterns + 0.3 * torch.randn(hp.clips, samples, generator=g)
    return clips, present.float()


class LogMel(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.n_fft, self.hop = hp.n_fft, hp.hop
        self.register_buffer("window", torch.hann_window(hp.n_fft))
        bins = torch.linspace(0, hp.sr / 2, hp.n_fft // 2 + 1)
        top = 2595 * math.log10(1 + hp.sr / 2 / 700)
        corners = 700 * (10 ** (torch.linspace(0, top, hp.n_mels + 2) / 2595) - 1)
        rising = (bins - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
        falling = (corners[2:, None] - bins) / (corners[2:] - corners[1:-1])[:, None]
        self.register_buffer("filters", torch.minimum(rising, falling).clamp(min=0))

    @torch.no_grad()
    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = spec.real.square() + spec.imag.square()
        return (self.filters @ power).clamp(min=1e-6).log()


class SpecAugment(nn.Module):
    """A stretch of time and a band of pitch go silent, other ones in every clip."""

    def __init__(self, time=20, band=8):
        super().__init__()
        self.limits = band, time

    def forward(self, x):
        if not self.training:
            return x
        for axis, most in zip((1, 2), self.limits):
            size = x.shape[axis]
            width = torch.randint(1, most + 1, (len(x), 1))
            start = (torch.rand(len(x), 1) * (size - width)).long()
            place = torch.arange(size)
            hidden = (place >= start) & (place < start + width)
            x = x.masked_fill(hidden[:, :, None] if axis == 1 else hidden[:, None], 0.0)
        return x


class CRNN(nn.Module):
    def __init__(self, hp):
        super().__init__()
        c = hp.channels
        self.frontend = LogMel(hp)
        self.norm = nn.BatchNorm1d(hp.n_mels)
        self.augment = SpecAugment()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU(), nn.AvgPool2d((4, 2)),
            nn.Conv2d(c, 2 * c, 3, 1, 1, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU(), nn.AvgPool2d((3, 1)),
            nn.Conv2d(2 * c, 2 * c, 3, 1, 1, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU(), nn.AvgPool2d((4, 1)),
        )  # fmt: skip
        self.rnn = nn.GRU(2 * c, hp.rnn, bidirectional=True, batch_first=True)
        self.strong, self.attention = nn.Linear(2 * hp.rnn, hp.classes), nn.Linear(2 * hp.rnn, hp.classes)

    def forward(self, wave):
        x = self.augment(self.norm(self.frontend(wave)))
        x = self.cnn(x[:, None]).squeeze(2).transpose(1, 2)
        x, _ = self.rnn(x)
        weight = self.attention(x).softmax(1)
        return (self.strong(x).sigmoid() * weight).sum(1).clamp(1e-6, 1 - 1e-6)


class WaveMixer:
    """Loudness, a shift in time, and now and then another clip on top."""

    def __init__(self, hp):
        self.alpha = torch.distributions.Beta(hp.mixup, hp.mixup)

    def __call__(self, wave, tags):
        wave = wave * torch.empty(len(wave), 1).uniform_(0.6, 1.4)
        wave = wave.roll(int(torch.randint(wave.shape[1], ())), 1)
        share, other = self.alpha.sample((len(wave), 1)), torch.randperm(len(wave))
        return wave.lerp(wave[other], 1 - share), tags.lerp(tags[other], 1 - share)


@torch.no_grad()
def validate(model, clips, tags):
    model.eval()
    scores = torch.cat([model(part) for part in clips.split(64)])
    model.train()
    ranks = scores.argsort(0).argsort(0) + 1.0
    n_pos, n_neg = tags.sum(0), (1 - tags).sum(0)
    return (((ranks * tags).sum(0) - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)).mean().item()


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=Hparams.epochs)
    hp = Hparams(epochs=cli.parse_args().epochs)
    torch.manual_seed(hp.seed)
    clips, tags = street(hp)
    (val_clips, clips), (val_tags, tags) = clips.split([96, hp.clips - 96]), tags.split([96, hp.clips - 96])
    model, mixer = CRNN(hp).to(memory_format=torch.channels_last), WaveMixer(hp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=hp.lr, weight_decay=1e-4, fused=True)
    total = hp.epochs * (len(clips) // hp.batch)

    def rate(step):
        return min((step + 1) / hp.warmup, 0.5 * (1 + math.cos(math.pi * step / total)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    best = 0.0
    for epoch in range(hp.epochs):
        running = torch.zeros(())
        for batch in torch.randperm(len(clips)).split(hp.batch):
            wave, wanted = mixer(clips[batch], tags[batch])
            loss = F.binary_cross_entropy(model(wave), wanted)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            scheduler.step()
            running += loss.detach()
        auc = validate(model, val_clips, val_tags)
        best = max(best, auc)
        print(
            f"epoch {epoch}: bce {running.item() / (len(clips) / hp.batch):.3f}, auc {auc:.3f} (best {best:.3f})"
        )


if __name__ == "__main__":
    main()
