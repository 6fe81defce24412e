"""Idempotency keys: the same call twice is one call."""

import hashlib
import json
from typing import Any

from graph.errors import Conflict, Problem
from graph.session import Transaction


def digest_of(call: Any) -> str:
    """What a call says, as a short text: the same call has the same."""
    return hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()


async def claim_key(tx: Transaction, key: str, digest: str) -> str | None:
    """What was kept under this key by the same call (`digest`: what it says); None: the key is new, and ours."""
    (kept,) = await tx.run("claim_key", key=key, body=digest)
    if kept["body"] != digest:
        raise Conflict(
            f"idempotencyKey {key!r} was used for another call. Send the same body with it, or take a new key.",
            [Problem("idempotencyKey", "was used for another call")],
        )
    answer: str | None = kept["answer"]
    return answer
