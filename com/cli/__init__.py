"""The command line: arguments, files, exit codes; no thinking.

Exit codes: 0 fine, 1 a run failed (and changed nothing) or a check found a difference, 2 the program does not check
or the command was misused, 70 a bug of com.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any, NoReturn

import click

from com import __version__, report
from com.cli.output import json_option, out
from com.compiler import check_program, compile_program, format_source, read_schema
from com.compiler.engines import NAMES as ENGINES
from com.compiler.parse import parse_program, parse_schema
from com.diagnostics import (
    CannotRead,
    CannotWriteFile,
    Diagnostic,
    Edit,
    Error,
    NothingNamed,
    OwnBug,
    UnknownMemory,
    has_errors,
)
from com.functions import Signature
from com.node import dump
from com.runtime.outcome import RunError
from com.schema import Schema
from com.settings import setting
from com.source import Source

BUG = 70
ORDER = ["check", "fix", "fmt", "compile", "import", "init", "schema", "run", "log", "show", "replay", "verify"]


class Front(click.Group):
    """The commands; whatever goes wrong in one of them becomes a message."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            # they load sqlglot and SQLAlchemy, which a check need not wait for
            import_module("com.cli.imports" if cmd_name == "import" else "com.cli.runs")
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        import_module("com.cli.runs")
        import_module("com.cli.imports")
        return ORDER

    def invoke(self, ctx: click.Context) -> Any:
        out.as_json = False
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            sys.stdout = None  # the reader has gone: nothing to say, and nobody to hear it
            ctx.exit(1)
        except Error as error:
            out.message(error)
            ctx.exit(1 if isinstance(error, RunError) else 2)
        except OSError as error:
            out.message(Error(CannotWriteFile(str(error.filename or "the output"), (error.strerror or "?").lower())))
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
@click.option("--calls", metavar="FILE", help="The Python file or module that registers calls (or COM_CALLS).")
def cli(color: str, debug: bool, calls: str | None) -> None:
    """Check, preview, run and replay com programs."""
    out.wanted = color
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The `com` command."""
    cli(prog_name="com")


# ---------------------------------------------------------------- files and schemas


def write_file(file: str, text: str) -> None:
    """Writes a file's text."""
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Error(CannotWriteFile(file, (error.strerror or "no reason given").lower())) from None


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
            refuse(found, source)
        return schema
    if setting("memory", memory) is None:
        where = "--schema FILE or --memory URL", "COM_SCHEMA or COM_MEMORY", "schema or memory"
        raise Error(NothingNamed("schema", *where))
    with open_memory(memory, read_only=True) as opened:
        found_there: Schema = opened.schema
    return found_there


def open_memory(url: str | None, read_only: bool = False, copies: bool = False, **options: Any) -> Any:
    """The memory that is named, which must be there. `copies`: something is done again there, and taken back; DuckDB
    has no way to do that in a memory that is only read."""
    named = setting("memory", url)
    if named is None:
        raise Error(NothingNamed("memory", "--memory URL", "COM_MEMORY", "memory"))
    from com.library import connect  # SQLAlchemy: only where a memory is opened
    from com.runtime.memory import read_url

    address = read_url(named)
    in_file = address.get_backend_name() in ("sqlite", "duckdb") and address.database not in (None, "", ":memory:")
    if in_file and not Path(str(address.database)).exists():
        raise Error(UnknownMemory(named, "there is no such file", "make it: com init --schema FILE --memory URL"))
    read_only = read_only and not (copies and address.get_backend_name() == "duckdb")
    return connect(named, read_only=read_only, **options)


def schema_options(command: Any) -> Any:
    command = click.option("--memory", metavar="URL", help="The memory whose schema is meant.")(command)
    return click.option("--schema", metavar="FILE", help="The schema, as a .com file.")(command)


# ---------------------------------------------------------------- check, fix, fmt, compile


def load_calls(name: str) -> None:
    """Runs a Python file, or imports a module, that registers calls; once."""
    sys.path.insert(0, "")
    try:
        if not name.endswith(".py"):
            import_module(name)
        elif name not in _LOADED:
            _LOADED.add(name)
            run_path(name, run_name="com_calls")
    except Exception as error:
        cause = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise Error(CannotRead(name, cause, "it has to be Python that registers functions with @com.call")) from None
    finally:
        sys.path.remove("")


_LOADED: set[str] = set()


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@schema_options
@json_option
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
        out.json({"ok": not has_errors(messages), "files": shown})
    elif messages:
        out.show([report.count_line(messages)])
    if has_errors(messages):
        raise click.exceptions.Exit(2)


def registered() -> Mapping[str, Signature]:
    """The signatures of the calls that programs may make."""
    here = click.get_current_context(silent=True)
    named = setting("calls", here.find_root().params.get("calls") if here else None)
    if named:
        load_calls(named)
    calls = sys.modules.get("com.runtime.calls")  # loaded if and only if something was registered
    return {name: known.signature for name, known in calls.REGISTRY.items()} if calls else {}


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@schema_options
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if something would be mended.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would be changed.")
@json_option
def fix(
    files: tuple[str, ...], schema: str | None, memory: str | None, only_check: bool, diff: bool, as_json: bool
) -> None:
    """Mend what can only be meant one way."""
    known = load_schema(schema, memory)
    left: list[Diagnostic] = []
    shown: list[dict[str, Any]] = []
    mended = 0
    for file in files:
        source = read_source(file)
        after, done, found = mend(source, known)
        left += found
        mended += len(done)
        if done and not (only_check or diff or file == "-"):
            write_file(file, after.text)
        if as_json:
            shown.append(
                {
                    "file": file,
                    "ok": not has_errors(found),
                    "mended": [report.diagnostic_json(d, source) for d in done],
                    "diagnostics": [report.diagnostic_json(d, after) for d in found],
                    "text": after.text,
                }
            )
            continue
        for diagnostic in done:
            line, column = source.place(min(diagnostic.span.start, len(source.text)))
            if file != "-":
                out.show([[(f"{file}:{line}:{column} ", ""), (diagnostic.code, "bold"), (f" {diagnostic.text}", "")]])
        if diff:
            show_diff(source.text, after.text, file)
        elif file == "-":
            click.echo(after.text, nl=False)
        out.diagnostics(found, after)
    verb = "would be mended" if only_check or diff else "mended"
    if as_json:
        out.json({"ok": not has_errors(left), "mended": mended, "files": shown})
    else:
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
@json_option
def fmt(files: tuple[str, ...], only_check: bool, as_json: bool) -> None:
    """Format programs and schema files in place, or what is piped in."""
    changed = 0
    failed = False
    shown: list[dict[str, Any]] = []
    for file in files or ("-",):
        source = read_source(file)
        text, found = format_source(source, kind_of(source.text))
        wrong, other = has_errors(found), text != source.text
        failed = failed or wrong
        if as_json:
            told = [report.diagnostic_json(d, source) for d in found]
            shown.append({"file": file, "ok": not wrong, "changed": not wrong and other, "diagnostics": told})
            shown[-1]["text"] = None if wrong else text
        elif wrong:
            out.diagnostics(found, source, err=True)
        elif file == "-":
            click.echo(text, nl=False)
        elif other:
            out.say(f"{file}: {'would be formatted' if only_check else 'formatted'}")
        if other and not wrong and file != "-":
            changed += 1
            if not only_check:
                write_file(file, text)
    if as_json:
        out.json({"ok": not failed, "changed": changed, "files": shown})
    if failed or (only_check and changed):
        raise click.exceptions.Exit(2 if failed else 1)


STAGES = ("syntax", "ir", "plan", "sql")


@cli.command(name="compile")
@click.argument("file")
@schema_options
@click.option(
    "--engine", type=click.Choice(ENGINES), default="sqlite", show_default=True, help="The engine to compile for."
)
@click.option("--show", "stage", type=click.Choice(STAGES), default="sql", show_default=True, help="What to print.")
@json_option
def compile_(file: str, schema: str | None, memory: str | None, engine: str, stage: str, as_json: bool) -> None:
    """Compile a program, and print one of its stages."""
    source = read_source(file)
    made: Any
    if stage == "syntax":
        made, found = (parse_schema if kind_of(source.text) == "schema" else parse_program)(source)
    elif stage == "ir":
        made, found = check_program(source, load_schema(schema, memory), registered())
    else:
        made, found = compile_program(source, load_schema(schema, memory), engine, registered())
    if made is None or has_errors(found):
        refuse(found, source)
    if as_json:
        told = {"ok": True, "diagnostics": [report.diagnostic_json(d, source) for d in found]}
        out.json({**told, stage: report.sql_json(made) if stage == "sql" else dump(made)})
    else:
        out.show(report.sql_lines(made) if stage == "sql" else report.tree_lines(made))


def refuse(found: Sequence[Diagnostic], source: Source) -> NoReturn:
    """Say why a program does not check, and stop."""
    if out.as_json:
        out.json({"ok": False, "diagnostics": [report.diagnostic_json(d, source) for d in found]})
    else:
        out.diagnostics(found, source, err=True)
        out.show([report.count_line(found)], err=True)
    raise click.exceptions.Exit(2)
