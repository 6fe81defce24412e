"""Whether two texts say the same in the same words, for lessons that are to become one: pure, no I/O.

A merge that is missed costs little, a wrong one costs trust. So a word for another word, another number, and the same
words around "not", "then" or "from" the other way round make two texts different.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from bank.claims import has_counterpart
from bank.counts import NUMBER_WORDS, without_counts
from bank.likeness import exact_parts
from bank.words import STOP_WORDS, stem

ALIKE = 0.8  # of the words of the one that has more

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|\w+|[^\w\s]")
_NOT = re.compile(r"n['’]t\b|(?<=\bcan)not\b", re.IGNORECASE)
_OF_NO_WEIGHT = re.compile(
    r"['’]s\b|\b(?:make sure|be sure|ensure|remember|take care|need|needs|has|have|try) to\b", re.IGNORECASE
)
_EMPTY = frozenset(
    """a an the this that these those it its itself they them their theirs we our ours us you your yours i my me he she his
    her who which there here is are was were be been being am do does did doing has have had having will would shall should
    must need needs needed always please just also so very too all every each any both of own make sure ensure""".split()  # noqa: SIM905 - a text of words reads better
)
_SAME = {
    **dict.fromkeys(("never", "no", "nor", "avoid", "avoids"), "not"),
    **dict.fromkeys(("can", "could", "may", "might"), "may"),
}
_BINDING = (STOP_WORDS - _EMPTY - {"and"}) | {
    *_SAME,
    *"without instead rather unless except then within via per versus since".split(),  # noqa: SIM905 - as above
}


@dataclass(frozen=True)
class Wording:
    """A text as what it speaks of, and what stands behind each word that binds: not, before, from, for …"""

    words: dict[str, str]  # stem -> as it is written; a capital at the beginning of a sentence says nothing
    head: tuple[str, ...]  # the stems that nothing binds, in their order
    bound: tuple[tuple[str, frozenset[str]], ...]
    loose: bool  # it has an "and" or a comma: what it names may stand in another order


def say_it_alike(one: str, other: str) -> bool:
    """One of the two may have a word more, where that is no name, no number, and nothing that has an opposite."""
    if exact_parts(one) != exact_parts(other):
        return False
    less, more = sorted((_wording(one), _wording(other)), key=lambda wording: len(wording.words))
    if not less.words.keys() <= more.words.keys() or len(less.words) < ALIKE * len(more.words):
        return False
    if any(_narrows(word) for stem, word in more.words.items() if stem not in less.words):
        return False
    if Counter(binds for binds, _ in less.bound) != Counter(binds for binds, _ in more.bound):
        return False
    if not all(any(binds == by and own <= theirs for by, theirs in more.bound) for binds, own in less.bound):
        return False
    in_order = [stem for stem in more.head if stem in less.head] == [stem for stem in less.head if stem in more.head]
    return in_order or less.loose or more.loose


@lru_cache(maxsize=8_192)
def _wording(text: str) -> Wording:
    words: dict[str, str] = {}
    head: dict[str, None] = {}
    bound: list[tuple[str, set[str]]] = []
    is_bound, begins, loose = False, True, False
    for token in _TOKEN.findall(_OF_NO_WEIGHT.sub("", _NOT.sub(" not", without_counts(text)))):
        word = token.lower()
        if not (word[0].isalnum() or word[0] == "_"):
            loose, is_bound, begins = loose or word in ",:;", False, begins or word in ".!?"
            continue
        if word in _BINDING:
            bound.append((_SAME.get(word, word), set()))
            is_bound = True
        elif word == "and":
            loose = True
        elif word not in _EMPTY:
            found = stem(word) or word
            words.setdefault(found, word if begins else token)
            if is_bound:
                bound[-1][1].add(found)
            else:
                head[found] = None
        begins = False
    return Wording(words, tuple(head), tuple((by, frozenset(own)) for by, own in bound), loose)


def _narrows(word: str) -> bool:
    """Whether a word that only one of two has makes it a lesson about something else."""
    lower = word.lower()
    return word != lower or not word.isalpha() or lower in NUMBER_WORDS or has_counterpart(stem(lower) or lower)
