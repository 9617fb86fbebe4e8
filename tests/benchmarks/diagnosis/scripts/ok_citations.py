"""Subjects of papers from whom they cite: neighbours drawn for every batch, sums over edges written by hand."""

import logging
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

log = logging.getLogger("citations")


class Graph:
    """Edges by paper (CSR), features and subjects."""

    def __init__(self, papers: int, cited: int, features: int, subjects: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.subject = torch.from_numpy(rng.integers(0, subjects, papers))
        counts = rng.integers(1, 2 * cited, papers)
        self.start = torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))
        self.cited = torch.from_numpy(rng.integers(0, papers, int(counts.sum())))
        source = torch.repeat_interleave(torch.arange(papers), torch.from_numpy(counts))
        alike = torch.rand(len(source)) < 0.5
        moved = self.subject[source] * (papers // subjects) + self.cited % (papers // subjects)
        order = torch.argsort(self.subject)
        self.cited = torch.where(alike, order[moved.clamp(max=papers - 1)], self.cited)
        centres = torch.randn(subjects, features)
        self.x = centres[self.subject] * 0.2 + torch.randn(papers, features)

    def neighbours(self, papers: Tensor, fanout: int) -> Tensor:
        """`fanout` cited papers of each, drawn with replacement."""
        begin, degree = self.start[papers], self.start[papers + 1] - self.start[papers]
        chosen = (torch.rand(len(papers), fanout) * degree[:, None]).long()
        return self.cited[begin[:, None] + chosen]


class NeighbourLoader(DataLoader):
    """Batches of papers with two rings of papers that they cite."""

    def __init__(self, graph: Graph, papers: Tensor, fanouts: tuple[int, int], **options) -> None:
        self.graph, self.fanouts = graph, fanouts
        super().__init__(papers.tolist(), collate_fn=self.draw, **options)

    def draw(self, papers: list[int]) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]], Tensor]:
        ring = torch.tensor(papers)
        subject, layers, edges = self.graph.subject[ring], [ring], []
        for fanout in self.fanouts:
            found = self.graph.neighbours(layers[-1], fanout).flatten()
            unique, place = torch.unique(torch.cat([layers[-1], found]), return_inverse=True)
            target = torch.arange(len(layers[-1])).repeat_interleave(fanout)
            edges.append((place[len(layers[-1]) :], target))
            edges[-1] = (*edges[-1], place[: len(layers[-1])])
            layers.append(unique)
        return self.graph.x[layers[-1]], edges[::-1], subject


class SageLayer(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(before, after), nn.Linear(before, after, bias=False)

    def forward(self, x: Tensor, source: Tensor, target: Tensor, own: Tensor) -> Tensor:
        total = x.new_zeros(len(own), x.shape[1]).index_add(0, target, x[source])
        count = torch.bincount(target, minlength=len(own)).clamp(min=1)
        return self.own(x[own]) + self.others(total / count[:, None])


class Sage(nn.Module):
    def __init__(self, features: int, width: int, subjects: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([SageLayer(features, width), SageLayer(width, width)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, subjects)

    def forward(self, x: Tensor, edges: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
        for layer, ring in zip(self.layers, edges):
            x = F.relu(layer(x, *ring))
        return self.head(self.norm(x))


def losses(model: Sage, loader: NeighbourLoader) -> Iterator[tuple[Tensor, Tensor]]:
    for x, edges, subject in loader:
        scores = model(x, edges)
        yield F.cross_entropy(scores, subject), (scores.argmax(1) == subject).float().mean()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(40)
    graph = Graph(papers=12_000, cited=9, features=256, subjects=12, seed=40)
    order = torch.randperm(12_000)
    train = NeighbourLoader(graph, order[:11_000], (8, 5), batch_size=256, shuffle=True, drop_last=True)
    test = NeighbourLoader(graph, order[11_000:], (8, 5), batch_size=500)
    model = Sage(256, 256, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    for epoch in range(12):
        for loss, _ in losses(model.train(), train):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            right = torch.stack([right for _, right in losses(model.eval(), test)]).mean()
        log.info("epoch %d: last loss %.3f, %.1f %% right", epoch, loss.item(), 100 * right.item())


if __name__ == "__main__":
    main()
