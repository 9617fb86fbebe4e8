"""A batch is drawn at random where the collate function draws, whatever kind of function that is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sdk.structure.draws import Call, Draws
from sdk.structure.reader import Reader
from sdk.structure.source import forget

SOURCE = """\
import functools
import torch
from torch.utils.data import DataLoader

class Graph:
    def around(self, nodes):
        return self.edges[torch.randint(9, (len(nodes), 5))]

class Masked:
    def __call__(self, rows):
        ids = torch.stack(rows)
        hidden = torch.rand(ids.shape) < 0.15
        for row in sorted(ids[hidden], key=longest):
            self.keep(row)
        return pad(rows)

    def keep(self, row):
        self.kept.append(row)

class Neighbours(DataLoader):
    def __init__(self, graph, nodes):
        self.graph = graph
        super().__init__(nodes, collate_fn=self.pick)

    def pick(self, nodes):
        names = tidy(nodes)
        layers = [names]
        layers.append(self.graph.around(nodes))
        return torch.cat(layers)

def tidy(nodes):
    return [str(one) for one in nodes]

def longest(row):
    return max(row)

def noisy(rows, scale):
    return torch.stack(rows) + scale * torch.randn(8)

def pad(rows):
    return torch.stack(rows)

def batches(loader):
    for batch in loader:
        yield batch

def train(rows, graph):
    plain = DataLoader([torch.randn(3)], collate_fn=lambda rows: pad(rows))
    short = iter(DataLoader(rows, collate_fn=lambda rows: noisy(rows, 0.1)))
    for batch in batches(Neighbours(Graph(), rows)):
        again = next(short)
"""
Drawn = Callable[..., bool]


@pytest.fixture
def drawn(tmp_path: Path) -> Drawn:
    """Whether the stack of these lines, each with its function, innermost first, is of something drawn."""
    file = tmp_path / "graphs.py"
    file.write_text(SOURCE)
    forget()

    def ask(*stack: tuple[str, str], phase: str = "data") -> bool:
        path: list[Call] = [(str(file), line(text), name) for text, name in stack]
        return Draws(Reader()).drawn(path, phase)

    return ask


def line(text: str) -> int:
    return next(at for at, one in enumerate(SOURCE.splitlines(), 1) if text in one)


HEAD, ASKS = ("for batch in batches", "train"), ("for batch in loader", "batches")
NEXT = ("again = next", "train")


def test_what_a_method_that_collates_draws_is_followed_through_its_helpers(drawn: Drawn) -> None:
    picked = ("layers.append", "pick")
    assert drawn(("torch.randint", "around"), picked, ASKS, HEAD)
    assert drawn(("torch.cat(layers)", "pick"), ASKS, HEAD), "it reads what a draw was put into"
    assert not drawn(("names = tidy", "pick"), ASKS, HEAD), "nothing is drawn yet"
    assert not drawn(("str(one)", "<listcomp>"), ("str(one)", "tidy"), ("names = ", "pick"), ASKS, HEAD)


def test_an_object_a_partial_and_a_lambda_may_collate(drawn: Drawn) -> None:
    assert drawn(("hidden = ", "__call__"), NEXT)
    assert drawn(("return max", "longest"), ("for row in sorted", "__call__"), NEXT), "rows were chosen"
    assert not drawn(("return pad(rows)", "__call__"), NEXT)
    assert drawn(("torch.randn(8)", "noisy"), NEXT), "functools.partial is no frame"
    assert drawn(("lambda rows: noisy", "<lambda>"), NEXT)
    assert not drawn(("lambda rows: pad", "<lambda>"), NEXT), (
        "what its statement draws elsewhere is not the batch"
    )


def test_only_what_the_loader_itself_calls_makes_a_batch(drawn: Drawn) -> None:
    assert not drawn(("torch.randn(8)", "noisy"), ("again = next", "train"), phase="forward")
    assert not drawn(("torch.randn(8)", "noisy")), "nobody asked a loader"
    assert drawn(("torch.randn(8)", "noisy"), phase="collate"), "a worker's stack is the loader's"
    assert drawn(("torch.randn(8)", "noisy"), ("layers.append", "pick"), phase="fetch")


STREAM = """\
import random

class Stream:
    def __iter__(self):
        samples = (encode(one) for one in self.lines())
        yield from mixed(samples, 800)

    def __next__(self):
        random.shuffle(self.rest)
        return encode(self.rest.pop())

def encode(line):
    return line.split()

def mixed(samples, size):
    buffer = []
    for sample in samples:
        buffer.append(sample)
        if len(buffer) >= size:
            random.shuffle(buffer)
            yield buffer.pop()
    random.shuffle(buffer)
    yield from buffer

def worded(samples):
    for sample in samples:
        words = list(sample)
        random.shuffle(words)
        yield words

def train(stream):
    for batch in stream:
        pass
"""


@pytest.fixture
def streamed(tmp_path: Path) -> Callable[..., tuple[bool, bool]]:
    """Whether a stack of lines is of what a sample is, drawn at random, and whether its innermost only draws
    an order."""
    file = tmp_path / "stream.py"
    file.write_text(STREAM)
    forget()

    def ask(*stack: tuple[int, str]) -> tuple[bool, bool]:
        path = [(str(file), line, name) for line, name in (*stack, (_lines("for batch")[0], "train"))]
        draws = Draws(Reader())
        return draws.drawn(path, "data"), draws.orders(*path[0][:2])

    return ask


def _lines(text: str) -> list[int]:
    return [at for at, one in enumerate(STREAM.splitlines(), 1) if text in one]


def test_an_order_that_is_drawn_is_not_what_a_sample_is(streamed: Callable[..., tuple[bool, bool]]) -> None:
    """GIVEN a buffer that is shuffled for every sample taken from it THEN the samples are the same in every
    epoch; not so where a sample's own words are shuffled."""
    own, buffer, last, words = _lines("random.shuffle")
    asked = (_lines("yield from mixed")[0], "__iter__")
    assert streamed((buffer, "mixed"), asked) == (False, True)
    assert streamed((own, "__next__")) == (False, True)
    assert streamed((words, "worded"), asked) == (True, False)
    assert streamed((last, "mixed"), asked)[1] is False, "once, at the end"
    mixed = (_lines("for sample in samples")[0], "mixed")
    assert streamed((_lines("line.split")[0], "encode"), mixed, asked) == (False, False)
