"""The commands that open a memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

import click

from com import report
from com.cli import cli, load_schema, open_memory, read_source, refuse, registered
from com.cli.output import Waiting, json_option, out
from com.compiler import compile_program
from com.compiler.declare import declare, declare_graph
from com.compiler.show import show
from com.compiler.syntax import SchemaFile
from com.diagnostics import BadParameter, CannotRead, Error, NothingNamed, UnknownParameter, near
from com.library import create
from com.plan import Parameter, Plan
from com.report import runs
from com.runtime.outcome import RunError
from com.schema import dump_graph, dump_schema
from com.settings import setting
from com.source import NOWHERE, Source
from com.values import MAX_INT

# ---------------------------------------------------------------- run


def memory_option(command: Any) -> Any:
    return click.option("--memory", metavar="URL", help="The memory: sqlite:///shop.db, postgresql://…")(command)


@cli.command()
@click.argument("file")
@memory_option
@click.option(
    "--param", "-p", "texts", multiple=True, metavar="NAME=VALUE", help="A parameter; lists and rows as JSON."
)
@click.option("--params", metavar="FILE|-", help="Parameters as a JSON object.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option("--approve", metavar="ID", help="Run only if it changes what the preview of this id has shown.")
@click.option("--key", metavar="KEY", help="A second run with the same key gives the outcome of the first.")
@click.option("--no-history", is_flag=True, help="Keep no row images: the run cannot be undone.")
@click.option("--zone", metavar="ZONE", help="The time zone of $now and $today, UTC if none is named.")
@click.option("--call", "make_calls", is_flag=True, help="With --dry-run: make the program's calls.")
@click.option("--sql", is_flag=True, help="With --dry-run: show the statements and their values too.")
@json_option
def run(
    file: str,
    memory: str | None,
    texts: tuple[str, ...],
    params: str | None,
    dry_run: bool,
    approve: str | None,
    key: str | None,
    no_history: bool,
    zone: str | None,
    make_calls: bool,
    sql: bool,
    as_json: bool,
) -> None:
    """Run a program on a memory: everything or nothing."""
    if dry_run and approve is not None:
        raise click.UsageError("--approve is for the run itself: leave --dry-run out")
    source = read_source(file)
    history = not no_history and setting("history") != "false"
    with open_memory(memory, history=history, zone=setting("zone", zone) or "UTC") as opened:
        plan, found = compile_program(source, opened.schema, opened.engine, registered())
        if plan is None:
            refuse(found, source)
        given = {**read_params(params), **parameters(texts, plan)}
        try:
            with Waiting(f"running {plan.name}"):
                if dry_run:
                    outcome = opened.dry_run(plan, given, make_calls=make_calls)
                else:
                    outcome = opened.execute(plan, given, key=key, approve=approve)
        except RunError as error:
            fail(error, source)
        schema = opened.schema
    if as_json:
        out.json(runs.outcome_json(outcome, dry_run))
    elif dry_run:
        out.show(runs.preview_lines(outcome, plan, schema, sql, out.room(sys.stdout)))
    else:
        out.show(runs.outcome_lines(outcome, out.room(sys.stdout)))
        out.show([runs.closing_line(outcome)], err=True)


def read_params(file: str | None) -> dict[str, Any]:
    """The parameters that a JSON file holds."""
    if file is None:
        return {}
    source = read_source(file)
    try:
        data = read_json(source.text)
    except ValueError as error:
        raise Error(CannotRead(source.name, f"it is no JSON: {error}")) from None
    if not isinstance(data, dict):
        raise Error(CannotRead(source.name, "it is no JSON object", 'write {"name": value, …}'))
    return data


def read_json(text: str) -> Any:
    """JSON data, its numbers as they are written. ValueError if it is none, or says two things of one key."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"it has the key {next(n for n in names if names.count(n) > 1)} twice")
        return made

    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parameters(texts: Sequence[str], plan: Plan) -> dict[str, Any]:
    """The parameters given as name=value, each once."""
    made: dict[str, Any] = {}
    for text in texts:
        name, value = parameter(text, plan)
        if name in made:
            raise click.BadParameter(f"{name} is given twice", param_hint="--param")
        made[name] = value
    return made


def parameter(text: str, plan: Plan) -> tuple[str, Any]:
    """A parameter given as name=value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text} lacks its value: NAME=VALUE", param_hint="--param")
    known: Parameter | None = next((p for p in plan.parameters if p.name == name), None)
    if known is None:
        names = [p.name for p in plan.parameters]
        raise Error(UnknownParameter(name, near(names, "parameter")))
    if known.kind == "value" and known.type.kind == "text":
        return name, value
    if known.kind == "value" and value == "null":
        return name, None
    if known.kind == "value" and known.type.kind != "json":
        return name, value
    try:
        return name, read_json(value)
    except ValueError:
        wanted = {"list": "a JSON list", "rows": "a JSON list of objects"}.get(known.kind, "JSON")
        help_ = "or put the parameters into a file, and name it with --params"
        raise Error(BadParameter(name, value, wanted, help_)) from None


def fail(error: RunError, source: Source) -> NoReturn:
    """Say why a run has failed, and stop."""
    source = Source(error.text or source.text, source.name)
    if out.as_json:
        run_ = {"run": error.run_id, "path": error.path, "row": report.json_value(error.row)}
        out.json({"ok": False, **run_, "diagnostic": report.diagnostic_json(error.diagnostic, source)})
    elif error.diagnostic.span == NOWHERE:
        out.message(error)
    else:
        out.diagnostics([error.diagnostic], source, err=True)
    if not out.as_json:
        if error.row:
            row = ", ".join(f"{name} {report.value_text(value)}" for name, value in error.row.items())
            out.say(f"in {error.path}, for {row}", err=True)
        number = f"run {error.run_id} failed" if error.run_id else "the run failed"
        out.say(f"{number}; nothing was changed", "bold red", err=True)
    raise click.exceptions.Exit(1)


# ---------------------------------------------------------------- the journal


@cli.command()
@memory_option
@json_option
def log(memory: str | None, as_json: bool) -> None:
    """List the runs of a memory, newest first."""
    with open_memory(memory, read_only=True) as opened:
        names = opened.program_names()
        rows = list(reversed(opened.log()))
    if as_json:
        out.json([runs.run_json(row, names.get(row.program, "?")) for row in rows])
    else:
        out.show(runs.log_lines(rows, names, out.room(sys.stdout)))


RUN = click.IntRange(max=MAX_INT)


@cli.command(name="show")
@click.argument("run", type=RUN)
@memory_option
@json_option
def show_(run: int, memory: str | None, as_json: bool) -> None:
    """Show a run: its program, parameters, steps, outcome and changes."""
    with open_memory(memory, read_only=True) as opened:
        row, outcome, schema = opened.run(run), opened.outcome(run), opened.schema
        text, name = opened.program_text(run), opened.program_names().get(row.program, "?")
    if as_json:
        out.json({**runs.run_json(row, name), "text": text, **runs.outcome_json(outcome, False)})
    else:
        out.show(runs.run_lines(row, name, text, outcome, schema, out.room(sys.stdout)))


@cli.command()
@click.argument("run", type=RUN, required=False)
@memory_option
@click.option("--all", "everything", is_flag=True, help="Replay all runs, into a new memory.")
@click.option("--into", metavar="URL", help="The new memory for --all.")
@json_option
def replay(run: int | None, memory: str | None, everything: bool, into: str | None, as_json: bool) -> None:
    """Replay a run on a copy of the memory as it was; or all of them, into a new memory."""
    if everything != (into is not None) or everything == (run is not None):
        raise click.UsageError("name a RUN, or --all and --into URL")
    registered()
    with open_memory(memory, read_only=True, copies=True) as opened, Waiting("replaying") as waiting:
        if everything:
            rebuilt = opened.replay_all(into=into, progress=waiting.progress)
            same, data, lines = rebuilt.same, runs.rebuilt_json(rebuilt), runs.rebuilt_lines(rebuilt)
        else:
            replayed = opened.replay(run)
            name = opened.program_names().get(replayed.run.program, "?")
            same, data, lines = replayed.same, runs.replayed_json(replayed), runs.replayed_lines(replayed, name)
    if as_json:
        out.json(data)
    else:
        out.show(lines)
    if not same:
        raise click.exceptions.Exit(1)


@cli.command()
@memory_option
@json_option
def verify(memory: str | None, as_json: bool) -> None:
    """Check that the journal is as it was written."""
    with open_memory(memory, read_only=True) as opened:
        flaws = opened.verify()
        number = len(opened.log())
    if as_json:
        found = [{"run": flaw.run, "detail": flaw.detail} for flaw in flaws]
        out.json({"ok": not flaws, "runs": number, "flaws": found})
    for flaw in () if as_json else flaws:
        out.say(flaw.detail, "red")
    if flaws:
        raise click.exceptions.Exit(1)
    if not as_json:
        out.say(f"{report.plural(number, 'run')}, as they were written", "green")


# ---------------------------------------------------------------- memories


@cli.command()
@memory_option
@click.option("--graph", is_flag=True, help="Print the property graph alone; undeclared, it is inferred from keys.")
@json_option
def schema(memory: str | None, graph: bool, as_json: bool) -> None:
    """Print the schema of a memory as com text."""
    with open_memory(memory, read_only=True) as opened:
        found = opened.schema
    if graph:
        text = show(SchemaFile((declare_graph(found.graph, found),), (), NOWHERE))
        if as_json:
            out.json({"declared": found.declared is not None, "graph": dump_graph(found.graph), "text": text})
        else:
            click.echo(text, nl=False)
        return
    tree, left_out = declare(found)
    if as_json:
        tables = json.loads(dump_schema(found.with_(declared=None)))
        said = {"graph": dump_graph(found.declared)} if found.declared is not None else {}
        out.json({"tables": tables, **said, "left_out": list(left_out), "text": show(tree)})
        return
    for line in left_out:
        out.say(f"-- left out: {line}")
        out.show([[("warning", "bold yellow"), (f": {line} cannot be said in com", "")]], err=True)
    click.echo(show(tree), nl=False)


@cli.command()
@click.option("--schema", metavar="FILE", help="The schema, as a .com file.")
@memory_option
@json_option
def init(schema: str | None, memory: str | None, as_json: bool) -> None:
    """Make a new memory that holds the tables of a schema."""
    url, file = setting("memory", memory), setting("schema", schema)
    if url is None:
        raise Error(NothingNamed("memory", "--memory URL", "COM_MEMORY", "memory"))
    if file is None:
        raise Error(NothingNamed("schema", "--schema FILE", "COM_SCHEMA", "schema"))
    known = load_schema(file, None)
    with create(url, known) as opened:
        named = opened.url.render_as_string()
    if as_json:
        out.json({"memory": named, "tables": [table.name for table in known.tables]})
    else:
        out.say(f"{named}: {report.plural(len(known.tables), 'table')}")
