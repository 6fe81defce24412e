"""Reading a session's steps: the action's name, its parameters, and how each may be written in a lesson for others.

What a session says is data. A lesson repeats of it only short names, and values that look like settings: an id becomes
"a reservation id", a date "a date", a password "a secret", and whatever is not known to be a setting "a value"."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from bank.literals import read_literal
from bank.mishaps import Mishap, mishap
from bank.work import Work

LONGEST_NAME = 40
LONGEST_ACTION = 2_000  # what is read of one that is no JSON
LONGEST_NUMBER = 8
MOST_PARAMETERS = 40
LONGEST_PARAMETERS = 8_000

A_VALUE = "a value"

SUSPECT = re.compile(
    r"ignore|disregard|instruction|prompt|system|assistant|passw|passphrase|passcode|secret|credential|api.?key|jailbreak|"
    r"https?:|<[a-z/]|you are|act as|\b(?:pin|token)\b",
    re.IGNORECASE,
)
_CALL = re.compile(r"\s*([\w.:-]{1,80})\s*\((.*)\)\s*;?\s*", re.DOTALL)
_HTTP = re.compile(r"\s*(GET|POST|PUT|PATCH|DELETE|HEAD)\s+(\S+)", re.IGNORECASE)
_PAIR = re.compile(r"""([A-Za-z_][\w.-]{0,60})\s*[=:]\s*("[^"]*"|'[^']*'|[^,;\s&]+)""")
_CALLED = ("name", "tool", "tool_name", "function", "action", "method")
_CALLED_WITH = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_HAS_DIGIT = re.compile(r"\d")
_OF_ITS_OWN = re.compile(r"[\d@%]")  # a part of an address that is no name of a thing
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?([T ][\d:.]+.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{8}")
_SETTING_VALUE = re.compile(r"[a-z]{1,20}(?:[_-][a-z]{1,20}){0,2}|[A-Z]{1,5}")  # a word of a few, or a code like EUR
_PERSON = re.compile(
    r"""["'](?:first|last|full|family|given|middle|user|customer|contact|passenger|employee)_?[nN]ame["']\s*:\s*"""
    r"""["']([^"']{1,60})["']"""
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_PARTS = re.compile(r"[\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SQL = re.compile(  # "update the address from …" is none
    r"\s*(?:select\b|with\s+\w+\s+as\b|(?:insert|merge)\s+into\b|update\s+\S+\s+set\b|delete\s+from\b|explain\s+select\b|"
    r"create\s+(?:or\s+replace\s+)?(?:\w+\s+)?(?:table|view|index)\b)",
    re.IGNORECASE,
)
_SQL_PARTS = re.compile(
    r"\b(?:(?P<table>from|join|into)\s+(?P<name>[A-Za-z_][\w.]{0,39})|"
    r"(?P<clause>group by|order by|limit|distinct|having|left join|union|over)\b|(?P<function>[a-z_]{3,30})(?=\())",
    re.IGNORECASE,
)
_SQL_COLUMN = re.compile(
    r"\b(?:where|and|or)\s+(?:lower\(|upper\(|date\()?([A-Za-z_][\w.]{0,39})\)?\s*(?:=|<|>|!|like\b|in\b|between\b|is\b|not\b)",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(
    r"passw|pwd|passphrase|passcode|secret|token|credential|cookie|bearer|api_?key|signature", re.IGNORECASE
)
_SECRET = frozenset("auth authorization pin otp cvv cvc login".split())  # noqa: SIM905
_KEY_OF = frozenset("access private public signing encryption ssh session license master service client".split())  # noqa: SIM905
_PERSONAL = frozenset(
    """name user email mail phone mobile address street dob birth birthday age passenger owner author contact surname first last
    given family middle zip postcode city person people patient customer client guest member employee candidate student
    recipient sender to cc bcc from iban account ssn passport gender sex religion race ethnicity nationality diagnosis disease
    symptom medication condition salary marital holder husband wife partner""".split()  # noqa: SIM905
)
_DATA = frozenset(  # the name of one of these is nobody's own
    "table column field dataset schema database db metric sheet function view index dimension model".split()  # noqa: SIM905
)
_AMOUNT = frozenset(("amount", "price", "cost", "fee", "total", "balance", "sum", "paid"))
_SETTING = frozenset(  # whose numbers may be told
    """limit timeout size page retries retry batch top depth days hours minutes seconds window max min offset threshold workers
    n k interval concurrency precision level""".split()  # noqa: SIM905
)
_CHOICE = frozenset(  # whose words may be told: names of things that are chosen from a few
    """mode type kind format currency unit units cabin class basis sort order direction language lang locale encoding method
    granularity interval period frequency aggregation aggregate group grouping scope strategy style theme protocol engine
    dialect compression algorithm priority output level precision environment env stage timezone join how axis dtype
    policy status state region channel source target operation operator option sampling resolution""".split()  # noqa: SIM905
)
_IDENTITY = frozenset("id ids uuid guid code number no ref reference hash".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter's value: `exact` to compare, `said` to write; `literal` where the value itself may be written."""

    exact: str
    said: str
    literal: bool = False
    number: float | None = None
    plain: bool = False  # it may be written once it is seen in several sessions: see `settled`
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
    """Parameters and mishaps are the same whether a session comes whole or as `works_like` cuts it."""
    steps = []
    for place, step in enumerate(work.steps):
        action, inside = action_of(step.action[:LONGEST_PARAMETERS])
        parameters = step.parameters[: LONGEST_PARAMETERS + 1] if step.parameters is not None else None
        given = {**given_of(inside), **given_of(parameters)}
        own = tuple(_PERSON.findall(step.result[:LONGEST_PARAMETERS])) if step.result else ()
        steps.append(Done(action, step.memory, given, mishap(step.result), place, own))
    return Reading(work, tuple(steps))


@lru_cache(maxsize=1_024)
def action_of(text: str) -> tuple[str, str | None]:
    """The name to compare and to quote, and what it was given within the same text, as `given_of` reads it."""
    if text.lstrip().startswith("{") and (call_of := _json_call(text)) is not None:
        return call_of
    text = text[:LONGEST_ACTION]
    if (call := _CALL.fullmatch(text)) is not None:
        return quotable(call.group(1)), call.group(2)
    if (request := _HTTP.match(text)) is not None:
        return _http_call(request.group(1).upper(), request.group(2))
    if _SQL.match(text):
        return text.split(None, 1)[0].upper(), text
    return quotable(text), None


def _http_call(method: str, address: str) -> tuple[str, str | None]:
    """The ids of its path, and what stands behind a question mark, are what it was given."""
    path, _, query = re.sub(r"^https?://[^/]*", "", address).partition("?")
    parts = path.split("/")
    ids = [part for part in parts if _OF_ITS_OWN.search(part) and not re.fullmatch(r"v\d+", part)]
    given: dict[str, list[str]] = {"id": ids} if ids else {}
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=LONGEST_ACTION):
        given.setdefault(name, []).append(value)
    name = quotable(f"{method} {'/'.join('{id}' if part in ids else part for part in parts)}")
    return name, json.dumps(given) if given else None


def _json_call(text: str) -> tuple[str, str | None] | None:
    """A call as models and agents write it: a name, and what it is given, by one of the names these have."""
    try:
        value = read_literal(text)
    except ValueError:
        return None
    for inner in ("function", "params"):
        if isinstance(value.get(inner), dict) and "name" in value[inner]:
            value = value[inner]
    name = next((found for key in _CALLED if isinstance(found := value.get(key), str) and found.strip()), None)
    if name is None:
        return None
    given = next((value[key] for key in _CALLED_WITH if value.get(key) is not None), None)
    return quotable(name), given if given is None or isinstance(given, str) else json.dumps(given)


@lru_cache(maxsize=4_096)
def quotable(text: str, most: int = LONGEST_NAME) -> str:
    """A name as it may be quoted: one line, no marks, numbers of its own left out, not too long."""
    line = re.sub(r"[^\w\s./:{}<>-]", "", text[: 4 * most])
    if re.search(r"\s", line.strip()):  # words rather than a name: what has digits is one of a kind
        line = " ".join("…" if re.search(r"\d\d", word) else word for word in line.split())
    line = " ".join(line.split())
    if not line:  # signs alone are named by their numbers
        return " ".join(f"U+{ord(sign):04X}" for sign in text.split(None, 1)[0][:3]) if text.strip() else ""
    if SUSPECT.search(line) and " " in line:
        return line.split(" ", 1)[0][:most] + " …"
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def given_of(text: str | None) -> dict[str, Given]:
    """Parameters by name: of a JSON object or a dict of Python's, of `name=value` pairs, or one without a name."""
    if text is None or not text.strip():
        return {}
    flat: dict[str, list[Any]] = {}
    if len(text) <= LONGEST_PARAMETERS:
        try:
            _flatten("", read_literal(text), flat)
        except ValueError:
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
            plain = said == A_VALUE
            return Given(value, said, literal, None, plain, parts, () if literal or parts else _own(name, value))
        return Given(repr(value), said, literal, None if _name_of(name).own else _number(value))
    exact = json.dumps(values)
    if not values:
        return Given(exact, "nothing", literal=True)
    kinds = {said_of(name, value) for value in values}
    own = tuple(word for value in values for word in _own(name, value))
    if len(kinds) > 1:
        return Given(exact, f"a list of {len(values)}", own=own)
    said, literal = kinds.pop()
    return Given(exact, said if literal else f"{len(values)} {noun(said)}s", literal, own=() if literal else own)


def _number(value: Any) -> float | None:
    """None where it is none that can be compared: no float holds 400 digits."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def settled(readings: Sequence[Reading]) -> list[Reading]:
    """The same readings; a plain word that several of them gave to the same parameter is a setting there."""
    seen = Counter(
        found
        for reading in readings
        for found in {(n, g.exact) for step in reading.steps for n, g in step.given.items() if g.plain}
    )
    common = {found for found, often in seen.items() if often > 1}

    def known(name: str, given: Given) -> Given:
        return replace(given, said=f"`{given.exact}`", literal=True) if (name, given.exact) in common else given

    return [
        replace(
            reading,
            steps=tuple(
                replace(step, given={name: known(name, given) for name, given in step.given.items()})
                for step in reading.steps
            ),
        )
        if common
        else reading
        for reading in readings
    ]


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
    secret: bool
    personal: bool
    identity: bool
    amount: bool
    setting: bool
    choice: bool

    @property
    def own(self) -> bool:
        return self.secret or self.personal or self.identity


@lru_cache(maxsize=4_096)
def _name_of(name: str) -> _Name:
    words = [part.lower() for part in _PARTS.split(_CAMEL.sub("_", name.rsplit(".", 1)[-1])) if part]
    personal, identity, amount, setting, choice, data = (
        not kind.isdisjoint(words) for kind in (_PERSONAL, _IDENTITY, _AMOUNT, _SETTING, _CHOICE, _DATA)
    )
    key = "key" in words and (len(words) == 1 or not _KEY_OF.isdisjoint(words))
    secret = key or not _SECRET.isdisjoint(words) or _SECRET_NAME.search(name) is not None
    personal = personal and not data
    return _Name(tuple(words), secret, personal, identity, amount, setting, data or choice)


def said_of(name: str, value: Any) -> tuple[str, bool]:
    """How a value may be written for others, and whether that is the value itself: only where the name is that of a
    setting and the value looks like one."""
    named = _name_of(name)
    if value is None or isinstance(value, bool):
        return f"`{str(value).lower()}`", True
    if named.secret:
        return "a secret", False
    telling = named.setting and not named.own and not named.amount
    if isinstance(value, int | float) and not named.personal:
        short = telling and len(str(value)) <= LONGEST_NUMBER
        return (f"`{value}`", True) if short else ("an amount" if named.amount else "a number", False)
    text = str(value).strip()
    if telling and re.fullmatch(r"\d{1,6}[a-z]{0,2}", text):
        return f"`{text}`", True
    has_digit = _HAS_DIGIT.search(text) is not None
    if has_digit and _DATE.fullmatch(text):
        return "a date", False
    if named.personal or "@" in text:
        return "a personal value", False
    if named.identity or (has_digit and " " not in text):
        words = " ".join(named.words[:3]) if named.identity else "id"
        return f"{'an' if words[0] in 'aeiou' else 'a'} {words}", False
    if _SETTING_VALUE.fullmatch(text) and not SUSPECT.search(text):
        return (f"`{text}`", True) if named.choice else (A_VALUE, False)
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
