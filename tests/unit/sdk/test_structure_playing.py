"""Loops in which an agent plays: which of their rounds need an earlier one, and what is a move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdk.structure.reader import Reader
from sdk.structure.source import Function, read
from tests.unit.sdk.watched import facts, line_of

PLAYING = """\
import torch
from torch import nn

policy = nn.Linear(4, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
states = torch.randn(8, 4)
for update in range(50):
    seen = []
    for _ in range(10):
        moves = []
        for state in states:
            moves.append(policy(state).argmax().item())
        states = states + torch.tensor(moves)[:, None]
        seen.append(states)
    loss = policy(torch.cat(seen)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_only_rounds_that_need_no_earlier_one_can_be_done_at_once(tmp_path: Path) -> None:
    file = tmp_path / "playing.py"
    file.write_text(PLAYING)

    def loop(fragment: str) -> Any:
        found = facts(file, ("rollout", fragment))["hotspots"]
        return next(one for one in found if one["phase"] == "rollout").get("batchable")

    assert loop("moves.append(")[1] == line_of(PLAYING, "for state in states:")
    assert loop("states = states +") is None, "a move needs the one before it"
    assert loop("loss = policy(") is None, "the loop over the updates"


SIDE_BY_SIDE = """\
import torch
from torch import nn

class Runner:
    def __init__(self, envs, policy):
        self.envs, self.policy = envs, policy
        self.seen = [env.reset() for env in envs]
        self.last = self.seen[0]

    def play(self):
        row = []
        for i, env in enumerate(self.envs):
            action = self.policy(self.seen[i])
            following, done = env.move(action)
            self.seen[i] = env.reset() if done else following
            row.append(action)
        return row

    def relay(self):
        row = []
        for i in range(9):
            action = self.policy(self.seen[i - 1])
            self.seen[i] = action
            row.append(action)
        return row

policy = nn.Linear(4, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
runner = Runner(environments, policy)
for update in range(50):
    rows = runner.play()
    more = runner.relay()
    loss = policy(torch.stack(rows + more)).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_round_that_keeps_to_its_own_item_needs_no_other(tmp_path: Path) -> None:
    """GIVEN agents in a list, each with its own last reading in another list THEN they can be asked at once;
    not if one takes what its neighbour has left."""
    file = tmp_path / "runner.py"
    file.write_text(SIDE_BY_SIDE)

    def loop(*fragments: str) -> Any:
        found = facts(file, ("rollout", *fragments))["hotspots"]
        return next(one for one in found if one["phase"] == "rollout").get("batchable")

    at = line_of(SIDE_BY_SIDE, "for i, env in enumerate(")
    assert loop("action = self.policy(self.seen[i])", "rows = runner.play()")[1] == at
    assert loop("action = self.policy(self.seen[i - 1])", "more = runner.relay()") is None


STEPPED = """\
import gymnasium
import torch
from torch import nn
from worlds import make

class Pole:
    def move(self, push):
        self.angle = self.angle + push
        return self.angle

class Runner:
    def __init__(self, worlds, policy):
        self.worlds, self.policy = worlds, policy
        self.seen = [one.reset() for one in worlds]

    def play(self, pushes):
        return [pole.move(one) for pole, one in zip(self.worlds, pushes)]

    def ask(self):
        pushes = [
            self.policy(one).argmax()
            for one in self.seen
        ]
        return pushes

    def relay(self, tokens):
        return [self.told(one) for one in tokens]

    def told(self, token):
        self.last = token + self.last
        return self.last

    def visit(self, pushes):
        for i, world in enumerate(self.worlds):
            self.seen[i], reward, done = world.step(pushes[i])
            self.rows.append(self.policy(self.seen[i]))

def tried(policy, world):
    seen = world.reset()
    for _ in range(50):
        seen, reward, done = world.step(policy(seen))
    return reward

policy = nn.Linear(4, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
runner = Runner([make(seed) for seed in range(8)], policy)
game = gymnasium.make("Pole")
for update in range(50):
    rows = runner.play(runner.ask())
    chain = runner.relay(rows)
    seen = game.step(1)[0]
    runner.visit(rows)
    loss = policy(torch.stack(rows + chain + runner.rows)).mean()
    loss.backward()
    optimizer.step()
    if update % 20 == 0:
        print(tried(policy, game))
"""


def test_rounds_of_a_comprehension_are_a_loop_too(tmp_path: Path) -> None:
    """GIVEN environments moved, or a policy asked, in a comprehension THEN its rounds can be done at once;
    not if one takes what the last has left."""
    file = tmp_path / "stepped.py"
    file.write_text(STEPPED)

    def loop(*fragments: str) -> Any:
        found = facts(file, ("rollout", *fragments))["hotspots"]
        return next(one for one in found if one["phase"] == "rollout").get("batchable")

    played = ("return [pole.move(one)", "rows = runner.play(")
    assert loop("self.angle = self.angle + push", *played)[1] == line_of(STEPPED, "return [pole.move(one)")
    asked = loop("self.policy(one).argmax()", "rows = runner.play(")
    assert asked[1] == line_of(STEPPED, "pushes = [")
    relayed = ("return [self.told(one)", "chain = runner.relay(")
    assert loop("self.last = token", *relayed) is None


def test_the_move_of_an_environment_makes_no_training_loop(tmp_path: Path) -> None:
    """GIVEN `world.step(push)` of something unknown, whose value is used THEN it is no optimizer's step: the
    loop around it can be done at once but for the move, which is needed, and its trial is not training."""
    file = tmp_path / "stepped.py"
    file.write_text(STEPPED)
    visits, tries = ("rollout", "runner.visit(rows)"), ("between", "print(tried(policy, game))")
    moved = ("rollout", "self.seen[i], reward, done", "runner.visit(rows)")
    asked = ("rollout", "self.rows.append(self.policy", "runner.visit(rows)")
    trial = ("between", "seen, reward, done = world.step(policy", "print(tried(policy, game))")
    found = facts(file, moved, asked, trial, ("other", "seen = game.step(1)"))
    spots = {one["line"]: one for one in found["hotspots"]}
    at = line_of(STEPPED, "for i, world in enumerate")
    assert spots[line_of(STEPPED, "self.rows.append(")]["batchable"][1] == at
    assert "batchable" not in spots[line_of(STEPPED, "self.seen[i], reward")]
    work = {one["line"]: one for one in found["work"]}
    visited = work[line_of(STEPPED, visits[1])]
    assert visited["needed"] == "yes" and visited["moves"]
    assert work[line_of(STEPPED, "seen = game.step(1)")]["needed"] == "yes"
    assert work[line_of(STEPPED, tries[1])]["code"].startswith("print(")


def test_an_optimizers_step_with_a_closure_is_no_move(tmp_path: Path) -> None:
    file = tmp_path / "closure.py"
    file.write_text(
        "def train(model, optimizer, batches, scaler):\n"
        "    for x in batches:\n"
        "        def closure():\n"
        "            return model(x).mean()\n"
        "        loss = optimizer.step(closure)\n"
        "        again = optimizer.step(lambda: model(x))\n"
        "        told = optimizer.step()\n"
        "        moved = optimizer.step(x)\n"
    )
    reader, source = Reader(), read(str(file))
    assert source is not None
    train = source.definitions["train"]
    assert isinstance(train, Function)
    effects = {one.node.lineno: one for one in reader.effects(source, train)}
    assert [effects[line].update for line in (5, 6, 7, 8)] == [True, True, True, False]
    assert [effects[line].moves for line in (5, 6, 7, 8)] == [False, False, False, True]
