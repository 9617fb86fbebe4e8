"""A loop that reads hundreds of single values a step: statistics of every parameter, the way people debug."""

import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(12)), nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history: dict[str, list[float]] = {}
    for step in range(args.steps):
        x, y = torch.randn(128, 64), torch.randint(0, 8, (128,))
        answer = model(x)
        loss = nn.functional.cross_entropy(answer, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, parameter in model.named_parameters():
            grad = parameter.grad
            values = (
                grad.abs().max().item(),
                grad.norm().item(),
                parameter.mean().item(),
                parameter.std().item(),
            )
            history[name] = [*history.get(name, [])[-20:], sum(values)]
        guesses = answer.argmax(1)
        right = sum(1 for guess, label in zip(guesses, y, strict=True) if guess.item() == label.item())
        if step % 100 == 0:
            print(f"{step}: loss {loss.item():.4f}, right {right / len(y):.2%}")


if __name__ == "__main__":
    main()
