"""A graph network, trained on the whole graph; `test` runs the same `forward` after every step."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, adjacency):
        return adjacency @ self.linear(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = Layer(64, 64), Layer(64, 5)

    def forward(self, x, adjacency):
        x = torch.relu(self.conv1(x, adjacency))
        return self.conv2(x, adjacency)


nodes, labels = torch.randn(400, 64), torch.randint(0, 5, (400,))
adjacency = (torch.rand(400, 400) < 0.02).float() / 8
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def train():
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(nodes, adjacency)[:300], labels[:300])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test():
    model.eval()
    return (model(nodes, adjacency).argmax(1)[300:] == labels[300:]).float().mean().item()


for step in range(1, 301):
    loss = train()
    result = test()
    if step % 100 == 0:
        print(step, loss, result)
