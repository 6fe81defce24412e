"""Signals -> confidence: pure, no I/O.

A lesson's confidence is a function of where it started, its signals in the order of time, and now. `learn` folds the
signals; what it returns knows the confidence for every period without use that may follow, so that nothing need run
when time passes: a reader takes the value of the period that it is in. Three rules share one fold.

- A lesson is *used* when feedback or an outcome names it. Periods without use are counted from the last use, or from
  the moment it was recorded.
- A source that is named moves a lesson by at most `most_from_one_source`, up or down, in all: what it says beyond that
  is kept and moves nothing. A signal without a source stands for itself.
"""

import math
from collections.abc import Sequence
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
        """The same name, the same confidences."""
        return f"{self.rule.name}, at most {self.most_from_one_source} from one source"


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
    since = _seconds(recorded_at)
    last_used_at: datetime | None = None
    uses = 0
    moved: dict[str, float] = {}
    waiting: list[Signal] = []
    last_said: dict[bool, int] = {}  # of good, and of bad
    points = [ConfidencePoint(time=recorded_at, value=_shown(rule, state, 0), why=f"starts at {start:.2f}")]
    for signal in sorted(signals, key=lambda one: (one.created_time, one.id)):
        moment = _seconds(signal.created_time)
        gone = max(0, moment - since) // rule.period
        if gone:
            state = rule.idle(state, gone)
        if telling and gone and _shown(rule, state, gone) != points[-1].value:
            faded = datetime.fromtimestamp(since, UTC) + timedelta(seconds=gone * rule.period)
            points.append(ConfidencePoint(time=faded, value=_shown(rule, state, gone), why=_unused(gone, rule.period)))
        if signal.kind in USES:
            since, last_used_at, gone = moment, signal.created_time, 0
            state = state._replace(idle=0) if state.idle else state
        good = signal.kind in GOOD
        agreed = good in last_said and moment - last_said[good] <= AGREE_WITHIN
        last_said[good] = moment
        whole, together = True, []
        waits = rule.needs_agreement and uses < TRIED and not agreed
        if waits:
            waiting.append(signal)
        else:
            # Those that waited for this one count with it.
            together = [
                one
                for one in waiting
                if (one.kind in GOOD) == good and moment - _seconds(one.created_time) <= AGREE_WITHIN
            ]
            waiting = [one for one in waiting if one not in together]
            state, whole = _hear(rule, state, [*together, signal], moved, learning.most_from_one_source)
        uses += signal.kind in USES
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


def _hear(
    rule: Rule, state: State, signals: Sequence[Signal], moved: dict[str, float], most: float
) -> tuple[State, bool]:
    """The signals count, one after the other, as far as their source may still move the lesson; `moved` is how far each
    source has. Also whether all of it counts."""
    whole = True
    for signal in signals:
        after = rule.hear(state, signal)
        if signal.source is not None:
            effect = after.value - state.value
            far = moved.get(signal.source, 0.0) + effect
            excess = far - min(most, max(-most, far))
            if abs(excess) > _SLACK:
                whole = False
                if abs(excess) > abs(effect) - _SLACK:
                    continue  # it may not move the lesson at all
                after = after._replace(value=after.value - excess, cut=state.cut + excess)
            moved[signal.source] = far - excess
        state = after
    return state, whole


def _shown(rule: Rule, state: State, periods: int) -> float:
    return round(rule.shown(state, periods), DIGITS)


def _unused(periods: int, period: int) -> str:
    name = "month" if period == MONTH else "day"
    return f"{periods} {name}{'' if periods == 1 else 's'} without use"


def _seconds(moment: datetime) -> int:
    return math.floor(moment.timestamp())


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
