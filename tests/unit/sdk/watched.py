"""Scripts as the SDK sees them: sampled stacks given by their lines, and the facts derived from them."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import torch  # noqa: F401 — methods of tensors are looked up in the torch that is loaded

from sdk.sampling._hot_lines import HotLines, Sample
from sdk.structure.places import Place
from sdk.structure.source import Function, forget, read

NS = 1_000_000


def place(file: str, line: int, module: bool = False) -> Place:
    """A place by its line, with the function it is in."""
    source = read(file)
    assert source is not None
    scope = source.scope_at(line)
    return Place(file, line, scope.name if isinstance(scope, Function) else "<module>", module)


def line_of(text: str, fragment: str) -> int:
    """The only line that contains a fragment."""
    found = [at for at, line in enumerate(text.splitlines(), 1) if fragment in line]
    assert len(found) == 1, (fragment, found)
    return found[0]


def facts(
    file: Path,
    *seen: tuple[str, ...],
    modules: bool = False,
    grad: dict[tuple[str, int], bool] | None = None,
    update: str = "backward(",
) -> dict[str, Any]:
    """What the SDK says about a script in which these stacks were sampled: the phase, then fragments of the
    lines, innermost first. The line with `backward()` (`update`) is always seen. `grad`: lines that were
    profiled as they called a module, and whether with gradients."""
    text = file.read_text()
    linecache.clearcache()  # a test may write the same file twice
    forget()
    lines = HotLines()
    lines.seen.grad.update(grad or {})
    stacks = [("backward", update), *seen]
    for _ in range(8):
        samples = []
        for phase, *fragments in stacks:
            frames = [place(str(file), line_of(text, one)) for one in fragments]
            if modules and phase != "backward":
                frames[-1] = frames[-1]._replace(module=True)
            samples.append(Sample(phase, tuple(frames), NS, NS))
        lines.count(samples)
    forget()
    return lines.evaluate()


def piece(
    file: Path, *seen: str, phase: str = "between", modules: bool = False, update: str = "backward("
) -> dict[str, Any]:
    """The piece of work one sampled stack belongs to."""
    found = facts(file, (phase, *seen), modules=modules, update=update)
    assert len(found["work"]) == 1, found
    return dict(found["work"][0])
