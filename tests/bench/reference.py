"""The recipe that recall was made from: the cover walk with a second search, with its first constants and nothing that was
found since (how seeds are chosen, and what a name is, recall still has from it; its optional search of edge sentences is
left out). Through the same stores, to say what recall gains by going past it, and what that costs. It believes every row
that it hits: the least that an answer by this recipe can take."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence

from api.context import Cairn
from bank import cover, fuse
from bank.cover import Question, Source
from bank.hits import Stamp, stamps_of
from bank.milvus import Vector
from bank.words import Idf, Words, spellings, words_of
from graph.model import MemoryFilter

CANDIDATES, EDGES = 100, 300  # of each list; of a seed
LEAD, PASSED_ON, NEW_WORDS, NEW_IN_ANSWER = 0.6, 0.5, 6.0, 5.0
AGAIN, AGAIN_BEST = 3, 20  # seeds that search once more, and how many hits of each share its energy
ASKED, ASKED_KNOWN, NAMED = 10, 3, 6  # how often a word stands in the text of a second search
BETWEEN, DENSE_AGAIN, LEAD_AGAIN = 0.5, 0.7, 0.3
BEST = 40  # among which the answer is chosen


class Reference:
    def __init__(self, cairn: Cairn) -> None:
        self._cairn = cairn
        self._words: dict[str, Words] = {}

    async def ids(self, query: str, filter: MemoryFilter, limit: int = 10) -> list[str]:
        vectors = self._cairn.vectors
        by_words = asyncio.create_task(vectors.memories_by_words([query], filter, CANDIDATES))
        vector = await self._cairn.embedder.query(query)
        (dense,) = await vectors.memories_by_meaning([vector], filter, CANDIDATES)
        (worded,) = await by_words
        hybrid = fuse.combine((0.5, dense.scores), (0.5, worded.scores))
        await self._read(hybrid)
        spelt = spellings(query)
        question = Question(spelt, Idf(self._words[id] for id in hybrid))
        direct = {id: one + LEAD * question.lead_match(self._words[id].lead, question.asked) for id, one in hybrid.items()}  # fmt: skip
        covered = self._covered(hybrid, question)
        seeds = cover.choose_seeds(direct, covered, question)
        stamps = stamps_of([dense, worded])
        searching = asyncio.create_task(self._again(seeds[:AGAIN], stamps, vector, spelt, question, filter))
        gains: dict[str, list[float]] = {seed.id: [seed.strength**4] for seed in seeds}
        edges = await self._edges(seeds, filter)
        await self._read(target for own in edges.values() for target, _ in own)
        for seed in seeds:
            own = edges.get(seed.id, [])
            whole = math.fsum(weight**2 for _, weight in own)
            covered |= self._covered((target for target, _ in own), question)
            for target, weight in own:
                share = PASSED_ON * seed.strength**4 * weight**2 / whole
                gains.setdefault(target, []).append(share * _novelty(seed, covered[target], question))
        for seed, scores in zip(seeds, await searching, strict=False):
            best = cover.best_first(scores)[:AGAIN_BEST]
            whole = math.fsum(scores[id] ** 8 for id in best)
            covered |= self._covered(best, question)
            for id in best:
                share = PASSED_ON * seed.strength**2 * scores[id] ** 8 / whole
                gains.setdefault(id, []).append(share * _novelty(seed, covered[id], question))
        answer = _chosen({id: math.log(math.fsum(own)) for id, own in gains.items()}, direct, covered, question, limit)
        await self._cairn.bank.memories.by_id(answer)
        return answer

    async def _read(self, ids: Iterable[str]) -> None:
        if missing := sorted(set(ids) - self._words.keys()):
            found = await self._cairn.bank.memories.by_id(missing)
            self._words |= {id: words_of(memory.text) for id, memory in found.items()}

    def _covered(self, ids: Iterable[str], question: Question) -> dict[str, int]:
        return {id: question.covered(self._words[id].all) for id in ids}

    async def _edges(self, seeds: Sequence[Source], filter: MemoryFilter) -> dict[str, list[tuple[str, float]]]:
        rows = await self._cairn.graph.read(
            "recall_edges",
            ids=[seed.id for seed in seeds],
            min_weight=0.0,
            as_of=None,
            shared=[],
            limit=EDGES,
            sentence=0,
            **filter.parameters(),
        )
        return {row["memory"]: [(edge[1], edge[2]) for edge in row["edges"]] for row in rows}

    async def _again(
        self,
        seeds: Sequence[Source],
        stamps: Mapping[str, Stamp],
        vector: Vector,
        spelt: Mapping[str, str],
        question: Question,
        filter: MemoryFilter,
    ) -> list[dict[str, float]]:
        """How well the hits of each seed's second search fit."""
        vectors = self._cairn.vectors
        names = [cover.names_for(self._words[seed.id], question) for seed in seeds]
        texts = []
        for seed, own in zip(seeds, names, strict=True):
            known = self._words[seed.id].all
            parts = [word for stem, word in spelt.items() for _ in range(ASKED_KNOWN if stem in known else ASKED)]
            parts += [word for stem, word in own.items() if stem not in spelt for _ in range(NAMED)]
            texts.append(" ".join(parts))

        async def by_meaning() -> list[dict[str, float]]:
            own = await vectors.memory_vectors({seed.id: stamps[seed.id] for seed in seeds})
            between = [vector + BETWEEN * own[seed.id] for seed in seeds]
            return [hits.scores for hits in await vectors.memories_by_meaning(between, filter, CANDIDATES)]

        worded, dense = await asyncio.gather(vectors.memories_by_words(texts, filter, CANDIDATES), by_meaning())
        await self._read(id for scores in (*(hits.scores for hits in worded), *dense) for id in scores)
        scored = []
        for seed, hits, near, own in zip(seeds, worded, dense, names, strict=True):
            by_words, among = dict(hits.scores), question.asked | own.keys()
            for found in (by_words, near):
                found.pop(seed.id, None)
            most = max(by_words.values(), default=1.0)
            scores = {id: score / most for id, score in by_words.items()}
            for id, closeness in fuse.min_max(near).items():
                scores[id] = scores.get(id, 0.0) + DENSE_AGAIN * (0.25 + 0.75 * closeness)
            scored.append({id: one + LEAD_AGAIN * question.lead_match(self._words[id].lead, among) for id, one in scores.items()})  # fmt: skip
        return scored


def _novelty(seed: Source, covered: int, question: Question) -> float:
    return math.exp(NEW_WORDS * seed.strength**2 * question.share(covered & ~seed.covered))


def _chosen(
    logs: Mapping[str, float],
    direct: Mapping[str, float],
    covered: Mapping[str, int],
    question: Question,
    limit: int,
) -> list[str]:
    order, seen = cover.best_first(logs), 0
    left, chosen = order[:BEST], []
    while left:
        best = max(left, key=lambda id: logs[id] + NEW_IN_ANSWER * question.share(covered[id] & ~seen))
        chosen.append(best)
        left.remove(best)
        seen |= covered[best]
    return [*chosen, *order[BEST:], *cover.best_first({id: direct[id] for id in direct.keys() - logs.keys()})][:limit]
