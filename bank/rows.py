"""The rows of the index, made from the records of the graph."""

from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from bank.model import Lesson, team_of
from graph.checks import TEXT_BYTES
from graph.model import Event, Memory

NEVER_STARTS, NEVER_ENDS = 2**31, -1  # the window of a memory that has none: it overlaps nothing
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
Vector = npt.NDArray[np.float32]


def memory_row(memory: Memory, tenant: str, vector: Vector) -> dict[str, Any]:
    start, end = NEVER_STARTS, NEVER_ENDS
    if isinstance(memory, Event):
        first, last = memory.start_date or memory.end_date, memory.end_date or memory.start_date
        if isinstance(first, date) and isinstance(last, date):
            start, end = first.toordinal(), last.toordinal()
    return {
        "embedding_id": memory.embedding_id,
        "pointer_to_node": memory.id,
        "text": cut(memory.text),
        "dense_vector": vector.tolist(),
        "tenant": tenant,
        "type": memory.type.value,
        "conv_id": memory.conv_id,
        "tags": list(memory.tags),
        "ingestion_time": micros(memory.ingestion_time),
        "window_start": start,
        "window_end": end,
        "version": memory.version,
        "revision": memory.revision,
    }


def lesson_row(lesson: Lesson, tenant: str, lesson_vector: Vector, context_vector: Vector) -> dict[str, Any]:
    return {
        "rb_id": lesson.rb_id,
        "key_lesson": cut(lesson.key_lesson),
        "key_lesson_vector": lesson_vector.tolist(),
        "context_to_prefer": cut(lesson.context_to_prefer),
        "context_to_prefer_vector": context_vector.tolist(),
        "tags": list(lesson.tags),
        "link_nodes": list(lesson.link_nodes),
        "tenant": tenant,
        "namespace": lesson.namespace,
        "team": team_of(lesson.namespace),
        "scope": str(lesson.scope),
        "outcome": str(lesson.outcome),
        "status": str(lesson.status),
        "version": lesson.version,
        "revision": lesson.revision,
    }


def cut(text: str) -> str:
    """As much of a text as a row holds, whole characters; more than that only somebody's hand can have put into the graph."""
    return text if len(text) * 4 <= TEXT_BYTES else text.encode()[:TEXT_BYTES].decode(errors="ignore")


def micros(moment: datetime) -> int:
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
