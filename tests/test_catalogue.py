"""Laws of the catalogue of messages."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from com import diagnostics
from com.diagnostics import Message

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "diagnostics"
KINDS = [kind for kind in vars(diagnostics).values() if isinstance(kind, type) and issubclass(kind, Message)]
KINDS.remove(Message)
CODE = "".join(f.read_text(encoding="utf-8") for f in (ROOT / "com").rglob("*.py") if f.name != "diagnostics.py")
by_code = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)


def test_codes_are_well_formed_and_used_once() -> None:
    codes = [kind.code for kind in KINDS]
    assert all(re.fullmatch(r"CM[1-9]\d\d", code) for code in codes)
    assert len(set(codes)) == len(codes)


def test_the_catalogue_is_in_order_of_code() -> None:
    codes = [kind.code for kind in KINDS]
    assert codes == sorted(codes)


def test_each_code_stands_in_its_band() -> None:
    text = (ROOT / "com" / "diagnostics.py").read_text(encoding="utf-8")
    band = ""
    for line in text.splitlines():
        if header := re.match(r"# -+ CM(\d)xx", line):
            band = header[1]
        if code := re.match(r'    code = "CM(\d)\d\d"', line):
            assert code[1] == band, line


@by_code
def test_templates_name_fields(kind: type[Message]) -> None:
    for template in (kind.text, kind.label, kind.help):
        named = {name.split(".")[0] for _, name, _, _ in string.Formatter().parse(template) if name}
        assert named <= set(kind._fields), template
    assert kind.text and kind.severity in ("error", "warning")
    assert not kind.text.endswith(".") and not kind.help.endswith(".")


@by_code
def test_each_code_is_emitted_somewhere(kind: type[Message]) -> None:
    made = re.compile(rf"\b{kind.__name__}\b|[\"']{kind.code}[\"']")
    assert made.search(CODE)


@by_code
def test_each_code_has_its_page(kind: type[Message]) -> None:
    page = PAGES / f"{kind.code}.md"
    assert page.is_file()
    assert page.read_text(encoding="utf-8").startswith(f"# {kind.code}")


def test_no_page_without_a_code() -> None:
    assert {page.stem for page in PAGES.glob("CM*.md")} <= {kind.code for kind in KINDS}
