"""RecallM's worked example, number by number: what is learned after each of two sentences, and what a question finds.

    python conformance/recallm.py FOLDER [--engine NAME]…

FOLDER holds README.md, whose table says what must come out. It is done on an empty temporary memory of each engine
named (all four, if none is), and every run is replayed. Exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from click import echo
from memories import ENGINES, TITLES, empty

import com

HERE = Path(__file__).parent.parent / "examples" / "recallm"


def facts(text: str) -> tuple[list[str], list[dict[str, Any]], dict[str, Any]]:
    """The sentences, what memory holds after each, and what is recalled."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    table = {row[0].partition(" (")[0]: row[1:] for row in rows if row[0]}
    sentences = re.findall(r'after "([^"]+)"', text)
    states = []
    for at in range(len(sentences)):
        names = [name for name, _ in re.findall(r"(\w+) (\d+)", table["concepts"][at])]
        counts = re.findall(r"(?:(\w+) )?(\d+)", table["revision_count"][at])
        said = table["contexts"][at]
        contexts = dict(states[-1]["contexts"]) if states else {}
        if said.startswith("both"):
            contexts = dict.fromkeys(names, re.findall(r'"([^"]+)"', said)[0])
        contexts.update(re.findall(r'(\w+) "([^"]+)"', said) if states else [])
        states.append(
            {
                "concepts": {name: int(t) for name, t in re.findall(r"(\w+) (\d+)", table["concepts"][at])},
                "edges": {
                    (a, b): (int(s), int(t))
                    for a, b, s, t in re.findall(r"(\w+)→(\w+) \((\d+), (\d+)\)", table["edges"][at])
                },
                "contexts": contexts,
                "revisions": {name or names[i]: int(n) for i, (name, n) in enumerate(counts)},
            }
        )
    score = re.search(r"t_index \+ strength: ([^.]*)\.", text)
    order = re.search(r"nearest the end: ([^.]*)\.", text)
    question = re.search(r'Question "([^"]+)"', text)
    assert score and order and question, "the page does not tell the question"
    scores = {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", score[1])}
    return sentences, states, {"question": question[1], "scores": scores, "order": re.findall(r"\w+", order[1])}


def held(memory: Any) -> dict[str, Any]:
    """What memory holds, as the table tells it."""
    quote = memory.link.quote
    concepts = memory.link.ask(f"select name, t_index, context, revision_count from {quote('concept')}")
    edges = memory.link.ask(f"select a, b, strength, t_index from {quote('related')}")
    return {
        "concepts": {name: t for name, t, _, _ in concepts},
        "edges": {(a, b): (s, t) for a, b, s, t in edges},
        "contexts": {name: context for name, _, context, _ in concepts},
        "revisions": {name: n for name, _, _, n in concepts},
    }


def compare(what: str, wanted: Any, got: Any) -> int:
    """1 if they differ, and says so."""
    if wanted != got:
        echo(f"{what}: wanted {wanted}, got {got}")
    return int(wanted != got)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    given = parser.parse_args()
    sentences, states, recalled = facts((given.folder / "README.md").read_text(encoding="utf-8"))
    runpy.run_path(str(HERE / "concepts.py"))
    schema = com.read_schema((HERE / "schema.com").read_text(encoding="utf-8"))
    wrong = 0
    for engine in given.engine or ENGINES:
        with (
            tempfile.TemporaryDirectory() as folder,
            empty(engine, Path(folder)) as url,
            com.create(url, schema) as memory,
        ):
            learn, recall = (
                com.compile((HERE / name).read_text(encoding="utf-8"), memory.schema, engine=memory.engine, name=name)
                for name in ("learn.com", "recall.com")
            )
            checked = 0
            for sentence, state in zip(sentences, states, strict=True):
                com.execute(learn, memory, text=sentence)
                found = held(memory)
                for what, wanted in state.items():
                    wrong += compare(f"{engine}, after {sentence!r}: {what}", wanted, found[what])
                    checked += len(wanted)
            outcome = com.execute(recall, memory, question=recalled["question"])
            rows = outcome.to_dicts()
            wrong += compare(f"{engine}: scores", recalled["scores"], {r["name"]: r["score"] for r in rows})
            wrong += compare(f"{engine}: order", recalled["order"], [r["name"] for r in rows])
            runs = memory.log()
            same = sum(memory.replay(run.run).same for run in runs)
            wrong += compare(f"{engine}: replays", len(runs), same)
            checked += 2 * len(recalled["order"])
            echo(f"{TITLES.get(engine, engine)}: {checked} facts, {same} of {len(runs)} runs replayed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
