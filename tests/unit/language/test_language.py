"""How a sentence is recognised and said: whole, with its figures, and never somebody's own words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest

from monitor import language
from monitor.language import cells, stream
from monitor.language.catalogue import Catalogue
from monitor.terminal import table, wrapped
from monitor.tui.text import wrap

WORDS = Catalogue(
    {
        "Checkpoints take {} of the time: saved {}": "保存检查点占 {} 的时间：{:t}",
        "every {} steps": "每 {} 步",
        ", {} each": "，每次 {}",
        "{} steps": "{:n} 步",
        "{} worker{} wait for {}": "{2:w}有 {0} 个 worker 在等",
        "no run matches": "没有匹配的运行",
        "stuck in {} for {}": "卡在{:w}已 {}",
        "Do {} {} now": "现在{1:t}做{0:t}",
        "the work of {}": "{} 的工作",
        "once for all": "一次性",
        "data": "数据",
        "idle": "空闲",
        "Price: {}.": "代价：{:t}。",
        "memory": "内存",
        "Keeping what is random: it changes.": "不要保留随机内容。",
        "Avoid: {}": "注意：{:t}",
    }
)


@pytest.fixture(autouse=True)
def chinese() -> Iterator[None]:
    language._everywhere = WORDS
    yield
    language._everywhere = None


def test_figures_move_with_their_sentence() -> None:
    assert language.said("stuck in data for 3 s") == "卡在数据已 3 s"
    assert language.said("2 workers wait for data") == "数据有 2 个 worker 在等"


def test_what_is_filled_in_may_be_text_itself() -> None:
    text = "Checkpoints take 42 % of the time: saved every 10 steps, 50 ms each (train.py:7)"
    assert language.said(text) == "保存检查点占 42 % 的时间：每 10 步，每次 50 ms (train.py:7)"


def test_two_texts_side_by_side_are_parted_where_both_are_known() -> None:
    assert language.said("Do the work of a b once for all now") == "现在一次性做a b 的工作"


def test_a_quantity_is_no_part_of_the_text_behind_it() -> None:
    """GIVEN "0 memory", which another template knows THEN the title is still parted behind its number."""
    words = Catalogue(
        {"GPU {} {}": "GPU {:n} {:t}", "memory in use": "显存占用", "{} memory": "{} 内存", "in use": "在用"}
    )
    assert words.sentences("GPU 0 memory in use") == "GPU 0 显存占用"


def test_a_hole_does_not_swallow_the_next_sentence() -> None:
    words = Catalogue(
        {
            "It sleeps {}{}": "睡眠 {:n}{:t}",
            ", most of it at {}": "，多在 {}",
            " Fixing it gives {}.": " 修复得 {:t}。",
        }
    )
    assert words.sentences("It sleeps 5 ms, most of it at `a` (b.py:1). Fixing it gives ×2.") == (
        "睡眠 5 ms，多在 `a` (b.py:1)。修复得 ×2。"
    )


def test_sentences_after_one_another() -> None:
    assert language.said("120 steps; no run matches") == "120 步；没有匹配的运行"
    assert language.said("Price: memory. Nobody knows this one.") == "代价：内存。Nobody knows this one."


def test_a_sentence_inside_another_begins_small() -> None:
    assert language.said("Avoid: keeping what is random: it changes.") == "注意：不要保留随机内容。"


@pytest.mark.parametrize(
    "text",
    [
        "idle",  # a run's name
        "my data steps",
        "the run matches no run matches",
        "stuck in data",
        "gpumon run -- python train.py",
        "",
        "   ",
    ],
)
def test_what_does_not_match_whole_stays(text: str) -> None:
    assert language.said(text) == text


def test_names_in_holes_stay() -> None:
    assert language.said("Checkpoints take idle of the time: saved data").startswith(
        "保存检查点占 idle 的时间"
    )


def test_code_is_never_touched() -> None:
    code = "`for _ in data: x = 3 steps; no run matches` (train.py:7)"
    assert (
        language.said(f"Checkpoints take 4 % of the time: saved {code}") == f"保存检查点占 4 % 的时间：{code}"
    )
    assert language.said(code) == code


def test_a_long_text_of_somebody_else_costs_little() -> None:
    long = "Checkpoints take " + "saved of the time: every steps, each, " * 400
    assert language.said(long) == long


def test_words_are_said_only_where_they_are_ours() -> None:
    assert language.word("idle") == "空闲"
    shown = table(("name", "state"), [("idle", "idle")])
    assert shown.splitlines()[1].split() == ["idle", "空闲"]


def test_a_phase_of_the_users_own_keeps_its_name() -> None:
    assert language.said("stuck in augment for 3 s") == "卡在augment已 3 s"


def test_tables_are_aligned_by_cells() -> None:
    shown = table(("name", "state", "steps"), [("a", "idle", "1"), ("b", "running", "20")], right=(2,))
    assert {cells.width(line) for line in shown.splitlines()[1:]} == {cells.width("name  running  steps")}


def test_wrapped_lines_fit_in_cells() -> None:
    lines = wrapped("中文很长的一句话，" * 8 + "train.py:7", 40, "  ")
    assert all(cells.width(line) <= 40 for line in lines)
    assert not any(line.lstrip().startswith("，") for line in lines)
    assert "".join(line.strip() for line in lines) == "中文很长的一句话，" * 8 + "train.py:7"


def test_columns_of_a_printed_line_stay_in_place() -> None:
    line = "no run matches          120 steps\n"
    told = stream.translated(line)
    assert told == "没有匹配的运行          120 步\n"
    assert cells.width(told.split("120")[0]) == line.index("120")


def test_colours_do_not_hide_a_sentence() -> None:
    assert stream.translated("\x1b[2mno run matches\x1b[0m") == "\x1b[2m没有匹配的运行\x1b[0m"


@pytest.mark.parametrize(
    ("environment", "spoken"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "de_DE.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "GPUMON_LANG": "en"}, "en"),
        ({"GPUMON_LANG": "zh"}, "zh"),
        ({"GPUMON_LANG": "zh-Hans"}, "zh"),
        ({"GPUMON_LANG": "zha"}, "en"),
        ({"GPUMON_LANG": "tlh"}, "en"),
    ],
)
def test_how_the_language_is_chosen(environment: dict[str, str], spoken: str) -> None:
    assert language.chosen(environment) == spoken


def gpumon(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "GPUMON"))}
    return subprocess.run(
        [sys.executable, "-m", "monitor.cli.main", *words],
        capture_output=True, text=True, encoding="utf-8", env=clean | {"PYTHONUTF8": "1"} | environment,
    )  # fmt: skip


def test_a_mistake_is_explained_in_chinese() -> None:
    done = gpumon("nosuch", GPUMON_LANG="zh")
    assert done.returncode == 2
    assert "没有命令 'nosuch'" in done.stderr
    assert "提示：" in done.stderr
    assert "there is no command" in gpumon("nosuch", LANG="zh_CN.UTF-8", GPUMON_LANG="en").stderr


def test_json_is_the_same_in_every_language() -> None:
    chinese, english = (
        gpumon("doctor", "--json", "--only", "python", "--only", "versions", GPUMON_LANG=name).stdout
        for name in ("zh", "en")
    )
    assert '"detail"' in english
    assert [line for line in chinese.splitlines() if '"time"' not in line] == [
        line for line in english.splitlines() if '"time"' not in line
    ]


def test_english_loads_no_catalogue() -> None:
    code = (
        "import sys, monitor.cli.main as m; m.main(['help', 'gains']); "
        "print([n for n in sys.modules if n.startswith('monitor.language.cat')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"GPUMON_LANG": "en"}
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("width", range(20, 60))
def test_a_number_stays_with_its_unit(width: int) -> None:
    told = "保存检查点占用 6 % 的时间：每 150 步，每次 3.00 s，预计提速 ×1.17 (1.05–1.22)"
    for lines in (wrapped(told, width), wrap(told, width)):
        torn = [one for one, two in pairwise(lines) if re.search(r"\d$", one) and re.match(r"\s*[%s(]", two)]
        assert torn == []
