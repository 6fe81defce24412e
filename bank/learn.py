"""Signals -> confidence: pure, no I/O.

A lesson's confidence is a function of where it started, its signals in the order of time, and now. `learn` folds the
signals; what it returns knows the confidence for every period without use that may follow, so that nothing need run
when time passes: a reader takes the value of the period that it is in. Three rules share one fold.

- A lesson is *used* when feedback or an outcome names it. Periods without use are counted from the last use, or from
  the moment it was recorded.
- A source that is named moves a lesson by at most `most_from_one_source`, up or down, in all: what it says beyond that
  is kept and moves nothing, nor does it end a time without use. A signal without a source stands for itself.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar, NamedTuple, Protocol

from bank.model import ConfidencePoint, Signal, SignalKind

START_BY_HAND, START_FROM_SUCCESS, START_FROM_FAILURE = (
    0.8,
    0.7,
    0.6,
)  # where a lesson starts: recorded by hand, or distilled
PRUNED_BELOW = 0.3

USES = frozenset({SignalKind.HELPFUL, SignalKind.NOT_HELPFUL, SignalKind.SUCCEEDED, SignalKind.FAILED})
GOOD = frozenset({SignalKind.HELPFUL, SignalKind.SUCCEEDED, SignalKind.STABLE, SignalKind.SUPPORTED})
WORDS = {
    SignalKind.HELPFUL: "found helpful",
    SignalKind.NOT_HELPFUL: "found not helpful",
    SignalKind.SUCCEEDED: "work with it succeeded",
    SignalKind.FAILED: "work with it failed",
    SignalKind.STABLE: "it proved stable",
    SignalKind.REVERTED: "it was reverted",
    SignalKind.SUPPORTED: "other work taught the same",
}

DAY = 86_400
MONTH = 30 * DAY
AGREE_WITHIN = 7 * DAY
TRIED = 3  # uses after which a signal counts by itself
VERSION = 2
DIGITS = 6  # confidence is rounded to these, so that 0.8 - 0.2 is 0.6
_SLACK = 1e-9


class State(NamedTuple):
    """What the signals so far come to. `idle`: the periods without use that `value` has lost for already; `cut`: what
    sources would have moved it beyond their limit."""

    value: float
    start: float
    idle: int = 0
    good: int = 0
    counted: int = 0
    uses: int = 0
    fit: float = 0.0  # the sum of how well it fitted, and how often that is known
    fits: int = 0
    cut: float = 0.0


class Rule(Protocol):
    name: str
    period: int  # seconds: the confidence of an unused lesson may change once in each
    periods: int  # after so many without use it changes no more
    needs_agreement: bool  # a lesson that was hardly tried moves only when two signals agree

    def begin(self, start: float) -> State: ...

    def idle(self, state: State, periods: int) -> State:
        """So many periods have passed since the last use."""

    def hear(self, state: State, signal: Signal) -> State:
        """One more signal counts."""

    def shown(self, state: State, periods: int) -> float:
        """The confidence after so many periods without use."""


class SignalsRule:
    """Each signal adds or takes; so does each month without use."""

    name = "signals"
    period, periods = MONTH, 21
    needs_agreement = True
    STEPS: ClassVar = {
        SignalKind.HELPFUL: 0.30,
        SignalKind.NOT_HELPFUL: -0.20,
        SignalKind.SUCCEEDED: 0.10,
        SignalKind.FAILED: -0.05,
        SignalKind.STABLE: 0.20,
        SignalKind.REVERTED: -0.15,
        SignalKind.SUPPORTED: 0.10,  # as much as one success
    }
    MONTH_WITHOUT_USE = -0.05

    def begin(self, start: float) -> State:
        return State(start, start)

    def idle(self, state: State, periods: int) -> State:
        lost = self.MONTH_WITHOUT_USE * max(0, periods - state.idle)
        return state._replace(value=_clamped(state.value + lost), idle=periods)

    def hear(self, state: State, signal: Signal) -> State:
        return state._replace(value=_clamped(state.value + self.STEPS[signal.kind]))

    def shown(self, state: State, periods: int) -> float:
        return self.idle(state, periods).value


class BayesianRule:
    """Success adds a share of what is missing to 1, failure takes a share of what is there."""

    name = "bayesian"
    period, periods = MONTH, 1
    needs_agreement = False
    SUCCESS, FAILURE = 0.20, 0.15

    def begin(self, start: float) -> State:
        return State(start, start)

    def idle(self, state: State, periods: int) -> State:
        return state

    def hear(self, state: State, signal: Signal) -> State:
        value = state.value
        value += self.SUCCESS * (1 - value) if signal.kind in GOOD else -self.FAILURE * value
        return state._replace(value=value)

    def shown(self, state: State, periods: int) -> float:
        return state.value


class SaflaRule:
    """A weighted sum of four: success rate, usage frequency, recency of use, similarity of the contexts it was used in.

    The start counts as one piece of work, so that the first signal does not decide alone; ten uses are as often as
    counts; recency falls with the days since the last use as it does in recall; the similarity is how well the lesson
    fitted the recalls that its signals name, and its start where they name none.
    """

    name = "safla"
    period, periods = DAY, 61
    needs_agreement = False
    SUCCESS_RATE, FREQUENCY, RECENCY, SIMILARITY = 0.4, 0.3, 0.2, 0.1
    OFTEN = 10
    RECENCY_PER_DAY = 0.1

    def begin(self, start: float) -> State:
        return self._weighed(State(0.0, start))

    def idle(self, state: State, periods: int) -> State:
        return state

    def hear(self, state: State, signal: Signal) -> State:
        return self._weighed(
            state._replace(
                good=state.good + (signal.kind in GOOD),
                counted=state.counted + 1,
                uses=state.uses + (signal.kind in USES),
                fit=state.fit + (signal.fit or 0.0),
                fits=state.fits + (signal.fit is not None),
            )
        )

    def _weighed(self, state: State) -> State:
        """`value` without recency, which is the readers' to add."""
        rate = (state.start + state.good) / (1 + state.counted)
        similarity = state.fit / state.fits if state.fits else state.start
        frequency = min(1.0, state.uses / self.OFTEN)
        value = self.SUCCESS_RATE * rate + self.FREQUENCY * frequency + self.SIMILARITY * similarity
        return state._replace(value=_clamped(value - state.cut))

    def shown(self, state: State, periods: int) -> float:
        fresh = math.exp(-self.RECENCY_PER_DAY * periods) if periods < self.periods - 1 else 0.0
        return state.value + self.RECENCY * fresh


RULES: dict[str, Rule] = {rule.name: rule for rule in (SignalsRule(), BayesianRule(), SaflaRule())}


@dataclass(frozen=True)
class Learning:
    """How the bank learns: the settings that confidence depends on."""

    rule: Rule = field(default_factory=SignalsRule)
    most_from_one_source: float = 0.3

    @property
    def name(self) -> str:
        """The same name, the same confidences; VERSION is another whenever this module computes others."""
        return f"{self.rule.name} {VERSION}, at most {self.most_from_one_source} from one source"


@dataclass(frozen=True)
class Confidence:
    """`ahead[n]` is the confidence after n periods without use since `idle_since` (both in seconds), and the last of
    them for ever after."""

    ahead: tuple[float, ...]
    idle_since: int
    period: int
    uses: int
    last_used_at: datetime | None
    points: tuple[ConfidencePoint, ...]

    def at(self, now: datetime) -> float:
        gone = max(0, _seconds(now) - self.idle_since) // self.period
        return self.ahead[min(gone, len(self.ahead) - 1)]

    def history(self, now: datetime) -> tuple[ConfidencePoint, ...]:
        """Every move with its time and reason, oldest first; the last of them is how it stands now."""
        if not self.points or self.at(now) == self.points[-1].value:
            return self.points
        gone = max(0, _seconds(now) - self.idle_since) // self.period
        return (*self.points, ConfidencePoint(time=now, value=self.at(now), why=_unused(gone, self.period)))


def learn(
    start: float, recorded_at: datetime, signals: Sequence[Signal], learning: Learning, telling: bool = True
) -> Confidence:
    """The confidence of a lesson, from everything that was said of it. `telling`: with every move and its reason, which
    takes several times as long as the confidence alone."""
    rule = learning.rule
    state = rule.begin(start)
    signals = sorted(signals, key=lambda one: (one.created_time, one.id))
    if signals:  # those of a merged lesson may be older than its text
        recorded_at = min(recorded_at, signals[0].created_time)
    since = _seconds(recorded_at)
    last_used_at: datetime | None = None
    uses = 0
    sources = Sources(learning.most_from_one_source)
    waiting: list[Signal] = []
    last_said: dict[bool, dict[str | None, int]] = {True: {}, False: {}}  # of good, and of bad: by whom, and when
    points = [ConfidencePoint(time=recorded_at, value=_shown(rule, state, 0), why=f"starts at {start:.2f}")]
    for signal in signals:
        moment = _seconds(signal.created_time)
        gone = max(0, moment - since) // rule.period
        if gone:
            state = rule.idle(state, gone)
        if telling and gone and _shown(rule, state, gone) != points[-1].value:
            faded = datetime.fromtimestamp(since, UTC) + timedelta(seconds=gone * rule.period)
            points.append(ConfidencePoint(time=faded, value=_shown(rule, state, gone), why=_unused(gone, rule.period)))
        good = signal.kind in GOOD
        counts = whole = True
        together: list[Signal] = []
        waits = rule.needs_agreement and uses < TRIED and not _agreed(signal, moment, last_said[good])
        last_said[good][_who(signal)] = moment
        if waits:
            waiting.append(signal)
            counts = sources.room(signal) > _SLACK
        else:
            # Those that waited for this one count with it.
            together = [
                one
                for one in waiting
                if (one.kind in GOOD) == good and moment - _seconds(one.created_time) <= AGREE_WITHIN
            ]
            waiting = [one for one in waiting if one not in together]
            state, whole, counts = _hear(rule, state, [*together, signal], sources)
        if signal.kind in USES:
            uses, last_used_at = uses + 1, signal.created_time
            if counts:
                gone = _renewed(rule, state, signal, gone, sources)
                since = moment - gone * rule.period
                state = state._replace(idle=gone)
        if telling:
            why = " and ".join(WORDS[one.kind] for one in [*together, signal])
            why += "; waits for a second signal that agrees within 7 days" if waits else ""
            why += "" if whole else "; not all of it counts: one source moves a lesson only so far"
            points.append(ConfidencePoint(time=signal.created_time, value=_shown(rule, state, gone), why=why))
    return Confidence(
        ahead=tuple(_shown(rule, state, gone) for gone in range(rule.periods)),
        idle_since=since,
        period=rule.period,
        uses=uses,
        last_used_at=last_used_at,
        points=tuple(points),
    )


def once_each(signals: Sequence[Signal]) -> list[Signal]:
    """In the order of time, without what was told of several lessons that are one now: of one kind, a piece of work
    counts for the first of them alone."""
    ordered = sorted(signals, key=lambda one: (one.created_time, one.id))
    first: dict[tuple[str, str], int] = {}
    return [one for one in ordered if first.setdefault((one.work or one.id, one.kind), one.rb_id) == one.rb_id]


def _who(signal: Signal) -> str | None:
    """Who says it, where that matters for agreement: other work that taught the same speaks for itself, though one
    distiller has read all of it."""
    return None if signal.kind is SignalKind.SUPPORTED else signal.source


def _agreed(signal: Signal, moment: int, said: Mapping[str | None, int]) -> bool:
    """Whether somebody else has said the same lately. Who is not named may be anybody."""
    who = _who(signal)
    return any(
        moment - when <= AGREE_WITHIN for other, when in said.items() if other is None or who is None or other != who
    )


@dataclass
class Sources:
    """How far each source that is named has moved a lesson: `moved` by what it said, `renewed` by using it at all, which
    lasts only for a time and so gives no room to move it further down."""

    most: float
    moved: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    renewed: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def room(self, signal: Signal, effect: float = 0.0) -> float:
        """How far the source of a signal may still move the lesson the way that this one would."""
        if signal.source is None:
            return math.inf
        up = effect > 0 if effect else signal.kind in GOOD
        return self.room_up(signal.source) if up else self.most + self.moved[signal.source]

    def room_up(self, source: str) -> float:
        return self.most - self.moved[source] - self.renewed[source]


def _hear(rule: Rule, state: State, signals: Sequence[Signal], sources: Sources) -> tuple[State, bool, bool]:
    """The signals count, one after the other, as far as their source may still move the lesson. Also whether all of it
    counts, and whether anything of the last."""
    whole = counts = True
    for signal in signals:
        after = rule.hear(state, signal)
        effect = after.value - state.value
        room = sources.room(signal, effect)
        counts = room > _SLACK
        whole = whole and counts and abs(effect) < room + _SLACK
        if not counts:
            continue  # it may not move the lesson at all
        if signal.source is not None:
            excess = math.copysign(max(0.0, abs(effect) - room), effect)
            if abs(excess) > _SLACK:
                after = after._replace(value=after.value - excess, cut=state.cut + excess)
            sources.moved[signal.source] += effect - excess
        state = after
    return state, whole, counts


def _renewed(rule: Rule, state: State, signal: Signal, gone: int, sources: Sources) -> int:
    """How many periods without use are left after a use: none, unless the confidence would rise by more than the source
    of the signal may still move it."""
    if signal.source is None:
        return 0
    before = rule.shown(state, gone)
    room = sources.room_up(signal.source) + _SLACK
    left = next(n for n in range(gone + 1) if n == gone or rule.shown(state, n) - before <= room)
    sources.renewed[signal.source] += rule.shown(state, left) - before
    return left


def _shown(rule: Rule, state: State, periods: int) -> float:
    return round(rule.shown(state, periods), DIGITS)


def _unused(periods: int, period: int) -> str:
    name = "month" if period == MONTH else "day"
    return f"{periods} {name}{'' if periods == 1 else 's'} without use"


def _seconds(moment: datetime) -> int:
    return math.floor(moment.timestamp())


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
