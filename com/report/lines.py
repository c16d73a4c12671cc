"""Lines of styled pieces, and the text that they make: the same with colours and without."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

Piece = tuple[str, str]
"""A text and its style, in rich's words (`bold red`, or nothing)."""
Line = list[Piece]


def plain(lines: Iterable[Line]) -> str:
    """The text without colours, each line ended."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def coloured(lines: Iterable[Line]) -> str:
    """The text with the colours of a terminal, each line ended."""
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(text: str, style: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if style and text else text

    return "".join("".join(paint(text, style) for text, style in line) + "\n" for line in lines)


def width(text: str) -> int:
    """The cells that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(cells(char) for char in text)


def cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def printable(char: str) -> bool:
    """False for what would move the cursor, or turn the direction of writing."""
    return char.isprintable() or unicodedata.category(char) in ("Zs", "Co") or char in "\u200c\u200d"


def cut(text: str, room: int) -> str:
    """A text that takes at most `room` cells."""
    if width(text) <= room:
        return text
    kept, taken = "", 0
    for char in text:
        taken += cells(char)
        if taken >= room:
            break
        kept += char
    return kept + "…"


def plural(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
