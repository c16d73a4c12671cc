"""How long somebody waits: the whole process of `com check` and `com run`, and a compile in a warm process.

    python bench/start.py [--rounds 15]

Beside them, in the same run, `python -c 'import sqlglot, sqlalchemy'`, and sqlglot's own parse, qualify, annotate
and generate of the statements of the same program.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sqlglot
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

import com
from com.node import walk
from com.plan import Batch, Plan, Statement

SHOP = Path(__file__).parent.parent / "examples" / "fruit_shop"
PROGRAM = SHOP / "return_sale.com"


def process(*command: str) -> Callable[[], None]:
    """A call that runs a command to its end. Byte code is kept, as it is where com is installed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: (
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) and None
    )


def measured(run: Callable[[], object], rounds: int, of: Callable[[list[float]], float] = statistics.median) -> float:
    """Seconds, after one round that does not count: of all rounds the median, or what else is said."""
    run()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return of(times)


def statements(plan: Plan) -> list[str]:
    """The texts of a plan's queries and writes, without those that only keep row images or repeat a loop's."""
    hidden = {id(s) for n in walk(plan) if isinstance(n, Batch) for s in walk(n)}
    found = [n.sql for n in walk(plan) if isinstance(n, Statement) and id(n) not in hidden]
    return [sql for sql in found if "com_change" not in sql]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    schema_text = (SHOP / "schema.com").read_text()
    schema = com.read_schema(schema_text)
    text = PROGRAM.read_text()
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{place}/shop.db"
        com.create(url, schema).close()
        price = Path(place) / "count.com"
        price.write_text("program fruit_count;\n\n-- How many\nstep n: select count(*) as n from fruits;\n")
        imports = measured(process(sys.executable, "-c", "import sqlglot, sqlalchemy"), rounds)
        check = measured(
            process(sys.executable, "-m", "com", "check", str(PROGRAM), "--schema", str(SHOP / "schema.com")), rounds
        )
        run = measured(process(sys.executable, "-m", "com", "run", str(price), "--memory", url), rounds)
    print(f"import sqlglot, sqlalchemy   {imports * 1000:6.0f} ms")
    print(f"com check                    {check * 1000:6.0f} ms, ratio {check / imports:.2f} (aim under 250 ms and 1)")
    print(f"com run                      {run * 1000:6.0f} ms, ratio {run / imports:.2f}")
    plan = com.compile(text, schema)
    compile_ = measured(lambda: com.compile(text, schema), rounds * 10, min)
    texts = statements(plan)
    tables = {t.name: {c.name: str(c.type) for c in t.columns} for t in schema.tables}

    def by_sqlglot() -> None:
        for sql in texts:
            tree = sqlglot.parse_one(sql, read="sqlite")
            tree = qualify(tree, schema=tables, dialect="sqlite", validate_qualify_columns=False)
            annotate_types(tree, schema=tables).sql("sqlite")

    theirs = measured(by_sqlglot, rounds * 4, min)
    lines = len(text.strip().splitlines())
    print(f"compile of {PROGRAM.name} ({lines} lines), warm {compile_ * 1000:5.2f} ms (aim under 5)")
    print(
        f"sqlglot on its {len(texts)} statements {theirs * 1000:5.2f} ms: ratio {compile_ / theirs:.2f} (aim under 3)"
    )


if __name__ == "__main__":
    main()
