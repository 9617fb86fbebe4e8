"""A custom loop, without a DataLoader and without an optimizer class: launch-bound."""

import torch

weights = [torch.randn(8, 8, device="cuda", requires_grad=True) for _ in range(10)]
for _step in range(80):
    state = torch.randn(4, 8, device="cuda")
    for weight in weights:
        state = torch.tanh(state @ weight) + state
    loss = state.pow(2).mean()
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= 0.01 * gradient
torch.cuda.synchronize()
