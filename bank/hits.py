"""What a search of the index found."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hits:
    """Records, best first (a memory by its id, a lesson by its rb_id): in which revision each was found, and how close it
    is. In columns, as they come from the index: a recall has a thousand of them."""

    revisions: dict[Any, int] = field(default_factory=dict)
    scores: dict[Any, float] = field(default_factory=dict)

    @classmethod
    def of(cls, keys: Sequence[Any], revisions: Sequence[int], scores: Sequence[float]) -> "Hits":
        found = cls(dict(zip(keys, revisions, strict=True)), dict(zip(keys, scores, strict=True)))
        if len(found) == len(keys):
            return found
        later = _latest(zip(keys, revisions, strict=True))
        rows = [row for row in zip(keys, revisions, scores, strict=True) if row[1] == later[row[0]]]
        return cls({key: revision for key, revision, _ in rows}, {key: score for key, _, score in rows})

    def __len__(self) -> int:
        return len(self.scores)

    def first(self, most: int) -> list[tuple[Any, int]]:
        """The best, each with its revision."""
        return list(itertools.islice(self.revisions.items(), most))

    def among(self, keys: Collection[Any]) -> dict[Any, float]:
        """The scores of those that are among these."""
        return {key: score for key, score in self.scores.items() if key in keys}


def newest(lists: Sequence[Hits]) -> list[Hits]:
    """Of two rows of one record, as there may be for a moment while it is deleted and made anew, only the later one:
    revisions are minted in the order of time."""
    known = revisions_of(lists)
    if all(hits.revisions.items() <= known.items() for hits in lists):
        return list(lists)
    last = _latest(pair for hits in lists for pair in hits.revisions.items())
    whole = []
    for hits in lists:
        revisions = {key: revision for key, revision in hits.revisions.items() if revision == last[key]}
        whole.append(Hits(revisions, hits.among(revisions)))
    return whole


def revisions_of(lists: Iterable[Hits]) -> dict[Any, int]:
    """In which revision each record of these lists was found."""
    found: dict[Any, int] = {}
    for hits in lists:
        found |= hits.revisions
    return found


def _latest(pairs: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    latest: dict[Any, int] = {}
    for key, revision in pairs:
        latest[key] = max(revision, latest.get(key, revision))
    return latest
