"""Texts as sets of stemmed words: pure, no I/O. What a text is about, how it begins, whom it names, how rare a word is."""

import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import Stemmer

from bank.hits import Stamp
from bank.kept import Kept

LEAD_WORDS = 12
SENTENCES_CHARACTERS = 2_000  # of a text, whose sentences are told apart
LONGEST_WORD = 64  # a longer one is none
ARTICLE = 3  # letters of the longest article that a sentence may begin with: "Die App", "Los libros"
CACHED_WORDS = 2_000_000  # words in all the sets that are kept, some 200 MB at most

_TOKEN = re.compile(r"[^\W_]+")
# Written out, as far as alphabets in use go: a class of "what is a letter and is not small" is looked up far slower.
_LARGE_LETTERS = "".join(letter for letter in map(chr, range(0x10000)) if letter.isupper())
_WRITTEN_LARGE = re.compile(rf"[{_LARGE_LETTERS}][^\W_]*")
_END_OF_LEAD = re.compile(r"[.:?!\r\n]")
_END_OF_SENTENCE = re.compile(r"[.!?…](?!\w)|[。！？\r\n]")
_ENDS_A_SENTENCE = frozenset(".!?…。！？\r\n")
_WITHIN_A_NAME = frozenset((" ", "-", "'", "’"))
_AFTER_AN_INITIAL = _WITHIN_A_NAME | {".", ". "}
_stemmer = Stemmer.Stemmer("english", 0)  # it is asked once a word: the cache is ours
STOP_WORDS = frozenset(
    """a about above after again against all also am an and any are aren as at be because been before being below between
    both but by can cannot could couldn d did didn do does doesn doing don down during each few for from further had hadn
    has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m
    me more most my myself no nor not now o of off on once only or other our ours ourselves out over own re s same she
    should shouldn so some such t than that the their theirs them themselves then there these they this those through to
    too under until up ve very was wasn we were weren what when where which while who whom why will with won would
    wouldn you your yours yourself yourselves""".split()  # noqa: SIM905 - a text of words reads better
)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text without stop words, stemmed: all of them; those it begins with; the capitalised ones with
    a spelling for each, since a search engine stems for itself; what it names: each run of capitalised words; and, of
    its beginning, those of each sentence."""

    all: frozenset[str]
    lead: frozenset[str]
    names: tuple[tuple[str, str], ...]
    things: tuple[frozenset[str], ...]
    sentences: tuple[tuple[str, ...], ...]


@lru_cache(maxsize=100_000)
def stem(word: str) -> str | None:
    """A word in lower case as its stem; None for a stop word."""
    return None if word in STOP_WORDS else sys.intern(_stemmer.stemWord(word))


def stems(words: Iterable[str]) -> list[str]:
    """The stems of words in any case, in their order, without stop words; of what is too long for a word its beginning."""
    return [found for word in words if (found := stem(word[:LONGEST_WORD].lower())) is not None]


def words_of(text: str) -> Words:
    """In two passes, over the words written large and over the distinct ones in lower case: one over every word, asked
    how it is written, takes twice as long for a long text."""
    names: dict[str, str] = {}
    things: dict[frozenset[str], None] = {}
    thing: list[str] = []
    last = start = 0
    for match in _WRITTEN_LARGE.finditer(text):
        begin, end = match.span()
        if begin and text[begin - 1].isalnum():  # within a word, as in "eBay"
            continue
        if thing and text[last:begin] not in (_AFTER_AN_INITIAL if last - start == 1 else _WITHIN_A_NAME):
            things[frozenset(thing)] = None
            thing = []
        start, last = begin, end
        lower = text[begin:end].lower()
        if len(lower) <= LONGEST_WORD and (found := stem(lower)) is not None:
            names.setdefault(found, lower)
            thing.append(found)
    if thing:
        things[frozenset(thing)] = None
    sentences = stems_by_sentence(text[:SENTENCES_CHARACTERS])
    if len(text) > SENTENCES_CHARACTERS:
        found_in_all = {stem(word) for word in set(_TOKEN.findall(text.lower())) if len(word) <= LONGEST_WORD}
        distinct = frozenset(filter(None, found_in_all))
    else:
        distinct = frozenset(itertools.chain.from_iterable(sentences))
    lead = _short(_END_OF_LEAD.split(text.lstrip(), maxsplit=1)[0])
    first = [found for word in lead if (found := stem(word.lower())) is not None][:LEAD_WORDS]
    return Words(
        # A few letters are two in lower case, of which one is no letter: such a name is found whole and in parts.
        all=distinct.union(names),
        lead=frozenset(first),
        names=tuple(names.items()),
        things=tuple(things),
        sentences=sentences,
    )


def names_in(text: str) -> set[str]:
    """The stems of the words that are written as names."""
    return set(stems(names_as_written(text)))


def names_as_written(text: str) -> set[str]:
    """The words that are written as names: with a capital letter within a sentence; or at its beginning, where there is
    another capital or a digit in the word, a name goes on behind it, or a colon or a bracket follows."""
    names = set()
    last, before = 0, ""
    for match in _TOKEN.finditer(text):
        word, between = match.group(), text[last : match.start()]
        if word[0].isupper() and len(word) <= LONGEST_WORD and stem(word.lower()) is not None:
            begins = not before or (len(before) > 1 and not _ENDS_A_SENTENCE.isdisjoint(between))
            after = text[match.end() : match.end() + 2]
            if (
                not begins
                or any(sign.isupper() or sign.isdigit() for sign in word[1:])
                or (after[:1] == " " and after[1:].isupper() and len(word) > ARTICLE)
                or after[:1] in (":", "(")
                or after == " ("
            ):
                names.add(word)
        last, before = match.end(), word
    return names


def stems_of(sentence: str) -> list[str]:
    """The words of a sentence, stemmed, without stop words."""
    return stems(_short(sentence))


def stems_in_place(text: str) -> list[str | None]:
    """The words of a text, each in its place, stemmed; None for a stop word."""
    return [stem(word) for word in _short(text.lower())]


def stems_by_sentence(text: str) -> tuple[tuple[str, ...], ...]:
    """The words of each sentence, stemmed, without stop words. Roughly: an abbreviation ends one, too. Good enough to ask
    which words stand near each other."""
    sentences = (tuple(filter(None, map(stem, _short(part)))) for part in _END_OF_SENTENCE.split(text.lower()))
    return tuple(filter(None, sentences))


def as_written(text: str) -> dict[str, str]:
    """The distinct words of a text in its order: stem -> the word as it stands there first."""
    found: dict[str, str] = {}
    for word in _short(text):
        if (stemmed := stem(word.lower())) is not None:
            found.setdefault(stemmed, word)
    return found


def ways_written(text: str) -> dict[str, list[str]]:
    """The distinct words of a text in its order: stem -> each way in which it is spelt there."""
    found: dict[str, dict[str, None]] = {}
    for word in _short(text):
        if (stemmed := stem(word.lower())) is not None:
            found.setdefault(stemmed, {})[word] = None
    return {stemmed: list(ways) for stemmed, ways in found.items()}


def plain_words(text: str) -> list[str]:
    """The words of a text as they stand in it, in lower case, without stop words and without what is too long for one."""
    return [word for word in _short(text.lower()) if stem(word) is not None]


def _short(text: str) -> list[str]:
    """The words that are short enough for one: the others are not even asked for their stem, which would be kept."""
    return [word for word in _TOKEN.findall(text) if len(word) <= LONGEST_WORD]


def spellings(text: str) -> dict[str, str]:
    """The distinct words of a question in its order: stem -> a spelling in lower case."""
    found: dict[str, str] = {}
    for word in _short(text.lower()):
        if (stemmed := stem(word)) is not None:
            found.setdefault(stemmed, word)
    return found


class Idf:
    """How rare words are among some texts; a word that none of them has is the rarest."""

    def __init__(self, texts: Iterable[Words] = ()) -> None:
        self._texts = 0
        self._found: Counter[str] = Counter()
        self._known: dict[str, float] = {}
        self.add(texts)

    def add(self, texts: Iterable[Words]) -> None:
        """Before anybody asks how rare a word is."""
        sets = [words.all for words in texts]
        self._texts += len(sets)
        self._found.update(itertools.chain.from_iterable(sets))

    def __call__(self, word: str) -> float:
        if (known := self._known.get(word)) is None:
            found = self._found[word]
            known = self._known[word] = math.log(1 + (self._texts - found + 0.5) / (found + 0.5))
        return known

    def mass(self, words: Iterable[str]) -> float:
        """The sum over words; fsum is the same in whatever order a set has them."""
        return math.fsum(map(self, words))


class WordCache:
    """The words of the texts read last, by id, with what the memory was then: a revision names one content for ever."""

    def __init__(self, most: int = CACHED_WORDS) -> None:
        self._kept: Kept[str, tuple[Stamp, Words]] = Kept(most, lambda kept: _size(kept[1]))

    def last(self, id: str) -> tuple[Stamp, Words] | None:
        """What is kept of it: as what it was read, and its words."""
        return self._kept.get(id)

    def known(self, stamps: Mapping[str, Stamp]) -> dict[str, Words]:
        """Of these memories those whose words are at hand, of what is asked for."""
        found = {}
        for id, stamp in stamps.items():
            if (kept := self._kept.get(id)) is not None and kept[0] == stamp:
                found[id] = kept[1]
        return found

    def put(self, id: str, stamp: Stamp, words: Words) -> None:
        self._kept.put(id, (stamp, words))


def _size(words: Words) -> int:
    in_sentences = sum(map(len, words.sentences))  # in tuples, which take a fraction of the room
    return 10 + len(words.all) + len(words.lead) + len(words.names) + 2 * len(words.things) + in_sentences // 4
