"""Asks what no well-behaved client asks: the body is written as JSON with escapes, so that it can hold half a character."""

import json
from typing import Any

import pytest

from tests.service import Refused, Service


async def ask(cairn: Service, query: str, /, **variables: Any) -> dict[str, Any]:
    """The data of an answer without errors; otherwise Refused."""
    response = await cairn.http.post("/graphql", content=json.dumps({"query": query, "variables": variables}))
    answer = response.json()
    if answer.get("errors"):
        raise Refused(answer["errors"])
    data: dict[str, Any] = answer["data"]
    return data


async def refused(cairn: Service, query: str, /, **variables: Any) -> Refused:
    """How the service refuses this; it must."""
    with pytest.raises(Refused) as caught:
        await ask(cairn, query, **variables)
    return caught.value


async def counts(cairn: Service) -> tuple[int, ...]:
    """How much there is in either store."""
    report = await cairn.integrity()
    return tuple(report[name] for name in ("nodes", "edges", "lessons", "nodeVectors", "lessonVectors", "pending"))
