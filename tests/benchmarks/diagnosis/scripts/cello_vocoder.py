"""Cello notes from their mel spectrograms: an adversarial vocoder with a mel loss, a project of several files."""

import argparse
import itertools

import torch
import torch.nn.functional as F
from cello_kit import meldataset
from cello_kit.env import AttrDict, Meter
from cello_kit.meldataset import MelDataset, get_loader, multi_mel
from cello_kit.models import Generator, MultiScaleDiscriminator
from cello_kit.objectives import discriminator_loss, feature_loss, generator_loss

H = AttrDict(
    seed=1234,
    batch_size=4,
    segment_size=4096,
    recordings=160,
    seconds=0.6,
    sampling_rate=16000,
    num_mels=40,
    hop_size=64,
    n_fft=512,
    loss_ffts=(2048, 1024, 512, 256),
    loss_mels=(160, 80, 40, 20),
    upsample_rates=(8, 4, 2),
    upsample_initial_channel=48,
    learning_rate=4e-4,
    adam_b1=0.8,
    adam_b2=0.99,
    lr_decay=0.98,
)


def train(a, h):
    torch.manual_seed(h.seed)
    generator = Generator(h)
    msd = MultiScaleDiscriminator(scales=2)
    loader = get_loader(MelDataset(h), h)
    adam = {"betas": (h.adam_b1, h.adam_b2), "fused": True}
    optim_g = torch.optim.AdamW(generator.parameters(), h.learning_rate, **adam)
    optim_d = torch.optim.AdamW(itertools.chain(msd.parameters()), h.learning_rate, **adam)
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(one, h.lr_decay) for one in (optim_g, optim_d)]
    meter, steps = Meter(), 0
    for epoch in range(a.training_epochs):
        for mel, audio in loader:
            generated = generator(mel)

            optim_d.zero_grad()
            real, fake = msd(audio, generated.detach())
            loss_disc = discriminator_loss(real.scores, fake.scores)
            loss_disc.backward()
            optim_d.step()

            optim_g.zero_grad()
            msd.requires_grad_(False)
            loss_mel = sum(
                F.l1_loss(one, other) for one, other in zip(multi_mel(generated, h), multi_mel(audio, h))
            )
            real, fake = msd(audio, generated)
            loss_gen = generator_loss(fake.scores) + 2 * feature_loss(real.maps, fake.maps) + 15 * loss_mel
            loss_gen.backward()
            msd.requires_grad_(True)
            optim_g.step()

            steps += 1
            meter.update(mel=loss_mel, gen=loss_gen, disc=loss_disc)
            if steps % a.stdout_interval == 0:
                print(f"Steps: {steps:d}, {meter.flush()}")
        for scheduler in schedulers:
            scheduler.step()
        print(f"Epoch: {epoch + 1} done")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--training_epochs", default=10, type=int)
    parser.add_argument("--stdout_interval", default=20, type=int)
    parser.add_argument(
        "--fixed", action="store_true", help="filters are found again under the name they were kept by"
    )
    a = parser.parse_args()
    if a.fixed:
        meldataset.lookup = meldataset.kept_name
    train(a, H)
