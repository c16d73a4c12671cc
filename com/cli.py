"""The command line: arguments, files, exit codes; no thinking.

Exit codes: 0 fine, 1 a run failed (and changed nothing) or a check found a difference, 2 the program does not check
or the command was misused, 70 a bug of com.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from com import __version__, report
from com.compiler import check_program, format_source, read_schema
from com.diagnostics import CannotRead, Diagnostic, Edit, Error, NothingNamed, OwnBug, has_errors
from com.schema import Schema
from com.settings import setting
from com.source import Source

BUG = 70


class Output:
    """What is printed, and how: in colours, and how wide."""

    def __init__(self, colour: str = "auto") -> None:
        self.wanted = colour

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
        click.echo((report.coloured if colour else report.plain)(lines), file=file, nl=False, color=colour)

    def say(self, text: str, style: str = "", err: bool = False) -> None:
        self.show([[(text, style)]], err)

    def diagnostics(self, found: Sequence[Diagnostic], source: Source, err: bool = False) -> None:
        room = min(self.room(sys.stderr if err else sys.stdout) or 110, 160)
        self.show(report.diagnostics_lines(found, source, room), err)

    def message(self, error: Error) -> None:
        message = error.message
        self.show([[(f"error[{message.code}]", "bold red"), (f": {message.fill(message.text)}", "bold")]], err=True)
        if message.help:
            self.show([[(" = ", "blue"), ("help: ", "bold"), (message.fill(message.help), "")]], err=True)


out = Output()


class Front(click.Group):
    """The commands; whatever goes wrong in one of them becomes a message."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            sys.stdout = None  # the reader has gone: nothing to say, and nobody to hear it
            ctx.exit(1)
        except Error as error:
            out.message(error)
            ctx.exit(2)
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            cause = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            out.message(Error(OwnBug(cause)))
            ctx.exit(BUG)


@click.group(cls=Front, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="com", message="%(prog)s %(version)s")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours in the output.")
@click.option("--debug", is_flag=True, help="Show where com itself has failed.")
def cli(color: str, debug: bool) -> None:
    """Check, preview, run and replay com programs."""
    out.wanted = color
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The `com` command."""
    cli(prog_name="com")


# ---------------------------------------------------------------- files and schemas


def read_source(file: str) -> Source:
    """A file's text, `-` for what is piped in."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return Source(raw.decode("utf-8-sig").replace("\r\n", "\n"), "<stdin>" if file == "-" else file)
    except OSError as error:
        raise Error(CannotRead(file, (error.strerror or "no reason given").lower())) from None
    except UnicodeDecodeError as error:
        help_ = "save it as UTF-8"
        raise Error(CannotRead(file, f"byte {error.start} is not UTF-8", help_)) from None


def kind_of(text: str) -> str:
    """`schema` if the first word is create, else `program`."""
    first = re.match(r"(?:\s|--[^\n]*)*(\w*)", text)
    return "schema" if first and first[1].lower() == "create" else "program"


def load_schema(file: str | None, memory: str | None) -> Schema:
    """The schema of a file, else of a memory; `com.toml` and variables are asked in the same order."""
    named = file or (None if memory else setting("schema"))
    if named:
        source = read_source(named)
        schema, found = read_schema(source)
        if schema is None:
            out.diagnostics(found, source, err=True)
            raise click.exceptions.Exit(2)
        return schema
    url = setting("memory", memory)
    if url is None:
        raise Error(
            NothingNamed("schema", "--schema FILE or --memory URL", "COM_SCHEMA or COM_MEMORY", "schema or memory")
        )
    from com.library import connect  # SQLAlchemy: only where a memory is opened

    with connect(url) as opened:
        return opened.schema


def schema_options(command: Any) -> Any:
    command = click.option("--memory", metavar="URL", help="The memory whose schema is meant.")(command)
    return click.option("--schema", metavar="FILE", help="The schema, as a .com file.")(command)


# ---------------------------------------------------------------- check, fix, fmt, compile


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@schema_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(files: tuple[str, ...], schema: str | None, memory: str | None, as_json: bool) -> None:
    """Check programs (or schema files), and show what each step may do."""
    known: Schema | None = None
    shown: list[dict[str, Any]] = []
    messages: list[Diagnostic] = []
    for number, file in enumerate(files):
        source = read_source(file)
        program = None
        if kind_of(source.text) == "schema":
            read, found = read_schema(source)
            lines = [[(f"{file}: ", ""), (report.plural(len(read.tables), "table"), "")]] if read else []
        else:
            known = known or load_schema(schema, memory)
            program, found = check_program(source, known, registered())
            lines = list(report.program_lines(program)) if program else []
        messages += found
        if as_json:
            shown.append(
                {
                    "file": file,
                    "ok": not has_errors(found),
                    "diagnostics": [report.diagnostic_json(d, source) for d in found],
                    "program": report.program_json(program) if program else None,
                }
            )
        else:
            if number:
                out.say("")
            out.diagnostics(found, source)
            if not has_errors(found):
                out.show(lines)
    if as_json:
        print_json({"ok": not has_errors(messages), "files": shown})
    elif messages:
        out.show([report.count_line(messages)])
    if has_errors(messages):
        raise click.exceptions.Exit(2)


def registered() -> dict[str, Any]:
    """The signatures of the calls that programs may make."""
    return {}


def print_json(data: object) -> None:
    click.echo(json.dumps(data, ensure_ascii=False, indent=2))


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@schema_options
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if something would be mended.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would be changed.")
def fix(files: tuple[str, ...], schema: str | None, memory: str | None, only_check: bool, diff: bool) -> None:
    """Mend what can only be meant one way."""
    known = load_schema(schema, memory)
    left: list[Diagnostic] = []
    mended = 0
    for file in files:
        source = read_source(file)
        after, done, found = mend(source, known)
        left += found
        mended += len(done)
        for diagnostic in done:
            line, column = source.place(min(diagnostic.span.start, len(source.text)))
            out.show([[(f"{file}:{line}:{column} ", ""), (diagnostic.code, "bold"), (f" {diagnostic.text}", "")]])
        if diff:
            show_diff(source.text, after.text, file)
        elif done and not only_check:
            Path(file).write_text(after.text, encoding="utf-8")
        out.diagnostics(found, after)
    verb = "would be mended" if only_check or diff else "mended"
    out.say(f"{report.plural(mended, 'mistake')} {verb}" + (", " if left else ""), "bold")
    if left:
        out.show([report.count_line(left)])
    if has_errors(left):
        raise click.exceptions.Exit(2)
    if mended and (only_check or diff):
        raise click.exceptions.Exit(1)


def mend(source: Source, schema: Schema) -> tuple[Source, list[Diagnostic], list[Diagnostic]]:
    """A source with all certain fixes applied, the messages they answered, and the messages that are left."""
    done: list[Diagnostic] = []
    for _ in range(20):
        _, found = check_program(source, schema, registered())
        edits: list[Edit] = []
        for diagnostic in found:
            fixed = diagnostic.fix
            if fixed and fixed.certain and not any(overlap(a, b) for a in fixed.edits for b in edits):
                edits += fixed.edits
                done.append(diagnostic)
        if not edits:
            break
        text = source.text
        for edit in sorted(edits, key=lambda e: e.span.start, reverse=True):
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
        source = Source(text, source.name)
    return source, done, list(found)


def overlap(a: Edit, b: Edit) -> bool:
    return (a.span.start < b.span.end and b.span.start < a.span.end) or a.span == b.span


def show_diff(before: str, after: str, file: str) -> None:
    import difflib  # only where it is asked for

    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), file, file, lineterm=""):
        out.say(line, styles.get(line[:1], ""))


@cli.command()
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if a file is not formatted.")
def fmt(files: tuple[str, ...], only_check: bool) -> None:
    """Format programs and schema files in place, or what is piped in."""
    changed = 0
    failed = False
    for file in files or ("-",):
        source = read_source(file)
        text, found = format_source(source, kind_of(source.text))
        if has_errors(found):
            out.diagnostics(found, source, err=True)
            failed = True
        elif file == "-":
            click.echo(text, nl=False)
        elif text != source.text:
            changed += 1
            out.say(f"{file}: {'would be formatted' if only_check else 'formatted'}")
            if not only_check:
                Path(file).write_text(text, encoding="utf-8")
    if failed or (only_check and changed):
        raise click.exceptions.Exit(2 if failed else 1)
