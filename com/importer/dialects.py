"""What the dialects of SQL mean where com means one thing: a small table."""

from __future__ import annotations

from com.node import Node


class Dialect(Node):
    """`title` as people write it. `folds`: like takes no notice of case. `loose`: a value of any type may meet any
    other, so a comparison of text with a number has a meaning; by whose rules, SQLite's or MySQL's. `any_row`: a column
    beside group by is that of any row. `strings`: an unknown name in double quotes is a text. `cuts`: a cast to int
    cuts off what is behind the point."""

    name: str
    title: str
    folds: bool = False
    loose: str = ""
    any_row: bool = False
    strings: bool = False
    cuts: bool = False


_KNOWN = {
    d.name: d
    for d in (
        Dialect("sqlite", "SQLite", folds=True, loose="sqlite", any_row=True, strings=True, cuts=True),
        Dialect("mysql", "MySQL", folds=True, loose="mysql", any_row=True, strings=True),
        Dialect("mariadb", "MariaDB", folds=True, loose="mysql", any_row=True, strings=True),
        Dialect("postgres", "PostgreSQL"),
        Dialect("tsql", "SQL Server", folds=True, cuts=True),
        Dialect("duckdb", "DuckDB"),
        Dialect("oracle", "Oracle"),
        Dialect("bigquery", "BigQuery"),
        Dialect("snowflake", "Snowflake"),
        Dialect("redshift", "Redshift"),
    )
}
SQLGLOT = {"mariadb": "mysql", "postgresql": "postgres", "mssql": "tsql", "sqlserver": "tsql"}
"""Other names for dialects of sqlglot."""


def dialect(name: str) -> Dialect:
    """What is known of a dialect."""
    name = name.lower()
    name = name if name in _KNOWN else SQLGLOT.get(name, name)
    return _KNOWN.get(name) or Dialect(name, name)
