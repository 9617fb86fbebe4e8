"""Small graphs with PyTorch Geometric's loader: six workers for next to no work."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys

import torch
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(12, 192), GCNConv(192, 192)
        self.head = torch.nn.Linear(192, 2)

    def forward(self, x, edges, batch):
        x = self.second(self.first(x, edges).relu(), edges).relu()
        return self.head(global_mean_pool(x, batch))


def main():
    graphs = [
        Data(x=torch.randn(10, 12), edge_index=torch.randint(0, 10, (2, 24)), y=torch.tensor([number % 2]))
        for number in range(1600)
    ]
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    workers = 0 if "--fixed" in sys.argv else 6
    loader = DataLoader(
        graphs, batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    for _ in range(8):
        for batch in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(batch.x, batch.edge_index, batch.batch), batch.y)
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
