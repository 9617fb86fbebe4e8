"""Answers of a survey, trained with differential privacy: a gradient for each person, clipped, with noise."""

import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

PEOPLE, QUESTIONS, ANSWERS = 4096, 60, 5
BATCH, STEPS, CLIP, NOISE, LR = 48, 130, 1.0, 0.8, 0.05


def make_model():
    return nn.Sequential(
        nn.Linear(QUESTIONS, 192), nn.Tanh(), nn.Linear(192, 96), nn.Tanh(), nn.Linear(96, ANSWERS)
    )


def make_loss(model):
    def loss_of_one(params, x, y):
        logits = functional_call(model, params, (x.unsqueeze(0),))
        return F.cross_entropy(logits, y.unsqueeze(0))

    return loss_of_one


def clipped(gradients):
    norm = torch.sqrt(sum(g.pow(2).sum() for g in gradients.values()))
    scale = (CLIP / (norm + 1e-6)).clamp(max=1.0)
    return {name: g * scale for name, g in gradients.items()}


def one_after_the_other(loss_of_one):
    gradient_of_one = grad(loss_of_one)

    def private_gradient(params, x, y):
        total = {name: torch.zeros_like(p) for name, p in params.items()}
        for x_one, y_one in zip(x, y):
            for name, g in clipped(gradient_of_one(params, x_one, y_one)).items():
                total[name] += g
        return total

    return private_gradient


def all_at_once(loss_of_one):
    gradients = vmap(lambda params, x, y: clipped(grad(loss_of_one)(params, x, y)), in_dims=(None, 0, 0))

    def private_gradient(params, x, y):
        return {name: g.sum(0) for name, g in gradients(params, x, y).items()}

    return private_gradient


def batches(x, y, generator):
    while True:
        rows = torch.randint(len(x), (BATCH,), generator=generator)
        yield x[rows], y[rows]


def fit(how):
    generator = torch.Generator().manual_seed(40)
    x = torch.randn(PEOPLE, QUESTIONS, generator=generator)
    y = (x @ torch.randn(QUESTIONS, ANSWERS, generator=generator)).argmax(1)
    model = make_model()
    params = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, foreach=True)
    private_gradient = how(make_loss(model))
    for step, (xs, ys) in zip(range(STEPS), batches(x, y, generator)):
        detached = {name: p.detach() for name, p in params.items()}
        for name, g in private_gradient(detached, xs, ys).items():
            params[name].grad = (g + NOISE * CLIP * torch.randn(g.shape, generator=generator)) / BATCH
        optimizer.step()
        if step % 25 == 0:
            with torch.no_grad():
                print(f"step {step}: {F.cross_entropy(model(x[:512]), y[:512]).item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(40)
    fit(all_at_once if "--fixed" in sys.argv else one_after_the_other)
