"""Cases: Markdown files whose fenced blocks are run, compared and, with `pytest --update`, rewritten.

Blocks are taken in order. What is given:

    schema [file]     a schema in com; makes a new memory. Marks as in `com`
    data              SQL run on the memory as it is
    params            JSON: the parameters of the next program
    com [file] [run]  a program, checked; `run` runs it even if nothing below asks for its outcome.
                      A line that gets a message says so: `-- error: CM203` or `-- warning: CM216`

What is expected, always of the program last given:

    report            the messages as `com check` prints them
    effects           what `com check` prints of a program that checks
    sql ENGINE [all]  the plan's statements; `all`: with those that keep row images (with a file's name, it is written)
    rows              the outcome's rows, as `com run` prints them
    answer            the outcome's sentence
    changes           the rows changed; a dry run is made first, and must foretell the same
    fails             `CM503: the message` of a run that fails, and `in` which step
    journal           the run's steps: path, kind, rows
    replay            what replaying the run prints

What is asked of outcomes is asked of every engine. Asking for rows, answer, changes, fails, journal or replay runs the program, once; so does a page on a CM5xx. The clock
of every run is 2024-05-06 07:08:09.

A block with a file's name is also written to the case's folder. There ```console blocks run: lines that begin with `$ `
are commands, the rest what they print; in it `…` stands for anything on a line, and alone on a line for any lines.
`python` blocks without a file's name are run there too; `sh` blocks are only looked at.
"""

from __future__ import annotations

import difflib
import doctest
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from shlex import split
from typing import Any

import click
from click.testing import CliRunner

from com import report
from com.cli import cli, registered
from com.compiler import check_program, compile_program, format_source, ir, read_schema
from com.diagnostics import Diagnostic, has_errors
from com.library import create
from com.report import runs
from com.runtime.outcome import RunError
from com.schema import Schema
from com.source import Source

ROOT = Path(__file__).parent.parent
CLOCK = datetime(2024, 5, 6, 7, 8, 9)
FENCE = re.compile(r"^(`{3,}|~{3,})\s*(.*)$")
MARK = re.compile(r"--\s*(error|warning):\s*(CM\d{3}(?:\s*,\s*CM\d{3})*)")


@dataclass
class Block:
    """A fenced block: its words, its text, the lines (from 0) between its fences."""

    words: list[str]
    body: str
    start: int
    end: int

    @property
    def kind(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def file(self) -> str | None:
        return next((word for word in self.words[1:] if "." in word), None)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text."""
    found: list[Block] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        number += 1
        if not fence:
            continue
        start = number
        while number < len(lines) and not re.match(rf"^{fence[1]}\s*$", lines[number]):
            number += 1
        body = "".join(line + "\n" for line in lines[start:number])
        found.append(Block(fence[2].split(), body, start, number))
        number += 1
    return found


@dataclass
class Case:
    """A file being run. `folder` is where its files and its memory are made, `fresh` gives the URL of another engine's
    empty memory; then only what programs do is looked at."""

    path: Path
    folder: Path
    update: bool = False
    fresh: Callable[[], str] | None = None
    schema: Schema | None = None
    memory: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    source: Source | None = None
    program: ir.Program | None = None
    messages: list[Diagnostic] = field(default_factory=list)
    outcome: Any = None
    failure: Any = None
    foretold: str = ""
    updates: list[tuple[Block, str]] = field(default_factory=list)
    memories: int = 0
    names: dict[str, Any] = field(default_factory=dict)
    given_codes: list[set[str]] = field(default_factory=list)

    def run(self) -> None:
        """Take the blocks in order."""
        text = self.path.read_text(encoding="utf-8")
        try:
            for block in blocks(text):
                handle = HANDLERS.get(block.kind)
                if self.fresh is not None and block.kind not in EXECUTED:
                    continue
                if handle is not None:
                    handle(self, block)
                elif "cases" in self.path.parts:
                    raise AssertionError(f"{self.at(block)}: a case has no block {block.kind!r}")
        finally:
            self.close()
        if self.updates:
            lines = text.split("\n")
            for block, body in reversed(self.updates):
                lines[block.start : block.end] = body.rstrip("\n").split("\n") if body else []
            self.path.write_text("\n".join(lines), encoding="utf-8")

    def at(self, block: Block) -> str:
        return f"{self.path}:{block.start + 1}"

    def close(self) -> None:
        if self.memory is not None:
            self.memory.close()
            self.memory = None

    def expect(self, block: Block, actual: str) -> None:
        """Compare with what a block expects, or note that it has to be rewritten."""
        actual = "".join(line.rstrip() + "\n" for line in actual.rstrip("\n").split("\n")) if actual.strip() else ""
        if matches(block.body, actual):
            return
        if self.update:
            self.updates.append((block, actual))
            return
        told = difflib.unified_diff(block.body.splitlines(), actual.splitlines(), "expected", "actual", lineterm="")
        raise AssertionError(f"{self.at(block)}: {block.kind} differs\n" + "\n".join(told))

    def write(self, block: Block) -> None:
        if block.file:
            target = self.folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")

    # ------------------------------------------------------------ what is given

    def on_schema(self, block: Block) -> None:
        self.write(block)
        source = Source(block.body, block.file or "schema.com")
        self.schema, found = read_schema(source)
        self.source, self.program, self.messages = source, None, list(found)
        self.marks(block, source, found)
        self.close()

    def on_toml(self, block: Block) -> None:
        self.write(block)

    def on_json(self, block: Block) -> None:
        self.write(block)

    def on_python(self, block: Block) -> None:
        """Python is written if it has a file's name, else run; what it asserts must hold, and its names are kept."""
        if block.file:
            return self.write(block)
        with chdir(self.folder):
            if ">>>" in block.body:
                test = doctest.DocTestParser().get_doctest(block.body, self.names, self.at(block), None, None)
                failed: list[str] = []
                ran = doctest.DocTestRunner(verbose=False).run(test, out=failed.append, clear_globs=False)
                self.names = test.globs
                assert not ran.failed, "".join(failed)
            else:
                exec(compile(block.body, self.at(block), "exec"), self.names)
        return None

    def open(self) -> Any:
        """The memory, made when it is first needed."""
        if self.memory is None:
            assert self.schema is not None, f"{self.path}: no schema was given"
            self.memories += 1
            url = self.fresh() if self.fresh else f"sqlite:///{self.folder}/memory{self.memories}.db"
            self.memory = create(url, self.schema)
        return self.memory

    def on_data(self, block: Block) -> None:
        memory = self.open()
        if self.fresh is not None:
            for statement in filter(None, map(str.strip, block.body.split(";\n"))):
                memory.link.begin(write=True)
                memory.link.write(statement.rstrip(";"), {})
                memory.link.commit()
            return
        with sqlite3.connect(self.folder / f"memory{self.memories}.db") as connection:
            connection.executescript(block.body)
        connection.close()

    def on_params(self, block: Block) -> None:
        self.write(block)
        self.params = json.loads(block.body, parse_float=Decimal)

    def on_com(self, block: Block) -> None:
        self.write(block)
        if "create" in block.body.split("\n", 1)[0].lower().split():
            return self.on_schema(block)
        if self.schema is None and "cases" not in self.path.parts:
            return self.parses(block)
        source = Source(block.body, block.file or "program.com")
        self.source, self.outcome, self.failure = source, None, None
        self.program, self.messages = check_program(source, self.schema or Schema(), self.calls())
        self.messages = list(self.messages)
        self.marks(block, source, self.messages)
        of_a_run = self.path.parent.name == "diagnostics" and re.match("CM5[0-8]", self.path.stem)
        if "run" in block.words[1:] or (of_a_run and self.program is not None):
            self.execute()
        return None

    def calls(self) -> Mapping[str, Any]:
        """What the page's own com.toml registers, and what was registered before."""
        with chdir(self.folder):
            return registered()

    def parses(self, block: Block) -> None:
        """A piece of a page that has no schema: it must at least be well formed, unless it only shows a part."""
        if re.match(r"(\s|--[^\n]*\n)*program\b", block.body):
            _, found = format_source(Source(block.body), "program")
            assert not has_errors(found), f"{self.at(block)}: {self.told(found, Source(block.body))}"

    def marks(self, block: Block, source: Source, found: list[Diagnostic]) -> None:
        """The messages must be those, on those lines, that the marks say; a page of the catalogue needs no marks."""
        if block.kind == "com" or found or self.given_codes:
            self.given_codes.append({d.code for d in found})
        if self.path.parent.name == "diagnostics":
            return
        wanted = sorted(
            (number, severity, code.strip())
            for number, line in enumerate(block.body.split("\n"), 1)
            for severity, codes in MARK.findall(line)
            for code in codes.split(",")
        )
        given = sorted((source.place(d.span.start)[0], d.severity, d.code) for d in found)
        assert wanted == given, f"{self.at(block)}: marks say {wanted}, not {given}\n{self.told(found, source)}"

    def told(self, found: list[Diagnostic], source: Source) -> str:
        return report.plain(report.diagnostics_lines(found, source))

    # ------------------------------------------------------------ what is expected

    def on_report(self, block: Block) -> None:
        assert self.source is not None
        self.expect(block, self.told(self.messages, self.source))

    def on_effects(self, block: Block) -> None:
        assert self.program is not None
        self.expect(block, report.plain(report.program_lines(self.program)))

    def on_sql(self, block: Block) -> None:
        if block.file:
            return self.write(block)
        engine, *rest = block.words[1:]
        assert self.source is not None and self.schema is not None
        made, found = compile_program(self.source, self.schema, engine, self.calls())
        assert made is not None, self.told(list(found), self.source)
        self.expect(block, report.plain(report.sql_lines(made, images="all" in rest)))

    def execute(self) -> None:
        """Run the program last given, once; a dry run before it must leave no trace and foretell its changes."""
        if self.outcome is not None or self.failure is not None:
            return
        assert self.source is not None and self.program is not None, f"{self.path}: no program that could be run"
        memory = self.open()
        made, found = compile_program(self.source, memory.schema, memory.engine, self.calls())
        assert made is not None, self.told(list(found), self.source)
        params, self.params = self.params, {}
        before = memory.digest()
        try:
            foretold = memory.dry_run(made, params, clock=CLOCK).changes
        except RunError as failure:
            foretold = failure.message.code
        assert memory.digest() == before, f"{self.path}: a dry run has left a trace"
        try:
            self.outcome = memory.execute(made, params, clock=CLOCK)
            happened = self.outcome.changes
        except RunError as failure:
            self.failure = failure
            happened = failure.message.code
            assert memory.digest() == before, f"{self.path}: a failed run has left a trace"
            self.given_codes[-1] |= {failure.message.code}
        assert foretold == happened, f"{self.path}: foretold {foretold}, happened {happened}"

    def done(self, block: Block) -> Any:
        """The outcome of the program last given, which must not fail."""
        self.execute()
        if self.failure is not None:
            raise AssertionError(f"{self.at(block)}: the run fails\n{self.failure_text()}")
        return self.outcome

    def failure_text(self) -> str:
        source = Source(self.failure.text, "program.com")
        return self.told([self.failure.diagnostic], source)

    def on_rows(self, block: Block) -> None:
        outcome = self.done(block)
        lines = list(report.table_lines(outcome.columns, outcome.rows))
        self.expect(block, report.plain(lines if outcome.rows else [*lines, [("no rows", "")]]))

    def on_answer(self, block: Block) -> None:
        self.expect(block, (self.done(block).answer or "no answer") + "\n")

    def on_changes(self, block: Block) -> None:
        lines = list(report.change_lines(self.done(block).changes, self.open().schema))
        self.expect(block, report.plain(lines or [[("nothing", "")]]))

    def on_journal(self, block: Block) -> None:
        self.expect(block, report.plain(runs.step_lines(self.done(block).steps)))

    def on_fails(self, block: Block) -> None:
        self.execute()
        assert self.failure is not None, f"{self.at(block)}: the run does not fail"
        message, path = self.failure.message, self.failure.path
        self.expect(block, f"{message.code}: {message.fill(message.text)}\n" + (f"in {path}\n" if path else ""))

    def on_replay(self, block: Block) -> None:
        self.execute()
        run = self.outcome.run_id if self.outcome is not None else self.failure.run_id
        name = self.program.name if self.program else ""
        self.expect(block, report.plain(runs.replayed_lines(self.open().replay(run), name)))

    # ------------------------------------------------------------ consoles

    def on_console(self, block: Block) -> None:
        commands = re.split(r"^\$ ", block.body, flags=re.MULTILINE)
        assert not commands[0].strip(), f"{self.at(block)}: a console begins with `$ `"
        actual = block.body[: block.body.index("$ ")]
        for part in commands[1:]:
            command, _, expected = part.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = f"{command}\n{more}"
            printed = self.shell(command.replace("\\\n", " "))
            actual += f"$ {command}\n" + (expected if matches(expected.strip("\n"), printed.strip("\n")) else printed)
        self.expect(block, actual)

    def on_sh(self, block: Block) -> None:
        """Commands that are only shown: com must know their words and options, make their targets."""
        targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
        for line in block.body.replace("\\\n", " ").splitlines():
            words = split(line, comments=True)
            if words[:1] == ["make"]:
                assert set(words[1:]) <= targets, f"{self.at(block)}: {line}"
            elif words[:1] == ["com"]:
                command = cli.get_command(click.Context(cli), words[1])
                assert command is not None, f"{self.at(block)}: {line}"
                command.make_context(words[1], words[2:])

    def shell(self, command: str) -> str:
        """What a command prints: a `com` command in this process, any other by bash."""
        words = split(command, comments=True)
        environment = {"COLUMNS": "100"}
        if words[:1] == ["com"] and not re.search(r"[|<>;&`$*]", re.sub(r"'[^']*'", "", command)):
            with chdir(self.folder):
                return CliRunner(env=environment).invoke(cli, words[1:], prog_name="com").output
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**os.environ, **environment, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
        )
        return done.stdout


def matches(expected: str, actual: str) -> bool:
    """True if they are the same, where `…` is any text on a line, and a line of it any lines."""
    if expected == actual:
        return True
    if "…" not in expected:
        return False
    pattern = re.escape(expected)
    pattern = re.sub(r"(?m)^[ ]*…\\?\n", lambda _: r"(?:.*\n)*?", pattern)
    pattern = re.sub(r"(?m)\n[ ]*…\Z", lambda _: r"(?:\n.*)*", pattern)
    return re.fullmatch(pattern.replace("…", r"[^\n]*"), actual) is not None


EXECUTED = frozenset({"schema", "data", "params", "com", "rows", "answer", "changes", "fails", "journal"})
"""The blocks that are the same on every engine."""
HANDLERS: Mapping[str, Callable[[Case, Block], None]] = {
    name.removeprefix("on_"): handle for name, handle in vars(Case).items() if name.startswith("on_")
}
