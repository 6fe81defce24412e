"""Lessons from what a model wrote: JSON, JSON inside prose or a code fence, or lines with labels. Pure, no I/O."""

import json
import re
from typing import Any

from bank.model import Outcome, first_words
from graph.model import Value

NO_EXTRACTIONS = "NO_EXTRACTIONS"
MOST_LESSONS = 3
MOST_TAGS = 8
TITLE_CHARACTERS, TEXT_CHARACTERS, TAG_CHARACTERS = 120, 1_500, 60

# What models call the parts, beside what they were asked to call them.
_NAMES = {
    "title": ("title", "name", "lesson title"),
    "when": ("when_to_use", "when", "when to use", "context", "description", "applies when", "when_to_apply"),
    "content": ("content", "lesson", "key_lesson", "key lesson", "insight", "advice"),
    "tags": ("tags", "keywords", "labels"),
    "outcome": ("outcome", "type", "kind"),
    "steps": ("steps", "evidence", "from steps"),
}
_PART_OF = {name: part for part, names in _NAMES.items() for name in names}
_LABEL = re.compile(
    r"^[\s#>*\-\d.)]*\**("
    + "|".join(sorted(map(re.escape, _PART_OF), key=len, reverse=True))
    + r")\**\s*[:=]\s*\**\s*(.*)$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)```", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class ParsedLesson(Value):
    """`outcome` None: the model did not say. `steps`: the numbers of the steps that are its evidence."""

    title: str
    when: str
    content: str
    tags: tuple[str, ...] = ()
    outcome: Outcome | None = None
    steps: tuple[int, ...] = ()


class Unreadable(ValueError):
    """The text holds no lesson, and does not say that there is none."""


def parse_lessons(text: str) -> list[ParsedLesson]:
    """At most three. A lesson without a content is none; what is too long is cut at a sentence."""
    for found in _json_values(text):
        items = _items(found)
        if items is not None:
            lessons = [lesson for item in items if (lesson := _lesson(item)) is not None]
            if lessons or not items:
                return lessons[:MOST_LESSONS]
    labelled = [lesson for item in _labelled(text) if (lesson := _lesson(item)) is not None]
    if labelled:
        return labelled[:MOST_LESSONS]
    if NO_EXTRACTIONS in text.upper().replace(" ", "_").replace("-", "_"):
        return []
    raise Unreadable("no lesson can be read from it")


def _json_values(text: str) -> list[Any]:
    """Every JSON value that the text is, or holds: whole, in a code fence, or from its first bracket on."""
    found = []
    for candidate in (text, *_FENCE.findall(text)):
        try:
            found.append(json.loads(candidate))
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder()
    place = 0
    while not found and (start := re.compile(r"[\[{]").search(text, place)):
        try:
            found.append(decoder.raw_decode(text, start.start())[0])
        except ValueError:
            place = start.start() + 1
        except RecursionError:  # so deep is no lesson
            break
    return found


def _items(value: Any) -> list[Any] | None:
    """The lessons of a JSON value; None: it holds none and does not say so."""
    if isinstance(value, dict):
        inside = next((value[key] for key in ("lessons", "items", "memories", "extractions") if key in value), None)
        if inside is not None:
            return [] if inside == NO_EXTRACTIONS else inside if isinstance(inside, list) else None
        return [value] if any(str(key).lower() in _PART_OF for key in value) else None
    if isinstance(value, list):
        return value if all(isinstance(item, dict) for item in value) else None
    return [] if value == NO_EXTRACTIONS else None


def _labelled(text: str) -> list[dict[str, Any]]:
    """Lines like `Title: …`; a title, or a part that is there already, begins the next lesson."""
    items: list[dict[str, Any]] = []
    last: str | None = None
    for line in text.splitlines():
        if match := _LABEL.match(line):
            last = _PART_OF[match[1].lower()]
            if not items or last in items[-1]:
                items.append({})
            items[-1][last] = match[2].strip()
        elif last is not None and line.strip() and not line.lstrip().startswith(("#", "```")):
            items[-1][last] = f"{items[-1][last]} {line.strip()}".strip()
        elif not line.strip() and last != "content":
            last = None
    return items


def _lesson(item: Any) -> ParsedLesson | None:
    if not isinstance(item, dict):
        return None
    parts: dict[str, Any] = {}
    for key, value in item.items():
        part = _PART_OF.get(str(key).strip().lower())
        if part is not None and value not in (None, "", []):
            parts.setdefault(part, value)
    content = _sentences(_text(parts.get("content")), TEXT_CHARACTERS)
    if not content:
        return None
    title = _text(parts.get("title")) or first_words(content)
    return ParsedLesson(
        title=first_words(title, TITLE_CHARACTERS),
        when=_sentences(_text(parts.get("when")), TEXT_CHARACTERS) or title,
        content=content,
        tags=_tags(parts.get("tags")),
        outcome=_outcome(parts.get("outcome")),
        steps=_numbers(parts.get("steps")),
    )


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = " ".join(str(one) for one in value)
    return (
        " ".join(_CONTROL.sub(" ", str(value)).split()).strip("*\"' ") if isinstance(value, str | int | float) else ""
    )


def _sentences(text: str, most: int) -> str:
    """As many whole sentences as fit; of a first one that does not, its first words."""
    if len(text) <= most:
        return text
    cut = text[:most]
    end = max(cut.rfind(mark) for mark in (". ", "! ", "? "))
    return cut[: end + 1] if end > 0 else first_words(text, most - 2)


def _tags(value: Any) -> tuple[str, ...]:
    given = re.split(r"[,;]", value) if isinstance(value, str) else value if isinstance(value, list) else []
    cleaned = (_text(one).strip("#[]").lower() for one in given if isinstance(one, str))
    return tuple(dict.fromkeys(one for one in cleaned if one and len(one) <= TAG_CHARACTERS))[:MOST_TAGS]


def _outcome(value: Any) -> Outcome | None:
    word = _text(value).upper()
    if word.startswith(("SUCC", "PREFER", "DO ", "POSITIVE")):
        return Outcome.SUCCESS
    return Outcome.FAILURE if word.startswith(("FAIL", "AVOID", "NEGATIVE", "ERROR")) else None


def _numbers(value: Any) -> tuple[int, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(int(n) for one in given for n in re.findall(r"\d{1,6}", str(one))))
