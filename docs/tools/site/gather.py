"""Gathers the pages: copies those that are written, makes those that are generated, and turns every link to a
file of the repository into a link to its page. A link to a file that is no page is a problem."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import yaml

from docs.tools.site import benchmarks, findings

ROOT = Path(__file__).resolve().parents[3]
ROOT_PAGES = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh-CN.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "tests/device/README.md": "device-stand-in.md",
}
"""Pages that live outside docs/, and where they are on the site."""
FOLDERS = ("benchmarks", "images", "screens")
KINDS = (".md", ".png", ".svg")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)(#[^)]*)?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def gather(target: Path, config: Path) -> list[str]:
    """Fill `target` and write `config`; what is wrong, a line each."""
    shutil.rmtree(target, ignore_errors=True)
    places = {**{ROOT / source: page for source, page in ROOT_PAGES.items()}, **dict(_written())}
    problems: list[str] = []
    for source, page in places.items():
        (target / page).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = relinked(source.read_text(encoding="utf-8"), source, page, places, problems)
            (target / page).write_text(text, encoding="utf-8")
        else:
            shutil.copy(source, target / page)
    generated = {**findings.pages(), "benchmarks/index.md": benchmarks.page()}
    for page, text in generated.items():
        (target / page).parent.mkdir(parents=True, exist_ok=True)
        (target / page).write_text(text, encoding="utf-8")
    config.write_text(_config([*places.values(), *generated]), encoding="utf-8")
    return problems


def _written() -> Iterator[tuple[Path, str]]:
    docs = ROOT / "docs"
    for path in sorted(docs.glob("*.md")):
        yield path, path.name
    for folder in FOLDERS:
        for path in sorted((docs / folder).iterdir()):
            if path.suffix in KINDS:
                yield path, f"{folder}/{path.name}"


def relinked(text: str, source: Path, page: str, places: dict[Path, str], problems: list[str]) -> str:
    """The page's text with its links as they are on the site; code is left alone."""

    def replace(found: re.Match[str]) -> str:
        opening, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return found.group(0)
        wanted = Path(os.path.normpath(source.parent / target))
        place = "benchmarks/index.md" if wanted == ROOT / "docs/benchmarks" else places.get(wanted)
        if place is None:
            problems.append(f"{source.relative_to(ROOT)} links to {target}, which is no page of the site")
            return found.group(0)
        return f"{opening}{os.path.relpath(place, os.path.dirname(page) or '.')}{anchor})"

    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(replace, text[end : code.start()]), code.group(0)]
        end = code.end()
    return "".join([*parts, LINK.sub(replace, text[end:])])


def _config(pages: Iterable[str]) -> str:
    """mkdocs.yml with its paths as seen from out/, and a menu that has every page."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": "docs", "site_dir": "site"}
    menu = [FILLED[name]() if (name := next(iter(entry))) in FILLED else entry for entry in settings["nav"]]
    listed = set(_listed(menu))
    more = [page for page in pages if page.endswith(".md") and page not in listed]
    settings["nav"] = [*menu, {"More": more}] if more else menu
    return str(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))


FILLED: dict[str, Callable[[], object]] = {
    "Findings": lambda: {"Findings": findings.menu()},
    "Benchmarks": lambda: {"Benchmarks": benchmarks.menu()},
}


def _listed(menu: object) -> Iterator[str]:
    """Every page a menu names, however deep."""
    if isinstance(menu, str):
        yield menu
    for part in menu.values() if isinstance(menu, dict) else menu if isinstance(menu, list) else ():
        yield from _listed(part)
