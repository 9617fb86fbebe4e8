"""A graph network of torch_geometric on one graph: full batches, short steps, accuracy after each epoch."""

import argparse

import torch
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(128, 32, cached=True), GCNConv(32, 7, cached=True)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = functional.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edges).relu()
        return self.conv2(functional.dropout(x, p=0.5, training=self.training), edges)


def make_graph() -> Data:
    torch.manual_seed(0)
    nodes = 3000
    graph = Data(
        x=torch.randn(nodes, 128),
        edge_index=torch.randint(0, nodes, (2, 12000)),
        y=torch.randint(0, 7, (nodes,)),
    )
    graph.train_mask = torch.rand(nodes) < 0.3
    return graph


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    graph, model = make_graph(), GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        out = model(graph.x, graph.edge_index)
        loss = functional.cross_entropy(out[graph.train_mask], graph.y[graph.train_mask])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            guesses = model(graph.x, graph.edge_index).argmax(-1)
        best = max(best, float((guesses == graph.y).float().mean()))
        if epoch % 100 == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, best {best:.2%}")


if __name__ == "__main__":
    main()
