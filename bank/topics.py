"""Edges nobody wrote: memories that share rare words, names or tags are joined by weak edges, marked as machine-made.

What few memories of the tenant have is rare. Two memories are joined where they share a rare name or tag, or two other
rare words; first those that share the rarest. What an edge says must be true, so both texts must say it, whichever was
written first. A name is shared where both write it as a name, spelt the same: who tells us more does not speak of the US,
and a capital letter at the beginning of a sentence makes no name by itself ("However", "Rust on the gate"). Other words
are shared as they are spelt, or as one and many ("delivery", "deliveries"); those of one stem may differ in all they
mean ("general", "generous"). In doubt there is no edge: a weak one that is missing costs little, a false sentence costs
trust. No model is asked, and the same store gives the same edges.
"""

import dataclasses
import hashlib
import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bank.model import first_words
from bank.words import names_as_written, stem, ways_written
from graph.model import Edge, EdgeBand
from graph.session import Graph, Transaction
from graph.store import with_tags

RARE = 20  # what more memories have says little about any of them
SEEN = 200  # what this many memories of the whole database have is not looked at further
ASKED_AT_ONCE = 500  # terms in one query
SHORTEST = 5  # letters of a word that is no name: shorter ones are mostly stop words of some language
TERMS = 24  # words of one memory that are looked at: names first, then the longest
NAME = 1.5  # a name or a tag counts more than another word
EDGES = 5  # machine-made ones of one memory, whichever end it is
CANDIDATES = 10  # pairs of one memory that are looked at, the best first
LEAST, MOST, FOR_EACH_MORE = 0.25, 0.45, 0.05  # weights: for one thing shared, at most, and for each further thing
TOLD = 4  # things that a sentence names


_SENTENCE = re.compile(r"[^.!?…。！？\r\n]+")
_BEGINS_WITHIN = re.compile(r"(?::\s*|(?<!\w)[\"“„«‘(]+)(?=[^\W_]+(?: [^\W\d_A-Z]|[!?]))")  # He asked: "May we?"
_NUMBER = re.compile(r"\b(?:\d(?=[.!?)])|\w(?=\s*[\r\n]))")  # 1. Mark the date. Or: a line that ends with "plan B"
_HISSING = ("s", "x", "z", "ch", "sh", "o")  # endings that many have with -es


@dataclass(frozen=True)
class Term:
    """What two memories may share: a tag, or a word with its spellings in a text: those that are names, and the others."""

    text: str
    tag: bool = False
    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[bool, str | None]:
        """Terms of two memories are compared where this is the same."""
        return self.tag, self.text if self.tag else stem(self.text.lower())

    @property
    def counts(self) -> bool:
        """Whether it joins two memories by itself: a name or a tag."""
        return self.tag or bool(self.names)

    @property
    def asked(self) -> tuple[str, str]:
        """The full-text index that knows who has it, and the query: a plain word, or a tag between quotes."""
        if not self.tag:
            return "memory_words", self.text.lower()
        return "memory_tags", with_tags([self.text])


@dataclass(frozen=True)
class Topic:
    """Two memories and what they share, the rarest first."""

    source: str
    target: str
    shared: tuple[Term, ...]
    score: float


Told = Mapping[str, tuple[str, Sequence[str]]]  # memories by their ids: text and tags


async def find_topics(graph: Graph, memories: Told) -> list[Topic]:
    """What each of these memories shares with others of them and with those in the store, before they are written."""
    terms = {id: terms_of(text, tags) for id, (text, tags) in memories.items()}
    asked = sorted({term.asked for own in terms.values() for term in own})
    having: dict[tuple[str, str], set[str]] = {}
    frequent: set[tuple[str, str]] = set()
    for start in range(0, len(asked), ASKED_AT_ONCE):
        some = asked[start : start + ASKED_AT_ONCE]
        for row in await graph.read("memories_of_terms", terms=some, seen=SEEN, most=RARE):
            if row["ids"] is None:
                frequent.add((row["index"], row["query"]))
            else:  # of these memories only what they say now counts
                having[row["index"], row["query"]] = set(row["ids"]) - memories.keys()
    said: dict[tuple[bool, str | None], set[str]] = {}
    for id, own in terms.items():
        for term in own:
            said.setdefault(term.key, set()).add(id)
    for term in itertools.chain.from_iterable(terms.values()):  # as the index does, whichever way a word is spelt
        having.setdefault(term.asked, set()).update(said[term.key])
    rare = {asked: ids for asked, ids in having.items() if asked not in frequent and 1 < len(ids) <= RARE}
    return [topic for id in memories for topic in topics_of(id, terms[id], rare)]


async def link_topics(tx: Transaction, topics: Sequence[Topic], memories: Told, now: datetime) -> list[Edge]:
    """Joins these memories, which this transaction has locked and written, by the topics found; whatever has changed
    meanwhile, an edge is made only between what is there and still shares it."""
    others = sorted({topic.target for topic in topics} - memories.keys())
    there = memories.keys() | {row["id"] for row in await tx.run("lock_known_memories", ids=others)}
    wanted = [topic for topic in topics if topic.target in there]
    if not wanted:
        return []
    rows = await tx.run("topic_pairs", pairs=[[topic.source, topic.target] for topic in wanted])
    edges = [_edge(topic, memories[topic.source][0], text, now) for topic, text in _free(wanted, rows)]
    if edges:
        await tx.run("put_edges", rows=[_row(edge) for edge in edges], now=now)
    return edges


def terms_of(text: str, tags: Sequence[str]) -> list[Term]:
    text = _without_idle_capitals(text)
    names = names_as_written(text)
    words = []
    for ways in ways_written(text).values():
        spelt = [way for way in ways if len(way) > 1 and not way.isdigit()]
        own = frozenset(names.intersection(spelt))
        others = frozenset(way for way in spelt if way not in own and (len(way) >= SHORTEST or _is_code(way)))
        if own or others:
            words.append(Term(min(own or others), names=own, others=others))
    words.sort(key=lambda term: (not term.names, -len(term.text), term.text))
    return [Term(tag, tag=True) for tag in tags] + words[:TERMS]


def _without_idle_capitals(text: str) -> str:
    """Where all is written large, or a sentence begins within another or behind a number, a capital letter says nothing:
    the one is made small, the other set on a line of its own."""
    quiet = _SENTENCE.sub(lambda found: _quiet(found.group()), text)
    return _BEGINS_WITHIN.sub(r"\g<0>\n", _NUMBER.sub("\n", quiet))


def _quiet(sentence: str) -> str:
    return sentence.lower() if sentence.isupper() and len(sentence.split()) > 1 else sentence


def _is_code(word: str) -> bool:
    """As EV9 is one: it means the same in small letters."""
    return word[0].isalpha() and any(sign.isdigit() for sign in word)


def shared_terms(one: Iterable[Term], other: Iterable[Term]) -> list[Term]:
    """What two memories share, as they say it; the same whichever of them is the one."""
    known = {term.key: term for term in other}
    pairs = ((term, known[term.key]) for term in one if term.key in known)
    return [found for mine, theirs in pairs if (found := mine if mine.tag else _shared_word(mine, theirs)) is not None]


def _shared_word(one: Term, other: Term) -> Term | None:
    if name := _shared_name(one, other):
        return Term(name, names=frozenset((name,)))
    same = [min(pair, key=_plainest) for pair in itertools.product(one.others, other.others) if _same_word(*pair)]
    return Term(min(same, key=_plainest)) if same else None


def _shared_name(one: Term, other: Term) -> str | None:
    """Both write it as a name; of a code it is enough that one does."""
    codes = {name.lower(): name for name in sorted(one.names | other.names) if _is_code(name)}
    in_both = {way.lower() for way in one.names | one.others} & {way.lower() for way in other.names | other.others}
    return min((one.names & other.names) or {codes[code] for code in codes.keys() & in_both}, default=None)


def _same_word(one: str, other: str) -> bool:
    """Spelt the same, or one of a thing and many of it."""
    few, many = sorted((one.lower(), other.lower()), key=lambda word: (len(word), word))
    if len(few) < SHORTEST:
        return False
    if few.endswith("y"):
        return many in (few, few + "s", few[:-1] + "ies")
    # Nothing ends in a double s because it is many: princes and a princess.
    return many == few or (many == few + "s" and few[-1] != "s") or (many == few + "es" and few.endswith(_HISSING))


def _plainest(word: str) -> tuple[bool, int, str]:
    return word[0].isupper(), len(word), word


def topics_of(id: str, terms: Iterable[Term], having: Mapping[tuple[str, str], Collection[str]]) -> list[Topic]:
    """The memories that share most with one, best first."""
    shared: dict[str, list[tuple[float, Term]]] = {}
    for term in terms:
        ids = having.get(term.asked, ())
        worth = math.log(1 + RARE / len(ids)) * (NAME if term.counts else 1.0) if ids else 0.0
        for other in ids:
            if other != id:
                shared.setdefault(other, []).append((worth, term))
    topics = []
    for other, found in shared.items():
        found.sort(key=lambda one: (-one[0], one[1].text))
        terms = tuple(term for _, term in found)
        if len(terms) > 1 or any(term.counts or _is_code(term.text) for term in terms):  # the other may write it large
            topics.append(Topic(id, other, terms, math.fsum(worth for worth, _ in found)))
    return sorted(topics, key=lambda topic: (-topic.score, topic.target))[:CANDIDATES]


def _enough(shared: Sequence[Term]) -> bool:
    return len(shared) > 1 or any(term.counts for term in shared)


def _free(wanted: Sequence[Topic], rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[Topic, str]]:
    """The topics that hold, whose ends nobody has joined and that have room for an edge, with the target's text."""
    room = {end: EDGES - made for row in rows for end, made in zip(row["ends"], row["machine_made"], strict=True)}
    joined = {frozenset(row["ends"]) for row in rows if row["joined"]}
    for topic, row in zip(wanted, rows, strict=True):
        pair = frozenset((topic.source, topic.target))
        if pair in joined or room[topic.source] <= 0 or room[topic.target] <= 0:
            continue
        shared = tuple(shared_terms(topic.shared, terms_of(row["text"], row["tags"])))
        if _enough(shared):
            joined.add(pair)
            room[topic.source] -= 1
            room[topic.target] -= 1
            yield dataclasses.replace(topic, shared=shared), row["text"]


def _edge(topic: Topic, source_text: str, target_text: str, now: datetime) -> Edge:
    pair = "\0".join(sorted((topic.source, topic.target)))
    return Edge(
        id="T" + hashlib.blake2b(pair.encode(), digest_size=12).hexdigest(),
        source=topic.source,
        target=topic.target,
        text=sentence(topic.shared, source_text, target_text),
        weight=round(min(MOST, LEAST + FOR_EACH_MORE * (len(topic.shared) - 1)), 2),
        created_time=now,
        label=EdgeBand.TOPICAL.value.lower(),
        machine_made=True,
    )


def sentence(shared: Sequence[Term], one: str, other: str) -> str:
    """What two memories share, and how each begins."""
    words = [term.text for term in shared if not term.tag][:TOLD]
    tags = [term.text for term in shared if term.tag][:TOLD]
    said = [f"speak of {_listed(words)}"] if words else []
    said += [f"are tagged {_listed(tags)}"] if tags else []
    begins, other_begins = (first_words(text).rstrip(".") for text in (one, other))
    return f"Both {' and '.join(said)}: “{begins}” and “{other_begins}”."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _row(edge: Edge) -> dict[str, Any]:
    properties = edge.model_dump(exclude={"source", "target", "created_time"}) | {"tags": []}
    return {"source": edge.source, "target": edge.target, "properties": properties}
