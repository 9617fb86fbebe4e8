"""Where the host waits, in whose code, and what is copied."""

from __future__ import annotations

import pytest

from monitor.traces import analyse
from monitor.traces.enclosing import is_own_code
from tests.unit.traces.maker import Maker

US = 1e-6


def reading_values(maker: Maker, *, times: int = 3) -> Maker:
    """A kernel, then `.item()`: a copy to pageable memory that waits for it, then a launch 100 later."""
    for at in range(times):
        begin = at * 1000.0
        maker.launch(begin, begin + 10, 390)  # until 400
        maker.op("aten::item", begin + 20, 400)
        maker.op("aten::_local_scalar_dense", begin + 25, 390)
        maker.copy(begin + 30, begin + 400, 5, "DtoH (Device -> Pageable)", call_took=380, bytes=4)
        maker.op("aten::add", begin + 425, 100)
        maker.launch(begin + 500, begin + 505, 495)  # until 1000
    return maker


def test_a_copy_to_the_host_is_a_synchronisation() -> None:
    report = analyse(reading_values(Maker()).trace())
    (site,) = report.syncs
    assert (site.call, site.operator, site.count) == ("cudaMemcpyAsync", "aten::item", 3)
    assert site.wait_seconds == pytest.approx(3 * 380 * US)
    assert site.idle_after_seconds == pytest.approx(3 * 100 * US)
    assert report.devices[0].causes.sync_seconds == pytest.approx(3 * 100 * US)


def test_the_function_around_a_sync() -> None:
    maker = Maker()
    maker.function("train.py(30): main", 0, 5000)
    maker.function("model/loss.py(12): focal", 10, 2900)
    maker.function("torch/_tensor.py(55): wrapped", 15, 2890)
    maker.function("<built-in method item of Tensor object at 0x7f>", 16, 2880)
    (site,) = analyse(reading_values(maker).trace()).syncs
    assert site.where == "model/loss.py(12): focal"


def test_the_stack_of_an_operator_where_functions_are_not_recorded() -> None:
    maker = reading_values(Maker(), times=1)
    stack = "torch/_tensor.py(5): item;train.py(7): step;train.py(90): main"
    maker.op("aten::item", 26, 388, args={"Call stack": stack})
    (site,) = analyse(maker.trace()).syncs
    assert site.where == "train.py(7): step"


def test_else_the_annotation_but_not_the_step() -> None:
    maker = Maker()
    maker.step(1, 0, 5000)
    maker.note("## evaluate ##", 5, 4000)
    (site,) = analyse(reading_values(maker).trace()).syncs
    assert site.where == "## evaluate ##"


def test_a_function_that_began_the_step_is_not_around_it() -> None:
    """A step's annotation outlives the function that began it."""
    maker = Maker()
    maker.function("train.py(1): main", 0, 5000)
    maker.function("tool.py(2): begin_step", 1, 9)
    maker.step(1, 5, 4000)
    (site,) = analyse(reading_values(maker).trace()).syncs
    assert site.where == "train.py(1): main"


def test_nothing_around_is_nothing() -> None:
    maker = Maker()
    maker.launch(0, 10, 100)
    maker.call("cudaDeviceSynchronize", 5, 110)
    (site,) = analyse(maker.trace()).syncs
    assert (site.operator, site.where) == (None, None)


@pytest.mark.parametrize("name", ["hipStreamSynchronize", "cuStreamSynchronize", "cudaEventSynchronize"])
def test_every_runtime_has_its_syncs(name: str) -> None:
    maker = Maker()
    maker.launch(0, 10, 100)
    maker.call(name, 5, 110)
    assert [site.call for site in analyse(maker.trace()).syncs] == [name]


def test_a_thread_that_launches_nothing_holds_nothing_up() -> None:
    maker = Maker()
    maker.launch(0, 10, 100)
    maker.call("cudaStreamSynchronize", 5, 110, thread=9)
    assert analyse(maker.trace()).syncs == ()


@pytest.mark.parametrize(
    ("frame", "own"),
    [
        ("train.py(3): helper", True),
        ("/home/me/project/train.py(3): helper", True),
        ("transformers/trainer.py(99): step", True),
        ("torch/nn/modules/module.py(1500): _call_impl", False),
        ("/opt/env/lib/python3.11/site-packages/torch/optim/adam.py(3): step", False),
        ("threading.py(975): run", False),
        ("<built-in method item of Tensor object at 0x7f>", False),
        ("<frozen os>(674): __getitem__", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_own_code(frame: str, own: bool) -> None:
    assert is_own_code(frame) is own


def test_copies_by_direction_and_memory() -> None:
    maker = Maker()
    maker.copy(0, 10, 100, "HtoD (Pageable -> Device)", bytes=300_000)
    maker.copy(120, 130, 100, "HtoD (Pageable -> Device)", bytes=300_000)
    maker.copy(240, 250, 50, "HtoD (Pinned -> Device)", bytes=1_000_000)
    maker.copy(310, 320, 10, "DtoD (Device -> Device)")
    pageable, pinned, inside = analyse(maker.trace()).copies
    assert (pageable.direction, pageable.host_memory, pageable.count) == ("HtoD", "pageable", 2)
    assert (pageable.bytes, pageable.bytes_per_second) == (600_000, pytest.approx(3e9))
    assert (pinned.host_memory, pinned.bytes_per_second) == ("pinned", pytest.approx(2e10))
    assert (inside.direction, inside.host_memory, inside.bytes, inside.bytes_per_second) == (
        "DtoD",
        None,
        None,
        None,
    )
