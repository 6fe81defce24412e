"""Cursors: where a page ended, as text that a client hands back unread."""

import base64
import json
from datetime import datetime
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
        if any(isinstance(value, datetime) and value.tzinfo is None for value in values):
            raise ValueError("a time without an offset")
    except (ValueError, TypeError, UnicodeError, RecursionError) as error:
        raise BadInput.of(
            [Problem("after", "is not a cursor of this listing; use endCursor of the page before")]
        ) from error
    return values
