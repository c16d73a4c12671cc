"""Every case, every page and every example's README, run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import servers

from tests.cases import ROOT, Case, blocks, matches

CASES = sorted((ROOT / "tests" / "cases").rglob("*.md"))
RUN = [p for p in CASES if any(b.kind in ("rows", "changes", "answer", "fails") for b in blocks(p.read_text("utf-8")))]
PAGES = sorted((ROOT / "docs" / "diagnostics").glob("CM*.md"))
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
DOCS += sorted(p for p in (ROOT / "docs").rglob("*.md") if p not in PAGES)
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT).with_suffix(""))


@pytest.mark.parametrize("path", CASES, ids=named)
def test_case(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    Case(path, tmp_path, request.config.getoption("--update")).run()


@pytest.mark.parametrize("engine", [engine for engine in servers.ENGINES if engine != "sqlite"])
@pytest.mark.parametrize("path", RUN, ids=named)
def test_case_on(path: Path, engine: str, tmp_path: Path, fresh: Callable[[str], str]) -> None:
    Case(path, tmp_path, fresh=lambda: fresh(engine)).run()


@pytest.mark.parametrize("path", DOCS, ids=named)
def test_docs(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    Case(path, tmp_path, request.config.getoption("--update")).run()


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_example(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / path.parent.name
    shutil.copytree(path.parent, folder)
    Case(path, folder, request.config.getoption("--update")).run()


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_page(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A page's first program gives exactly its code, when checked or when run; the second is clean."""
    case = Case(path, tmp_path, request.config.getoption("--update"))
    case.run()
    if any(case.given_codes):
        assert case.given_codes[0] == {path.stem}
        assert len(case.given_codes) < 2 or not case.given_codes[1]
    elif not path.stem.startswith("CM9"):
        consoles = [b for b in blocks(path.read_text(encoding="utf-8")) if b.kind == "console"]
        assert any(f"[{path.stem}]" in b.body for b in consoles), "the page shows it nowhere"


def test_blocks_of_longer_fences_hold_shorter_ones() -> None:
    (outer,) = blocks("text\n````md\n```com\nx\n```\n````\n")
    assert (outer.kind, outer.body) == ("md", "```com\nx\n```\n")


def test_an_ellipsis_stands_for_anything_on_its_line() -> None:
    assert matches("run … done\n", "run 17 done\n")
    assert not matches("run … done\n", "run 17\nfoo done\n")
    assert matches("a\n…\nz\n", "a\nb\nc\nz\n")
    assert matches("a\n…\nz\n", "a\nz\n")
