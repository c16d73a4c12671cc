"""Records of a shop, one program run each: does the hundred thousandth take as long as the first, and what do
the journal and the row images cost beside the same statements written by hand?

    python bench/records.py [COUNT] [--batch 1000]

Prints ratios within this one run; nothing here is a timed test.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import com

SHOP = Path(__file__).parent.parent / "examples" / "fruit_shop"
FRUITS = [f"fruit {n}" for n in range(40)]
CUSTOMERS = 500
Record = tuple[str, dict[str, Any]]


def records(count: int, seed: int = 7) -> Iterator[Record]:
    """Deliveries of every fruit, then mostly sales, with a price change and a delivery now and then."""
    chance = random.Random(seed)
    for name in FRUITS:
        yield "record_delivery", delivery(name, 10_000_000)
    for number in range(count - len(FRUITS)):
        day = f"{2023 + number // 40_000}-{number // 3_500 % 12 + 1:02}-{number // 130 % 28 + 1:02}"
        kind = chance.random()
        if kind < 0.02:
            yield "record_delivery", delivery(chance.choice(FRUITS), chance.randint(1, 50), day)
        elif kind < 0.03:
            price = Decimal(chance.randint(50, 900)) / 100
            yield "change_price", {"fruit": chance.choice(FRUITS), "price": price}
        else:
            who = chance.randrange(CUSTOMERS)
            items = [{"fruit": f, "qty": chance.randint(1, 9)} for f in chance.sample(FRUITS, chance.randint(1, 3))]
            person = {"customer": f"customer {who}", "phone": f"phone {who}", "email": f"{who}@example.com"}
            yield "record_sale", {**person, "items": items, "day": day}


def delivery(fruit: str, qty: int, day: str = "2023-01-01") -> dict[str, Any]:
    """A delivery's parameters."""
    supplier = {"supplier": "ABC", "contact": "10080", "email": "abc@example.com"}
    return {**supplier, "fruit": fruit, "qty": qty, "unit_cost": Decimal("1.20"), "day": day, "sell": Decimal("2.50")}


class ByHand:
    """The statements of the example's programs, written with sqlite3, each record in a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("pragma foreign_keys = on")

    def __call__(self, kind: str, p: dict[str, Any]) -> None:
        db = self.db.cursor()
        db.execute("begin immediate")
        if kind == "record_sale":
            self._sale(db, p)
        elif kind == "record_delivery":
            self._delivery(db, p)
        else:
            db.execute("update fruits set selling_price = ? where fruit_name = ?", (float(p["price"]), p["fruit"]))
            assert db.rowcount == 1
        db.execute("commit")

    @staticmethod
    def _find_or_add(db: sqlite3.Cursor, find: str, add: str, key: str, row: tuple[Any, ...]) -> int:
        found = db.execute(find, (key,)).fetchone() or db.execute(add, row).fetchone()
        return int(found[0])

    def _sale(self, db: sqlite3.Cursor, p: dict[str, Any]) -> None:
        wanted: dict[str, int] = {}
        for item in p["items"]:
            wanted[item["fruit"]] = wanted.get(item["fruit"], 0) + item["qty"]
        assert all(qty > 0 for qty in wanted.values())
        customer = self._find_or_add(
            db,
            "select customer_id from customers where phone_number = ?",
            "insert into customers (customer_name, phone_number, email) values (?, ?, ?) returning customer_id",
            p["phone"],
            (p["customer"], p["phone"], p["email"]),
        )
        lines = []
        for name, qty in wanted.items():
            fruit = db.execute(
                "select fruit_id, selling_price, stock_quantity from fruits where fruit_name = ?", (name,)
            ).fetchone()
            assert fruit and fruit[2] >= qty and fruit[1] is not None
            lines.append((fruit[0], qty, fruit[1], round(qty * fruit[1], 2)))
        sale = db.execute(
            "insert into sales (customer_id, sale_date, total_price) values (?, ?, ?) returning sale_id",
            (customer, p["day"], round(sum(line[3] for line in lines), 2)),
        ).fetchone()[0]
        db.executemany(
            "insert into sale_items (sale_id, fruit_id, quantity_sold, price_per_item, item_total_price)"
            " values (?, ?, ?, ?, ?)",
            [(sale, *line) for line in lines],
        )
        for fruit_id, qty, *_ in lines:
            db.execute("update fruits set stock_quantity = stock_quantity - ? where fruit_id = ?", (qty, fruit_id))
            assert db.rowcount == 1

    def _delivery(self, db: sqlite3.Cursor, p: dict[str, Any]) -> None:
        supplier = self._find_or_add(
            db,
            "select supplier_id from suppliers where supplier_name = ?",
            "insert into suppliers (supplier_name, contact_number, email) values (?, ?, ?) returning supplier_id",
            p["supplier"],
            (p["supplier"], p["contact"], p["email"]),
        )
        sell, cost = float(p["sell"]), float(p["unit_cost"])
        fruit = self._find_or_add(
            db,
            "select fruit_id from fruits where fruit_name = ?",
            "insert into fruits (fruit_name, selling_price, stock_quantity) values (?, ?, 0) returning fruit_id",
            p["fruit"],
            (p["fruit"], sell),
        )
        total = round(p["qty"] * cost, 2)
        purchase = db.execute(
            "insert into purchases (supplier_id, purchase_date, total_cost) values (?, ?, ?) returning purchase_id",
            (supplier, p["day"], total),
        ).fetchone()[0]
        db.execute(
            "insert into purchase_items (purchase_id, fruit_id, quantity_purchased, cost_per_item, item_total_cost)"
            " values (?, ?, ?, ?, ?)",
            (purchase, fruit, p["qty"], cost, total),
        )
        db.execute(
            "update fruits set stock_quantity = stock_quantity + ?, selling_price = coalesce(?, selling_price)"
            " where fruit_id = ?",
            (p["qty"], sell, fruit),
        )


class ByCom:
    """The example's programs."""

    def __init__(self, path: Path, history: bool) -> None:
        self.memory = com.connect(f"sqlite:///{path}", history=history)
        names = ("record_delivery", "record_sale", "change_price")
        self.programs = {n: com.compile((SHOP / f"{n}.com").read_text(), self.memory.schema) for n in names}

    def __call__(self, kind: str, p: dict[str, Any]) -> None:
        com.execute(self.programs[kind], self.memory, **p)


def timed(run: Callable[[str, dict[str, Any]], None], work: list[Record], batch: int) -> list[float]:
    """Seconds for each batch."""
    times = []
    for start in range(0, len(work), batch):
        begin = time.perf_counter()
        for kind, parameters in work[start : start + batch]:
            run(kind, parameters)
        times.append(time.perf_counter() - begin)
    return times


def memory(folder: Path, name: str) -> Path:
    """A new file with the shop's tables."""
    path = folder / name
    com.create(f"sqlite:///{path}", com.read_schema((SHOP / "schema.com").read_text())).close()
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1000)
    arguments = parser.parse_args()
    work = list(records(arguments.count))
    beside = work[: min(len(work), 5 * arguments.batch)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with_history = ByCom(memory(folder, "history.db"), True)
        first = timed(with_history, beside, arguments.batch)
        bare = timed(ByHand(memory(folder, "hand.db")), beside, arguments.batch)
        without = timed(ByCom(memory(folder, "plain.db"), False), beside, arguments.batch)
        per = 1000 / len(beside)
        print(f"a record by hand {sum(bare) * per:.2f} ms, by com {sum(first) * per:.2f} ms", end="")
        print(f", with history off {sum(without) * per:.2f} ms")
        print(f"ratio to hand-written, journal and row images: {sum(first) / sum(bare):.2f} (aim under 3)")
        print(f"ratio to hand-written, history off: {sum(without) / sum(bare):.2f} (aim under 1.5)")
        rest = timed(with_history, work[len(beside) :], arguments.batch)
        if rest:
            print(f"ratio of the last {arguments.batch} of {len(work)} records to the first: ", end="")
            print(f"{rest[-1] / first[0]:.2f} (bar 1.3)")


if __name__ == "__main__":
    main()
