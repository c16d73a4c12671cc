"""Types as engines declare them, read as com's."""

from __future__ import annotations

import re

from com.schema import BOOL, BYTES, DATE, FLOAT, INT, JSON, TEXT, TIMESTAMP, UNKNOWN, Type, decimal

_TYPE = re.compile(r"\s*([^()]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)\s*(.*?))?\s*\Z", re.DOTALL)
_TEXT = {"text", "clob", "string", "varchar", "char", "character", "nchar", "nvarchar", "uuid", "citext", "enum", "xml"}
_TEXT |= {"character varying", "varying character", "native character", "tinytext", "mediumtext", "longtext", "bpchar"}
_NAMED = {
    **dict.fromkeys(_TEXT, TEXT),
    **dict.fromkeys(("real", "float", "double", "double precision", "float4", "float8"), FLOAT),
    **dict.fromkeys(("bool", "boolean"), BOOL),
    **dict.fromkeys(("datetime", "timestamp", "datetime2", "timestamp without time zone"), TIMESTAMP),
    **dict.fromkeys(("blob", "bytea", "binary", "varbinary", "tinyblob", "mediumblob", "longblob", "bytes"), BYTES),
    **dict.fromkeys(("json", "jsonb", "json text"), JSON),
    **dict.fromkeys(("int unsigned", "integer unsigned", "unsigned big int", "serial", "bigserial", "bit"), INT),
    "date": DATE,
}
_INTS = re.compile(r"(tiny|small|medium|big)?int(eger)?[248]?( unsigned| signed| unsigned zerofill)?\Z")
_DECIMALS = {"decimal", "numeric", "dec", "number", "fixed"}


def read_type(text: str) -> Type:
    """The com type of a declared type; `unknown` if com has none for it (none declared, time, geometry, …)."""
    match = _TYPE.match(text.lower())
    if match is None:
        return UNKNOWN
    name, first, second, rest = " ".join(match[1].split()), match[2], match[3], match[4]
    if rest:
        name = f"{name} {' '.join(rest.split())}"
    if name in _DECIMALS:
        if first is None:
            return FLOAT  # any number: what SQLite keeps then
        precision, scale = int(first), int(second or 0)
        return decimal(max(precision, 1), scale) if 0 <= scale <= precision else FLOAT
    if _INTS.match(name):
        return INT
    return _NAMED.get(name, UNKNOWN)
