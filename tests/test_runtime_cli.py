"""What the command line refuses before a run, and how it prints what a memory holds."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import com as library
from tests.test_cli import ADD, SCHEMA, Com, com

assert com is not None  # a fixture


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "add.com", "-p", "name=fig", "--dry-run", "--approve", "abc"), "--approve is for the run itself"),
        (("run", "add.com", "-p", "name=fig", "-p", "name=kiwi"), "name is given twice"),
        (("compile", "add.com", "--engine", "oracle"), "sqlite"),
        (("show", "99999999999999999999"), "is not in the range"),
        (("replay", "99999999999999999999"), "is not in the range"),
    ],
)
def test_misuse(com: Com, words: tuple[str, ...], told: str) -> None:
    done = com(*words)
    assert done.exit_code == 2
    assert "Usage:" in done.stderr and told in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"name": "fig", "name": "kiwi"}', "it has the key name twice"),
        ('{"name": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
    ],
)
def test_parameters_that_cannot_be_meant(com: Com, text: str, told: str) -> None:
    done = com("run", "add.com", "--params", "-", input=text)
    assert done.exit_code == 2
    assert "error[CM591]" in done.stderr and told in done.stderr


def test_no_terminal_obeys_an_answer(com: Com) -> None:
    name = "a\u202eb\x1b[31mc\U000e0041"
    Path("p.json").write_text(json.dumps({"name": name}))
    done = com("run", "add.com", "--params", "p.json")
    assert "Fruit 1 is a\\u202eb\\u001b[31mc\\udb40\\udc41." in done.stdout
    for words in (("log",), ("show", "1"), ("show", "1", "--json"), ("run", "add.com", "--params", "p.json", "--json")):
        done = com(*words)
        assert not {"\u202e", "\x1b", "\U000e0041"} & set(done.stdout + done.stderr)
    assert json.loads(com("show", "1", "--json").stdout)["answer"] == f"Fruit 1 is {name}."
    with library.connect("sqlite:///shop.db") as memory:
        assert memory.outcome(1).answer == f"Fruit 1 is {name}."


def test_an_engine_that_com_does_not_know() -> None:
    with pytest.raises(library.Error) as failed:
        library.compile(ADD, library.read_schema(SCHEMA), engine="oracle")
    assert "the engines are" in failed.value.message.fill(failed.value.message.help)


@pytest.mark.parametrize("url", ["x\0y", "sqlite:///x\0y", "sqlite://host:port/x"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(library.Error) as failed:
        library.connect(url)
    assert failed.value.message.code == "CM593"


def test_clocks() -> None:
    schema = library.read_schema(SCHEMA)
    plan = library.compile("program at();\n\nanswer '{$now}';\n", schema)
    with library.create("sqlite://", schema, zone="Europe/Madrid") as memory:
        assert memory.execute(plan, clock=datetime(2024, 5, 6, 7, 8)).answer == "2024-05-06 07:08:00"
        east = timezone(timedelta(hours=5))
        assert memory.execute(plan, clock=datetime(2024, 5, 6, 7, 8, tzinfo=east)).answer == "2024-05-06 04:08:00"
        assert memory.replay(2).same
        for clock in (date(2024, 5, 6), "2024-05-06", 7, datetime(1, 1, 1, tzinfo=east)):
            with pytest.raises(library.Error) as failed:
                memory.execute(plan, clock=clock)  # type: ignore[arg-type]
            assert failed.value.message.code == "CM596"
        with pytest.raises(library.Error) as failed:
            memory.replay(10**20)
        assert failed.value.message.code == "CM602"


@pytest.mark.parametrize("url", ["sqlite://new.db", "duckdb://new.duckdb", "sqlite:new.db"])
def test_a_file_is_not_taken_for_a_server(com: Com, url: str) -> None:
    done = com("init", "--schema", "schema.com", "--memory", url)
    assert done.exit_code == 2 and "error[CM5" in done.stderr and ":///" in done.stderr
    assert not list(Path().glob("*new*"))


def test_a_run_in_duckdb_is_replayed(com: Com) -> None:
    memory = ("--memory", "duckdb:///d.duckdb")
    assert com("init", "--schema", "schema.com", *memory).exit_code == 0
    assert com("run", "add.com", "-p", "name=fig", *memory).exit_code == 0
    assert com("replay", "1", *memory).exit_code == 0


def test_a_run_with_a_call_is_replayed(com: Com) -> None:
    Path("words_of.py").write_text(
        "import com\n\n\n@com.call\ndef words_of(text: str) -> list[str]:\n    return text.split()\n"
    )
    Path("words.com").write_text("program words(text text); step w: call words_of($text); return $w;")
    assert com("--calls", "words_of.py", "run", "words.com", "-p", "text=a b").exit_code == 0
    again = [sys.executable, "-m", "com", "--calls", "words_of.py", "replay", "1"]  # where nothing is registered yet
    done = subprocess.run(again, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_is_compiled_for_the_memory_it_is_for(tmp_path: Path) -> None:
    schema = library.read_schema("create table t (id int primary key);")
    with library.create(f"duckdb:///{tmp_path}/d.duckdb", schema) as memory:
        plan = library.compile("program p; step s: insert into t (id) values (1);", memory)
        assert memory.execute(plan).run_id == 1
