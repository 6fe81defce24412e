"""What recall looks at: candidates of the first search, confirmed by the graph, with the words of their texts."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from bank import cover, fuse
from bank.answer import Found
from bank.asking import Asking
from bank.hits import Hits, Stamp, stamps_of, untrue
from bank.milvus import MEMORIES
from bank.model import RecallQuery
from bank.search import CANDIDATES, MOST_CANDIDATES
from bank.sync import Sync
from bank.words import Idf, WordCache, Words, words_of
from graph.session import Graph

LONG_TEXTS = 200_000  # characters whose words are found in a thread, so that others are answered meanwhile


class Looking:
    def __init__(self, graph: Graph, sync: Sync, words: WordCache) -> None:
        self._graph = graph
        self._sync = sync
        self.words = words

    async def first_search(self, asked: RecallQuery, asking: Asking, seen: Found) -> None:
        filter = asked.known_then()
        wanted = max(CANDIDATES, asked.limit)
        rarity, counted = Idf(), dict[str, Words]()

        def worded(hits: Hits) -> None:
            """Words are counted while meaning is still looked for: most of what they have found will be confirmed."""
            known = self.words.known(hits.stamps)
            new = {id: text for id, text in known.items() if id not in counted}
            rarity.add(new.values())
            counted.update(new)

        while True:
            dense, words = await asking.search_memories(filter, wanted, worded)
            asking.expect_vectors(dense.first(cover.SEEDS_AGAIN) | words.first(cover.SEEDS_AGAIN))
            await self.look(stamps_of([dense, words]), asked, seen)
            # A stale row or a filter that only the graph knows has taken too many: ask for more.
            short = len(seen.words) < asked.limit
            if not short or max(len(dense), len(words)) < wanted or wanted >= MOST_CANDIDATES:
                break
            wanted = min(wanted * 4, MOST_CANDIDATES)
        seen.by_meaning = dense.among(seen.words)
        seen.by_words = words.among(seen.words)
        seen.hybrid = fuse.combine((0.5, seen.by_meaning), (asking.words_share, seen.by_words))
        seen.best = cover.best_first(seen.hybrid)[: cover.BEST]
        if all(seen.words.get(id) is text for id, text in counted.items()):
            rarity.add(text for id, text in seen.words.items() if id not in counted)
            seen.rarity = rarity
        else:
            seen.rarity = Idf(seen.words.values())

    def trust(self, found: Mapping[str, Stamp | None], seen: Found) -> None:
        """Where the words of a memory are at hand, of what was found, the index is trusted for now."""
        if seen.trusting:
            new = {id: stamp for id, stamp in found.items() if id not in seen.words and stamp is not None}
            known = self.words.known(new)
            seen.words |= known
            seen.stamps |= {id: new[id] for id in known}
            seen.shared |= dict.fromkeys(known, 0.0)

    async def look(self, found: Mapping[str, Stamp | None], asked: RecallQuery, seen: Found) -> None:
        """Confirms memories: they exist, as what they were found (None: as whatever), and pass the filter. Those that are
        trusted are confirmed later, if they lead on or are told."""
        self.trust(found, seen)
        wanted = sorted(found.keys() - seen.words.keys())
        if not wanted:
            return
        held = {id: kept for id in wanted if (kept := self.words.last(id)) is not None}
        rows: Sequence[Sequence[Any]] = await self._graph.read(  # type: ignore[assignment] # lists, not maps
            "recall_memories",
            wanted=[[id, held[id][0][0] if id in held else None] for id in wanted],
            shared=list(asked.tags),
            **asked.known_then().parameters(),
        )
        hits = {id: stamp for id in wanted if (stamp := found[id]) is not None}
        self._sync.met_untrue(MEMORIES, untrue(hits, {id: (revision, version) for id, revision, version, *_ in rows}))
        seen.changed |= {revision for id, revision, *_ in rows if id in hits and revision != hits[id][0]}
        texts = {row[0]: row[5] for row in rows if row[5] is not None}
        if sum(map(len, texts.values())) > LONG_TEXTS:
            words = await asyncio.to_thread(lambda: {id: words_of(text) for id, text in texts.items()})
        else:
            words = {id: words_of(text) for id, text in texts.items()}
        for id, revision, version, passes, shared, text in rows:
            stamp = revision, version
            if not passes or hits.get(id, stamp) != stamp:
                continue
            if text is None:
                seen.words[id] = held[id][1]
            else:
                seen.words[id] = words[id]
                self.words.put(id, stamp, words[id])
            seen.stamps[id] = stamp
            seen.shared[id] = shared / max(1, len(asked.tags))
