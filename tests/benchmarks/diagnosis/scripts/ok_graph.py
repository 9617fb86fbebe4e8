"""Node classification on a fixed sparse graph, full batch."""

import torch
from torch import nn


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(64, 128), nn.Linear(128, 7)

    def forward(self, x, adjacency):
        x = torch.relu(torch.sparse.mm(adjacency, self.w1(x)))
        return torch.sparse.mm(adjacency, self.w2(x))


nodes, edges = 3000, 20000
index = torch.randint(0, nodes, (2, edges))
adjacency = torch.sparse_coo_tensor(index, torch.full((edges,), 0.1), (nodes, nodes)).coalesce()
features, labels = torch.randn(nodes, 64), torch.randint(0, 7, (nodes,))
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(150):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features, adjacency), labels)
    loss.backward()
    optimizer.step()
    if epoch % 25 == 0:
        print(epoch, loss.item())
