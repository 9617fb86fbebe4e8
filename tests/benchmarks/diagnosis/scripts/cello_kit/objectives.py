"""Least-squares adversarial losses and the distance between feature maps."""


def feature_loss(real, fake):
    return sum((r.detach() - f).abs().mean() for one, other in zip(real, fake) for r, f in zip(one, other))


def discriminator_loss(real, fake):
    return sum((1 - r).square().mean() + f.square().mean() for r, f in zip(real, fake))


def generator_loss(fake):
    return sum((1 - f).square().mean() for f in fake)
