"""What is printed, and how; and a sign of life while something takes long."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import click

from com import report
from com.diagnostics import Diagnostic, Error
from com.report.lines import printable
from com.source import Source


def escaped(text: str) -> str:
    """A text whose control characters, of any kind, are written as JSON would: no terminal obeys it."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in "\n\t" or printable(c) else json.dumps(c)[1:-1] for c in text)


class Output:
    """What is printed, and how: in colours, and how wide."""

    def __init__(self, colour: str = "auto") -> None:
        self.wanted = colour
        self.as_json = False

    def colour(self, file: Any) -> bool:
        if self.wanted == "auto":
            return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and file.isatty()
        return self.wanted == "always"

    def room(self, file: Any) -> int:
        """The width of the terminal, or 0 if it is none."""
        return shutil.get_terminal_size().columns if file.isatty() else 0

    def show(self, lines: Iterable[report.Line], err: bool = False) -> None:
        file = sys.stderr if err else sys.stdout
        colour = self.colour(file)
        lines = ([(escaped(text), style) for text, style in line] for line in lines)
        click.echo((report.coloured if colour else report.plain)(lines), file=file, nl=False, color=colour)

    def say(self, text: str, style: str = "", err: bool = False) -> None:
        self.show([[(text, style)]], err)

    def diagnostics(self, found: Sequence[Diagnostic], source: Source, err: bool = False) -> None:
        room = min(self.room(sys.stderr if err else sys.stdout) or 110, 160)
        self.show(report.diagnostics_lines(found, source, room), err)

    def message(self, error: Error) -> None:
        message = error.message
        if self.as_json:
            told = {"code": message.code, "text": message.fill(message.text), "help": message.fill(message.help)}
            return self.json({"ok": False, "error": told})
        self.show([[(f"error[{message.code}]", "bold red"), (f": {message.fill(message.text)}", "bold")]], err=True)
        help_ = message.fill(message.help)
        if help_:
            self.show([[(" = ", "blue"), ("help: ", "bold"), (help_, "")]], err=True)
        return None

    def json(self, data: object) -> None:
        click.echo(escaped(json.dumps(data, ensure_ascii=False, indent=2)))


out = Output()


def json_option(command: Any) -> Any:
    """`--json`: whatever is told, errors too, is JSON on standard output."""

    def note(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        out.as_json = value
        return value

    return click.option("--json", "as_json", is_flag=True, callback=note, is_eager=True, help="Print JSON.")(command)


PATIENCE = 1.0
"""Seconds before somebody at a terminal is told that com is at work."""


class Waiting:
    """A bar on the terminal, if there is one, while something takes longer than `PATIENCE`."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.bar: Any = None
        self.task: Any = None
        self.timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and out.wanted != "never":
            self.timer = threading.Timer(PATIENCE, self.show)
            self.timer.daemon = True
            self.timer.start()
        return self

    def show(self) -> None:
        from rich.console import Console  # only for those who wait
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(self.what, total=None)
        self.bar.start()

    def progress(self, done: int, total: int) -> None:
        """So much of it is done."""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done, total=total)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
        if self.bar is not None:
            self.bar.stop()
