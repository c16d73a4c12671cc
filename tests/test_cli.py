"""The command line: exit codes, settings, formats, and what is printed where."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from com import report
from com.cli import ORDER, cli
from com.runtime.calls import REGISTRY

SCHEMA = """create table fruits (
  fruit_id int primary key generated always as identity,
  fruit_name text not null unique,
  price decimal(6,2),
  since date
);
"""
ADD = """program add(name text, price decimal(6,2) = null, since date = $today);

step put: insert into fruits (fruit_name, price, since) values ($name, $price, $since) returning fruit_id;
answer 'Fruit {$put.fruit_id} is {$name}.';
"""
LIST = """program list(names text[]);

step found: select fruit_name, price from fruits where fruit_name in $names order by fruit_name;
"""

Com = Callable[..., Result]


@pytest.fixture
def com(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Com:
    """Runs a command in a folder with a schema, two programs and a memory."""
    monkeypatch.chdir(tmp_path)
    Path("schema.com").write_text(SCHEMA)
    Path("add.com").write_text(ADD)
    Path("list.com").write_text(LIST)
    Path("com.toml").write_text('memory = "sqlite:///shop.db"\nschema = "schema.com"\n')

    def run(*words: str, **more: object) -> Result:
        return CliRunner().invoke(cli, words, prog_name="com", **more)  # type: ignore[arg-type]

    assert run("init").exit_code == 0
    return run


def test_help_lists_every_command(com: Com) -> None:
    told = com("--help").stdout
    assert all(f"  {name} " in told for name in ORDER)
    assert set(cli.commands) == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_each_command_has_help(com: Com, name: str) -> None:
    assert com(name, "--help").exit_code == 0


def test_version(com: Com) -> None:
    assert com("--version").stdout.startswith("com 0.")


# ---------------------------------------------------------------- check


def test_check_prints_effects(com: Com) -> None:
    done = com("check", "add.com", "list.com", "schema.com")
    assert done.exit_code == 0
    assert "add(name text" in done.stdout and "inserts into fruits" in done.stdout
    assert "schema.com: 1 table" in done.stdout


def test_check_exits_with_2_and_counts(com: Com) -> None:
    Path("bad.com").write_text(
        "program bad;\n\nstep a: select x, y from fruit;\nstep b: select z from fruits;\nreturn $b;\n"
    )
    done = com("check", "bad.com")
    assert done.exit_code == 2
    assert "error[CM201]: no table is named fruit" in done.stdout
    assert " --> bad.com:3:" in done.stdout
    assert "2 errors" in done.stdout.splitlines()[-1]
    assert done.stderr == ""


def test_check_json_is_stable(com: Com) -> None:
    Path("bad.com").write_text("program bad;\n\nstep a: select 1 as n from fruit;\nreturn $a;\n")
    done = com("check", "bad.com", "--json")
    assert done.exit_code == 2
    data = json.loads(done.stdout)
    (file,) = data["files"]
    (message,) = file["diagnostics"]
    assert data["ok"] is False and file["program"] is None
    assert message["code"] == "CM201" and message["severity"] == "error" and message["file"] == "bad.com"
    assert message["span"]["start"] == {"line": 3, "column": 28, "offset": 41}
    assert sorted(message) == ["code", "file", "fix", "help", "label", "notes", "severity", "span", "text"]


def test_check_reads_standard_input(com: Com) -> None:
    assert com("check", "-", input=ADD).exit_code == 0


def test_check_against_a_memory(com: Com) -> None:
    Path("com.toml").unlink()
    assert com("check", "add.com").exit_code == 2
    assert com("check", "add.com", "--memory", "sqlite:///shop.db").exit_code == 0


# ---------------------------------------------------------------- fix, fmt


CROOKED = (
    "program p;\nstep a: select IFNULL(price,0) as p from fruits where since <= now() order by fruit_id;\nreturn $a;\n"
)


def test_fix_mends_what_is_certain(com: Com) -> None:
    Path("p.com").write_text(CROOKED)
    assert com("fix", "p.com", "--check").exit_code == 1
    shown = com("fix", "p.com", "--diff")
    assert shown.exit_code == 1 and "+step a: select coalesce(price,0)" in shown.stdout
    assert Path("p.com").read_text() == CROOKED
    done = com("fix", "p.com")
    assert done.exit_code == 0 and "2 mistakes mended" in done.stdout
    assert "coalesce(price,0) as p from fruits where since <= $now" in Path("p.com").read_text()
    assert com("fix", "p.com").stdout == "0 mistakes mended\n"


def test_fix_tells_what_is_left(com: Com) -> None:
    Path("p.com").write_text(CROOKED.replace("fruits", "fruit"))
    done = com("fix", "p.com")
    assert done.exit_code == 2 and "error[CM201]" in done.stdout


def test_fmt_formats_in_place_and_from_a_pipe(com: Com) -> None:
    crooked = "PROGRAM  p ;\nSTEP a : SELECT   fruit_name FROM fruits ;  -- all\n"
    Path("p.com").write_text(crooked)
    assert com("fmt", "p.com", "--check").exit_code == 1
    assert Path("p.com").read_text() == crooked
    assert com("fmt", "p.com").exit_code == 0
    formatted = Path("p.com").read_text()
    assert "step a: select fruit_name from fruits;" in formatted and "-- all" in formatted
    assert com("fmt", "p.com", "schema.com", "--check").exit_code == 0
    assert com("fmt", "-", input=crooked).stdout == formatted


def test_fmt_leaves_what_it_cannot_read(com: Com) -> None:
    Path("p.com").write_text("program p;\nstep a: selct 1;\n")
    done = com("fmt", "p.com")
    assert done.exit_code == 2 and "error[CM1" in done.stderr
    assert "selct" in Path("p.com").read_text()


# ---------------------------------------------------------------- compile


@pytest.mark.parametrize(
    ("stage", "piece"), [("syntax", "Program"), ("ir", "Insert"), ("plan", "Plan"), ("sql", "INSERT INTO")]
)
def test_compile_shows_each_stage(com: Com, stage: str, piece: str) -> None:
    done = com("compile", "add.com", "--show", stage)
    assert done.exit_code == 0, done.output
    assert piece in done.stdout


# ---------------------------------------------------------------- run and the journal


def test_run_returns_rows_on_stdout_and_the_rest_on_stderr(com: Com) -> None:
    done = com("run", "add.com", "-p", "name=fig", "-p", "price=1.5", "-p", "since=2024-01-31")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "Fruit 1 is fig.\n", "run 1: 1 row changed\n")
    done = com("run", "list.com", "-p", 'names=["fig", "kiwi"]')
    assert done.stdout == "fruit_name  price\n──────────  ─────\nfig          1.50\n"


def test_run_json(com: Com) -> None:
    data = json.loads(com("run", "add.com", "-p", "name=fig", "-p", "price=1.5", "--json").stdout)
    assert data["ok"] is True and data["run"] == 1 and data["answer"] == "Fruit 1 is fig."
    assert data["changes"][0]["after"]["price"] == "1.50"


def test_parameters_from_a_file_and_a_pipe(com: Com) -> None:
    Path("fig.json").write_text('{"name": "fig", "price": 2}')
    assert com("run", "add.com", "--params", "fig.json").exit_code == 0
    assert com("run", "add.com", "--params", "-", "-p", "name=kiwi", input='{"name": "lime"}').exit_code == 0
    assert "kiwi" in com("run", "list.com", "-p", 'names=["fig","kiwi","lime"]').stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("-p", "price=1"), "CM598"),
        (("-p", "nam=fig"), "CM597"),
        (("-p", "name=fig", "-p", "price=dear"), "CM596"),
        (("-p", "name=fig", "-p", "since=2024-02-30"), "CM596"),
        (("--params", "none.json"), "CM591"),
        (("--params", "schema.com"), "CM591"),
        (("-p", "name=fig", "--memory", "sqlite:///none.db"), "CM593"),
        (("-p", "name=fig", "--memory", "oracle://x"), "CM593"),
    ],
)
def test_what_is_wrong_before_the_run_exits_with_2(com: Com, words: tuple[str, ...], code: str) -> None:
    done = com("run", "add.com", *words)
    assert done.exit_code == 2 and f"error[{code}]" in done.stderr
    assert done.stdout == "" and not Path("none.db").exists()
    assert "program" not in com("log").stdout.split("\n", 2)[2]


def test_a_failed_run_exits_with_1_and_changes_nothing(com: Com) -> None:
    com("run", "add.com", "-p", "name=fig")
    done = com("run", "add.com", "-p", "name=fig")
    assert done.exit_code == 1 and done.stdout == ""
    assert "error[CM503]" in done.stderr and "add.com:3:" in done.stderr
    assert "run 2 failed; nothing was changed" in done.stderr
    data = json.loads(com("run", "add.com", "-p", "name=fig", "--json").stdout)
    assert data["ok"] is False and data["diagnostic"]["code"] == "CM503" and data["run"] == 3


def test_with_json_every_message_is_json(com: Com) -> None:
    data = json.loads(com("run", "add.com", "--json").stdout)
    assert data == {
        "ok": False,
        "error": {"code": "CM598", "text": "parameter name is not given", "help": data["error"]["help"]},
    }
    Path("bad.com").write_text("program bad;\nstep a: select 1 as n from fruit;\n")
    data = json.loads(com("run", "bad.com", "--json").stdout)
    assert [d["code"] for d in data["diagnostics"]] == ["CM201"]
    assert com("log", "--memory", "none.db").stdout == ""


def test_a_dry_run_changes_nothing_and_its_preview_can_be_approved(com: Com) -> None:
    before = Path("shop.db").read_bytes()
    words = ("run", "add.com", "-p", "name=fig", "-p", "since=2024-01-31")
    done = com(*words, "--dry-run", "--sql")
    assert done.exit_code == 0 and "+ fruit_id 1: fruit_name fig, price null, since 2024-01-31" in done.stdout
    assert "INSERT INTO" in done.stdout and Path("shop.db").read_bytes() == before
    preview = json.loads(com(*words, "--dry-run", "--json").stdout)["preview"]
    assert com(*words, "--approve", "0" * 64).exit_code == 1
    assert com(*words, "--approve", preview).exit_code == 0


def test_a_key_runs_once(com: Com) -> None:
    words = ("run", "add.com", "-p", "name=fig", "-p", "since=2024-01-31", "--key", "k1")
    first, second = com(*words), com(*words)
    assert first.stdout == second.stdout and second.exit_code == 0
    assert "done before" in second.stderr


def test_log_show_replay_verify(com: Com) -> None:
    com("run", "add.com", "-p", "name=fig")
    com("run", "add.com", "-p", "name=fig")
    assert [line.split()[:3] for line in com("log").stdout.splitlines()[2:]] == [
        ["2", "add", "failed"],
        ["1", "add", "done"],
    ]
    assert "insert into fruits" in com("show", "1").stdout and "CM503" in com("show", "2").stdout
    assert json.loads(com("show", "1", "--json").stdout)["parameters"] == {"name": "fig"}
    for words in (("replay", "1"), ("replay", "2"), ("replay", "--all", "--into", "sqlite:///copy.db"), ("verify",)):
        done = com(*words)
        assert done.exit_code == 0, done.output
    assert com("show", "9").exit_code == 2
    assert com("replay").exit_code == 2 and com("replay", "1", "--all").exit_code == 2
    assert com("replay", "--all", "--into", "sqlite:///copy.db").exit_code == 2


def test_schema_prints_what_init_takes(com: Com) -> None:
    done = com("schema")
    assert done.exit_code == 0 and done.stderr == ""
    assert done.stdout == Path("schema.com").read_text()
    assert com("init").exit_code == 2


def test_schema_names_what_it_leaves_out(com: Com) -> None:
    import sqlite3

    connection = sqlite3.connect("other.db")
    connection.execute("create table t (id integer primary key, place geometry, v int check (v glob '*'))")
    connection.close()
    done = com("schema", "--memory", "sqlite:///other.db")
    assert done.exit_code == 0
    assert "-- left out: column t.place, of type geometry" in done.stdout.lower()
    assert done.stderr.count("warning:") == 2


# ---------------------------------------------------------------- settings, files, colours, bugs


def test_flags_come_before_variables_before_the_file(com: Com, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COM_MEMORY", "sqlite:///none.db")
    assert "none.db" in com("log").stderr
    assert com("log", "--memory", "sqlite:///shop.db").exit_code == 0


def test_settings_are_found_upward(com: Com, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert com("log").exit_code == 0
    assert com("check", "../../add.com").exit_code == 0


@pytest.mark.parametrize("text", ["memory = 3\n", "colour = 'red'\n", "memory\n"])
def test_bad_settings(com: Com, text: str) -> None:
    Path("com.toml").write_text(text)
    done = com("log")
    assert done.exit_code == 2 and "error[CM592]" in done.stderr


def test_a_file_that_is_no_text(com: Com) -> None:
    Path("bad.com").write_bytes(b"program \xff;")
    done = com("check", "bad.com")
    assert done.exit_code == 2 and "error[CM591]: bad.com cannot be read: byte 8 is not UTF-8" in done.stderr


def test_colours_only_where_they_are_wanted(com: Com, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    plain, coloured = com("check", "add.com").stdout, com("--color", "always", "check", "add.com", color=True).stdout
    assert "\x1b[" not in plain and "\x1b[" in coloured
    assert click.unstyle(coloured) == plain


def test_our_own_bug_is_a_message(com: Com, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("com.cli.check_program", broken)
    done = com("check", "add.com")
    assert (
        done.exit_code == 70 and "error[CM901]: com itself has failed: ZeroDivisionError: of all things" in done.stderr
    )
    assert isinstance(com("--debug", "check", "add.com").exception, ZeroDivisionError)


def test_a_check_loads_neither_sqlalchemy_nor_sqlglot(com: Com) -> None:
    code = (
        "import sys; from com.cli import cli; cli(['check', 'add.com'], standalone_mode=False);"
        "print([m for m in ('sqlalchemy', 'sqlglot', 'rich', 'lark', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_knows_json(com: Com) -> None:
    assert com("--help").exit_code == 0  # loads them all
    lacking = [c.name for c in cli.commands.values() if not any(p.name == "as_json" for p in c.params)]
    assert lacking == []


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("fmt", "add.com", "--json"), {"ok", "changed", "files"}),
        (("fix", "add.com", "--json"), {"ok", "mended", "files"}),
        (("compile", "add.com", "--json"), {"ok", "diagnostics", "sql"}),
        (("compile", "add.com", "--show", "plan", "--json"), {"ok", "diagnostics", "plan"}),
        (("schema", "--json"), {"tables", "left_out", "text"}),
        (("verify", "--json"), {"ok", "runs", "flaws"}),
        (("init", "--memory", "new.db", "--json"), {"memory", "tables"}),
    ],
)
def test_json_is_one_document(com: Com, words: tuple[str, ...], keys: set[str]) -> None:
    found = com(*words)
    assert found.exit_code == 0, found.output
    assert set(json.loads(found.stdout)) == keys


def test_our_own_programs_are_formatted(root: Path) -> None:
    files = sorted((root / "examples").rglob("*.com"))
    assert CliRunner().invoke(cli, ["fmt", "--check", *map(str, files)]).exit_code == 0


def test_a_narrow_terminal_cuts_texts_before_times_and_numbers() -> None:
    rows = [(1234567, datetime(2026, 12, 1, 5, 58, 33), "a text that is rather long")]
    lines = report.plain(report.table_lines(("run", "when", "said"), rows, 45)).splitlines()
    assert lines[-1] == "1234567  2026-12-01 05:58:33  a text that is…"


def test_a_replay_says_which_call_it_lacks(com: Com) -> None:
    Path("calls.py").write_text("import com\n\n\n@com.call\ndef worth_of(name: str) -> int:\n    return len(name)\n")
    Path("worth.com").write_text(
        "program worth(name text);\n\nstep w: call worth_of($name);\n"
        "step put: insert into fruits (fruit_name, price) values ($name, $w.value);\n"
    )
    assert com("--calls", "calls.py", "run", "worth.com", "-p", "name=fig").exit_code == 0
    assert com("--calls", "calls.py", "replay", "1").exit_code == 0
    REGISTRY.pop("worth_of")
    found = com("replay", "1")
    assert found.exit_code == 1
    assert "CM205: no call is registered as worth_of" in found.stdout
    assert "register the call: --calls FILE" in found.stdout
