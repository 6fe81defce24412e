"""Lessons from what a model wrote: JSON, JSON inside prose or a code fence, or lines with labels. Pure, no I/O."""

import contextlib
import json
import re
import string
from collections.abc import Iterator, Sequence
from typing import Any

from bank.model import Outcome, first_words
from graph.model import Value

NO_EXTRACTIONS = "NO_EXTRACTIONS"
MOST_LESSONS = 3
MOST_TAGS = 8
MOST_CHARACTERS = 200_000  # of an answer
MOST_STARTS = 50  # of brackets and fences that are tried
MOST_ITEMS = 20  # that are looked at
MOST_DEPTH = 3  # of objects around the lessons
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
# What stands before a label is taken off first: no pattern here has two ways to match the same signs.
_BEFORE_A_LABEL = " \t#>*-.)0123456789"
_LABEL = re.compile(
    "(" + "|".join(sorted(map(re.escape, _PART_OF), key=len, reverse=True)) + r")\**\s*[:=]\s*\**\s*(.*)", re.IGNORECASE
)
_THINK = re.compile(r"<(/?)think>", re.IGNORECASE)
_BRACKET = re.compile(r"[\[{]")
_TRAILING_COMMA = re.compile(r",\s*(?=[\]}])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_LISTS = ("lessons", "items", "memories", "extractions")


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
    """At most three. A lesson without a content is none; what is too long is cut at a sentence. Takes time in proportion
    to the text, whatever it is."""
    if len(text) > MOST_CHARACTERS:
        raise Unreadable("it is too long for an answer")
    text = _without_thoughts(text)
    nothing = False
    for written in dict.fromkeys((text, _TRAILING_COMMA.sub("", text))):
        for values, whole in _json_values(written):
            lessons, said_nothing = _read(values, whole)
            if lessons:
                return lessons[:MOST_LESSONS]
            nothing = nothing or said_nothing
    labelled = [lesson for item in _labelled(text) if (lesson := _lesson(item)) is not None]
    if labelled:
        return labelled[:MOST_LESSONS]
    if nothing or ("{" not in text and NO_EXTRACTIONS in _plain(text)):
        return []
    raise Unreadable("no lesson can be read from it")


def _plain(text: str) -> str:
    return text.upper().replace(" ", "_").replace("-", "_")


def _says_nothing(value: Any) -> bool:
    return isinstance(value, str) and _plain(value.strip(" .*\"'")) == NO_EXTRACTIONS


def _without_thoughts(text: str) -> str:
    """Some models think aloud before they answer."""
    kept: list[str] = []
    place, inside = 0, False
    for mark in _THINK.finditer(text):
        if mark[1]:
            if not inside:  # the beginning is often left out
                kept.clear()
            place, inside = mark.end(), False
        elif not inside:
            kept.append(text[place : mark.start()])
            inside = True
    return "".join(kept) + ("" if inside else text[place:])


def _json_values(text: str) -> Iterator[tuple[list[Any], bool]]:
    """The JSON values that the text is, that its code fences are, and that stand anywhere in it; with each list of them
    whether they are all that was written there."""
    fences = text.split("```", 2 * MOST_STARTS)[1::2]
    for candidates in ([text], [fence.lstrip(string.ascii_letters) for fence in fences]):
        found = []
        for candidate in candidates:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(candidate))
        yield found, True
    decoder = json.JSONDecoder()
    found, place, starts = [], 0, 0
    while starts < MOST_STARTS and (start := _BRACKET.search(text, place)):
        starts += 1
        try:
            value, place = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError):
            place = start.start() + 1
    yield found, False


def _read(values: Sequence[Any], whole: bool) -> tuple[list[ParsedLesson], bool]:
    """The lessons of some JSON values, and whether one of them says that there is none. An empty list says so only
    where it is all that was written, or what lessons are."""
    lessons: list[ParsedLesson] = []
    nothing = False
    for value in values:
        items = _items(value)
        if items is None:
            nothing = nothing or (whole and (value == [] or _says_nothing(value)))
            continue
        nothing = nothing or not items
        for item in items[:MOST_ITEMS]:
            if (lesson := _lesson(item)) is not None:
                lessons.append(lesson)
            elif isinstance(item, dict) and any(map(_says_nothing, item.values())):
                nothing = True
    return lessons, nothing


def _items(value: Any, depth: int = 0) -> list[Any] | None:
    """The lessons of a JSON value; None: it holds none and does not say so."""
    if isinstance(value, list):
        return value if value and all(isinstance(item, dict) for item in value) else None
    if not isinstance(value, dict):
        return None
    named = {str(key).strip().lower(): inside for key, inside in value.items()}
    if (key := next((key for key in _LISTS if key in named), None)) is not None:
        inside = named[key]
        if isinstance(inside, dict):
            return [inside]
        return [] if _says_nothing(inside) else inside if isinstance(inside, list) else None
    if any(key in _PART_OF for key in named):
        return [value]
    inner = (_items(one, depth + 1) for one in list(named.values())[:MOST_ITEMS] if isinstance(one, dict))
    return next((items for items in inner if items is not None), None) if depth < MOST_DEPTH else None


def _labelled(text: str) -> list[dict[str, Any]]:
    """Lines like `Title: …`; a title, or a part that is there already, begins the next lesson."""
    items: list[dict[str, list[str]]] = []
    last: str | None = None
    for line in text.splitlines():
        if match := _LABEL.match(line.lstrip(_BEFORE_A_LABEL)):
            last = _PART_OF[match[1].lower()]
            if not items or last in items[-1]:
                items.append({})
            items[-1][last] = [match[2].strip()]
        elif last is not None and line.strip() and not line.lstrip().startswith(("#", "```")):
            items[-1][last].append(line.strip())
        elif not line.strip() and last != "content":
            last = None
    return [{part: " ".join(lines).strip() for part, lines in item.items()} for item in items[:MOST_ITEMS]]


def _lesson(item: Any) -> ParsedLesson | None:
    if not isinstance(item, dict):
        return None
    parts: dict[str, Any] = {}
    for key, value in item.items():
        part = _PART_OF.get(str(key).strip().lower())
        if part is not None and value not in (None, "", []):
            parts.setdefault(part, value)
    content = _sentences(_text(parts.get("content")), TEXT_CHARACTERS)
    if not content or _says_nothing(content):
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
