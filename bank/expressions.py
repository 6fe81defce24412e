"""Which rows of the index are meant, in Milvus' language: the one place where a value becomes part of an expression. Every
expression names the tenant."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bank.model import LessonQuery, LessonStatus, Scope, team_of
from bank.rows import micros
from graph.model import MemoryFilter


def of_tenant(tenant: str) -> str:
    return f"tenant == {_literal(tenant)}"


def of_rows(tenant: str, key: str, values: Sequence[Any]) -> str:
    """`key`: the field that is the primary key."""
    return f"{of_tenant(tenant)} and {key} in {_list(values)}"


def of_rows_after(tenant: str, key: str, last: Any) -> str:
    return f"{of_tenant(tenant)} and {key} > {_literal(last)}"


def of_memories(tenant: str, filter: MemoryFilter) -> str:
    """All of a filter but `textContains`, which the graph answers: it knows upper and lower case of all letters."""
    parts = [of_tenant(tenant)]
    if filter.types is not None:
        parts.append(f"type in {_list(kind.value for kind in filter.types)}")
    if filter.conv_id is not None:
        parts.append(f"conv_id == {_literal(filter.conv_id)}")
    if filter.tags:
        parts.append(f"array_contains_all(tags, {_list(filter.tags)})")
    if filter.since is not None:
        parts.append(f"ingestion_time >= {micros(filter.since)}")
    if filter.until is not None:
        parts.append(f"ingestion_time <= {micros(filter.until)}")
    if filter.overlaps is not None:
        parts.append(f"window_end >= {filter.overlaps.start.toordinal()}")
        parts.append(f"window_start <= {filter.overlaps.end.toordinal()}")
    return " and ".join(parts)


def of_lessons(tenant: str, query: LessonQuery) -> str:
    """The lessons that a caller in the query's namespace sees: its own, its team's and the organisation's."""
    parts = [of_tenant(tenant), _has_status(LessonStatus.ACTIVE)]
    if query.tags:
        parts.append(f"array_contains_all(tags, {_list(query.tags)})")
    if query.outcome is not None:
        parts.append(f"outcome == {_literal(query.outcome.value)}")
    if query.scope is not None:
        parts.append(f"scope == {_literal(query.scope.value)}")
    if query.namespace is not None:
        own = f"namespace == {_literal(query.namespace)}"
        team = f"(scope == {_literal(Scope.TEAM.value)} and team == {_literal(team_of(query.namespace))})"
        parts.append(f"({own} or {team} or scope == {_literal(Scope.ORG.value)})")
    return " and ".join(parts)


def of_namespace(tenant: str, namespace: str | None, status: LessonStatus | None = None) -> str:
    """The lessons of one namespace or of all, of one status or of any."""
    parts = [of_tenant(tenant)]
    if status is not None:
        parts.append(_has_status(status))
    if namespace is not None:
        parts.append(f"namespace == {_literal(namespace)}")
    return " and ".join(parts)


def _has_status(status: LessonStatus) -> str:
    return f"status == {_literal(status.value)}"


def _list(values: Iterable[str | int]) -> str:
    return f"[{', '.join(map(_literal, values))}]"


def _literal(value: str | int) -> str:
    """A value as Milvus' expressions spell it. Control characters, which they cannot spell, are refused on input."""
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)
