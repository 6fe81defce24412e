"""Every statement in cypher/: what its header promises, what it may touch, how Neo4j plans it."""

import re
from pathlib import Path
from typing import Any

import pytest

from graph.queries import CYPHER, Statement, statements
from graph.schema import schema_files
from tests.service import Service

ROOT = CYPHER.parent
# The schema and the server are the whole database's; everything else belongs to a tenant.
WITHOUT_TENANT = {"applied_schema", "record_schema", "server"}
# A small table of the service itself, with one row for each schema file; and the first thousand of a type.
MAY_SCAN_A_LABEL = {"applied_schema", "memories_page_of_few"}
# A type that is asked for, or none, with its memories.
MAY_MULTIPLY = {"memories_page_of_few"}
WRITING = re.compile(r"\b(CREATE|MERGE|SET|DELETE|DETACH|REMOVE|DROP|FOREACH|LOAD)\b")

every_statement = pytest.mark.parametrize("statement", statements().values(), ids=statements().keys())


@every_statement
def test_the_header_says_what_it_is(statement: Statement) -> None:
    """A file opens with one sentence, its parameters and what it returns."""
    assert statement.text.startswith("// ")
    assert statement.header[0].rstrip(".:;,").strip()
    assert sum(line.startswith("params:") for line in statement.header) == 1
    assert sum(line.startswith("returns:") for line in statement.header) == 1


@every_statement
def test_declared_parameters_are_the_used_ones(statement: Statement) -> None:
    """What the header promises is what the statement takes; $tenant is always among it."""
    tenant = set() if statement.name in WITHOUT_TENANT else {"tenant"}
    assert statement.declared_parameters == statement.used_parameters
    assert tenant <= statement.used_parameters


@every_statement
def test_the_folder_is_the_access_mode(statement: Statement) -> None:
    """Nothing in read/ writes, and everything in write/ does."""
    body = "\n".join(line for line in statement.text.splitlines() if not line.startswith("//"))
    assert bool(WRITING.search(body)) == (statement.mode == "write")


@every_statement
def test_every_file_is_used(statement: Statement) -> None:
    """A statement that no code names is dead."""
    code = "".join(path.read_text() for folder in ("graph", "bank", "api") for path in (ROOT / folder).glob("*.py"))
    assert f'"{statement.name}"' in code


@every_statement
async def test_the_plan_scans_nothing_and_multiplies_nothing(statement: Statement, cairn: Service) -> None:
    """EXPLAIN shows no scan of all nodes or of a label, and no Cartesian product."""
    plan = await cairn.cairn.graph.explain(statement.text, **dict.fromkeys(statement.used_parameters) | {"limit": 10})
    operators = set(_operators(plan))
    forbidden = {one for one in operators if "AllNodesScan" in one or "AllRelationshipsScan" in one}
    if statement.name not in MAY_MULTIPLY:
        forbidden |= {one for one in operators if "CartesianProduct" in one}
    if statement.name not in MAY_SCAN_A_LABEL:
        forbidden |= {one for one in operators if "LabelScan" in one or "TypeScan" in one}
    assert not forbidden, operators


def test_the_filter_of_memories_is_the_same_everywhere() -> None:
    """What a filter means stands in seven statements, letter by letter the same; so does that of lessons in four."""
    parts = set()
    for name in (
        "memories_page",
        "memories_page_of_few",
        "conversation_page",
        "recall_memories",
        "recall_edges",
        "memories_by_words",
        "true_memories",
    ):
        text = statements()[name].text
        start = text.index("  AND ($types IS NULL")
        end = text.index("$overlap_end))", start)
        parts.add(text[start:end])
    assert len(parts) == 1
    pages = [one.text for name, one in statements().items() if name.startswith("lessons_page")]
    assert len(pages) == 4
    assert len({text[text.index("  AND all(tag") : text.index("$min_confidence\n")] for text in pages}) == 1


def test_a_lesson_is_read_with_its_confidence_of_now() -> None:
    """Stored is the confidence of every period without use to come; each statement that returns a lesson, or filters
    by its confidence, takes the one of now, in the same words."""
    now = "coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)"
    for statement in statements().values():
        if "toString(l.updated_at)" in statement.text or ">= $min_confidence" in statement.text:
            assert f"confidence: {now}" in statement.text, statement.name
            assert ("$min_confidence" in statement.used_parameters) <= (f"{now} >= $min_confidence" in statement.text)


def test_schema_files_are_numbered_and_described() -> None:
    """In order, no number twice, each opening with a sentence."""
    numbers = [file.number for file in schema_files()]
    assert numbers == sorted(set(numbers))
    assert all(path.read_text().startswith("// ") for path in Path(CYPHER / "schema").glob("*.cypher"))


def _operators(plan: dict[str, Any]) -> list[str]:
    return [str(plan["operatorType"]), *(name for child in plan.get("children", []) for name in _operators(child))]
