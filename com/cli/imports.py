"""The command that makes a program of a query in SQL."""

from __future__ import annotations

from pathlib import PurePath

import click

from com import report
from com.cli import cli, load_schema, read_source, refuse, schema_options, write_file
from com.cli.output import json_option, out
from com.compiler.show import show
from com.importer import DIALECTS, import_query
from com.settings import setting


@cli.command(name="import")
@click.argument("file", metavar="FILE|-")
@click.option("--dialect", default="sqlite", show_default=True, help="The dialect: sqlite, mysql, postgres, tsql, …")
@schema_options
@click.option("--output", "-o", metavar="FILE", help="Write the program to a file.")
@json_option
def import_(file: str, dialect: str, schema: str | None, memory: str | None, output: str | None, as_json: bool) -> None:
    """Make a program of a query in SQL.

    With a schema the program is made to check; without one, only the words are translated.
    """
    if dialect.lower() not in DIALECTS:
        raise click.BadParameter(f"{dialect} is none of {', '.join(DIALECTS)}", param_hint="--dialect")
    source = read_source(file)
    named = schema or memory or setting("schema") or setting("memory")
    known = load_schema(schema, memory) if named else None
    program, found = import_query(source.text, dialect, known, _name(output or file))
    if program is None:
        refuse(found, source)
    text = show(program)
    if output is not None:
        write_file(output, text)
    if as_json:
        out.json({"ok": True, "diagnostics": [report.diagnostic_json(d, source) for d in found], "text": text})
        return
    out.diagnostics(found, source, err=True)
    if output is None:
        click.echo(text, nl=False)


def _name(file: str) -> str:
    """The program's name, after its file."""
    name = "".join(c if c.isalnum() else "_" for c in PurePath(file).stem).strip("_")
    return name if name and not name[0].isdigit() else "main"
