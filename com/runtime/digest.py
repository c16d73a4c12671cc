"""One hash for all rows of a memory."""

from __future__ import annotations

import hashlib
from typing import Any

from com.plan import Field
from com.runtime.canon import canonical, hash_json, to_json
from com.runtime.engines import EngineError, Link
from com.schema import Schema, Table


def digest(link: Link, schema: Schema) -> str:
    """A hash over all user tables by name, each with the hash of its rows in order of their own hashes: the same for
    the same rows, whatever the engine and the order in which it gives them."""
    return hash_json([[t.name, table_digest(link, t)] for t in schema.tables if not t.is_view])


def table_digest(link: Link, table: Table) -> str:
    """A hash over the rows of a table."""
    columns = ", ".join(link.quote(c.name) for c in table.columns)
    decoders = [link.decoder(Field(c.name, c.type)) for c in table.columns]
    rows = []
    for row in link.ask(f"select {columns} from {link.quote(table.name)}"):
        values = [_value(v, d, c.type) for v, d, c in zip(row, decoders, table.columns, strict=True)]
        rows.append(hashlib.sha256(to_json(values).encode("utf-8", "surrogatepass")).digest())
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()


def _value(value: Any, decode: Any, type_: Any) -> Any:
    try:
        return canonical(decode(value), type_)
    except EngineError:  # the memory holds here what its type forbids
        return [type(value).__name__, value.hex() if isinstance(value, bytes) else str(value)]
