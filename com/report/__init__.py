"""What com shows: messages with their snippet, rows, row differences, effects; as text or as JSON.

Functions give lines of styled pieces; `plain` and `coloured` make text of them. `com.report.runs` has what is known of
runs; it is apart because a check must not load the runtime.
"""

from com.report.lines import Line, coloured, plain, plural
from com.report.messages import count_line, diagnostic_json, diagnostics_lines
from com.report.programs import program_json, program_lines, signature, sql_json, sql_lines, tree_lines
from com.report.rows import change_json, change_lines, json_value, table_lines, value_text

__all__ = [
    "Line",
    "change_json",
    "change_lines",
    "coloured",
    "count_line",
    "diagnostic_json",
    "diagnostics_lines",
    "json_value",
    "plain",
    "plural",
    "program_json",
    "program_lines",
    "signature",
    "sql_json",
    "sql_lines",
    "table_lines",
    "tree_lines",
    "value_text",
]
