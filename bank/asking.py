"""Where candidates come from: Milvus, by meaning and by words. While Milvus or the embedder is away it is Neo4j's
full-text index, by words alone, which also knows what could not be indexed yet; and the answer says so."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bank.embed import Embedder
from bank.hits import Hits, Stamp, newest
from bank.milvus import IndexAway
from bank.model import LessonQuery, team_of
from bank.sync import Sync
from bank.vectors import Vectors
from bank.words import plain_words
from graph.errors import Unavailable
from graph.model import MemoryFilter
from graph.session import Graph
from graph.tasks import ahead

PATIENT_SECONDS = 2.0  # a search waits for what was acknowledged a moment ago; then the graph is asked, which has it
MOST_AGAIN = 3  # times that a question is asked again for records that are being changed; then the graph is asked
MOST_WORDS = 128  # of a question, in a query to Neo4j's full-text index
SEED_IN_VECTOR = 0.5  # how far a memory draws the question's vector towards itself
INDEX_AWAY = "Milvus is away: this was found by words and along edges, not by meaning."
INDEX_BEHIND = "The index is behind: this was found by words and along edges, not by meaning."
EMBEDDER_AWAY = "The embedder is away: this was found by words and along edges, not by meaning."

Vector = npt.NDArray[np.float32]


class Asking:
    """One question on its way through the stores. What does not answer is noticed once and not waited for again."""

    def __init__(self, text: str, graph: Graph, vectors: Vectors, embedder: Embedder, sync: Sync) -> None:
        self.text = text
        self.vector: Vector | None = None
        self.degraded: str | None = None  # what was missing, as a sentence
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder
        self._sync = sync
        if sync.index_away is not None:
            self.degraded = INDEX_AWAY
        elif sync.behind:
            self.degraded = INDEX_BEHIND
        self._embedding = None if self.degraded else ahead(self._embed())
        self._met_changed: set[int] = set()
        self._searched_again = 0
        self._expected: asyncio.Task[dict[str, Vector]] | None = None
        self._expected_lessons: asyncio.Task[dict[int, Vector]] | None = None

    @property
    def words_share(self) -> float:
        """How much words count beside meaning: half, or all where there is nothing else."""
        return 0.5 if self.degraded is None else 1.0

    async def _embed(self) -> None:
        try:
            self.vector = await self._embedder.query(self.text)
        except Unavailable:
            self.degraded = EMBEDDER_AWAY

    async def embedded(self) -> None:
        """From here on there is a vector, or the answer does without."""
        if self._embedding is not None:
            await self._embedding

    async def worth_again(self, changed: Collection[int]) -> bool:
        """Records were met that have changed since they were indexed, and are in these revisions now: they were there before and
        are there still, but found is neither. Whether to search again: they are waited for where they are on their way to
        the index, and may be there by now where they are not. If they are late, or change all the time, the graph is asked
        next. What is the same as the last time another process is at, or nobody: it is mended behind the answer's back."""
        if self.degraded is not None or not changed:
            return False
        arrived = await self._sync.arrives(changed, PATIENT_SECONDS)
        if arrived is None and self._met_changed >= set(changed):
            return False
        self._met_changed |= set(changed)
        self._searched_again += 1
        if arrived is False or self._searched_again > MOST_AGAIN:
            self.degraded = INDEX_BEHIND if self._sync.index_away is None else INDEX_AWAY
        return True

    def _lost(self, error: IndexAway) -> None:
        self.degraded = INDEX_AWAY
        self._sync.met_away(error)

    # ------------------------------------------------------------ memories

    async def search_memories(
        self, filter: MemoryFilter, limit: int, worded: Callable[[Hits], None] = lambda hits: None
    ) -> tuple[Hits, Hits]:
        """By meaning and by words. `worded` is told what words have found, while meaning is still looked for."""

        async def own() -> list[Vector]:
            await self.embedded()
            return [] if self.vector is None else [self.vector]

        (dense,), (words,) = await self._search(own, [self.text], filter, limit, lambda lists: worded(lists[0]))
        return dense, words

    def expect_vectors(self, stamps: Mapping[str, Stamp]) -> None:
        """The vectors of these memories will be asked for soon, or those of most of them: they are fetched meanwhile."""
        if stamps and self.degraded is None:
            self._expected = ahead(self._vectors.memory_vectors(stamps))

    async def search_again(
        self,
        stamps: Mapping[str, Stamp],
        texts: Sequence[str],
        filter: MemoryFilter,
        limit: int,
        worded: Callable[[list[Hits]], None] = lambda lists: None,
    ) -> tuple[list[Hits], list[Hits]]:
        """For each of some memories what lies between it and the question, and what a text says. A word that stands n
        times in a text counts n times. `worded`: as above."""
        await self.embedded()
        vector = self.vector

        async def between() -> list[Vector]:
            if self._expected is not None:
                await self._expected
            own = await self._vectors.memory_vectors(stamps)
            assert vector is not None
            return [vector + SEED_IN_VECTOR * own[id] if id in own else vector for id in stamps]

        return await self._search(between, texts, filter, limit, worded)

    async def _search(
        self,
        vectors: Callable[[], Awaitable[list[Vector]]],
        texts: Sequence[str],
        filter: MemoryFilter,
        limit: int,
        worded: Callable[[list[Hits]], None] = lambda lists: None,
    ) -> tuple[list[Hits], list[Hits]]:
        """Several questions at once, each by a vector and by a text; the words are looked for while the vectors are
        still on their way."""

        async def by_words() -> list[Hits]:
            found = await self._vectors.memories_by_words(texts, filter, limit)
            worded(found)
            return found

        async def by_meaning() -> list[Hits]:
            return await self._vectors.memories_by_meaning(await vectors(), filter, limit)

        if self.degraded is None and not await self._sync.caught_up(PATIENT_SECONDS):
            self.degraded = INDEX_BEHIND if self._sync.index_away is None else INDEX_AWAY
        if self.degraded is None:
            try:
                words, dense = await asyncio.gather(by_words(), by_meaning())
            except IndexAway as error:
                self._lost(error)
            if self.degraded is None:
                lists = newest([*dense, *words])
                return lists[: len(dense)], lists[len(dense) :]
        nothing = [Hits() for _ in texts]
        questions = {place: question for place, text in enumerate(texts) if (question := lucene(text))}
        if not questions:
            return nothing, nothing
        rows = await self._graph.read(
            "memories_by_words", questions=list(questions.values()), limit=limit, **filter.parameters()
        )
        # A text without a word finds nothing, and the others what they find.
        found = dict(zip(questions, rows, strict=True))
        return nothing, [
            Hits.of(*zip(*found[place]["hits"], strict=True)) if place in found and found[place]["hits"] else Hits()
            for place in range(len(texts))
        ]

    # ------------------------------------------------------------ lessons

    async def lessons_by_words(self, query: LessonQuery, limit: int) -> Hits:
        """Need not wait for a vector."""
        if self.degraded is None:
            try:
                return await self._vectors.lessons_by_words(query, limit)
            except IndexAway as error:
                self._lost(error)
        if not (question := lucene(query.query)):
            return Hits()
        rows = await self._graph.read(
            "lessons_by_words",
            question=question,
            limit=limit,
            tags=list(query.tags),
            outcome=query.outcome,
            scope=query.scope,
            namespace=query.namespace,
            team=None if query.namespace is None else team_of(query.namespace),
        )
        return Hits.of(*([row[name] for row in rows] for name in ("rb_id", "revision", "version", "score")))

    async def lessons_by_meaning(self, query: LessonQuery, limit: int) -> tuple[Hits, Hits]:
        """By the meaning of the lesson, and by that of its context."""
        await self.embedded()
        if self.degraded is None and self.vector is not None:
            try:
                return await self._vectors.lessons_by_meaning(self.vector, query, limit)
            except IndexAway as error:
                self._lost(error)
        return Hits(), Hits()

    def expect_lesson_vectors(self, stamps: Mapping[int, Stamp]) -> None:
        """They will be asked for soon, or most of them: they are fetched meanwhile."""
        if stamps and self.degraded is None:
            self._expected_lessons = ahead(self._vectors.lesson_vectors(stamps))

    async def lesson_vectors(self, stamps: Mapping[int, Stamp]) -> dict[int, Vector]:
        if self.degraded is None:
            try:
                if self._expected_lessons is not None:
                    await self._expected_lessons
                return await self._vectors.lesson_vectors(stamps)
            except IndexAway as error:
                self._lost(error)
        return {}


def lucene(text: str) -> str:
    """A text as a query to Neo4j's full-text index: its words, each as heavy as it stands often. Words are letters and
    digits in lower case, and nothing of them is syntax there."""
    counted = Counter(plain_words(text))
    return " ".join(f"{word}^{times}" for word, times in list(counted.items())[:MOST_WORDS])
