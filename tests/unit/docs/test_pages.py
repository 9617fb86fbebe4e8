"""The documentation: links lead somewhere, pictures are made by a script, both READMEs say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.tools.site.gather import LINK, gather
from monitor.advice.rule import all_rules

ROOT = Path(__file__).parents[3]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
PICTURES = (*sorted((ROOT / "docs/images").iterdir()), *sorted((ROOT / "docs/screens").iterdir()))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    assert gather(target / "docs", target / "mkdocs.yml") == []
    return target / "docs"


def links(page: Path) -> Iterator[str]:
    for _, target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if target and "://" not in target:
            yield target


def test_every_link_leads_to_a_page(site: Path) -> None:
    broken = [
        f"{page.relative_to(site)} → {target}"
        for page in sorted(site.rglob("*.md"))
        for target in links(page)
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_rule_has_a_page_with_its_parts(site: Path) -> None:
    for rule in all_rules():
        text = (site / "findings" / f"{rule.id}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {rule.cause}\n") and "## Track record" in text
        assert all(
            rule.doc[part][1:] in text for part in ("Looks at", "Why", "Remedy", "Gain") if part in rule.doc
        )


def test_every_page_is_in_the_menu_once(site: Path) -> None:
    menu = (site.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(site).as_posix() for page in site.rglob("*.md")]
    counts = {page: len(re.findall(rf"(?<![\w/.-]){re.escape(page)}$", menu, re.MULTILINE)) for page in pages}
    assert {page: count for page, count in counts.items() if count != 1} == {}


def test_every_benchmark_is_listed(site: Path) -> None:
    text = (site / "benchmarks/index.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in text for path in (ROOT / "docs/benchmarks").glob("*.md"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_every_picture_is_made_by_a_script_and_shown(picture: Path) -> None:
    scripts = [*(ROOT / "docs/tools").rglob("*.py"), ROOT / "tests/tui/shots.py"]
    scripts += [*(ROOT / "tests/integration/grafana").glob("*.py")]
    made = picture.stem.removeprefix("dashboard-")
    assert any(re.search(rf"\b{re.escape(made)}\b", script.read_text(encoding="utf-8")) for script in scripts)


def shape(page: Path) -> list[tuple[str, ...]]:
    """Headings by depth, code without comments, tables by their columns, links by their targets."""
    text = page.read_text(encoding="utf-8").replace("README.zh-CN.md", "OTHER").replace("README.md", "OTHER")
    parts: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if line.startswith(("#", "|")):
            parts.append(("row", str(line.count("|"))) if line.startswith("|") else (line.split(" ")[0],))
    parts += [
        ("code", re.sub(r"\s+#.*", "", block)) for block in re.findall(r"^```.*?^```$", text, re.M | re.S)
    ]
    return parts + sorted(("link", target) for _, target, _ in LINK.findall(text))


def test_both_readmes_say_the_same() -> None:
    """As far as a test can see: the same headings, tables, commands and links."""
    assert shape(CHINESE) == shape(ENGLISH)
