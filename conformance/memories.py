"""Empty memories on each engine, for as long as a script needs them.

PostgreSQL and MariaDB are looked for where COM_TEST_POSTGRES and COM_TEST_MYSQL say, or on this machine; a database is
made there, and dropped in the end.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

ENGINES = ("sqlite", "duckdb", "postgres", "mysql")
TITLES = {"mysql": "mariadb"}
"""What an engine is called in what is printed, if not by its name."""
_SERVERS = {
    "postgres": os.environ.get("COM_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres"),
    "mysql": os.environ.get("COM_TEST_MYSQL", "mysql://root@127.0.0.1:3306/mysql"),
}


@contextmanager
def empty(engine: str, folder: Path) -> Iterator[str]:
    """The URL of an empty memory: a file of the folder, or a database of a server."""
    name = f"com_{uuid.uuid4().hex[:12]}"
    if engine not in _SERVERS:
        yield f"{engine}:///{folder / name}.{engine}"
        return
    more = "template template0 encoding 'UTF8'" if engine == "postgres" else "character set utf8mb4"
    _say(engine, f"create database {name} {more}")
    try:
        yield make_url(_SERVERS[engine]).set(database=name).render_as_string(hide_password=False)
    finally:
        _say(engine, f"drop database {name}" + (" with (force)" if engine == "postgres" else ""))


def _say(engine: str, text: str) -> None:
    """One statement, as the server's administrator."""
    given: dict[str, Any] = make_url(_SERVERS[engine]).translate_connect_args(username="user")
    if engine == "postgres":
        import psycopg

        with psycopg.connect(autocommit=True, dbname=given.pop("database", "postgres"), **given) as server:
            server.execute(text.encode())
        return
    import pymysql

    with closing(pymysql.connect(autocommit=True, **given)) as server, server.cursor() as cursor:
        cursor.execute(text)
