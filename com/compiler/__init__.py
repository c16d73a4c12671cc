"""The compiler: program text to plan, each phase a pure function, called here in its order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from com.compiler import ir, syntax
from com.compiler.check import check, check_condition, check_default
from com.compiler.define import define
from com.compiler.parse import parse_expression, parse_program, parse_schema
from com.compiler.show import show
from com.diagnostics import Diagnostic, has_errors
from com.functions import Signature
from com.plan import Plan
from com.schema import Schema, schema_hash
from com.source import Source


def check_program(
    source: Source, schema: Schema, calls: Mapping[str, Signature]
) -> tuple[ir.Program | None, list[Diagnostic]]:
    """Text and schema to the checked program, or None and why. Warnings may stand beside a program."""
    tree, found = parse_program(source)
    if has_errors(found):
        return None, found  # a step that was not read would only be missed by others
    made, more = check(tree, schema, calls, _stem(source))
    return made, found + more


def compile_program(
    source: Source, schema: Schema, engine: str, calls: Mapping[str, Signature]
) -> tuple[Plan | None, list[Diagnostic]]:
    """Text, schema and engine to a plan, or None and why."""
    made, found = check_program(source, schema, calls)
    if made is None:
        return None, found
    from com.compiler.lower import lower  # sqlglot is slow to load, and a check does not need it

    plan, more = lower(made, source.text, schema_hash(schema), engine)
    return (None if has_errors(more) else plan), found + more


def read_schema(source: Source) -> tuple[Schema | None, list[Diagnostic]]:
    """The text of `create table` statements to a schema, or None and why."""
    tree, found = parse_schema(source)
    if has_errors(found):
        return None, found
    made, more = define(tree)
    return made, found + more


def create_statements(schema: Schema, engine: str) -> tuple[str, ...]:
    """The engine's statements that make a schema's tables."""
    from com.compiler.create import create_tables  # see compile_program

    checks: dict[tuple[str, int], ir.Expr] = {}
    defaults: dict[tuple[str, str], ir.Expr] = {}
    for table in schema.tables:
        for number, check_ in enumerate(table.checks):
            condition = check_condition(_expression(check_.text), schema, table.name)[0]
            if condition is not None:
                checks[table.name, number] = condition
        for column in table.columns:
            if column.default is not None:
                value = check_default(_expression(column.default), column.type)[0]
                if value is not None:
                    defaults[table.name, column.name] = value
    return create_tables(schema, engine, checks, defaults)


def _expression(text: str) -> syntax.Expr:
    """An expression that was checked before, when its schema was read."""
    tree, _ = parse_expression(Source(text))
    assert tree is not None
    return tree


def format_source(source: Source, kind: str) -> tuple[str, list[Diagnostic]]:
    """A program's or schema's text (`kind`: program or schema) in the formatter's spelling, or as it is and why."""
    tree: syntax.Program | syntax.SchemaFile
    tree, found = parse_program(source) if kind == "program" else parse_schema(source)
    return (source.text if has_errors(found) else show(tree)), found


def _stem(source: Source) -> str:
    stem = "".join(c if c.isalnum() else "_" for c in PurePath(source.name).stem).strip("_")
    return stem if stem and not stem[0].isdigit() and source.name[:1] != "<" else "main"
