"""What an input must be like. Every problem is collected, with the field it is in, so that a caller mends all at once."""

import math
import unicodedata
from collections.abc import Iterable, Sequence

from graph.errors import BadInput, Problem
from graph.model import EdgeDraft, Event, MemoryDraft

TEXT_BYTES = 65_535  # what a VARCHAR of Milvus holds
ID_BYTES = 256
TAG_BYTES = 256
TAGS = 100
LINKS = 4_096  # what an ARRAY of Milvus holds
ITEMS = 1_000


class Checks:
    """Collects problems; `done` raises them together."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, field: str, message: str) -> None:
        self.problems.append(Problem(field, message))

    def done(self) -> None:
        if self.problems:
            raise BadInput.of(self.problems)

    def storable(self, field: str, value: str, limit: int = TEXT_BYTES) -> bool:
        """Text that both stores can hold as it is. Whether it is, so that further checks can be left out."""
        if "\0" in value:
            self.add(field, "contains a NUL character (U+0000); take it out")
            return False
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            self.add(field, f"contains half of a surrogate pair at position {error.start}, which is no character")
            return False
        if size > limit:
            self.add(field, f"is {size:,} bytes long; at most {limit:,} are allowed")
            return False
        return True

    def text(self, field: str, value: str | None, limit: int = TEXT_BYTES) -> None:
        """Text that says something."""
        if value is None:
            self.add(field, "must be given")
        elif self.storable(field, value, limit) and not value.strip():
            self.add(field, "is blank")

    def optional(self, field: str, value: str | None) -> None:
        if value is not None:
            self.storable(field, value)

    def name(self, field: str, value: str | None, limit: int = ID_BYTES) -> bool:
        """An id, a tag, the name of a conversation: one line, nothing invisible at its ends. Whether it is."""
        found = len(self.problems)
        if value is None:
            self.add(field, "must be given")
        elif self.storable(field, value, limit):
            if not value.strip():
                self.add(field, "is blank")
            elif value != value.strip():
                self.add(field, f"{value!r} begins or ends with white space")
            elif any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in value):
                self.add(field, f"{value!r} contains a line break or another control character")
        return len(self.problems) == found

    def names(self, field: str, values: Sequence[str | None], most: int = TAGS, limit: int = TAG_BYTES) -> None:
        if len(values) > most:
            self.add(field, f"has {len(values):,} items; at most {most:,} are allowed")
            return
        for place, value in enumerate(values):
            self.name(f"{field}[{place}]", value, limit)

    def share(self, field: str, value: float) -> None:
        """A number from 0 to 1."""
        if not math.isfinite(value) or not 0 <= value <= 1:
            self.add(field, f"is {value}; it must be a number from 0 to 1")

    def between(self, field: str, value: int, least: int, most: int) -> None:
        if not least <= value <= most:
            self.add(field, f"is {value}; it must be from {least} to {most:,}")


def is_storable(value: str) -> bool:
    """Whether the stores can be asked for it at all."""
    checks = Checks()
    return checks.storable("", value)


def check_memories(checks: Checks, drafts: Sequence[MemoryDraft], field: str = "memories") -> None:
    for place, draft in enumerate(drafts):
        here = f"{field}[{place}]"
        if draft.id is not None and checks.name(f"{here}.id", draft.id):
            here = f"{here} ({draft.id})"
        checks.text(f"{here}.text", draft.text)
        checks.name(f"{here}.convId", draft.conv_id)
        checks.names(f"{here}.tags", draft.tags)
        check_own_fields(checks, here, draft.own)
        if draft.type is Event.type:
            check_window(checks, here, draft.own.get("start_date"), draft.own.get("end_date"))


def check_own_fields(checks: Checks, here: str, own: dict[str, object]) -> None:
    for name, value in own.items():
        if isinstance(value, str):
            checks.storable(f"{here}.{camel(name)}", value)
        elif isinstance(value, list | tuple):
            checks.names(f"{here}.{camel(name)}", value)


def check_window(checks: Checks, here: str, start: object, end: object) -> None:
    if start is not None and end is not None and end < start:  # type: ignore[operator]
        checks.add(f"{here}.endDate", f"{end} is before startDate {start}")


def check_edges(checks: Checks, drafts: Sequence[EdgeDraft], field: str = "edges") -> None:
    for place, draft in enumerate(drafts):
        here = f"{field}[{place}]"
        if draft.id is not None and checks.name(f"{here}.id", draft.id):
            here = f"{here} ({draft.id})"
        checks.name(f"{here}.source", draft.source)
        if checks.name(f"{here}.target", draft.target) and draft.source == draft.target:
            checks.add(f"{here}.target", f"is {draft.target}, its own source; an edge joins two memories")
        checks.text(f"{here}.text", draft.text)
        checks.share(f"{here}.weight", draft.weight)
        checks.names(f"{here}.tags", draft.tags)


def check_twins(checks: Checks, field: str, drafts: Iterable[tuple[str | None, object]]) -> None:
    """The same id twice is one item if the content is the same, and a problem if it is not."""
    seen: dict[str, object] = {}
    for place, (key, draft) in enumerate(drafts):
        if key is not None and seen.setdefault(key, draft) != draft:
            name = "rbId" if field == "lessons" else "id"
            checks.add(f"{field}[{place}].{name}", f"{key} stands twice in this call, with different content")


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
