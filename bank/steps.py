"""Reading a session's steps: the action's name, its parameters, and how each may be written in a lesson for others.

What a session says is data. A lesson repeats of it only short names, and values that are settings rather than someone's
own: an id becomes "a reservation id", a date "a date"."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bank.mishaps import Mishap, mishap
from bank.work import Work

LONGEST_NAME = 40
LONGEST_ACTION = 2_000  # what is read of it
LONGEST_VALUE = 30
MOST_PARAMETERS = 40
LONGEST_PARAMETERS = 8_000

SUSPECT = re.compile(
    r"ignore|disregard|instruction|prompt|system|assistant|password|secret|credential|api.?key|jailbreak|https?:|<[a-z/]|"
    r"you are|act as",
    re.IGNORECASE,
)
_CALL = re.compile(r"\s*([\w.:-]{1,80})\s*\((.*)\)\s*;?\s*", re.DOTALL)
_HTTP = re.compile(r"\s*(GET|POST|PUT|PATCH|DELETE|HEAD)\s+(\S+)", re.IGNORECASE)
_PAIR = re.compile(r"""([A-Za-z_][\w.-]{0,60})\s*[=:]\s*("[^"]*"|'[^']*'|[^,;\s&]+)""")
_HAS_DIGIT = re.compile(r"\d")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?([T ][\d:.]+.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{8}")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z_.-]*")
_PERSON = re.compile(
    r'''"(?:first|last|full|family|given|middle|user|customer|contact|passenger|employee)_?[nN]ame"\s*:\s*"([^"]{1,60})"'''
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SQL = re.compile(r"\s*(?:select|with|insert|update|delete|create|merge|explain)\b", re.IGNORECASE)
_SQL_PARTS = re.compile(
    r"\b(?:(?P<table>from|join|into)\s+(?P<name>[A-Za-z_][\w.]{0,39})|"
    r"(?P<clause>group by|order by|limit|distinct|having|left join|union|over)\b|(?P<function>[a-z_]{3,30})(?=\())",
    re.IGNORECASE,
)
_SQL_COLUMN = re.compile(
    r"\b(?:where|and|or)\s+(?:lower\(|upper\(|date\()?([A-Za-z_][\w.]{0,39})\)?\s*(?:=|<|>|!|like\b|in\b|between\b|is\b|not\b)",
    re.IGNORECASE,
)
_PERSONAL = frozenset(
    "name user email mail phone address dob birth birthday passenger owner author contact surname zip city person".split()  # noqa: SIM905
)
_DATA = frozenset(  # the name of one of these is nobody's own
    "table column file field dataset schema database db metric sheet function report view index product dimension model".split()  # noqa: SIM905
)
_AMOUNT = frozenset(("amount", "price", "cost", "fee", "total", "balance", "sum", "paid"))
_SETTING = frozenset(
    """limit timeout size page retries retry batch top depth days hours minutes seconds window max min offset threshold workers
    n k interval concurrency precision level""".split()  # noqa: SIM905
)
_IDENTITY = frozenset("id ids uuid guid token code number no ref reference hash".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter's value: `exact` to compare, `said` to write; `literal` where the value itself may be written."""

    exact: str
    said: str
    literal: bool = False
    number: float | None = None
    parts: tuple[str, ...] = ()  # of a query: see sql_parts
    own: tuple[str, ...] = ()  # the words of an id or of somebody's own value: never to be repeated


@dataclass(frozen=True, slots=True)
class Done:
    """A step as it was read."""

    action: str
    memory: str
    given: Mapping[str, Given]
    mishap: Mishap | None
    place: int
    own: tuple[str, ...] = ()  # names of persons in its result

    @property
    def failed(self) -> bool:
        return self.mishap is not None and not self.mishap.empty


@dataclass(frozen=True, slots=True)
class Reading:
    """A session with its steps read."""

    work: Work
    steps: tuple[Done, ...] = field(repr=False)

    @property
    def ends(self) -> tuple[str, ...]:
        """The memories that keep its request and its answer."""
        answer = self.work.answer_memory
        return (self.work.request_memory,) if answer is None else (self.work.request_memory, answer)


def read(work: Work) -> Reading:
    steps = []
    for place, step in enumerate(work.steps):
        action, inside = action_of(step.action)
        given = given_of(step.parameters if step.parameters is not None else inside)
        own = tuple(_PERSON.findall(step.result[:LONGEST_PARAMETERS])) if step.result else ()
        steps.append(Done(action, step.memory, given, mishap(step.result), place, own))
    return Reading(work, tuple(steps))


@lru_cache(maxsize=4_096)
def action_of(text: str) -> tuple[str, str | None]:
    """The name to compare and to quote, and what stood in its parentheses."""
    text = text[:LONGEST_ACTION]
    if (call := _CALL.fullmatch(text)) is not None:
        return quotable(call.group(1)), call.group(2)
    if (request := _HTTP.match(text)) is not None:
        path = re.sub(r"^https?://[^/]*", "", request.group(2)).split("?")[0]
        path = "/".join(
            "{id}" if _HAS_DIGIT.search(part) and not re.fullmatch(r"v\d+", part) else part for part in path.split("/")
        )
        return quotable(f"{request.group(1).upper()} {path}"), None
    return quotable(text), None


@lru_cache(maxsize=4_096)
def quotable(text: str, most: int = LONGEST_NAME) -> str:
    """A name as it may be quoted: one line, no marks, numbers of its own left out, not too long."""
    line = re.sub(r"[^\w\s./:{}<>-]", "", text[: 4 * most])
    if re.search(r"\s", line.strip()):  # words rather than a name: what has digits is one of a kind
        line = " ".join("…" if re.search(r"\d\d", word) else word for word in line.split())
    line = " ".join(line.split())
    if SUSPECT.search(line) and " " in line:
        return line.split(" ", 1)[0][:most] + " …"
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def given_of(text: str | None) -> dict[str, Given]:
    """Parameters by name: of a JSON object, of `name=value` pairs, or one without a name."""
    if text is None or not text.strip():
        return {}
    flat: dict[str, list[Any]] = {}
    if len(text) <= LONGEST_PARAMETERS:
        try:
            _flatten("", json.loads(text), flat)
        except (ValueError, RecursionError):
            if not _SQL.match(text):
                for name, value in _PAIR.findall(text)[:MOST_PARAMETERS]:
                    flat.setdefault(name, []).append(value.strip("\"'"))
    if not flat:
        flat = {"": [text]}
    return {quotable(name): given(name, values) for name, values in list(flat.items())[:MOST_PARAMETERS]}


def _flatten(name: str, value: Any, flat: dict[str, list[Any]]) -> None:
    if len(flat) > MOST_PARAMETERS:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{name}.{key}" if name else str(key), inner, flat)
    elif isinstance(value, list):
        for inner in value[:MOST_PARAMETERS]:
            _flatten(name, inner, flat)
        if not value:
            flat.setdefault(name, [])
    else:
        flat.setdefault(name, []).append(value)


def given(name: str, values: list[Any]) -> Given:
    if len(values) == 1:
        (value,) = values
        said, literal = said_of(name, value)
        if isinstance(value, str):
            parts = sql_parts(value)
            return Given(value, said, literal, None, parts, () if literal or parts else _own(name, value))
        return Given(repr(value), said, literal, None if value is None or isinstance(value, bool) else float(value))
    exact = json.dumps(values)
    if not values:
        return Given(exact, "nothing", literal=True)
    kinds = {said_of(name, value) for value in values}
    own = tuple(word for value in values for word in _own(name, value))
    if len(kinds) > 1:
        return Given(exact, f"a list of {len(values)}", own=own)
    said, literal = kinds.pop()
    return Given(exact, said if literal else f"{len(values)} {noun(said)}s", literal, own=() if literal else own)


def noun(said: str) -> str:
    return said.removeprefix("an ").removeprefix("a ")


def _own(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, str) or not _name_of(name).own:
        return ()
    return tuple(_WORD.findall(value[:200]))


@dataclass(frozen=True, slots=True)
class _Name:
    """What the name of a parameter tells about its values."""

    words: tuple[str, ...]
    personal: bool
    identity: bool
    amount: bool
    setting: bool

    @property
    def own(self) -> bool:
        return self.personal or self.identity


@lru_cache(maxsize=4_096)
def _name_of(name: str) -> _Name:
    words = [part.lower() for part in re.split(r"[^A-Za-z]+", _CAMEL.sub("_", name.rsplit(".", 1)[-1])) if part]
    personal, identity, amount, setting, data = (
        not kind.isdisjoint(words) for kind in (_PERSONAL, _IDENTITY, _AMOUNT, _SETTING, _DATA)
    )
    return _Name(tuple(words), personal and not data, identity, amount, setting)


def said_of(name: str, value: Any) -> tuple[str, bool]:
    """How a value may be written for others, and whether that is the value itself."""
    named = _name_of(name)
    if value is None or isinstance(value, bool):
        return f"`{str(value).lower()}`", True
    if isinstance(value, int | float):
        return (f"`{value}`", True) if named.setting else ("an amount" if named.amount else "a number", False)
    text = str(value).strip()
    if named.setting and re.fullmatch(r"\d{1,6}[a-z]{0,2}", text):
        return f"`{text}`", True
    if named.personal or "@" in text:
        return "a personal value", False
    has_digit = _HAS_DIGIT.search(text) is not None
    if has_digit and _DATE.fullmatch(text):
        return "a date", False
    if named.identity or (has_digit and " " not in text):
        words = " ".join(named.words[:3]) if named.identity else "id"
        return f"{'an' if words[0] in 'aeiou' else 'a'} {words}", False
    if len(text) <= LONGEST_VALUE and _TOKEN.fullmatch(text) and not SUSPECT.search(text):
        return f"`{text}`", True
    return ("a query" if _SQL.match(text) else "a text"), False


@lru_cache(maxsize=4_096)
def sql_parts(text: str) -> tuple[str, ...]:
    """What a query is made of, as far as others can use it: its tables, clauses, functions and the columns it filters by."""
    if not _SQL.match(text):
        return ()
    found: dict[str, None] = {}
    for match in _SQL_PARTS.finditer(text[:LONGEST_PARAMETERS]):
        if match["table"]:
            found[f"{match['table'].upper()} {match['name'].lower()}"] = None
        elif match["clause"]:
            found[match["clause"].upper()] = None
        else:
            found[f"{match['function'].upper()}()"] = None
    for column in _SQL_COLUMN.findall(text[:LONGEST_PARAMETERS]):
        found[f"WHERE {column.lower()}"] = None
    return tuple(found)
