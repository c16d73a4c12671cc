"""The catalogue: every message that com gives, in the order of its code.

Bands: CM1xx syntax, CM2xx names, CM3xx types and shapes, CM4xx what an engine cannot express, CM5xx
execution, CM6xx journal and replay, CM7xx grants, CM8xx planner, CM9xx our own bug. A code is used for
one thing and never again for another. `text` says what is true, `label` marks the place, `help` says
what would work; each is a template over the message's fields. Every code has a page in docs/diagnostics.
"""

from __future__ import annotations

from typing import ClassVar

from com.node import Node
from com.source import Span


class Message(Node):
    """One kind of message. A subclass a code; its fields fill the templates."""

    code: ClassVar[str] = ""
    severity: ClassVar[str] = "error"
    text: ClassVar[str] = ""
    label: ClassVar[str] = ""
    help: ClassVar[str] = ""

    def fill(self, template: str) -> str:
        """A template with this message's fields in it."""
        return template.format(**{field: getattr(self, field) for field in self._fields})


class Edit(Node):
    """A replacement of a span by a text."""

    span: Span
    text: str


class Fix(Node):
    """Edits that would mend the program; `certain` when it can only be meant this way."""

    edits: tuple[Edit, ...]
    certain: bool = False


class Diagnostic(Node):
    """A message at a place. `notes` mark further places in the same source."""

    message: Message
    span: Span
    notes: tuple[tuple[Span, str], ...] = ()
    fix: Fix | None = None

    @property
    def code(self) -> str:
        return self.message.code

    @property
    def severity(self) -> str:
        return self.message.severity

    @property
    def text(self) -> str:
        return self.message.fill(self.message.text)

    @property
    def label(self) -> str:
        return self.message.fill(self.message.label)

    @property
    def help(self) -> str:
        return self.message.fill(self.message.help)


def has_errors(diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> bool:
    """True if one of them is an error rather than a warning."""
    return any(d.severity == "error" for d in diagnostics)


def near(names: list[str], what: str = "") -> str:
    """Words for a help: the one name that is near, or the names there are."""
    if not names:
        return "there is none" + (f" {what}" if what else "")
    if len(names) == 1:
        return f"did you mean {names[0]}?"
    return "there are " + ", ".join(names)


# ---------------------------------------------------------------- CM1xx syntax


# ---------------------------------------------------------------- CM2xx names


# ---------------------------------------------------------------- CM3xx types and shapes


# ---------------------------------------------------------------- CM4xx what an engine cannot express


# ---------------------------------------------------------------- CM5xx execution


# ---------------------------------------------------------------- CM6xx journal and replay


# ---------------------------------------------------------------- CM9xx our own bug
