"""Errors as clients see them: a message, extensions.code, and every field that is wrong."""

import logging
import secrets
from typing import Any

from graphql import GraphQLError
from graphql.validation.validate import ValidationAbortedError

from graph.errors import BadInput, CairnError, LimitExceeded

log = logging.getLogger("cairn")


def formatted(error: GraphQLError) -> dict[str, Any]:
    """What is nobody's fault but ours says nothing but an id, which is in the log."""
    shown = error.formatted
    cause = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    extensions: dict[str, Any] = {**(error.extensions or {})}
    if isinstance(cause, CairnError):
        extensions["code"] = cause.code
        extensions["retryable"] = cause.retryable
        if cause.problems:
            extensions["problems"] = [{"field": one.field, "message": one.message} for one in cause.problems]
    elif isinstance(cause, RecursionError):
        return {"message": "The request nests too deeply.", "extensions": {"code": "LIMIT_EXCEEDED"}}
    elif "code" in extensions:
        pass
    elif isinstance(error, ValidationAbortedError):  # the query is too large to be checked, or too wrong
        extensions["code"] = LimitExceeded.code
    elif cause is None or error.path is None:
        # Syntax, unknown fields, values that no scalar takes: graphql-core says where and what.
        extensions["code"] = BadInput.code
    else:
        return internal(cause, error.path)
    return {**shown, "extensions": extensions}


def internal(cause: BaseException, path: Any = None) -> dict[str, Any]:
    reference = secrets.token_hex(6)
    log.error("internal error %s at %s", reference, path, exc_info=cause)
    return {
        "message": f"Something went wrong inside Cairn. Its log has more under {reference}.",
        "extensions": {"code": "INTERNAL", "id": reference},
    }
