"""What a search of the index found."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# What a row says of itself: its revision, which names one content of a record for ever, and its version, which counts them.
# Of a row that some other hand has put there one may be right and the other wrong.
Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hits:
    """Records, best first (a memory by its id, a lesson by its rb_id): as what each was found, and how close it is. In
    columns, as they come from the index: a recall has a thousand of them."""

    stamps: dict[Any, Stamp] = field(default_factory=dict)
    scores: dict[Any, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, keys: Sequence[Any], revisions: Sequence[int], versions: Sequence[int], scores: Sequence[float]
    ) -> "Hits":
        stamps = list(zip(revisions, versions, strict=True))
        found = cls(dict(zip(keys, stamps, strict=True)), dict(zip(keys, scores, strict=True)))
        if len(found) == len(keys):
            return found
        later = _latest(zip(keys, stamps, strict=True))
        rows = [row for row in zip(keys, stamps, scores, strict=True) if row[1] == later[row[0]]]
        return cls({key: stamp for key, stamp, _ in rows}, {key: score for key, _, score in rows})

    def __len__(self) -> int:
        return len(self.scores)

    def first(self, most: int) -> dict[Any, Stamp]:
        """The best, each as what it was found."""
        return dict(itertools.islice(self.stamps.items(), most))

    def among(self, keys: Collection[Any]) -> dict[Any, float]:
        """The scores of those that are among these."""
        return {key: score for key, score in self.scores.items() if key in keys}


def newest(lists: Sequence[Hits]) -> list[Hits]:
    """Of two rows of one record, as there may be for a moment while it is deleted and made anew, only the later one:
    revisions are minted in the order of time."""
    known = stamps_of(lists)
    if all(hits.stamps.items() <= known.items() for hits in lists):
        return list(lists)
    last = _latest(pair for hits in lists for pair in hits.stamps.items())
    whole = []
    for hits in lists:
        stamps = {key: stamp for key, stamp in hits.stamps.items() if stamp == last[key]}
        whole.append(Hits(stamps, hits.among(stamps)))
    return whole


def stamps_of(lists: Iterable[Hits]) -> dict[Any, Stamp]:
    """As what each record of these lists was found."""
    found: dict[Any, Stamp] = {}
    for hits in lists:
        found |= hits.stamps
    return found


def untrue(found: Mapping[Any, Stamp], known: Mapping[Any, Stamp]) -> list[Any]:
    """The keys of rows whose record is gone, or is another by now."""
    return [key for key, stamp in found.items() if known.get(key) != stamp]


def _latest(pairs: Iterable[tuple[Any, Stamp]]) -> dict[Any, Stamp]:
    latest: dict[Any, Stamp] = {}
    for key, stamp in pairs:
        if key not in latest or stamp[0] >= latest[key][0]:
            latest[key] = stamp
    return latest
