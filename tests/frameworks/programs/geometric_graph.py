"""PyTorch Geometric: mini-batches of small graphs."""

from __future__ import annotations

from typing import Any

from tests.frameworks.programs import STEPS
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import torch
    from torch.nn import functional
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GCNConv, global_mean_pool

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(16, 128), GCNConv(128, 128)
            self.head = torch.nn.Linear(128, 2)

        def forward(self, x: Any, edges: Any, batch: Any) -> Any:
            x = self.second(self.first(x, edges).relu(), edges).relu()
            return self.head(global_mean_pool(x, batch))

    graphs = [
        Data(x=torch.randn(40, 16), edge_index=torch.randint(0, 40, (2, 160)), y=torch.tensor([number % 2]))
        for number in range(STEPS * 8)
    ]
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    reference.during(optimizer, "step", "optimizer", then=REST)
    for batch in reference.batches(DataLoader(graphs, batch_size=16, shuffle=True)):
        optimizer.zero_grad()
        reference.mark("forward")
        loss = functional.cross_entropy(network(batch.x, batch.edge_index, batch.batch), batch.y)
        reference.mark("backward")
        loss.backward()
        reference.mark(REST)
        optimizer.step()
