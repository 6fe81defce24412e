"""What a request says that others can use: its words without anybody's own, and preferences the user stated. Pure.

Only the request is read here, never a result: what a tool returned is not what the user wants."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bank.claims import Claim, claims_of
from bank.likeness import exact_parts
from bank.steps import SUSPECT, Reading
from bank.words import LONGEST_WORD, stem, stems, words_of
from bank.work import Work

LONGEST_PREFERENCE = 120
LONGEST_SENTENCE = 600
LONGEST_REQUEST = 20_000
FEWEST_WORDS = 3
PREFERENCE = "Preference: "  # how the title of such a lesson begins
SAME = 0.5  # of the words of two preferences
MOST_CONTEXT_WORDS = 10
LONGEST_CODE = 3  # EU, SQL and JFK are nobody
SEVERAL = 2  # other requests that a name stands in, for it to be told

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_TOKEN = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-])+")
_ENDS = frozenset(".!?:;\n")  # of a sentence: what follows is written large whatever it is
_SPACED = re.compile(r"\S+")
_MARK = re.compile(r"[\d@_]")  # what has one is an id, a number or an address
_USER_ID = re.compile(r"\b([A-Za-z]+)[_.]([A-Za-z]+)[_.]?\d+\b")
_NAMED = re.compile(r"\b(?:[Mm]y name is|[Mm]y name's|I am|I'm|[Tt]his is|[Cc]all me)\s+((?:[A-Z][a-z]+\s?){1,3})")
_PREFERENCE = re.compile(
    r"""\b(?:i(?:\s+would|'d|’d)?\s+(?:\w+\s+)?(?:prefer|rather)\b(?!\s+not\s+to\s+(?:share|say|give|provide))
      | please\s+(?:always|never|only|do\s+not|don't|don’t|make\s+sure)\b
      | (?:always|never)\s+\w+
      | (?:i\s+)?only\s+(?:want|need|accept|use|show|include|consider|report|count)\b
      | i\s+(?:do\s+not|don't|don’t)\s+(?:want|accept|like)\b
      | from\s+now\s+on\b | in\s+(?:the\s+)?future\b | by\s+default\b )
      | ^\W*(?:only|make\s+sure)\s+\w+""",
    re.IGNORECASE | re.VERBOSE,
)
_LASTING = re.compile(r"\b(?:prefer|rather|always|never|only|from now on|future|by default|make sure)\b", re.IGNORECASE)
_NO_PREFERENCE = re.compile(
    r"\?\s*$|\b(?:have never|i never|had never|i always thought|only (?:have|had|remember|know|got))\b", re.IGNORECASE
)
_POINTS_BACK = re.compile(  # to something said elsewhere: of no use by itself
    r"\b(?:this|these|those|it|them|there|instead|too|both|either)\b|\bthat$|\b(?:within|for|on|with|in|at|like|do|use) that\b",
    re.IGNORECASE,
)
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(
    rf"\b(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?\b|"
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\b|\b\d{{4}}-\d\d-\d\d\b",
    re.IGNORECASE,
)
_FILLERS = frozenset(  # what people say around a request
    stem(word) or word
    for word in """hi hello hey please thanks thank help need want like sure yes okay ok know could would looking look let also
    get make go going right one two today back see id provide can may able don didn sorry actually currently really proceed
    great good day assist question correct here user information details ahead much moment way check definitely sound think
    thing handy remember mind wait try tell understand appreciate last still maybe perhaps possible use using work seem us oh
    even well alright however hope happy fine everything anything something without since already wonderful perfect ideally
    certainly course got come find mention""".split()  # noqa: SIM905 - a text of words reads better
)


def _without_marks(text: str, instead: str = " ") -> str:
    return _SPACED.sub(lambda found: instead if _MARK.search(found[0]) else found[0], text)


def own_words(reading: Reading) -> frozenset[str]:
    """Stems that are somebody's own: parts of a user's id, a name after "my name is", what the steps were given as
    somebody's own or as an id, and the names of persons in their results."""
    text = reading.work.request[:LONGEST_REQUEST]
    own = [part for found in _USER_ID.findall(text) for part in found]
    own += [part for found in _NAMED.findall(text) for part in found.split()]
    own += [word for step in reading.steps for given in step.given.values() for word in given.own]
    own += [part for step in reading.steps for name in step.own for part in name.split()]
    return frozenset(stems(own))


def _named(text: str) -> list[str]:
    """The words of a text that may be somebody's or some place's name: those written large without beginning a sentence,
    and the first word of one where the next is written large too. Of a script without large letters, all of them."""
    found: list[str] = []
    words = list(_TOKEN.finditer(text))
    for place, match in enumerate(words):
        if match[0][0].islower() or (match[0].isupper() and len(match[0]) <= LONGEST_CODE):
            continue
        begins = place == 0 or not _ENDS.isdisjoint(text[words[place - 1].end() : match.start()])
        after = words[place + 1] if place + 1 < len(words) else None
        pair = after is not None and after[0][0].isupper() and text[match.end() : after.start()] == " "
        if not begins or pair or not match[0][0].isupper():
            found.append(match[0])
    return found


def names_in(reading: Reading) -> frozenset[str]:
    """Stems of what a request may name: not to be told from one request alone."""
    return frozenset(stems(_named(reading.work.request[:LONGEST_REQUEST])))


def names_somebody(preference: str) -> bool:
    """Whether two words in a row are written large, as in a full name or a street's."""
    return re.search(r"\b[^\W\d_a-z][^\W\d_A-Z]+ [^\W\d_a-z][^\W\d_A-Z]+", preference) is not None


def topic(reading: Reading) -> frozenset[str]:
    """Stems of what a request is about: no ids, no numbers, no greetings, nobody's name."""
    words = words_of(_without_marks(reading.work.request[:LONGEST_REQUEST])).all
    return frozenset(word for word in words - _FILLERS - own_words(reading) if len(word) > 2)


class Requests:
    """A request among like ones: how like it is to each, and which words tell what they have in common. A word counts the
    more the fewer of them use it; an id that two share brings them closer, one they do not share says nothing."""

    def __init__(self, new: Reading, others: Sequence[Reading]) -> None:
        self._work = new.work
        self._topics = {one.work.session: topic(one) for one in (new, *others)}
        self._own = {one.work.session: _own_marks(one.work) for one in (new, *others)}
        self._names = names_in(new)
        self._count = len(self._topics)
        self._found = Counter(word for one in self._topics for word in self._topics[one] | self._own[one])

    def _mass(self, words: Iterable[str]) -> float:
        return math.fsum(1 + math.log((self._count + 1) / self._found[word]) for word in words)

    def likeness(self, other: Work) -> float:
        one, two = self._topics[self._work.session], self._topics[other.session]
        marks = self._mass(self._own[self._work.session] & self._own[other.session])
        full = math.sqrt(self._mass(one) * self._mass(two)) + marks
        return (self._mass(one & two) + marks) / full if full else 0.0

    def common_words(self, others: Sequence[Work]) -> list[str]:
        """What it says as most of the others do and few else, in its own order and spelling. Its first words where there
        are no others. A name only where several of the others have it: of one or two it may be somebody's own."""
        mine = self._topics[self._work.session]
        shared = Counter(word for other in others for word in self._topics[other.session] & mine)
        spelt: dict[str, str] = {}
        for word in _TOKEN.findall(_without_marks(self._work.request[:LONGEST_REQUEST])):
            if len(word) <= LONGEST_WORD and (found := stem(word.lower())) in mine and found not in spelt:
                spelt[found] = word.lower()
        place = {word: number for number, word in enumerate(spelt)}
        wanted = [
            word
            for word in spelt
            if 2 * shared[word] >= len(others) and (word not in self._names or shared[word] >= SEVERAL)
        ]
        best = sorted(wanted, key=lambda word: (-shared[word] * self._mass([word]), place[word]))
        return [spelt[word] for word in sorted(best[:MOST_CONTEXT_WORDS], key=place.__getitem__)]


def _own_marks(work: Work) -> frozenset[str]:
    words = work.request[:LONGEST_REQUEST].split()
    return frozenset(word.strip(".,!?;:()\"'").lower() for word in words if _MARK.search(word))


def preferences(reading: Reading) -> list[str]:
    """What the user said they want always, never or rather, each as a short line. One that lives by an id, a date or
    an amount is for that request alone."""
    own = own_words(reading)
    found: dict[str, None] = {}
    for sentence in _SENTENCE.split(reading.work.request[:LONGEST_REQUEST]):
        line = " ".join(sentence.split()).strip(" \"'`")
        if (
            len(line) > LONGEST_SENTENCE
            or not _PREFERENCE.search(line)
            or _NO_PREFERENCE.search(line)
            or SUSPECT.search(line)
        ):
            continue
        line = _generalised(_clause(line), own).rstrip(".!;, ")
        if len(line) > LONGEST_PREFERENCE or "…" in line or _POINTS_BACK.search(line):
            continue
        if len(words_of(line).all) >= FEWEST_WORDS:
            found[line] = None
    return list(found)


def lasting(preference: str) -> bool:
    """Whether it was said as something that holds beyond the request at hand."""
    return _LASTING.search(preference) is not None


def _clause(line: str) -> str:
    """The part of a sentence that states the preference; a condition before it stays."""
    found = _PREFERENCE.search(line)
    before = line[: found.start()] if found else ""
    if not before or re.match(r"\s*(?:if|when|where|for|unless|in|on)\b", before, re.IGNORECASE):
        return line
    cut = max(before.rfind(", "), before.rfind(" but "), before.rfind(" and "), before.rfind(": "))
    return line if cut < 0 else re.sub(r"^(?:,|:|but|and|so)\s+", "", line[cut:].strip())


def _generalised(line: str, own: Iterable[str]) -> str:
    line = _without_marks(_DATE.sub("…", line), "…")
    names = set(own)
    kept = ["…" if stem(word.strip(".,").lower()) in names else word for word in line.split()]
    return re.sub(r"[`\"<>{}\[\]]", "", " ".join(kept))


def same_preference(one: str, two: str) -> bool:
    """They share most of their words, and neither has a word for another word, a "not", a name or a number that the other
    lacks, or prefers what the other rejects."""
    words, others = words_of(one).all, words_of(two).all
    return (
        exact_parts(one) == exact_parts(two)
        and (words <= others or others <= words)
        and len(words & others) >= SAME * len(words | others)
        and not any(_reverses(claim, other) for claim in claims_of(one) for other in claims_of(two))
    )


def _reverses(one: Claim, other: Claim) -> bool:
    if one.order is None or other.order is None:
        return False
    (first, second), (others_first, others_second) = one.order, other.order
    return not (first - second).isdisjoint(others_second - others_first)
