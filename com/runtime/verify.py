"""Whether the journal is as it was written: every text, run, call, image and commit against its hash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from com.runtime import journal
from com.runtime.canon import hash_json, hash_text
from com.runtime.engines import Link
from com.runtime.history import read_images, step_hashes
from com.runtime.journal import Flaw, RunRow
from com.schema import Schema

TEXTS = (("com_program", "text", "program"), ("com_schema", "text", "schema"), ("com_blob", "data", "plan"))


def verify(link: Link, schema: Schema) -> list[Flaw]:
    """What does not fit in the journal. Tamper-evident, not tamper-proof: whoever can write the database can write a
    whole new chain."""
    return _Verifier(link, schema).flaws()


class _Verifier:
    def __init__(self, link: Link, schema: Schema) -> None:
        self.link = link
        self.schema = schema
        self.found: list[Flaw] = []
        self.runs: dict[int, RunRow] = {}

    def flaws(self) -> list[Flaw]:
        parts = (self._texts, self._runs, self._strays, self._chain, self._head, self._ids)
        for part in parts:
            self._tried(None, f"the journal cannot be read ({part.__name__.strip('_')})", part)
        return self.found

    def _note(self, run: int | None, detail: str) -> None:
        self.found.append(Flaw(run, detail))

    def _tried(self, run: int | None, detail: str, do: Callable[[], Any]) -> Any:
        """What something gives; a flaw if it stumbles: whatever stands in the tables, nothing here may fail."""
        try:
            return do()
        except Exception:
            self._note(run, detail)
            return None

    # ------------------------------------------------------------ texts

    def _texts(self) -> None:
        for table, column, what in TEXTS:
            for hash_, text in self.link.ask(f"select hash, {column} from {table} order by hash"):
                if not isinstance(text, str) or hash_text(text) != hash_:
                    self._note(None, f"the {what} {str(hash_)[:12]} was changed")
        for name in ("schema", "made"):
            hash_ = journal.meta(self.link, name)
            if hash_ is not None and journal.read_text(self.link, "com_schema", hash_) is None:
                self._note(None, f"the schema {str(hash_)[:12]} is missing")

    def _kept(self, run: RunRow) -> None:
        """Whether the texts that a run names are there; the name of a program stands in its plan."""
        for (table, _, what), hash_ in zip(TEXTS, (run.program, run.schema_hash, run.plan), strict=True):
            if not self.link.ask(f"select 1 from {table} where hash = ?", hash_):
                self._note(run.run, f"the {what} of run {run.run} is missing")
        names = [name for (name,) in self.link.ask("select name from com_program where hash = ?", run.program)]
        plan = journal.read_text(self.link, "com_blob", run.plan)
        if names and plan is not None and json.loads(plan)["name"] != names[0]:
            self._note(run.run, f"the name of the program of run {run.run} was changed")

    # ------------------------------------------------------------ runs

    def _runs(self) -> None:
        numbers = [number for (number,) in self.link.ask("select run from com_run order by run")]
        whole = journal.meta(self.link, "rebuilt") is None
        for place, number in enumerate(numbers, 1):
            if whole and number != place and place == len(self.runs) + 1:
                self._note(None, f"run {place} is missing")
            run = self._tried(number, f"the record of run {number} was changed", partial(self._run, number))
            if run is not None:
                self.runs[number] = run
        for number, run in self.runs.items():
            self._tried(number, f"the plan of run {number} was changed", partial(self._kept, run))

    def _run(self, number: int) -> RunRow:
        link, run = self.link, journal.read_run(self.link, number)
        steps, calls = journal.read_steps(link, number), journal.read_calls(link, number)
        pending = run.status == "pending" and (run.outcome, run.digest, run.code, steps) == (None, None, None, [])
        if not pending and journal.sealed(run, steps, calls) != run:
            self._note(number, f"the record of run {number} was changed")
        return run

    def _strays(self) -> None:
        """Rows of runs that are not there, or that recorded none."""
        for table, what in (("com_step", "steps"), ("com_call", "calls"), ("com_change", "row images")):
            for (number,) in self.link.ask(f"select distinct run from {table} order by run"):
                if number not in self.runs:
                    self._note(None, f"there are {what} of run {number}, which is not there")

        for number, n in self.link.ask("select distinct run, n from com_change"):
            if not isinstance(n, int):
                self._note(number, f"the row images of run {number} were changed")

    # ------------------------------------------------------------ commits

    def _chain(self) -> None:
        before = journal.origin(self.link)
        rows = self.link.ask("select number, time, run, changes, previous, hash from com_commit order by number")
        imaged = {run for (run,) in self.link.ask("select distinct run from com_change")}
        committed = set()
        for place, (number, time, run, changes, previous, hash_) in enumerate(rows, 1):
            committed.add(run)
            digest = self.runs[run].digest or "" if run in self.runs else ""
            made = journal.commit_hash(number, time, run, digest, changes, previous)
            if number != place or previous != before or made != hash_:
                if place == 1 and number == 1 and made == hash_:
                    self._note(None, "com_meta was changed")
                self._note(run, f"commit {number} does not fit in the chain")
                return
            if changes:
                self._images(run, changes)
            elif run in imaged:
                self._note(run, f"run {run} kept no row images, and there are some")
            before = hash_
        for number in sorted(imaged - committed):
            self._note(number, f"there are row images of run {number}, which changed nothing")
        for number, run in self.runs.items():
            if run.written and run.status == "done" and number not in committed:
                self._note(number, f"the commit of run {number} is missing")

    def _images(self, run: int, changes: str) -> None:
        detail = f"the row images of run {run} were changed"
        if self._tried(run, detail, lambda: self._images_hash(run) == changes) is False:
            self._note(run, detail)

    def _images_hash(self, run: int) -> str:
        hashes = step_hashes(read_images(self.link, self.schema, run))
        return hash_json([[s, hashes[s]] for s in sorted(hashes)])

    def _head(self) -> None:
        heads = self.link.ask("select one, run, commits, time, hash from com_head")
        last = self.link.ask("select number, time, hash from com_commit order by number desc limit 1")
        number, time, hash_ = last[0] if last else (0, 0, journal.START)
        runs = self.link.ask("select max(run) from com_run")[0][0] or 0
        if len(heads) != 1 or heads[0][0] != 1:
            self._note(None, "com_head was changed")
            return
        _, run, commits, at, head = heads[0]
        if (commits, at, head) != (number, time, hash_):
            self._note(None, "commits are missing at the end of the chain, or com_head was changed")
        if run != runs:
            self._note(None, "runs are missing at the end of the journal, or com_head was changed")

    # ------------------------------------------------------------ ids

    def _ids(self) -> None:
        """The counters of ids: never below what a run is known to have found or given out."""
        counters: dict[str, Any] = dict(self.link.ask("select tbl, last from com_id"))
        least: dict[str, int] = {}
        for table, number in self._given_out():
            least[table] = max(least.get(table, 0), number)
        for table in sorted({*counters, *least}, key=str):
            last = counters.get(table, 0)
            if not isinstance(last, int) or last < least.get(table, 0):
                self._note(None, f"the counter of ids of {table} was changed")

    def _given_out(self) -> Iterator[tuple[str, int]]:
        """Ids of tables, as runs have given them out."""
        keyed = {t.name for t in self.schema.tables if t.identity is not None and t.primary_key == (t.identity.name,)}
        for table, key in self.link.ask('select tbl, "key" from com_change where "before" is null'):
            if table in keyed:
                number = json.loads(key)[0]
                if isinstance(number, int):
                    yield table, number
