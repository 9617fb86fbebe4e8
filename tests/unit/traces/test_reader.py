"""Reading what profilers write, and saying what is wrong with a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from monitor.model.errors import EXIT_USAGE, UserError
from monitor.traces import parse, read
from tests.unit.traces.maker import BASE_US, MAIN, PID, Maker


def made() -> Maker:
    maker = Maker(rank=3, world=8)
    maker.op("aten::mm", 5, 20)
    maker.launch(10, 30, 40, name="gemm", stream=7)
    maker.copy(50, 80, 8, "HtoD (Pinned -> Device)", bytes=4096)
    maker.launch(60, 90, 5, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", stream=20)
    return maker


def test_work_is_joined_with_its_launch() -> None:
    trace = made().trace()
    mm, copy, reduce = trace.work
    assert (mm.begin, mm.end, mm.stream, mm.device, mm.kind) == (25_000, 65_000, 7, 0, "compute")
    assert mm.launch is not None
    assert (mm.launch.begin, mm.launch.end, mm.launch.name) == (5_000, 7_000, "cudaLaunchKernel")
    assert mm.launch.thread == (PID, MAIN)
    assert (copy.kind, copy.bytes) == ("memory", 4096)
    assert (reduce.kind, reduce.stream) == ("communication", 20)


def test_times_are_exact_to_the_nanosecond() -> None:
    maker = Maker()
    maker.add("kernel", "k", 0.001, 0.003, args={"stream": 7})
    maker.add("kernel", "k", 1.5, 2.25, args={"stream": 7})
    assert [(one.begin, one.end) for one in maker.trace().work] == [(0, 3), (1499, 3749)]


def test_the_head_names_rank_world_and_cards() -> None:
    trace = made().trace()
    assert (trace.rank, trace.world_size, trace.events) == (3, 8, 7)
    assert (trace.cards[0].name, trace.cards[0].compute_major) == ("A card", 8)


@pytest.mark.parametrize(
    ("name", "rank"), [("rank3.json", 3), ("trace_rank-12.json.gz", 12), ("worker.json", None)]
)
def test_the_rank_may_be_in_the_file_name(name: str, rank: int | None) -> None:
    maker = Maker()
    maker.kernel(0, 1)
    assert maker.trace(name).rank == rank


def test_compressed_or_not_is_told_by_the_content(tmp_path: Path) -> None:
    data = made().data()
    for name, content in (
        ("a.json", data),
        ("b.json.gz", gzip.compress(data)),
        ("c.txt", gzip.compress(data)),
    ):
        (tmp_path / name).write_bytes(content)
        assert len(read(tmp_path / name).work) == 3


def test_a_bare_list_of_events_is_a_trace_too() -> None:
    assert len(parse(json.dumps(made().events).encode(), "x").work) == 3


def test_numbers_as_text_as_on_rocm() -> None:
    maker = Maker()
    maker.add(
        "cuda_runtime",
        "hipMemcpyWithStream",
        0,
        5,
        args={"correlation": 117, "stream": "0x0", "size": "2560", "kind": "1"},
    )
    maker.add(
        "gpu_memcpy",
        "Memcpy HtoD (Host -> Device)",
        2,
        2,
        pid=2,
        tid=0,
        args={"device": 2, "stream": 0, "correlation": 117},
    )
    (copy,) = maker.trace().work
    assert (copy.device, copy.stream, copy.bytes) == (2, 0, 2560)
    assert copy.launch is not None


def test_old_category_names() -> None:
    maker = Maker()
    maker.add("Runtime", "cudaLaunchKernel", 0, 1, args={"correlation": 1})
    maker.add("Kernel", "k", 5, 1, args={"correlation": 1, "stream": 7})
    maker.add("Memset", "Memset (Device)", 7, 1, args={"correlation": 2, "stream": 7})
    trace = maker.trace()
    assert [(one.kind, one.launch is not None) for one in trace.work] == [
        ("compute", True),
        ("memory", False),
    ]


def test_annotations_on_the_gpu_and_syncs_are_no_work() -> None:
    maker = made()
    maker.add("gpu_user_annotation", "forward", 0, 1000, pid=0, tid=7, args={"stream": 7})
    maker.add("cuda_sync", "Stream Sync", 0, 1000, pid=0, tid=7, args={"stream": 7, "correlation": 99})
    assert len(maker.trace().work) == 3


def test_bare_nan_and_inf_are_forgiven() -> None:
    data = made().data().replace(b'"bytes": 4096', b'"bytes": 4096, "memory bandwidth (GB/s)": inf, "x": nan')
    assert len(parse(data, "x").work) == 3


def test_text_that_is_not_utf8_is_forgiven() -> None:
    data = made().data().replace(b'"aten::mm"', b'"aten::m\xff"')
    assert len(parse(data, "x").work) == 3


def truncated(data: bytes) -> bytes:
    return gzip.compress(data)[:-20]


BAD = {
    "empty": (b"", "is empty"),
    "text": (b"hello", "is not valid JSON"),
    "cut off": (made().data()[:-40], "is not valid JSON"),
    "compressed and cut off": (truncated(made().data()), "is cut off"),
    "damaged": (b"\x1f\x8b" + b"\x00" * 30, "is damaged"),
    "another document": (b'{"name": "x"}', "is not a profiler trace"),
    "a number": (b"12", "is not a profiler trace"),
    "no events": (b'{"traceEvents": []}', "has no events in it"),
    "only names": (b'{"traceEvents": [{"ph": "M", "name": "process_name"}]}', "is not a profiler trace"),
    "wrong types": (b'{"traceEvents": [{"ph": "X", "ts": {}}]}', "is not a profiler trace"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_clear_sentence(case: str, tmp_path: Path) -> None:
    content, sentence = BAD[case]
    (tmp_path / "trace.json").write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(tmp_path / "trace.json")
    assert sentence in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert caught.value.code == EXIT_USAGE


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "missing.json")


def test_the_origin_is_the_first_event() -> None:
    trace = made().trace()
    assert min([one.begin for one in trace.work] + [one.begin for one in trace.ranges]) == 0
    assert BASE_US > 1e12
