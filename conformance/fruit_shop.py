"""A month in a fruit shop: 73 records through 4 programs, 50 questions through 50, then all of it replayed.

    python conformance/fruit_shop.py FOLDER [--engine NAME]… [--memory URL]

FOLDER holds records.jsonl (id, day, type, event) and questions.jsonl (id, gold). It is done on an empty temporary
memory of each engine named (SQLite, if none is), or on the empty memory of the URL. After several engines their hashes
are compared: of the memory, and of each step of each run. Exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from click import echo
from memories import ENGINES, TITLES, empty

import com

SHOP = Path(__file__).parent.parent / "examples" / "fruit_shop"
PROGRAMS = {
    "purchase": ("record_delivery", "supplier contact email fruit qty unit_cost sell day"),
    "sale": ("record_sale", "customer phone email items day"),
    "price": ("change_price", "fruit price"),
    "return": ("return_sale", "phone sale_date"),
}
"""For each type of record its program, and what of the record that program takes."""


def params(record: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a record's program."""
    given = {**record["event"], "day": record["day"]}
    if "items" in given:
        given["items"] = [{"fruit": fruit, "qty": qty} for fruit, qty in given["items"]]
    return {name: given[name] for name in PROGRAMS[record["type"]][1].split()}


def same(gold: Any, values: list[Any]) -> bool:
    """A number is right if equal when rounded to the gold's decimals; a text is the values joined by commas."""
    if isinstance(gold, str):
        return ", ".join(map(str, values)) == gold
    if len(values) != 1 or values[0] is None:
        return False
    wanted = Decimal(str(gold))
    return Decimal(str(values[0])).quantize(wanted, ROUND_HALF_UP) == wanted


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines, by id."""
    return sorted((json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()), key=lambda r: r["id"])


def number(value: Any) -> str:
    """A number without the noughts behind its last decimal."""
    return f"{Decimal(str(value)):f}".rstrip("0").rstrip(".") if "." in str(value) else str(value)


class Shop:
    """A memory of the shop, its runs, and what went wrong."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.compiled: dict[str, Any] = {}
        self.runs: list[Any] = []
        self.wrong = 0

    def run(self, path: str, **given: Any) -> Any:
        """The outcome of a program."""
        if path not in self.compiled:
            text = (SHOP / path).read_text(encoding="utf-8")
            self.compiled[path] = com.compile(text, self.memory.schema, engine=self.memory.engine, name=path)
        outcome = com.execute(self.compiled[path], self.memory, **given)
        self.runs.append(outcome.run_id)
        return outcome

    def complain(self, what: str) -> None:
        self.wrong += 1
        echo(f"  {what}")

    def record(self, records: list[dict[str, Any]]) -> None:
        """Each record through its program."""
        before = self.wrong
        for record in records:
            program = PROGRAMS[record["type"]][0]
            try:
                self.run(f"{program}.com", **params(record))
            except Exception as error:
                self.complain(f"record {record['id']}, {program}: {error}")
        echo(f"records {len(records) - (self.wrong - before)}/{len(records)}")

    def ask(self, questions: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """The first row that answers each question."""
        before = self.wrong
        first: dict[int, dict[str, Any]] = {}
        for question in questions:
            program = f"questions/q{question['id']:02}.com"
            try:
                rows = self.run(program).to_dicts()
                first[question["id"]] = rows[0] if rows else {}
                values = [next(iter(row.values())) for row in rows]
                if not same(question["gold"], values):
                    raise ValueError(f"gold {question['gold']}, got {', '.join(map(str, values)) or 'no rows'}")
            except Exception as error:
                self.complain(f"{program}: {error}")
        echo(f"questions {len(questions) - (self.wrong - before)}/{len(questions)}")
        return first

    def sums(self, first: dict[int, dict[str, Any]]) -> None:
        """The sums that the month is known for, out of the questions' answers."""
        revenue, best, weight, kg, sales = (
            [number(v) for v in first.get(q, {}).values()] for q in (16, 17, 18, 28, 21)
        )
        line = (
            f"revenue {' '.join(revenue)}, best day {' '.join(best)}, sold {' '.join(kg)} kg, "
            f"sales {' '.join(sales)}, kg per sale {' '.join(weight)}"
        )
        echo(line)
        if line != "revenue 707, best day 2023-01-30 119.7, sold 278 kg, sales 28, kg per sale 9.93":
            self.complain("these sums are not those of the month")

    def replay(self) -> None:
        """Each run once more, from the journal."""
        before = self.wrong
        for run in self.runs:
            try:
                if not self.memory.replay(run).same:
                    self.complain(f"run {run}: its replay differs")
            except Exception as error:
                self.complain(f"run {run}: {error}")
        echo(f"replay same {len(self.runs) - (self.wrong - before)}/{len(self.runs)}")

    def rebuild(self, url: str) -> None:
        """A fresh memory out of the journal."""
        replayed = self.memory.replay_all(into=url)
        with com.connect(url) as copy:
            equal = replayed.same and copy.digest() == self.memory.digest()
        self.wrong += not equal
        echo(f"rebuilt from the journal: {'same hash' if equal else 'another hash'}")

    def hashes(self) -> list[Any]:
        """The memory's hash; and of each run its outcome's and its steps'."""
        return [self.memory.digest(), [(r.outcome, r.ids, r.written, r.answer) for r in self.memory.log()]] + [
            [(s.path, s.operation, s.inputs, s.result, s.count, s.changes) for s in self.memory.outcome(run).steps]
            for run in self.runs
        ]


def month(folder: Path, url: str, scratch: Path) -> tuple[int, list[Any]]:
    """All of it on an empty memory: how much was wrong, and the hashes in the end."""
    schema = com.read_schema((SHOP / "schema.com").read_text(encoding="utf-8"), "schema.com")
    com.create(url, schema).close()
    with com.connect(url) as memory:
        shop = Shop(memory)
        shop.record(read(folder / "records.jsonl"))
        shop.sums(shop.ask(read(folder / "questions.jsonl")))
        shop.replay()
        shop.rebuild(f"sqlite:///{scratch}/copy.db")
        return shop.wrong, shop.hashes()


def main() -> int:
    """Run it all, and print what came out."""
    parser = argparse.ArgumentParser(description="Run a month of the fruit shop, and replay it.")
    parser.add_argument("folder", type=Path, help="the folder of records.jsonl and questions.jsonl")
    parser.add_argument("--engine", choices=(*ENGINES, "all"), action="append", help="an engine, or all four")
    parser.add_argument("--memory", metavar="URL", help="an empty memory, in place of a temporary one")
    arguments = parser.parse_args()
    wrong, found = 0, {}
    if arguments.memory:
        with tempfile.TemporaryDirectory() as scratch:
            return 1 if month(arguments.folder, arguments.memory, Path(scratch))[0] else 0
    named = arguments.engine or ["sqlite"]
    for engine in ENGINES if "all" in named else named:
        if len(named) > 1 or "all" in named:
            echo(TITLES.get(engine, engine))
        with tempfile.TemporaryDirectory() as scratch, empty(engine, Path(scratch)) as url:
            failed, found[engine] = month(arguments.folder, url, Path(scratch))
            wrong += failed
    if len(found) > 1:
        first, *others = found.values()
        equal = all(other == first for other in others)
        wrong += not equal
        runs, steps = len(first) - 2, sum(map(len, first[2:]))
        told = f"the memory's, {runs} runs', {steps} steps'" if equal else "not equal"
        echo(f"hashes of {', '.join(TITLES.get(e, e) for e in found)}: {'equal, ' if equal else ''}{told}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
