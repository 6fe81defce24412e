"""Does the bank learn? 200 lessons of known worth, 5,000 noisy signals, all three rules; then the service itself.

A lesson's worth is the chance that work with it succeeds. Each signal is about a lesson drawn at random; four of five
are outcomes, one is feedback; one in ten says the opposite of what it should. Half a year passes. The picture of it is
`.docs/learning.svg`.
"""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from bank.learn import RULES, START_BY_HAND, Confidence, Learning, Rule, learn
from bank.model import Signal, SignalKind
from graph.queries import CYPHER
from tests.bank.conflict_pairs import DEVELOPED, HELD_OUT, judged
from tests.bench.service import Measured, measured

LESSONS, SIGNALS, DAYS = 200, 5_000, 180
FEEDBACK, NOISE = 0.2, 0.1
BAD = 0.3  # a lesson of less worth misleads
TOP = 5
STEP = 50  # signals between two looks
RECORDED = datetime(2026, 1, 1, tzinfo=UTC)
BANDS = [(0.8, 1.0), (0.6, 0.8), (0.4, 0.6), (0.2, 0.4), (0.0, 0.2)]
COLOURS = ["#1a7f37", "#4c9f70", "#bf8700", "#d1642c", "#cf222e"]
PICTURE = CYPHER.parent / ".docs" / "learning.svg"


def heard(count: int, worths: Sequence[float], seed: int) -> list[Signal]:
    """Signals about lessons of these worths, in the order of time; `rb_id` is the place of the lesson."""
    chance = random.Random(seed)
    signals = []
    for number in range(count):
        place = chance.randrange(len(worths))
        good = (chance.random() < worths[place]) != (chance.random() < NOISE)
        kinds = (
            (SignalKind.HELPFUL, SignalKind.NOT_HELPFUL)
            if chance.random() < FEEDBACK
            else (SignalKind.SUCCEEDED, SignalKind.FAILED)
        )
        signals.append(
            Signal(
                id=f"S{number:06}",
                rb_id=place,
                kind=kinds[0] if good else kinds[1],
                source=f"agent-{chance.randrange(50)}",
                created_time=RECORDED + timedelta(days=DAYS) * (number + 1) / count,
            )
        )
    return signals


class Simulation:
    """One rule, all signals: how the order by confidence approaches the order by worth."""

    def __init__(self, rule: Rule, worths: Sequence[float], signals: Sequence[Signal]) -> None:
        learning = Learning(rule)
        said: list[list[Signal]] = [[] for _ in worths]
        learnt: list[Confidence] = [learn(START_BY_HAND, RECORDED, [], learning) for _ in worths]
        self.looks: list[int] = []
        self.correlations: list[float] = []
        self.bands: list[list[float]] = [[] for _ in BANDS]
        self.misled: list[float] = []  # places among the best that bad lessons have
        for number in range(len(signals) + 1):
            if number:
                signal = signals[number - 1]
                said[signal.rb_id].append(signal)
                learnt[signal.rb_id] = learn(START_BY_HAND, RECORDED, said[signal.rb_id], learning, telling=False)
            now = RECORDED + timedelta(days=DAYS) * number / len(signals)
            if number % STEP:
                continue
            confidences = [one.at(now) for one in learnt]
            self.looks.append(number)
            self.correlations.append(spearman(worths, confidences))
            self.misled.append(bad_places(worths, confidences))
            for band, (low, high) in zip(self.bands, BANDS, strict=True):
                own = [c for c, w in zip(confidences, worths, strict=True) if low <= w < high]
                band.append(sum(own) / len(own))
        below = [confidences[place] < BAD for place in range(len(worths)) if worths[place] < 0.2]
        self.pruned = sum(below) / len(below)

    @property
    def clean_after(self) -> int:
        """Signals after which bad lessons have less than one place in twenty, and stay there."""
        late = [look for look, places in zip(self.looks, self.misled, strict=True) if places >= TOP / 20]
        return late[-1] + STEP if late else 0


def bad_places(worths: Sequence[float], confidences: Sequence[float]) -> float:
    """How many of the best places bad lessons have; lessons that are equal share theirs."""
    last = sorted(confidences, reverse=True)[TOP - 1]
    above = [worth for worth, one in zip(worths, confidences, strict=True) if one > last]
    equal = [worth for worth, one in zip(worths, confidences, strict=True) if one == last]
    bad = sum(worth < BAD for worth in above)
    return bad + (TOP - len(above)) * sum(worth < BAD for worth in equal) / len(equal)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of two orders; what is equal shares its ranks."""
    one, other = _ranks(first), _ranks(second)
    if np.std(one) == 0 or np.std(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Sequence[float]) -> Any:
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def flooded(rule: Rule, most: float, idle: int = 0) -> float:
    """How far 1,000 praises from one source move a lesson that starts at 0.5 and was not used for so many days."""
    began = RECORDED + timedelta(days=idle)
    praise = [
        Signal(id=f"S{n:06}", rb_id=0, kind=SignalKind.HELPFUL, source="one", created_time=began + timedelta(seconds=n))
        for n in range(1_000)
    ]  # fmt: skip
    learning = Learning(rule, most)
    now = began + timedelta(hours=1)
    return learn(0.5, RECORDED, praise, learning).at(now) - learn(0.5, RECORDED, [], learning).at(began)


# ---------------------------------------------------------------- the service itself


async def through_the_service(cairn: Measured, lessons: int, count: int) -> tuple[int, int]:
    """The same kind of signals over HTTP, eight at a time; how many confidences are what the pure function says."""
    worths = _worths(lessons, seed=5)
    recorded = ", ".join(
        f'{{rbId: "{n + 1}", keyLesson: "Lesson {n}.", contextToPrefer: "Context {n}."}}' for n in range(lessons)
    )
    await cairn.ask(f'mutation {{ remember(input: {{convId: "c", lessons: [{recorded}]}}) {{ created }} }}')
    tell = """mutation($id: ID!, $ids: [ID!]!, $feedback: Boolean!, $good: Boolean!, $source: String) {
      giveFeedback(rbId: $id, helpful: $good, source: $source) @include(if: $feedback) { rbId }
      recordOutcome(rbIds: $ids, succeeded: $good, source: $source) @skip(if: $feedback) { rbId } }"""
    turns = asyncio.Semaphore(8)

    async def give(signal: Signal) -> None:
        async with turns:
            rb_id = str(signal.rb_id + 1)
            await cairn.ask(
                tell,
                id=rb_id,
                ids=[rb_id],
                feedback=signal.kind in (SignalKind.HELPFUL, SignalKind.NOT_HELPFUL),
                good=signal.kind in (SignalKind.HELPFUL, SignalKind.SUCCEEDED),
                source=signal.source,
            )

    await asyncio.gather(*map(give, heard(count, worths, seed=6)))
    query = """query { lessons(first: 100) { nodes { rbId confidence startConfidence createdAt usageCount
      signals(first: 200) { nodes { id kind source createdTime } } } } }"""
    seen = (await cairn.ask(query))["lessons"]["nodes"]
    agree = 0
    for lesson in seen:
        signals = [
            Signal(
                id=one["id"],
                rb_id=int(lesson["rbId"]),
                kind=SignalKind(one["kind"]),
                source=one["source"],
                created_time=datetime.fromisoformat(one["createdTime"]),
            )
            for one in lesson["signals"]["nodes"]
        ]
        expected = learn(lesson["startConfidence"], datetime.fromisoformat(lesson["createdAt"]), signals, Learning())
        agree += expected.at(datetime.now(UTC)) == lesson["confidence"] and expected.uses == lesson["usageCount"]
    assert sum(lesson["usageCount"] for lesson in seen) == count, "a signal was lost"
    return agree, len(seen)


# ---------------------------------------------------------------- the picture


def picture(runs: dict[str, Simulation]) -> str:
    """Confidence over time, one panel a rule, one line for each fifth of worth."""
    wide, high, left, top, gap = 250, 190, 50, 62, 40
    width, height = left + 3 * (wide + gap), top + high + 84
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">',
        '<title id="title">Confidence over time</title>',
        f'<desc id="desc">{LESSONS} lessons of known worth, {SIGNALS:,} noisy signals: the mean confidence of each fifth '
        "of worth, by each of the three rules.</desc>",
        "<style>.page{fill:#fff}.axis{fill:none;stroke:#8c959f}.grid{stroke:#8c959f;stroke-opacity:.25}"
        'text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2328}'
        ".name{font-size:15px;font-weight:600}.mid{text-anchor:middle}.end{text-anchor:end}"
        "@media(prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#e6edf3}}</style>",
        f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
    ]
    for number, (name, run) in enumerate(runs.items()):
        x0 = left + number * (wide + gap)
        parts.append(f'<text class="name" x="{x0}" y="26">{name}</text>')
        parts.append(f'<text x="{x0}" y="44">rank correlation {run.correlations[-1]:.2f}</text>')
        for tenth in (0, 25, 50, 75, 100):
            y = top + high * (1 - tenth / 100)
            parts.append(f'<line class="grid" x1="{x0}" y1="{y:.1f}" x2="{x0 + wide}" y2="{y:.1f}"/>')
            if number == 0:
                parts.append(f'<text class="end" x="{x0 - 6}" y="{y + 4:.1f}">{tenth / 100:.2f}</text>')
        parts.append(f'<rect class="axis" x="{x0}" y="{top}" width="{wide}" height="{high}"/>')
        for at in (0, SIGNALS // 2, SIGNALS):
            parts.append(f'<text class="mid" x="{x0 + wide * at / SIGNALS:.0f}" y="{top + high + 17}">{at:,}</text>')
        for band, colour in zip(run.bands, COLOURS, strict=True):
            points = " ".join(
                f"{x0 + wide * look / SIGNALS:.1f},{top + high * (1 - value):.1f}"
                for look, value in zip(run.looks, band, strict=True)
            )
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
    legend = top + high + 48
    parts.append(f'<text x="{left}" y="{legend}">signals; worth:</text>')
    for number, ((low, most), colour) in enumerate(zip(BANDS, COLOURS, strict=True)):
        x = left + 100 + 110 * number
        parts.append(
            f'<line x1="{x}" y1="{legend - 4}" x2="{x + 24}" y2="{legend - 4}" stroke="{colour}" stroke-width="3"/>'
        )
        parts.append(f'<text x="{x + 30}" y="{legend}">{low:.1f} to {most:.1f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _worths(lessons: int, seed: int) -> list[float]:
    """Evenly from 0 to 1, in an order that says nothing."""
    worths = [(n + 0.5) / lessons for n in range(lessons)]
    random.Random(seed).shuffle(worths)
    return worths


async def run() -> None:
    print(f"\nLearning: {LESSONS} lessons of known worth, {SIGNALS:,} signals in {DAYS} days, one in ten wrong\n")
    worths = _worths(LESSONS, seed=1)
    signals = heard(SIGNALS, worths, seed=2)
    runs = {name: Simulation(rule, worths, signals) for name, rule in RULES.items()}
    looks = [500, 1_000, 2_000, 3_500, 5_000]
    print("Rank correlation (Spearman) of confidence with worth after so many signals:")
    print("| rule | " + " | ".join(f"{look:,}" for look in looks) + " |")
    print("|---|" + "---|" * len(looks))
    for name, one in runs.items():
        print(f"| `{name}` | " + " | ".join(f"{one.correlations[look // STEP]:.2f}" for look in looks) + " |")
    print(f"\nPlaces among the best {TOP} of {LESSONS} that lessons of worth below {BAD} have, after so many signals:")
    print(
        "| rule | 0 | "
        + " | ".join(f"{look:,}" for look in looks)
        + " | under 1 in 20 for good after | worst fifth below 0.3 |"
    )
    print("|---|---|" + "---|" * len(looks) + "---|---|")
    for name, one in runs.items():
        places = " | ".join(f"{one.misled[look // STEP]:.2f}" for look in [0, *looks])
        print(f"| `{name}` | {places} | {one.clean_after:,} signals | {one.pruned:.0%} |")
    print("\n1,000 praises from one source move a lesson by (the setting is CAIRN_MOST_FROM_ONE_SOURCE):")
    limits = [0.1, 0.3, 1.0]
    print("| rule | " + " | ".join(f"at most {most}" for most in limits) + " |")
    print("|---|" + "---|" * len(limits))
    for name, rule in RULES.items():
        for idle in (0, 61):
            row = " | ".join(f"{flooded(rule, most, idle):+.2f}" for most in limits)
            print(f"| `{name}`{f', not used for {idle} days' if idle else ''} | {row} |")
    PICTURE.write_text(picture(runs), encoding="utf-8")
    print(f"\nThe picture is in {PICTURE.relative_to(CYPHER.parent)}.")
    precision, recall, _ = judged([*DEVELOPED, *HELD_OUT])
    held_precision, held_recall, _ = judged(HELD_OUT)
    print(
        f"\nContradictions: precision {precision:.2f}, recall {recall:.2f}, {len(DEVELOPED) + len(HELD_OUT)} pairs of lessons, "
        f"half of them harmless; on the {len(HELD_OUT)} held out: precision {held_precision:.2f}, recall {held_recall:.2f}\n"
    )
    async with measured("wordllama") as cairn:
        agree, lessons = await through_the_service(cairn, 20, 400)
    print(
        f"400 signals through the service, eight at a time: {agree} of {lessons} confidences are the pure function's."
    )
