"""Values as programs write them: JSON, or what Python prints of a dict or a list. Pure, nothing is evaluated."""

import json
import re
from typing import Any

# What is not closed goes to the end, so that no sign is looked at twice.
_PYTHON = re.compile(r"""'((?:[^'\\]|\\.)*)(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\b(None|True|False)\b""", re.DOTALL)
_NAMES = {"None": "null", "True": "true", "False": "false"}


def read_literal(text: str) -> Any:
    """ValueError: it is neither."""
    try:
        try:
            return json.loads(text)
        except ValueError:
            return json.loads(_PYTHON.sub(_as_json, text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _as_json(found: re.Match[str]) -> str:
    if found[2] is not None:
        return _NAMES[found[2]]
    if found[1] is None:
        return found[0]
    inside = found[1].replace('"', r"\"").replace(r"\'", "'").replace(r"\x", r"\u00")
    return f'"{inside}"'
