"""Cursors: where a page ended, as text that a client hands back unread."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from graph.errors import BadInput, Problem


def encode_cursor(*values: Any) -> str:
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps(plain, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """The values that `encode_cursor` was given, of these kinds."""
    try:
        plain = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(plain, list) or len(plain) != len(kinds):
            raise ValueError("another listing's cursor")
        values = tuple(
            datetime.fromisoformat(value) if kind is datetime else kind(value)
            for kind, value in zip(kinds, plain, strict=True)
        )
        return tuple(_possible(value) for value in values)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadInput.of(
            [Problem("after", "is not a cursor of this listing; use endCursor of the page before")]
        ) from error


def _possible(value: Any) -> Any:
    """A value that the graph can compare with; a cursor may have been forged."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time without an offset")
        return value.astimezone(UTC)
    if isinstance(value, str):
        value.encode()
    elif not -(2**63) <= value < 2**63:  # also not a number, or infinite
        raise ValueError("a number out of range")
    return value
