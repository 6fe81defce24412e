"""The tree of errors. Each class says whose fault it is and whether the same call may be tried again.

CairnError
├── BadInput         BAD_USER_INPUT    the caller's; change the input first
├── NotFound         NOT_FOUND         the caller's; the id does not exist
├── Conflict         CONFLICT          the caller's; something else is there already
├── LimitExceeded    LIMIT_EXCEEDED    the caller's; ask for less
├── Unavailable      UNAVAILABLE       ours; a store is away, try again (retryable)
└── SetupError       (start-up only)   the operator's; the message says what to change
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input: where, and what."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class CairnError(Exception):
    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class BadInput(CairnError):
    code = "BAD_USER_INPUT"

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> "BadInput":
        """All the problems at once, the first twenty of them in the message."""
        found = tuple(problems)
        shown = "; ".join(str(problem) for problem in found[:20])
        more = f"; and {len(found) - 20} more" if len(found) > 20 else ""
        return cls(f"{shown}{more}", found)


class NotFound(CairnError):
    code = "NOT_FOUND"

    @classmethod
    def ids(cls, kind: str, field: str, ids: Iterable[str]) -> "NotFound":
        missing = list(ids)
        return cls(
            f"No {kind} has the id {', '.join(missing)}",
            [Problem(field, f"no {kind} has the id {one}") for one in missing],
        )


class Conflict(CairnError):
    code = "CONFLICT"


class LimitExceeded(CairnError):
    code = "LIMIT_EXCEEDED"


class Unavailable(CairnError):
    code = "UNAVAILABLE"
    retryable = True


class SetupError(CairnError):
    """The service cannot start; the message says what to change."""
