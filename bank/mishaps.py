"""Did a step go wrong, by its result alone? Pure rules. A result's own words never leave this module: only the kind of
mishap does, and single words of it that the caller already knows."""

import contextlib
import json
import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from bank.literals import read_literal
from bank.words import LONGEST_WORD, stem

LONGEST_WHOLE = 4_000  # a longer result is judged by its beginning and its end
LOOKED_AT = 600
SHORT = 240  # only a short text is judged by words inside it: a long one may merely speak of errors
MOST_WORDS = 3

EMPTY = "an empty result"
_KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("too many requests", r"\b429\b|rate.?limit|too many requests|quota|throttl"),
        ("a timeout", r"\b(408|504)\b|timed? ?out|deadline exceeded"),
        ("no permission", r"\b(401|403)\b|permission|denied|forbidden|unauthori[sz]ed|not authori[sz]ed|access token"),
        ("not enough", r"not enough|insufficient|out of memory|exceed|too (large|long|big|many)|no space"),
        ("not available", r"\b503\b|not available|unavailable|sold out|out of stock"),
        ("not found", r"\b404\b|not found|no such|does ?n.t exist|does not exist|unknown|undefined|KeyError|no module"),
        ("does not fit", r"\b409\b|does ?n.t (match|add up)|does not (match|add up)|mismatch|conflict|already exists|duplicate"),
        ("not allowed", r"\b405\b|cannot be|can.t be|not allowed|not permitted|not supported|unsupported|read.?only"),
        ("bad input", r"\b(400|422)\b|invalid|malformed|syntax|parse|missing|required|must be|expected|cast|(Type|Value)Error"),
        ("no connection", r"\b502\b|connection|refused|unreachable|network"),
        ("a server error", r"\b5\d\d\b|internal (server )?error"),
    )
)  # fmt: skip
# What an error is called, in the larger languages; the kinds above know English alone, the rest is "an error".
_CALLED = (
    "error|fehler|erreur|errore|erro|fout|fel|feil|fejl|virhe|hata|błąd|chyba|hiba|eroare|ошибка|помилка|σφάλμα|kesalahan|"
    "lỗi|خطأ|שגיאה"
)
_BEGINS = re.compile(
    rf"""\W*(?: (?:fatal\s+)?(?:{_CALLED})\b(?!\s*(?:rate|bar|margin|budget|handling|analysis|log|count|report)s?\b)
          (?!s?\s*[:=]\s*(?:0|none|null|false|no|keine?|aucune?|ninguno|nessuno|nenhum|нет)\s*(?:[,;.]|$))
      | (?:错误|錯誤|エラー|오류)(?!率|処理|\s*[:：=]\s*(?:0|无|無|なし|없음))
      | (?:fatal|panic|uncaught|unhandled)\b
      | exception\b(?!al|\s*(?:report|list)s?\b)
      | traceback\s\(most
      | (?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception)\b
      | http(?:/[\d.]+)?\s+(?:status\s*:?\s*)?[45]\d{{2}}\b
      | (?:status|code)(?:\s*code)?\s*[:=]?\s*[45]\d{{2}}\b
      | [45]\d{{2}}\s+(?:client|server|bad|not|unauthori|forbidden|too|internal|service|gateway|conflict|request|unprocessable)
      | ORA-\d+ | SQLSTATE )""",
    re.IGNORECASE | re.VERBOSE,
)
_INSIDE = re.compile(
    r"^\W*(?:fail(?:ed|ure)|denied|refused|forbidden|invalid|time(?:d )?out|cannot|can't)\b|"
    r"\b(?:not found|no such|does(?: not|n't) exist|timed out|permission denied|access denied|not authori[sz]ed|unauthori[sz]ed|"
    r"rate limit|too many requests|connection refused|failed(?: to| with|:|\.|$)|could not|couldn't|unable to|is not available|"
    r"is invalid|invalid \w+|syntax error|not enough|was refused|not permitted|not allowed)",
    re.IGNORECASE,
)  # fmt: skip
_FALSE_ALARM = re.compile(
    r"\b(?:(?:no|0|zero|without(?: any)?|free of|none) (?:\w+ )?(?:errors?|failed|failures?|warnings?|exceptions?)|"
    r"errors?\s*[:=]\s*(?:0|none|null|no)\s*(?:[,;.]|$)|error rates?|"
    r"\d+ failed,? \d+ (?:passed|ok)|(?:passed|ok|succeeded)\W+0 failed|"
    r"if (?:it|this|that|the)\b[^.]*\bfail|failed (?:orders|payments|deliveries|logins|jobs|tests|transactions|requests)\b)",
    re.IGNORECASE,
)  # fmt: skip
_NOTHING = re.compile(
    r"\W*(?:null|none|\[\s*\]|\{\s*\}|\(?0 rows?\b.*|empty set\b.*|empty dataframe\b.*|"
    r"no (?:rows|results?|matches|records|data|hits)\b.{0,40}|"
    r"(?:0|zero) (?:results|matches|records|hits)\b.{0,40})\W*",
    re.IGNORECASE | re.DOTALL,
)  # fmt: skip
# The last line of what a program wrote, or the first: "exit code: 2", "Process exited with code 1".
_EXIT = re.compile(
    r"\W*(?:[\w' -]{1,40}\s)?exit(?:ed)?(?:[ _](?:with|an?|non-zero)){0,3}[ _](?:code|status|value)\W{0,3}-?[1-9]\d{0,9}\W*",
    re.IGNORECASE,
)
_JSON_ERROR_KEYS = ("error", "errors", "exception", "fault", "error_message", "errorMessage", "traceback")
_FLAGS = ("isError", "is_error")  # of an MCP result, of a block of a message
_EXIT_KEYS = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_MESSAGE_KEYS = ("message", "stderr", "detail", "content", "output", "text")
_STATUS_KEYS = ("status", "code", "status_code", "statusCode", "http_status")
_BAD_STATUS = frozenset({"error", "failed", "failure", "fail"})
_BEGINS_WITH_ERROR = re.compile(
    r"""[\[{]\s*(["'])(?:(?:error|exception)\1\s*:\s*(?!null|none|false|["']["']|\[\]|\{\}|0\b)
    |status\1\s*:\s*["'](?:error|fail(?:ed|ure)?)["'])""",
    re.IGNORECASE | re.VERBOSE,
)
_FLAG_AT_END = re.compile(rf"""(["'])(?:{"|".join(_FLAGS)})\1\s*:\s*true[\s}}\]]*$""", re.IGNORECASE)
_CODE = re.compile(r"(?:HTTP\D{0,12}|\bstatus\D{0,8}|\bcode\D{0,4}|^\W*)([45]\d\d)\b", re.IGNORECASE)
_CLASS = re.compile(r"\b((?:[A-Z][a-z]+|[A-Z]{2,4}(?![a-z])){1,5}(?:Error|Exception))\b")  # of five words at most
_WORD = re.compile(r"[^\W\d_]{3,}")
# Nouns of data work that may always be named beside the kind.
_NOUNS = frozenset(
    stem(word)
    for word in """column table relation field schema function type file folder key index syntax join date format page token
    argument parameter balance memory disk connection version encoding""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Mishap:
    """What went wrong: its kind, an HTTP code or the name of an exception where there was one, and its words
    by their stems."""

    kind: str
    code: str | None = None
    spelt: tuple[tuple[str, str], ...] = ()

    @property
    def empty(self) -> bool:
        return self.kind == EMPTY

    def about(self, known: Set[str]) -> tuple[str, ...]:
        """Up to three words of it that are known from elsewhere (stems of names, of the request) or name parts of data."""
        return tuple(word for stemmed, word in self.spelt if stemmed in known or stemmed in _NOUNS)[:MOST_WORDS]


def mishap(result: str | None) -> Mishap | None:
    """None where the step went well, or nothing tells that it did not."""
    if result is None or not (text := result.strip()):
        return None
    if len(text) <= SHORT and _NOTHING.fullmatch(text):
        return Mishap(EMPTY)
    if text[0] in "{[":
        return _in_brackets(text, whole=len(result) <= LONGEST_WHOLE)
    beginning = text[:LOOKED_AT]
    first, _, rest = beginning.partition("\n")
    if _BEGINS.match(first):
        return _named(text[-LOOKED_AT:] if first.lower().startswith("traceback") else beginning[:SHORT])
    if _EXIT.fullmatch(first) or _EXIT.fullmatch(text[-LOOKED_AT:].rpartition("\n")[2]):
        return _named(text[-SHORT:])
    if len(text) <= SHORT and not rest.strip() and _INSIDE.search(text) and not _FALSE_ALARM.search(text):
        return _named(text)
    return None


def failed(result: str | None) -> bool:
    """Whether what came of a step says that it went wrong. To find nothing is no failure."""
    found = mishap(result)
    return found is not None and not found.empty


def _in_brackets(text: str, whole: bool) -> Mishap | None:
    """JSON, what Python prints of a dict or a list, or something that only looks like it."""
    if whole:
        with contextlib.suppress(ValueError):
            return _in_value(read_literal(text))
    if _BEGINS_WITH_ERROR.match(text) or _FLAG_AT_END.search(text[-LOOKED_AT:]):
        return _named(text[:LOOKED_AT])
    return None


def _in_value(value: Any) -> Mishap | None:
    if isinstance(value, str):
        return mishap(value)
    if isinstance(value, list):
        return Mishap(EMPTY) if not value else mishap(_text_of(value))
    if not isinstance(value, dict):
        return None
    for key in _JSON_ERROR_KEYS:
        if (said := value.get(key)) and said not in (0, "0", "none", "None", "null"):
            return _named(f"{_status(value) or ''} {_message(value) if said is True else json.dumps(said)[:LOOKED_AT]}")
    if (status := _status(value)) is not None:
        return _named(f"{status} {_message(value)}")
    if value.get("success") is False or value.get("ok") is False or any(value.get(key) is True for key in _FLAGS):
        return _named(_message(value))
    if any(isinstance(code := value.get(key), int) and code for key in _EXIT_KEYS):
        return _named(_message(value))
    for key in ("rows", "results", "data", "items", "hits", "records"):
        if value.get(key) == []:
            return Mishap(EMPTY)
    return mishap(_text_of(value.get("content")))


def _text_of(blocks: Any) -> str | None:
    """Of a list of blocks of text, as tools of MCP answer with; None: it is something else."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) and "text" in block for block in blocks):
        return None
    return "\n".join(str(block["text"]) for block in blocks)


def _message(value: dict[str, Any]) -> str:
    said = next((said for key in _MESSAGE_KEYS if (said := value.get(key))), "")
    return (said if isinstance(said, str) else _text_of(said) or json.dumps(said))[:SHORT]


def _status(value: dict[str, Any]) -> str | None:
    for key in _STATUS_KEYS:
        said = value.get(key)
        if isinstance(said, int) and not isinstance(said, bool) and 400 <= said <= 599:
            return str(said)
        if isinstance(said, str) and (said.lower() in _BAD_STATUS or re.fullmatch(r"[45]\d\d", said)):
            return said
    return None


def _named(text: str) -> Mishap:
    kind = next((kind for kind, pattern in _KINDS if pattern.search(text)), "an error")
    code = found.group(1) if (found := _CODE.search(text)) else None
    if code is None and (named := _CLASS.findall(text)):
        code = named[-1]
    spelt: dict[str, str] = {}
    for word in _WORD.findall(text[:LOOKED_AT]):
        if len(word) <= LONGEST_WORD and (stemmed := stem(word.lower())) is not None:
            spelt.setdefault(stemmed, word.lower())
    return Mishap(kind, f"HTTP {code}" if code and code.isdigit() else code, tuple(spelt.items()))
