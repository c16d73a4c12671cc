"""docs/engines.md tells what the engines' tables hold now; `pytest --update` writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines_page import page

PAGE = Path(__file__).parent.parent / "docs" / "engines.md"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"


def test_the_generated_part_is_up_to_date(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    inside, _, after = rest.partition(END)
    assert after
    made = f"\n\n{page()}\n\n"
    if request.config.getoption("--update"):
        PAGE.write_text(f"{before}{BEGIN}{made}{END}{after}", encoding="utf-8")
    else:
        assert inside == made, "run pytest --update tests/test_engines_page.py"
