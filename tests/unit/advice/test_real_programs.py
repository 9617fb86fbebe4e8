"""What ordinary programs have shown: each was judged wrongly once, by facts as in these cases."""

from __future__ import annotations

from monitor.model.run import Stall
from tests.unit.advice.build import findings, first, hot, piece, run_of

LOOP = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}


def test_reads_that_give_a_step_its_value_are_not_taken_away() -> None:
    """GIVEN a policy whose action is read with `.item()` because the environment needs it WHEN the reads take
    much of the step THEN nobody is told to read every 100 steps."""
    line = hot("forward", "return action.item(), m.log_prob(action)", 0.3, line=36, function="select_action")
    line |= {"job": "sync", "piece": ["train.py", 60], "calls": 400}
    work = piece("forward", "action, lp = select_action(state)", line=60, needed="yes", grad=True)
    scalars = {"sync.items_per_step": 200.0, "sync.seconds_per_step": 0.0002}
    phases = {"forward": 0.06, "backward": 0.03, "optimizer": 0.001}
    config = {"hotspots": [line], "work": [work]}
    run = run_of(phases, config=config, rank={"scalars": scalars}, batch_size=None)
    assert "compute.sync_every_step" not in [one.id for one in findings(run)]
    config["work"] = [work | {"needed": "no", "grad": False}]
    run = run_of(phases, config=config, rank={"scalars": scalars}, batch_size=None)
    assert first(run).id == "compute.sync_every_step"


def test_double_precision_of_a_second_order_optimizer_is_left_alone() -> None:
    phases = {"forward": 0.3, "backward": 0.5, "optimizer": 0.06}
    double = {"model": {"dtype": "float64"}}
    assert first(run_of(phases, config=double)).id == "compute.double_precision"
    second = double | {"optimizer": {"class": "LBFGS", "kind": "LBFGS"}}
    assert "compute.double_precision" not in [one.id for one in findings(run_of(phases, config=second))]


def test_calls_of_one_function_are_one_cause() -> None:
    """GIVEN two statements that spend their time in the same function WHEN it is named THEN with both."""
    inner = hot("between", "out.append(pick(nb))", 0.9, line=24, function="sample", piece=["train.py", 49])
    at = {"hot": {"file": "train.py", "line": 24}, "function": "<module>", "needed": "yes"}
    work = [
        piece("between", "n2 = sample(n1, 5)", 0.6, line=49, **at),
        piece("between", "n1 = sample(seeds, 10)", 0.3, line=48, **at),
        piece("between", "order = shuffle()", 0.05, line=40, function="<module>", needed="yes"),
    ]
    phases = {"between": 0.008, "forward": 0.002, "backward": 0.002}
    found = first(run_of(phases, config={"hotspots": [inner], "work": work}))
    assert (
        found.id == "compute.user_code"
        and "train.py:49), 7.20 ms a step (60 %) together with 1 further call" in found.title
    )
    assert found.speedup is not None and found.speedup.likely > 2.0


def test_validation_is_placed_only_where_most_of_it_is() -> None:
    """GIVEN a library's evaluation that also calls the user's metrics WHEN it comes too often THEN the line
    of the metrics is not where it is."""
    metrics = piece("validate", "return {'f1': f1_score(y, p)}", 0.04, line=19, needed="unknown")
    whole = hot("validate", "trainer.train()", 0.96, line=31, function="<module>", update=True)
    stall = Stall("validate", 40, 4.0, 0.3, 4.0, 0.13, 400)
    phases = LOOP | {"validate": 0.004}
    config = {"hotspots": [whole], "work": [metrics]}
    found = first(run_of(phases, config=config, stalls=(stall,)))
    assert found.id == "compute.validation_too_often"
    assert "train.py:31" in found.title and "train.py:19" not in found.title


def test_a_pass_without_gradients_that_the_loss_uses_is_no_validation() -> None:
    """GIVEN a bank of embeddings, made anew every 5 steps, from which hard examples are picked THEN nobody is
    told to make it less often; what only lowers the learning rate is validation."""
    stall = Stall("validate", 80, 1.6, 0.3, 5.0, 0.02, 400)
    phases = LOOP | {"validate": 0.004}
    used = piece("validate", "bank = embed()", 1.0, needed="yes", module=True, no_grad=True)
    assert (
        first(run_of(phases, config={"work": [used | {"feeds": True}]}, stalls=(stall,))).id == "healthy.ok"
    )
    found = first(run_of(phases, config={"work": [used]}, stalls=(stall,)))
    assert found.id == "compute.validation_too_often" and found.remedy.effect == "changes_training"


def test_the_time_of_each_pass_includes_the_work_beside_its_phase() -> None:
    """GIVEN a validation in every step, of which the phase shows a part WHEN the rest is a piece of the
    loop's own code THEN the time of each agrees with the share."""
    stall = Stall("validate", 400, 0.066, 0.09, 1.0, 165e-6, 400)
    phases = {"forward": 0.0005, "backward": 0.0005, "validate": 165e-6, "between": 715e-6}
    beside = {"work": [piece("between", "score = evaluate()", 1.0, job="validate", needed="no")]}
    found = first(run_of(phases, config=beside, stalls=(stall,)))
    assert found.id == "compute.validation_too_often"
    assert "47 % of the time: every step, 880 µs each" in found.title, found.title


def test_a_phase_that_was_never_sampled_is_judged_by_the_source() -> None:
    """GIVEN passes without gradients every 40 steps, of which no sample tells WHEN the source shows only such
    that the loss is computed from THEN they are no validation."""
    stall = Stall("validate", 10, 2.6, 0.3, 40.0, 0.26, 400)
    phases = LOOP | {"validate": 0.0065}
    sites = {"sites": {"made_to_train_on": {"file": "train.py", "line": 33}}}
    assert first(run_of(phases, stalls=(stall,))).id == "compute.validation_too_often"
    assert first(run_of(phases, config=sites, stalls=(stall,))).id == "healthy.ok"
    seen = {"work": [piece("validate", "score = evaluate()", 1.0, module=True, no_grad=True)]}
    assert first(run_of(phases, config=sites | seen, stalls=(stall,))).id == "compute.validation_too_often"


def test_a_sample_drawn_between_the_moves_of_an_agent_is_own_code() -> None:
    """GIVEN an agent whose moves are passes without gradients WHEN most of the time between them goes into
    the sample it learns from THEN that is named; the environment's own work is not."""
    phases = LOOP | {"validate": 0.01}
    needed = {"needed": "yes", "feeds": True}
    drawn = piece("validate", "batch = memory.sample(256)", 0.6, line=9, pure=True, **needed)
    moved = piece("validate", "seen = world.step(action)", 0.4, line=5, **needed)
    found = first(run_of(phases, config={"work": [drawn, moved]}))
    assert found.id == "compute.user_code" and "memory.sample" in found.title
    both = [drawn | {"pure": False}, moved]
    assert "compute.user_code" not in [one.id for one in findings(run_of(phases, config={"work": both}))]


def test_the_moves_of_an_environment_are_no_own_code_in_the_loop() -> None:
    """Wherever they are seen: a policy with gradients plays in the forward pass."""
    moved = piece("forward", "seen, reward, done = env.step(action)", 0.6, needed="yes")
    named = [one.id for one in findings(run_of(config={"work": [moved]}))]
    assert "compute.user_code" in named
    named = [one.id for one in findings(run_of(config={"work": [moved | {"moves": True}]}))]
    assert "compute.user_code" not in named


def test_work_that_mostly_sleeps_is_not_called_own_code() -> None:
    """GIVEN a loop that asks every 20 ms whether a thread is done WHEN how much of a sleep is saved is unsure
    THEN the sleep is still what is named."""
    asked = piece("between", "done = wait()", 0.98, line=30, needed="unknown")
    slept = hot("between", "time.sleep(0.02)", 0.95, line=12, job="sleep", kind="sleep", polls=True, calls=1)
    slept |= {"piece": ["train.py", 30], "api": "time.sleep"}
    found = findings(run_of(LOOP | {"between": 0.02}, config={"work": [asked], "hotspots": [slept]}))
    assert [one.id for one in found if one.id.startswith("compute.")] == ["compute.sleep"]


def test_a_loop_that_marks_only_its_steps_is_told_what_takes_them() -> None:
    """GIVEN a monitor of the script's own without phases: its lines are seen between two `step()`, its time
    is the step's THEN it is not called healthy."""
    slept = hot("between", "time.sleep(0.02)", 0.98, line=8, job="sleep", kind="sleep", calls=1)
    slept |= {"piece": ["train.py", 8], "api": "time.sleep"}
    work = piece("between", "time.sleep(0.02)", 0.98, line=8, job="sleep", api="time.sleep")
    found = first(run_of({"other": 0.021}, config={"work": [work], "hotspots": [slept]}))
    assert found.id == "compute.sleep" and "98 %" in found.title
    logged = first(run_of({"other": 0.021, "between": 0.0001}, config={"work": [work], "hotspots": [slept]}))
    assert logged.id == "compute.sleep"
    unseen = first(run_of({"other": 0.021}))
    assert unseen.id == "healthy.ok" and "not known: the loop marks no phases" in unseen.title
    assert unseen.evidence["unexplained_share"] == 1.0
    assert unseen.remedy is not None and "monitor.phase" in unseen.remedy.summary


def test_a_copy_may_cost_the_steps_more_than_its_own_time() -> None:
    copied = piece(
        "between", "best = copy.deepcopy(model.state_dict())", 1.0, job="copy", api="copy.deepcopy"
    )
    found = first(run_of(LOOP | {"between": 0.002}, config={"work": [copied | {"carried": True}]}))
    assert found.id == "compute.state_copies" and found.title.startswith("Model copied every step")
    own = (sum(LOOP.values()) + 0.002) / sum(LOOP.values())
    assert found.speedup is not None and found.speedup.likely <= own * 1.05 and found.speedup.high > own * 1.1
    large = first(run_of(LOOP | {"between": 0.009}, config={"work": [copied]})).speedup
    assert large is not None and large.high / large.low < 2.2, "what is left of the step bounds it"


def test_a_change_under_a_test_for_multiples_keeps_its_word() -> None:
    """GIVEN a save under `if n % 3 == 0:` WHEN it is to come less often THEN at a multiple of 3."""
    guard = {"line": 9, "lines": [[0, "torch.save(state, path)"]], "counter": "n", "within": 3}
    work = piece("checkpoint", "torch.save(state, path)", 1.0, line=9, job="save", guard=guard)
    stall = Stall("checkpoint", 140, 0.84, 0.3, 3.0, 0.006, 420)
    found = first(run_of(LOOP | {"checkpoint": 0.002}, config={"work": [work]}, stalls=(stall,)))
    assert found.id == "compute.checkpoint_stalls"
    every = found.evidence["suggested_every_steps"]
    assert isinstance(every, int) and every % 3 == 0 and f"n % {every} == 0" in found.remedy.change
    assert f"every {every} steps" in found.remedy.summary


def test_a_policy_asked_for_one_environment_after_the_other_is_a_loop() -> None:
    """GIVEN an agent that plays WHEN the rounds of a loop need no earlier one THEN they can be done at once;
    moves that follow one another cannot."""
    free = {"batchable": ["train.py", 35], "function": "<module>"}
    lines = [
        hot("rollout", "actions.append(draw(logits).item())", 0.5, line=37, calls=320, **free),
        hot("rollout", "logits, _ = net(one)", 0.3, line=36, calls=240, kind="module", **free),
    ]
    phases = {"rollout": 0.019, "forward": 0.001, "backward": 0.0007, "optimizer": 0.0004}
    found = first(run_of(phases, config={"hotspots": lines}, batch_size=None))
    assert found.id == "compute.python_loop" and "train.py:37" in found.title
    assert found.speedup is not None and found.speedup.low < 3.0 < found.speedup.high
    assert found.remedy is not None and "one call of the model" in found.remedy.summary
    own = hot("rollout", "self.speed = 0.9 * self.speed + push", 0.8, line=12, calls=2400, **free)
    own |= {"function": "World.step", "in_turn": True, "calls": None}
    counted = own | {"line": 14, "share": 0.1, "calls": 320}
    worlds = first(run_of(phases, config={"hotspots": [own, counted]}, batch_size=None))
    assert worlds.id == "compute.python_loop" and worlds.remedy is not None
    assert "in arrays" in worlds.remedy.summary and "one call of the model" not in worlds.remedy.summary
    moves = [{**one, "batchable": None} for one in lines]
    run = run_of(phases, config={"hotspots": moves}, batch_size=None)
    assert "compute.python_loop" not in [one.id for one in findings(run)]


def test_a_decoder_that_reads_its_own_words_is_not_told_to_do_all_at_once() -> None:
    """GIVEN a loop over cells WHEN each round begins with the word the last one has chosen THEN no layer
    takes the whole sequence in one call."""
    cell = hot("forward", "h = self.cell(self.emb(word), h)", 0.8, function="Net.forward", calls=76)
    layers = {"model": {"layers": ["LSTMCell", "Linear"], "modules": 4}}
    phases = {"forward": 0.014, "backward": 0.022, "optimizer": 0.001}
    assert first(run_of(phases, config={**layers, "hotspots": [cell]})).id == "compute.python_loop"
    for fact in ("in_turn", "once", "derives"):
        run = run_of(phases, config={**layers, "hotspots": [cell | {fact: True}]})
        assert "compute.python_loop" not in [one.id for one in findings(run)]


def test_a_sleep_that_waits_for_something_is_not_simply_removed() -> None:
    """GIVEN a loop that asks a thread every 25 ms whether it is done THEN nobody is told to spin instead, and
    only a part of the last sleep is promised."""
    asks = hot("other", "time.sleep(0.025)", 1.0, line=40, kind="sleep", job="sleep", removable=True)
    phases = LOOP | {"other": 0.025}
    plain = first(run_of(phases, config={"hotspots": [asks]}))
    assert plain.id == "compute.sleep" and plain.remedy.change and plain.speedup is not None
    found = first(run_of(phases, config={"hotspots": [asks | {"polls": True, "calls": 1}]}))
    assert found.id == "compute.sleep" and not found.remedy.change and "Event.wait" in found.remedy.summary
    assert found.speedup is not None and found.speedup.low == 1.0
    assert found.speedup.likely < 0.5 * plain.speedup.likely
    often = first(run_of(phases, config={"hotspots": [asks | {"polls": True, "calls": 10}]}))
    assert often.speedup is None or often.speedup.high < 1.2
