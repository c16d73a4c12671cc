"""The conformance scripts, on input of a few lines: the real input is not part of the project."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from com.library import connect, create, read_schema
from tests.conftest import ENGINES
from tests.servers import address, missing

GOLD = """shop\tSELECT name FROM fruits ORDER BY price DESC LIMIT 2
shop\tSELECT count(*), kind FROM fruits GROUP BY kind
shop\tSELECT kind FROM fruits GROUP BY price
shop\tSELECT T1.name FROM fruits AS T1 JOIN sold AS T2 ON T1.id = T2.fruit WHERE T2.day > '2024-01-01'
"""


def test_queries_of_any_folder_of_that_form(tmp_path: Path, root: Path) -> None:
    (tmp_path / "database").mkdir()
    with sqlite3.connect(tmp_path / "database" / "shop.sqlite") as database:
        database.executescript(
            "create table fruits (id integer primary key, name varchar(20), kind text, price real);"
            'create table sold (fruit int, day date, "who\'s" text, primary key (fruit, day, "who\'s"));'
            "insert into fruits values (0, 'fig', 'soft', 2.5), (1, 'kiwi', 'soft', 1), (2, 'apple', 'hard', 1);"
            "insert into sold values (0, '2024-05-06', 'x'), (1, '2023-05-06', 'y');"
        )
    database.close()
    (tmp_path / "dev_gold.tsv").write_text(GOLD)
    engines = [engine for engine in ENGINES if not missing(engine)]
    servers = {f"COM_TEST_{e.upper()}": address(e) for e in engines if e in ("postgres", "mysql")}
    words = [word for engine in engines for word in ("--engine", engine)]
    done = subprocess.run(
        [sys.executable, root / "conformance" / "spider.py", tmp_path, *words],
        env=os.environ | servers,
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout.splitlines()
    assert "imported 3/4" in told, done.stdout + done.stderr
    titles = {"mysql": "mariadb"}
    assert [line for line in told if line.startswith("equal")] == [
        f"equal on {titles.get(engine, engine)} 3/4" for engine in engines
    ]
    assert "not imported: CM412" in done.stdout
    assert done.returncode == 1  # one of four is less than the bars ask for


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_of_several_texts_and_an_id_of_zero(engine: str, fresh: Callable[[str], str]) -> None:
    url = fresh(engine)
    schema = read_schema(
        "create table a (x text, y text, z bytes, primary key (x, y, z));"
        "create table b (id int primary key generated always as identity, x text unique, y text, unique (y, x));"
    )
    with create(url, schema) as memory:
        assert memory.schema == schema
        link = memory.link
        link.put(f"insert into b (id, x){link.overriding} values (?, ?)", [[0, "nought"], [1, "one"]])
    with connect(url) as memory:
        assert memory.link.ask("select id, x from b order by id") == [(0, "nought"), (1, "one")]
