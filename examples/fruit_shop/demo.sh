#!/usr/bin/env bash
# Three days of a fruit shop: previewed, run, asked, refused, replayed. COM names the command, if it is not com.
set -euo pipefail
cd "$(dirname "$0")"
COM=${COM:-com}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
memory=sqlite:///$work/shop.db

say() { printf '\n== %s\n' "$1"; }
run() {  # print a command as one would type it, then run it
  local shown="com $*"
  printf '\n$ %s\n' "${shown//"$work"\//}"
  $COM "$@"
}

# The parameters of each seed record as a file of its own; its program beside it
python3 - "$work" <<'PY'
import json, sys
from pathlib import Path

PROGRAMS = {"purchase": "record_delivery", "sale": "record_sale", "price": "change_price", "return": "return_sale"}
with open("seed.jsonl", encoding="utf-8") as seed:
    for record in map(json.loads, seed):
        path = Path(sys.argv[1], f"{record['id']:02}")
        path.with_suffix(".json").write_text(json.dumps(record["event"]), encoding="utf-8")
        path.with_suffix(".program").write_text(PROGRAMS[record["type"]] + ".com", encoding="utf-8")
PY

record() { run run "$(cat "$work/$1.program")" --memory "$memory" --params "$work/$1.json" "${@:2}"; }

say "A memory for the shop"
run init --schema schema.com --memory "$memory"

say "6 May: three deliveries and two sales; the first sale is previewed"
for id in 01 02 03; do record $id; done
record 04 --dry-run
for id in 04 05; do record $id; done

say "7 May: a new price and a sale; then somebody wants more than there is"
for id in 06 07; do record $id; done
if record 08; then
  echo "this sale should have been refused" >&2
  exit 1
fi

say "A customer brings everything back; previewed, then run"
record 09 --dry-run
record 09

say "8 May: a delivery and two sales"
for id in 10 11 12; do record $id; done

say "Two questions"
echo '{"month": "2024-05-01"}' > "$work/may.json"
run run questions/q16.com --memory "$memory" --params "$work/may.json"
run run questions/q24.com --memory "$memory"

say "What was run, and the memory built anew from it"
run log --memory "$memory"
run replay --all --memory "$memory" --into "sqlite:///$work/copy.db"
