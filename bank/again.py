"""The second search of a recall: its best seeds ask once more, for what they name and for what lies between them and the
question. It goes out as soon as they are known, and is scored when the sentences of edges are there, too."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bank import cover, fuse
from bank.answer import Again, Found
from bank.asking import Asking
from bank.cover import Energy, Question, Source
from bank.hits import Hits, stamps_of
from bank.looking import Looking
from bank.model import RecallQuery
from bank.search import CANDIDATES
from bank.words import LONGEST_WORD, Words
from graph.tasks import ahead, under_way

REPEATED, REPEATED_KNOWN, REPEATED_NAME = 10, 3, 6  # a word n times in a BM25 query counts n times
NAMES = 64  # of a seed that names more, its first names
Said = dict[str, dict[str, float]]  # from a memory to its neighbours, the share of the question that the edges say


class Scored(NamedTuple):
    """What one seed's search found: how well it fits, and its similarity by meaning and by words."""

    scores: dict[str, float]
    by_meaning: dict[str, float]
    by_words: dict[str, float]


class SecondSearch:
    """On its way when it is made. `seeds` ask; `spelt`: the words of the question, as they are spelt."""

    def __init__(
        self,
        looking: Looking,
        asked: RecallQuery,
        asking: Asking,
        spelt: Mapping[str, str],
        question: Question,
        seeds: Sequence[Source],
        seen: Found,
    ) -> None:
        self.seeds = seeds
        self._looking = looking
        self._asked = asked
        self._asking = asking
        self._spelt = spelt
        self._question = question
        self._seen = seen
        self._searched = ahead(self._search())

    async def _search(self) -> tuple[list[Hits], list[Hits]]:
        """By meaning and by words, a list for each seed."""
        seen = self._seen
        if not self.seeds or not self._spelt:
            return [Hits() for _ in self.seeds], [Hits() for _ in self.seeds]
        texts = [self._wording(seen.words[seed.id]) for seed in self.seeds]

        def worded(lists: list[Hits]) -> None:
            """What words have found is looked up while meaning is still looked for."""
            found = stamps_of(lists)
            self._looking.trust(found, seen)
            seen.cover(found, self._question)

        stamps = {seed.id: seen.stamps[seed.id] for seed in self.seeds}
        return await self._asking.search_again(stamps, texts, self._asked.known_then(), CANDIDATES, worded)

    def _wording(self, seed: Words) -> str:
        """What is looked for by words: those of the question and the seed's names, repeated by their weight."""
        parts: list[str] = []
        for word in self._question.words:
            if len(self._spelt[word]) <= LONGEST_WORD:
                parts += [self._spelt[word]] * (REPEATED_KNOWN if word in seed.all else REPEATED)
        for word, spelling in list(cover.names_for(seed, self._question).items())[:NAMES]:
            if word not in self._spelt and len(spelling) <= LONGEST_WORD:
                parts += [spelling] * REPEATED_NAME
        return " ".join(parts)

    async def answered(self) -> None:
        """Waits until the index has answered."""
        await asyncio.wait([self._searched])

    async def scored(self, sentences: asyncio.Task[Said]) -> list[Scored]:
        """How well the hits of each seed fit."""
        seen, question = self._seen, self._question
        dense, words = await self._searched
        await under_way()  # whoever has waited for the index, too, asks the graph before this goes on computing
        hits = stamps_of([*dense, *words])
        await self._looking.look(hits, self._asked, seen)
        seen.cover(hits, question)
        said = await sentences
        scored = []
        for seed, near, worded in zip(self.seeds, dense, words, strict=True):
            by_words, by_meaning = worded.among(seen.words), near.among(seen.words)
            for own in (by_words, by_meaning):
                own.pop(seed.id, None)
            scores = cover.scores_again(
                by_words,
                fuse.min_max(by_meaning),
                seen.words,
                seen.words[seed.id],
                frozenset(cover.names_for(seen.words[seed.id], question)),
                said.get(seed.id, {}),
                question,
            )
            scored.append(Scored(scores, by_meaning, by_words))
        return scored

    def gained(self, scored: Sequence[Scored], energy: Energy) -> dict[str, list[Again]]:
        """What each hit gains by it, from each seed; the energy has it from now on."""
        found: dict[str, list[Again]] = {}
        for seed, hits in zip(self.seeds, scored, strict=True):
            for id, gain in energy.found_again(seed, hits.scores, self._seen.covered, self._question).items():
                hit = Again(seed.id, gain, hits.by_meaning.get(id), hits.by_words.get(id))
                found.setdefault(id, []).append(hit)
        return found
