"""Work without gradients and work that takes gradients by itself: what the source says they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sdk.watched import facts, line_of, piece

LOOP = """\
import torch
from torch import nn

class Pool:
    def __init__(self, x):
        self.x, self.chosen = x, torch.zeros(len(x), dtype=torch.bool)

    def rows(self):
        return self.chosen.nonzero().squeeze(1)

    def choose(self, rows):
        self.chosen[rows] = True

class Learner:
    def __init__(self, pool):
        self.pool = pool
        self.model = nn.Linear(8, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def learn(self):
        rows = self.pool.rows()
        for _ in range(40):
            loss = self.model(self.pool.x[rows]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def ask(self):
        return self.model(self.pool.x).squeeze(1).argsort()[:5]

    def run(self):
        for number in range(10):
            self.learn()
            {what}

Learner(Pool(torch.randn(100, 8))).run()
"""


@pytest.mark.parametrize(
    ("what", "made"),
    [("self.pool.choose(self.ask())", True), ("print(self.ask().tolist())", False), ("print(number)", False)],
)
def test_a_pass_beside_the_steps_makes_data_or_only_looks(what: str, made: bool, tmp_path: Path) -> None:
    """GIVEN a pass without gradients every 40 steps, which no sample has met WHEN what it chooses is learnt
    from THEN the source says so."""
    file = tmp_path / "train.py"
    text = LOOP.replace("{what}", what)
    file.write_text(text)
    found = facts(file, ("forward", "loss = self.model"))["sites"].get("made_to_train_on")
    assert (found is not None) == made
    if found is not None:
        assert found["line"] == line_of(text, what)


def test_a_pool_that_is_also_evaluated_stays_unknown(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    both = "self.pool.choose(self.ask())\n            print(self.ask().tolist())"
    file.write_text(LOOP.replace("{what}", both))
    assert "made_to_train_on" not in facts(file, ("forward", "loss = self.model"))["sites"]


PENALTY = """\
import torch
from torch import nn

class Critic:
    def __init__(self):
        self.net = nn.Linear(8, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def penalty(self, x):
        (slope,) = torch.autograd.grad(self.net(x).sum(), x, create_graph=True)
        return slope.square().mean()

    def step(self, x):
        loss = self.net(x).mean() + self.penalty(x)
        shown = self.penalty(x)
        print(shown)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

critic = Critic()
for _ in range(100):
    critic.step(torch.randn(4, 8, requires_grad=True))
"""


def test_gradients_that_the_loss_is_made_of_are_a_pass_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(PENALTY)
    inner = "(slope,) = torch.autograd.grad"
    assert piece(file, inner, "loss = self.net", "critic.step(", phase="other")["grad"]
    assert not piece(file, inner, "shown = self.penalty", "critic.step(", phase="other").get("grad")


MEMORY = """\
import random
import torch
from torch import nn

class Memory:
    def __init__(self):
        self.rows = []

    def push(self, row):
        self.rows.append(row)

    def sample(self, n):
        return torch.tensor(random.sample(self.rows, n))

class World:
    def __init__(self):
        self.state = 0.0

    def move(self, action):
        self.state += action
        return [self.state, action]

class Total:
    def __init__(self):
        self.sums = [0.0, 0.0]

    def add(self, values):
        for at, value in enumerate(values.tolist()):
            self.sums[at] += value

memory, world, total = Memory(), World(), Total()
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    moved = world.move(float(step))
    memory.push(moved)
    batch = memory.sample(1)
    out = net(batch)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total.add(out.flatten())
"""


def test_what_only_makes_its_result_is_told_from_what_moves_on(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(MEMORY)
    drawn = piece(file, "return torch.tensor(", "batch = memory.sample", phase="validate")
    assert drawn["feeds"] and drawn["pure"] and drawn["needed"] == "yes"
    moved = piece(file, "self.state += action", "moved = world.move", phase="validate")
    assert moved["feeds"] and not moved.get("pure")


def test_totals_of_values_that_are_read_out_are_no_copies_of_weights(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(MEMORY)
    found = piece(file, "self.sums[at] += value", "total.add(out.flatten())", phase="between")
    assert (found["needed"], found["job"]) == ("no", "metrics")


SCHEDULE = """\
import math
import torch
from torch import nn

class Schedule:
    def __init__(self, steps: int, scale=1.0, table=None):
        self.steps, self.scale, self.table = steps, scale, table

    def level(self, t):
        return math.cos(self.scale * t / self.steps)

    @property
    def plain(self):
        return torch.tensor([self.level(t) for t in range(self.steps)])

    @property
    def of_table(self):
        return torch.exp(self.table * self.scale)

    @property
    def moving(self):
        return torch.full((self.steps,), self.beta)

    @property
    def drawn(self):
        return torch.zeros(self.steps) + torch.rand(self.steps)

    def at(self, t):
        return torch.full((self.steps,), t)

    def warm_up(self):
        self.beta = 0.1

net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = Schedule(8)
for step in range(100):
    schedule.warm_up()
    weights = schedule.{what}
    loss = (net(torch.ones(8)) * weights).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("what", "line", "settled"),
    [
        ("plain", "[self.level(t) for t", True),
        ("of_table", "torch.exp(", False),
        ("moving", "torch.full((self.steps,), self.beta)", False),
        ("drawn", "torch.rand(self.steps)", False),
        ("at(step)", "torch.full((self.steps,), t)", False),
    ],
)
def test_a_table_made_of_plain_settings_is_the_same_at_every_call(
    what: str, line: str, settled: bool, tmp_path: Path
) -> None:
    """GIVEN a table that is made anew in every step, and no profile of it WHEN it follows from numbers that
    are set once THEN the source says that it is the same; not if an object, a later setting, chance or an
    argument takes part."""
    file = tmp_path / "train.py"
    file.write_text(SCHEDULE.replace("{what}", what))
    spots = facts(file, ("forward", line, "weights = "))["hotspots"]
    (made,) = [one for one in spots if one["phase"] == "forward"]
    assert made.get("constant", "") == ("Schedule.plain" if settled else "")


def test_a_setting_that_anybody_changes_later_is_none(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    later = "schedule = Schedule(8)\nschedule.scale = 2.0"
    file.write_text(SCHEDULE.replace("{what}", "plain").replace("schedule = Schedule(8)", later))
    spots = facts(file, ("forward", "[self.level(t) for t", "weights = "))["hotspots"]
    assert not any(one.get("constant") for one in spots)
