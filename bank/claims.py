"""What a lesson claims, as far as words tell: about what, for or against it, in which order, with which numbers. Pure."""

import re
from dataclasses import dataclass
from functools import lru_cache

from bank.counts import NUMBER_WORDS, without_counts
from bank.words import stem

MOST_CLAIMS = 20  # of one text

# Two sides that say the opposite of each other; words on one side mean the same here.
_OPPOSITES = """
enable activate | disable deactivate
increase raise enlarge extend widen grow | decrease reduce lower shrink narrow shorten cut
include | exclude
accept approve | deny block reject refuse
show display | hide
add insert append | remove delete drop
keep retain preserve | discard delete drop remove
start begin launch | stop end halt
open | close
ascending | descending
more | less fewer
large larger big bigger | small smaller
high higher | low lower
long longer | short shorter
early earlier | late later
fast faster quick | slow slower
first | last
above | below
maximum maximise maximize | minimum minimise minimize
synchronous | asynchronous
public | private
trust believe | distrust mistrust doubt
success succeed | failure fail
merge join combine | split separate
lock | unlock
full | empty
strict | loose lenient
automatic automatically | manual manually
"""
# One after the other: what a phrase says in plain words.
_PHRASES = {
    re.compile(pattern): simple
    for pattern, simple in {
        r"\bcannot\b": "can not",
        r"n['’]t\b": " not",
        r"\bno (?:more|longer|later) than\b": "at most",
        r"\bno (?:less|fewer|earlier) than\b": "at least",
        r"\b(?:not|never) ((?:\w+ ){0,3}?)(?:more|longer|later|higher|larger|greater|older) than\b": r"\1at most",
        r"\b(?:not|never) ((?:\w+ ){0,3}?)(?:less|fewer|earlier|lower|smaller|shorter) than\b": r"\1at least",
        r"\b(?:not|never) exceed\b": "at most",
        r"\bnot (?:only|just|merely)\b": "",
        r"\b(?:not|never) (?:hesitate|fail) to\b": "",
        r"\bno reason to\b": "not",
        r"\b(?:(?:is|are) (?:no problem|not a problem|not an issue|harmless)|does no harm)\b": "",
        r"\b(?:fails?|breaks?|crashes|(?:does|do|will|can) not (?:work|run|start)) without\b": "needs",
        r"\b(?:turn|switch)(ed|ing|s)? on\b": "enable",
        r"\b(?:turn|switch)(ed|ing|s)? off\b": "disable",
        r"\bonly (?:together )?with\b": "with",
        r",? (?:not|never) (?=(?:in|on|by|at|from|with|as|to|for)\b)": " rather than ",
        r"(?:,| and| but|, and|, but) not ": " rather than ",
        r"\btwice\b": "2 times",
        r"(?<!\bat )\bonce\b(?=\s*(?:[.;!?]|$))": "1 times",
        r"\b(to|exactly|most|least) one\b(?! of)": r"\1 1",
    }.items()
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b")
_NEGATIVE = frozenset(
    """never not no avoid avoids avoiding without refrain skip omit forget neglect optional unnecessary needless nor forbid
    forbids forbidden prohibit prohibits prohibited ban bans banned disallow""".split()  # noqa: SIM905 - a text of words reads better
)
_EMPHASIS = frozenset(
    """always must should shall do does did prefer use using used set make sure ensure please need needs needed require
    required requires mandatory necessary may might can could every each all any try remember take only it is are be
    there wise rule good practice allow allows allowed permit permits permitted""".split()  # noqa: SIM905 - as above
)
# Of these, what says nothing by itself.
_WEAK = frozenset("do does is are be it there can could may might any all every each".split())  # noqa: SIM905 - as above
_CONDITION = re.compile(r"\b(when|whenever|if|while|unless|until|during|once|in case|as long as)\b")
_ORDER = re.compile(r"\b((?:before|after)(?!\s+\d)|rather than|instead of|then)\b")
_REJECTED = re.compile(r"\s*(?:(?:in|on|by|at|from|with|as|to|for) )?(.*?)(?:,| (?:for|in|on|at|with|during)\b|$)")
CONTRASTS = frozenset(("rather than", "instead of", "over"))  # the second is rejected; of all others it comes later
_WHOLE = re.compile(r"\b(?:all|every|each|always)\b")
_WHICH = re.compile(r"\b(?:for|of|on)\b([^,]*)")
_OVER = re.compile(r"\b(prefer\w*\b.*?)\b(over|to)\b")
_END_OF_CLAIM = re.compile(r"(?<!\d)[.;!?]+(?!\d)|[.;!?]+(?=\s|$)|\n|(?<!nothing)(?<!anything)(?<!all) but\b")
# "Do not load all, load some": a "not" at the beginning reaches to the comma, unless what follows belongs to it.
_NOT_AT_FIRST = re.compile(
    r"(\s*(?:\w+ ){0,2}?(?:not|never|avoid)\b[^,]*),(?! (?:when\w*|if|unless|while|until|because|since|as|so|which|who|that|"
    r"before|after|even|except|especially|for|in|on|at|by|with|to|rather|during|once|then|\w+ing)\b)(?!.*\b(?:and|or|nor)\b)"
)
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|%|[^\W_]+")
_AT_LEAST = re.compile(r"(?:at least|minimum of|(?:more|longer|older|later) than|above|over|exceeds?|after|beyond)\s*$")
_AT_MOST = re.compile(r"(?:at most|maximum of|(?:less|fewer|earlier) than|below|under|up to|within|before|first)\s*$")
_SECONDS = {
    "second": 1,
    "sec": 1,
    "s": 1,
    "minut": 60,
    "min": 60,
    "hour": 3_600,
    "h": 3_600,
    "day": 86_400,
    "week": 604_800,
}
_PREFIXES = ("un", "in", "im", "ir", "non", "dis", "mis")
_LABELS = frozenset(
    """version step table figure chapter section page rule case phase level part number release sprint line ticket lesson
    item question plan stage row column q v team group type class tier zone customer order model store shop plant machine
    wave priority category grade band error code status day week quarter month terminal floor route option sheet""".split()  # noqa: SIM905 - as above
)


def _opposites() -> tuple[dict[str, set[tuple[int, int]]], frozenset[str]]:
    places: dict[str, set[tuple[int, int]]] = {}
    words = set()
    for row, line in enumerate(_OPPOSITES.strip().splitlines()):
        for side, part in enumerate(line.split("|")):
            for word in part.split():
                places.setdefault(stem(word) or word, set()).add((row, side))
                words.add(word)
    return places, frozenset(words)


_PLACES, _KEPT = _opposites()


@dataclass(frozen=True)
class Number:
    """A number with what it counts: in seconds where it is a time, and whether it is a bound."""

    value: float | str
    bound: str  # "" exactly, ">" at least, "<" at most
    anchor: str  # the word it belongs to
    text: str

    def agrees(self, other: "Number") -> bool:
        if isinstance(self.value, str) or isinstance(other.value, str):
            return self.value == other.value
        if self.bound == other.bound:
            return abs(self.value - other.value) <= 1e-9 * max(abs(self.value), abs(other.value))
        lowest = max((one.value for one in (self, other) if one.bound != "<"), default=0.0)
        highest = min(one.value for one in (self, other) if one.bound != ">")
        return bool(lowest <= highest)  # type: ignore[operator]


@dataclass(frozen=True)
class Claim:
    words: dict[str, str]  # stem -> spelling: what it is about
    negative: bool
    marks: tuple[str, ...]  # the words that make it so, or stress it
    condition: frozenset[str]
    condition_negative: bool
    numbers: tuple[Number, ...] = ()
    order: tuple[frozenset[str], frozenset[str]] | None = None  # what comes first, or is preferred; and what second
    order_word: str = ""
    whole: bool = False  # it speaks of all, every or each
    which: frozenset[str] = frozenset()  # the words that say for which, or of which


@lru_cache(maxsize=8_192)
def claims_of(text: str) -> tuple[Claim, ...]:
    """A claim for each sentence that says something."""
    plain = without_counts(text).lower()
    for pattern, simple in _PHRASES.items():
        plain = pattern.sub(simple, plain)
    plain = _NUMBER_WORD.sub(lambda word: str(NUMBER_WORDS[word.group()]), plain)
    parts = [
        part for whole in _END_OF_CLAIM.split(plain) for part in _NOT_AT_FIRST.sub(r"\1\n", whole, count=1).split("\n")
    ]
    parts = [part for part in parts if part.strip()]
    return tuple(claim for part in parts[:MOST_CLAIMS] if (claim := _claim(part)).words)


def _claim(text: str) -> Claim:
    main, condition = _split_condition(text)
    order, order_word = _order(main)
    words: dict[str, str] = {}
    marks: list[str] = []
    negative = False
    numbers = (*_numbers(main), *_numbers(condition))
    counted = {word for number in numbers for word in number.text.split()}
    for word in _TOKEN.findall(main):
        if word in _NEGATIVE:
            negative = not negative
            marks.append(word)
        elif word in _EMPHASIS:
            if word not in _WEAK:
                marks.append(word)
        elif word not in counted and not (order_word and word in ("before", "after", "rather", "instead")):
            _note(words, word)
    said = {
        found for word in _TOKEN.findall(condition) if (found := _stemmed(word)) is not None and word not in counted
    }
    against = sum(word in _NEGATIVE or word == "unless" for word in _TOKEN.findall(condition)) % 2 == 1
    which = {found for part in _WHICH.findall(main) for word in _TOKEN.findall(part) if (found := _stemmed(word))}
    whole = _WHOLE.search(main) is not None
    return Claim(
        words, negative, tuple(marks), frozenset(said), against, numbers, order, order_word, whole, frozenset(which)
    )


def _note(words: dict[str, str], word: str) -> None:
    if (found := _stemmed(word)) is not None:
        words.setdefault(found, word)


@lru_cache(maxsize=100_000)
def _stemmed(word: str) -> str | None:
    if word in _KEPT:
        return stem(word) or word
    if word in _EMPHASIS or word in _NEGATIVE or word == "%":
        return None
    # `unreliable` and `reliable` have stems of different length; behind its prefix a word is stemmed as it is alone.
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) >= len(prefix) + 4:
            return prefix + (stem(word[len(prefix) :]) or word[len(prefix) :])
    return stem(word)


def _split_condition(text: str) -> tuple[str, str]:
    """The sentence, and its `when …` or `if …`."""
    found = _CONDITION.search(text)
    if found is None:
        return text, ""
    before, after = text[: found.start()], text[found.start() :]
    joint = "," if "," in after else " then "
    if not before.strip(" ,") and joint in after:
        condition, _, main = after.partition(joint)
        return main, condition
    return (before, after) if before.strip(" ,") else (after, "")


def _order(text: str) -> tuple[tuple[frozenset[str], frozenset[str]] | None, str]:
    found = _ORDER.search(text)
    if found is not None:
        left, right, word = text[: found.start()], text[found.end() :], found.group(1)
        if not left.strip() and "," in right:  # "before mixing, weigh" is "weigh before mixing"
            right, _, left = right.partition(",")
    elif (preferred := _OVER.search(text)) is not None:
        left, right, word = preferred.group(1), text[preferred.end() :], "over"
    else:
        return None, ""
    if word in CONTRASTS and (rejected := _REJECTED.match(right)) is not None:
        right = rejected.group(1)
    first, second = (
        frozenset(stemmed for token in _TOKEN.findall(part) if (stemmed := _stemmed(token)) is not None)
        for part in (left, right)
    )
    return ((second, first) if word == "after" else (first, second)), word


def _numbers(text: str) -> list[Number]:
    """The numbers that say how much; a year, or the number of a version, says which, and is a word."""
    tokens = list(_TOKEN.finditer(text))
    found = []
    for place, token in enumerate(tokens):
        if not token.group()[0].isdigit():
            continue
        digits = token.group()
        before = tokens[place - 1].group() if place else ""
        after = tokens[place + 1].group() if place + 1 < len(tokens) else ""
        unit = stem(after) or after
        is_year = re.fullmatch(r"(19|20)\d\d", digits) is not None and unit not in _SECONDS
        if is_year or before in _LABELS or (stem(before) or before) in _LABELS:
            continue
        shown = digits
        plain = digits.replace(",", "")
        value: float | str = float(plain) if re.fullmatch(r"\d+(\.\d+)?", plain) else digits  # a time of day is text
        if isinstance(value, float) and unit in _SECONDS:
            value *= _SECONDS[unit]
        if unit in _SECONDS or after == "%":
            shown = f"{digits} {after}"
        start = text[: token.start()]
        bound = ">" if _AT_LEAST.search(start) else "<" if _AT_MOST.search(start) else ""
        found.append(Number(value, bound, _anchor(tokens, place), shown))
    return found


def _anchor(tokens: list[re.Match[str]], place: int) -> str:
    """The word a number belongs to: the nearest one before it, else after it."""
    for other in (*reversed(tokens[:place]), *tokens[place + 1 :]):
        word = other.group()
        if not word[0].isdigit() and (found := _stemmed(word)) is not None:
            return found
    return ""


def has_counterpart(stem: str) -> bool:
    """Whether it may be `opposite` to another word, or the `same`, as the one that is in the table or has the prefix."""
    return stem in _PLACES or stem.startswith(_PREFIXES)


def opposite(one: str, other: str) -> bool:
    """Whether two stems say the opposite: by the table, or by a prefix as in reliable and unreliable."""
    rows = {(row, 1 - side) for row, side in _PLACES.get(one, ())}
    if rows & _PLACES.get(other, set()):
        return True
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return len(shorter) >= 4 and longer in {prefix + shorter for prefix in _PREFIXES}


def same(one: str, other: str) -> bool:
    return bool(_PLACES.get(one, set()) & _PLACES.get(other, set()))
