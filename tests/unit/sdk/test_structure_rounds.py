"""Loops inside a step: which rounds need one another, which of them wait, and what is passed to whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdk.structure.places import Place
from sdk.structure.rounds import over_operations
from tests.unit.sdk.watched import facts, line_of

SMOOTHED = """\
import torch
from torch import nn

class Smooth(nn.Module):
    def forward(self, x):
        state, out = x[:, 0], []
        for t in range(x.shape[1]):
            state = 0.9 * state + 0.1 * x[:, t]
            out.append(self.scale(state))
        return torch.stack(out)

model = Smooth()
for x in batches:
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_loop_over_operations_may_be_in_a_modules_forward(tmp_path: Path) -> None:
    """GIVEN a loop in a `forward` THEN its lines that call a module go over modules, the others over plain
    operations; the call of the outer module is not one of its rounds."""
    file = tmp_path / "smoothed.py"
    file.write_text(SMOOTHED)

    def found(line: str, calls: bool) -> bool:
        inner = Place(str(file), line_of(SMOOTHED, line), "forward", calls)
        outer = Place(str(file), line_of(SMOOTHED, "loss = model(x)"), "<module>", True)
        return over_operations((inner, outer))

    assert found("state = 0.9", False) and not found("out.append(", True)
    assert not found("return torch.stack", False), "no loop but the one over the steps"


DECODING = """\
import torch
from torch import nn

def spoken(cell, out, word, state, length):
    words = []
    for _ in range(length):
        state = cell(embed(word), state); word = out(state).argmax(1)
        words.append(word)
    return words

def heard(cell, sounds, state):
    total = 0.0
    for at in range(sounds.shape[1]):
        state = cell(sounds[:, at], state); total = total + state.mean()
    return total

for x, y in batches:
    loss = spoken(cell, out, x, y, 9) + heard(cell, x, y); loss.backward()
    optimizer.step()
"""


def test_a_decoder_that_reads_its_own_words_goes_in_turn_and_a_recurrent_layer_does_not(
    tmp_path: Path,
) -> None:
    file = tmp_path / "decoding.py"
    file.write_text(DECODING)

    def goes_in_turn(*fragments: str) -> bool:
        found = facts(file, ("forward", *fragments, "loss = spoken("))["hotspots"]
        return bool(next(one for one in found if one["phase"] == "forward").get("in_turn"))

    assert goes_in_turn("state = cell(embed(word), state)")
    assert not goes_in_turn("state = cell(sounds")
    assert not goes_in_turn(), "the loop over the steps"


INTEGRATING = """\
import torch
from torch import nn

class Field(nn.Module):
    def forward(self, state):
        return self.last(torch.tanh(self.first(state)))

def euler(field, state, dt):
    return state + dt * field(state)

def path(field, state):
    states = [state]
    for _ in range(20):
        state = euler(field, state, 0.1)
        states.append(state)
    return torch.stack(states)

def matched(anchors, boxes, labels):
    best = torch.full((len(anchors),), 0.4)
    for box, label in zip(boxes, labels):
        overlap = torch.minimum(anchors, box).prod(-1)
        better = overlap > best
        best = torch.where(better, overlap, best)
    return best

def mean(field, total):
    for _ in range(20):
        total = torch.add(total, field(torch.randn(4)))
    return total

for x, boxes, labels in batches:
    loss = path(field, x).mean() + matched(x, boxes, labels).sum() + mean(field, 0.0)
    loss.backward()
    optimizer.step()
"""


def test_what_a_round_needs_of_the_one_before_is_asked_line_by_line(tmp_path: Path) -> None:
    """GIVEN an integrator THEN its steps follow one another; a sum of passes does not, nor does what is
    worked out for each box before the best so far is known."""
    file = tmp_path / "integrating.py"
    file.write_text(INTEGRATING)

    def goes_in_turn(*fragments: str) -> bool:
        found = facts(file, ("forward", *fragments, "loss = path("))["hotspots"]
        return bool(next(one for one in found if one["phase"] == "forward").get("in_turn"))

    field = "return self.last("
    assert goes_in_turn(field, "return state + dt", "state = euler(")
    assert not goes_in_turn("overlap = torch.minimum(")
    assert goes_in_turn("best = torch.where(")
    assert not goes_in_turn(field, "total = torch.add(")


TWICE = """\
import torch
from torch import nn

class Critic(nn.Module):
    def forward(self, x, a):
        return self.out(torch.relu(self.mid(torch.relu(self.first(torch.cat([x, a], 1))))))

    def tree(self, node):
        return torch.relu(self.mid(sum(map(self.tree, node.children))))

class Both(nn.Module):
    def forward(self, x, a):
        return self.left(x, a) + self.right(x, a)

def pair(critic, x, a):
    return critic(x, a) + critic(x, -a)

def each(critic, xs, a):
    return sum(critic(x, a) for x in xs)

for epoch in range(3):
    for x, a in batches:
        loss = pair(first, x, a) + pair(second, x, a)
        loss = loss + each(first, x, a) + first.tree(a)
        loss = loss + both(x, a)
        for x in a:
            loss = loss + pair(first, x, x)
        loss.backward()
        optimizer.step()
"""


def test_what_is_called_from_many_places_is_no_loop(tmp_path: Path) -> None:
    """GIVEN two critics that are asked twice in every step THEN their many calls are no loop, nor are those
    of a module by another, though both have a `forward`; where a comprehension, a loop or a call of itself
    lies between, they may be one."""
    file = tmp_path / "critics.py"
    file.write_text(TWICE)

    def once(*fragments: str) -> bool:
        found = facts(file, ("forward", *fragments))["hotspots"]
        return bool(next(one for one in found if one["phase"] == "forward").get("once"))

    forward = "return self.out("
    assert once(forward, "return critic(x, a) +", "loss = pair(first, x, a)")
    assert once(forward, "return self.left(", "loss + both(x, a)")
    assert not once(forward, "return sum(critic", "loss = loss + each(")
    assert not once(forward, "return critic(x, a) +", "loss + pair(first, x, x)")
    assert not once("self.mid(sum(map", "loss = loss + each(")
    assert not once(forward, "return critic(x, a) +"), "who calls it is not known"


TAGGED = """\
import torch
from torch import nn

class Tagger(nn.Module):
    def likely(self, row):
        return torch.logsumexp(row, dim=0)

    def forward(self, words):
        state = torch.zeros(self.tags)
        for word in words:
            found = []
            for tag in range(self.tags):
                found.append(self.likely(state + self.moves[tag] + word[tag]))
            state = torch.stack(found)
        return self.likely(state)

def apart(rows, others, weights):
    total = 0.0
    for row in rows:
        near = []
        for other in others:
            near.append((row - other).square().sum())
        total = total + torch.stack(near).min() * weights
    return total

for words in sentences:
    loss = -tagger(words) + apart(words, words, weights)
    loss.backward()
    optimizer.step()
"""


def test_a_loop_that_can_be_done_at_once_may_be_in_one_that_goes_in_turn(tmp_path: Path) -> None:
    """GIVEN a loop over tags in one over words that hands on its state THEN one round of it is left for each
    word, and so for what it calls; where the outer loop only adds up, nothing is left of either."""
    file = tmp_path / "tagger.py"
    file.write_text(TAGGED)

    def loop(*fragments: str) -> tuple[Any, bool]:
        found = facts(file, ("forward", *fragments))["hotspots"]
        spot = next(one for one in found if one["phase"] == "forward")
        return spot.get("batchable"), spot.get("within_turns", False)

    tags = (str(file), line_of(TAGGED, "for tag in"))
    step, called = "found.append(", "loss = -tagger(words)"
    assert loop(step, called) == (tags, True)
    assert loop("return torch.logsumexp", step, called) == (tags, True)
    assert loop("near.append(", called) == ((str(file), line_of(TAGGED, "for other in")), False)


STACKED = """\
import torch
from torch import nn

class Waves(nn.Module):
    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        for i in range(len(self.blocks)):
            x = x + self.blocks[i](x)
        heads = []
        for head in self.heads:
            heads.append(head(x))
        for t in range(20):
            for cell in self.cells:
                x = cell(x)
        return sum(heads) + x

for x in batches:
    loss = waves(x).mean() + waves(x + 1).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_stack_of_layers_is_no_loop(tmp_path: Path) -> None:
    """GIVEN layers that are called one after the other THEN that is once for each; heads side by side, and a
    stack within a loop over time, are loops."""
    file = tmp_path / "waves.py"
    file.write_text(STACKED)

    def once(fragment: str) -> bool:
        found = facts(file, ("forward", fragment, "loss = waves(x)"), modules=True)["hotspots"]
        return bool(next(one for one in found if one["phase"] == "forward").get("once"))

    assert once("torch.tanh(layer(x))") and once("self.blocks[i](x)")
    assert not once("heads.append(head(x))") and not once("x = cell(x)")


PASSED = """\
import time
import torch
from torch import nn

class Scores:
    def __init__(self, every):
        self.every, self.seen = every, []
    def note(self, output, labels):
        self.seen.append(sum(int(a == b) for a, b in zip(output.tolist(), labels.tolist())))

class Trainer:
    def __init__(self, net, scores):
        self.net, self.scores = net, scores
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    def fit(self, rows, ready):
        for x, y in rows:
            output = self.net(x)
            loss = output.pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.scores.note(output, y)
            while not ready.is_set():
                time.sleep(0.02)

def epoch(net, optimizer, scores, rows):
    for x, y in rows:
        output = net(x)
        output.pow(2).mean().backward()
        optimizer.step()
        scores.note(output, y)
    time.sleep(0.1)

def main():
    net, scores = nn.Linear(4, 4), Scores(1)
    epoch(net, torch.optim.SGD(net.parameters(), lr=0.1), scores, [])
    Trainer(net, scores).fit([], None)
"""


def test_what_is_passed_is_known_by_what_every_call_passes(tmp_path: Path) -> None:
    file = tmp_path / "passed.py"
    file.write_text(PASSED)
    for call in ("self.scores.note(", "        scores.note(output, y)"):
        found = facts(file, ("between", "self.seen.append", call), update="loss.backward()")["work"]
        assert [(one["needed"], one["job"]) for one in found if one["phase"] == "between"] == [
            ("no", "metrics")
        ]


def test_a_sleep_that_waits_for_something_polls(tmp_path: Path) -> None:
    file = tmp_path / "passed.py"
    file.write_text(PASSED)
    for fragment, polls in (("time.sleep(0.02)", True), ("time.sleep(0.1)", False)):
        found = facts(file, ("between", fragment), update="loss.backward()")["hotspots"]
        assert next(one for one in found if one["phase"] == "between").get("polls", False) is polls
