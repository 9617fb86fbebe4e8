"""`gpumon trace` as people use it: files in, text or JSON out, one sentence for what is wrong."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from monitor.cli.main import main
from monitor.cli.trace import Answer
from monitor.model.errors import EXIT_OK, EXIT_USAGE
from tests.unit.traces.maker import Maker, busy, launch_bound
from tests.unit.traces.test_diagnosis import rank_of

REAL = os.environ.get("GPUMON_TRACES")


def healthy() -> Maker:
    maker = Maker()
    maker.step(1, 0, 10_000)
    maker.step(2, 30_000, 10)
    busy(maker)
    return maker


def slow() -> Maker:
    """Some of everything the text can show."""
    maker = Maker(card="A card with a rather long name, as vendors give them")
    launch_bound(maker)
    maker.function("a/rather/deep/folder/of/a/project/train.py(1234): evaluate_everything", 0, 20_000)
    maker.op("aten::_a_rather_long_operator_name_for_a_table", 19_900, 200)
    maker.copy(19_950, 20_000, 10, "DtoH (Device -> Pageable)", call_took=70, bytes=4)
    maker.call("cudaDeviceSynchronize", 20_020, 5)
    maker.copy(20_100, 20_200, 100, "HtoD (Pinned -> Device)", bytes=123_456_789)
    maker.launch(20_400, 20_500, 10, name="void " + "templated_" * 30 + "<float>(int)")
    maker.kernel(20_000, 400, device=1)
    return maker


def written(folder: Path, name: str, maker: Maker) -> str:
    path = folder / name
    path.write_bytes(gzip.compress(maker.data()) if name.endswith(".gz") else maker.data())
    return str(path)


def test_text_fits_80_columns_without_colour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", written(tmp_path, "slow.json.gz", slow())]) == EXIT_OK
    text = capsys.readouterr().out
    assert "trace.launch_bound  at most ×" in text
    assert "Where the host waits for the device" in text
    assert "Device 1" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_healthy_trace_promises_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", written(tmp_path, "healthy.json", healthy())]) == EXIT_OK
    text = capsys.readouterr().out
    assert "trace.healthy" in text
    assert "at most ×" not in text


def test_json_is_complete_and_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--json", written(tmp_path, "slow.json", slow())]) == EXIT_OK
    text = capsys.readouterr().out
    answer = msgspec.convert(json.loads(text), Answer)
    assert json.loads(text)["schema"] == 1
    assert [device.device for device in answer.reports[0].devices] == [0, 1]
    assert answer.findings[0].id == "trace.launch_bound"
    assert answer.late_rank is None


def test_several_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waits = {0: [300.0, 310.0], 1: [100.0, 100.0], 2: [250.0, 240.0]}
    files = [written(tmp_path, f"{rank}.json", rank_of(rank, waits[rank])) for rank in (2, 0, 1)]
    assert main(["trace", *files]) == EXIT_OK
    text = capsys.readouterr().out
    assert "trace.late_rank  rank 1" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main(["trace", "--rank", "1", *files]) == EXIT_OK
    assert "Rank 1 in detail (1.json)" in capsys.readouterr().out
    assert main(["trace", "--json", *files]) == EXIT_OK
    answer = json.loads(capsys.readouterr().out)
    assert [report["rank"] for report in answer["reports"]] == [0, 1, 2]
    assert answer["late_rank"]["rank"] == 1


def test_the_same_rank_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [written(tmp_path, name, rank_of(0, [10.0])) for name in ("a.json", "b.json")]
    assert main(["trace", *files]) == EXIT_USAGE
    assert "are both from rank 0" in capsys.readouterr().err


def test_a_rank_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--rank", "7", written(tmp_path, "a.json", healthy())]) == EXIT_USAGE
    assert "none of the files is of rank 7" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"{}", b'{"traceEvents": []}', gzip.compress(b"x" * 1000, mtime=0)[:-9]]
)
def test_bad_input_is_a_sentence_and_exit_code_2(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    for target in (path, tmp_path, tmp_path / "missing.json"):
        command = [sys.executable, "-m", "monitor.cli.main", "trace", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == EXIT_USAGE
        assert done.stdout == ""
        sentence, *rest = done.stderr.splitlines()
        assert sentence.startswith("gpumon: ")
        assert str(target) in sentence
        assert not rest or (rest[0] == "" and rest[1].startswith("hint: "))


RECORDED = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU], with_stack=True) as recorded:
    torch.randn(8, 8).sum().item()
recorded.export_chrome_trace(sys.argv[1])
"""


def test_what_torch_itself_writes_without_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "host_only.json"
    subprocess.run([sys.executable, "-c", RECORDED, str(path)], check=True, capture_output=True)
    assert main(["trace", str(path)]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert "has no GPU work in it" in error
    assert "ProfilerActivity.CUDA" in error


@pytest.mark.skipif(REAL is None, reason="GPUMON_TRACES names no folder with traces of real cards")
def test_traces_of_real_cards(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(Path(REAL or "").glob("*.json*"))
    assert files
    for file in files:
        assert main(["trace", str(file)]) == EXIT_OK
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
