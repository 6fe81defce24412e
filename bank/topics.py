"""Edges nobody wrote: memories that share rare words, names or tags are joined by weak edges, marked as machine-made.

What few memories of the tenant have is rare. Two memories are joined where they share a rare name or tag, or two other
rare words; first those that share the rarest. A capital letter at the beginning of a sentence makes no name by itself
("However", "Please"): the word, what follows it, or the other text must say so. No model is asked, and the same store
gives the same edges.
"""

import dataclasses
import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bank.model import first_words
from bank.words import as_written, names_in, plain_words, stem
from graph.model import Edge, EdgeBand
from graph.session import Graph, Transaction

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


@dataclass(frozen=True)
class Term:
    """What two memories may share: a tag, or a word as it is written, with a capital letter, as a name."""

    text: str
    tag: bool = False
    capital: bool = False
    name: bool = False

    @property
    def asked(self) -> tuple[str, str]:
        """The full-text index that knows who has it, and the query: a plain word, or a tag between quotes."""
        if not self.tag:
            return "memory_words", self.text.lower()
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return "memory_tags", f'"{escaped}"'


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
    for id, own in terms.items():
        for term in own:
            having.setdefault(term.asked, set()).add(id)
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
    names = names_in(text)
    words = [
        Term(word, capital=word[0].isupper() or stem in names, name=stem in names)
        for stem, word in as_written(text).items()
        if not word.isdigit() and len(word) > 1 and (stem in names or word[0].isupper() or len(word) >= SHORTEST)
    ]
    words.sort(key=lambda term: (not term.name, -len(term.text), term.text))
    return [Term(tag, tag=True) for tag in tags] + words[:TERMS]


def topics_of(id: str, terms: Iterable[Term], having: Mapping[tuple[str, str], Collection[str]]) -> list[Topic]:
    """The memories that share most with one, best first."""
    shared: dict[str, list[tuple[float, Term]]] = {}
    for term in terms:
        ids = having.get(term.asked, ())
        worth = math.log(1 + RARE / len(ids)) * (NAME if term.name or term.tag else 1.0) if ids else 0.0
        for other in ids:
            if other != id:
                shared.setdefault(other, []).append((worth, term))
    topics = []
    for other, found in shared.items():
        found.sort(key=lambda one: (-one[0], one[1].text))
        terms = tuple(term for _, term in found)
        if len(terms) > 1 or any(term.capital or term.tag for term in terms):  # the other text may make it a name
            topics.append(Topic(id, other, terms, math.fsum(worth for worth, _ in found)))
    return sorted(topics, key=lambda topic: (-topic.score, topic.target))[:CANDIDATES]


def _enough(shared: Sequence[Term]) -> bool:
    return len(shared) > 1 or any(term.name or term.tag for term in shared)


def _free(wanted: Sequence[Topic], rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[Topic, str]]:
    """The topics that hold, whose ends nobody has joined and that have room for an edge, with the target's text."""
    room = {end: EDGES - made for row in rows for end, made in zip(row["ends"], row["machine_made"], strict=True)}
    joined = {frozenset(row["ends"]) for row in rows if row["joined"]}
    for topic, row in zip(wanted, rows, strict=True):
        pair = frozenset((topic.source, topic.target))
        if pair in joined or room[topic.source] <= 0 or room[topic.target] <= 0:
            continue
        stems, names, spelt = as_written(row["text"]), names_in(row["text"]), set(plain_words(row["text"]))
        known = (
            dataclasses.replace(term, name=term.name or stem(term.text.lower()) in names)
            for term in topic.shared
            if (term.text in row["tags"] if term.tag else stem(term.text.lower()) in stems)
        )
        shared = tuple(
            term
            for term in known
            # A name is the same only as it is spelt: Experiment has the stem of Experience, and Wales that of a wale.
            if term.tag or (term.text.lower() in spelt if term.name else len(term.text) >= SHORTEST)
        )
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
