"""Confidence as a pure function: the numbers of each rule, agreement, time without use, and floods."""

from datetime import UTC, datetime, timedelta

import pytest

from bank.learn import RULES, START_BY_HAND, START_FROM_FAILURE, START_FROM_SUCCESS, Confidence, Learning, learn
from bank.model import Signal, SignalKind

RECORDED = datetime(2026, 1, 1, tzinfo=UTC)
UP = ("HELPFUL", "SUCCEEDED", "STABLE")


def after(rule: str, *said: str, start: float = 0.5, hours: float = 1, most: float = 1.0) -> Confidence:
    """What signals, one every so many hours, come to. `KIND@source:fit` names who says it, and how well it fitted."""
    signals = []
    for place, one in enumerate(said):
        one, _, fit = one.partition(":")
        kind, _, source = one.partition("@")
        signals.append(
            Signal(
                id=f"S{place:04}",
                rb_id=1,
                kind=SignalKind(kind),
                source=source or None,
                fit=float(fit) if fit else None,
                created_time=RECORDED + timedelta(hours=hours * (place + 1)),
            )
        )
    return learn(start, RECORDED, signals, Learning(RULES[rule], most))


def confidence(
    rule: str, *said: str, start: float = 0.5, hours: float = 1, most: float = 1.0, days: float = 0
) -> float:
    """Right after the last signal, or so many days later."""
    last = RECORDED + timedelta(hours=hours * len(said), days=days)
    return after(rule, *said, start=start, hours=hours, most=most).at(last)


def test_where_a_lesson_starts() -> None:
    """By hand 0.8, distilled from success 0.7, from failure 0.6."""
    assert (START_BY_HAND, START_FROM_SUCCESS, START_FROM_FAILURE) == (0.8, 0.7, 0.6)
    assert confidence("signals", start=START_BY_HAND) == confidence("bayesian", start=START_BY_HAND) == 0.8


# Three uses that came far apart and did not agree: they wait for ever, and from then on each signal counts by itself.
TRIED = ("SUCCEEDED", "FAILED", "SUCCEEDED")


@pytest.mark.parametrize(
    ("kind", "step"),
    [("HELPFUL", 0.30), ("NOT_HELPFUL", -0.20), ("SUCCEEDED", 0.10), ("FAILED", -0.05), ("STABLE", 0.20), ("REVERTED", -0.15), ("SUPPORTED", 0.10)],
)  # fmt: skip
def test_signals_each_kind_has_its_step(kind: str, step: float) -> None:
    """helpful +0.30, not helpful -0.20, succeeded +0.10, failed -0.05, stable +0.20, reverted -0.15."""
    assert confidence("signals", *TRIED, hours=10 * 24) == 0.5
    assert confidence("signals", *TRIED, kind, hours=10 * 24) == pytest.approx(0.5 + step)


def test_signals_stay_between_0_and_1() -> None:
    """However much is said."""
    assert confidence("signals", *["HELPFUL"] * 9) == 1.0
    assert confidence("signals", *["NOT_HELPFUL"] * 9) == 0.0
    assert confidence("signals", *["NOT_HELPFUL"] * 9, "HELPFUL") == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("said", "hours", "value"),
    [
        (["HELPFUL"], 1, 0.5),  # one alone moves nothing
        (["HELPFUL", "HELPFUL"], 1, 1.0),  # the second brings the first with it
        (["SUCCEEDED", "HELPFUL"], 1, 0.9),  # different kinds agree, too
        (["HELPFUL", "NOT_HELPFUL"], 1, 0.5),  # they do not agree
        (["FAILED", "HELPFUL", "FAILED"], 1, 0.4),  # the two that agree count
        (["SUCCEEDED", "SUCCEEDED"], 7 * 24, 0.7),  # exactly seven days
        (["SUCCEEDED", "SUCCEEDED"], 7 * 24 + 1, 0.5),  # a little more
        (["SUCCEEDED", "SUCCEEDED", "SUCCEEDED"], 8 * 24, 0.5),  # each too late for the one before
        (
            ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"],
            8 * 24,
            0.6,
        ),  # used three times before: the fourth counts
        (["STABLE", "STABLE", "STABLE"], 8 * 24, 0.5),  # not used: stability is no use
    ],
)
def test_signals_two_must_agree_within_seven_days(said: list[str], hours: float, value: float) -> None:
    """While the lesson was used fewer than three times."""
    assert confidence("signals", *said, hours=hours) == pytest.approx(value)


@pytest.mark.parametrize(
    ("days", "value"),
    [(0, 0.8), (29.9, 0.8), (30, 0.75), (59.9, 0.75), (60, 0.7), (300, 0.3), (480, 0.0), (9_999, 0.0)],
)
def test_signals_time_without_use(days: float, value: float) -> None:
    """Each whole month without use takes 0.05; nothing falls below 0."""
    assert confidence("signals", start=0.8, days=days) == value


def test_signals_use_starts_the_months_again() -> None:
    """A use, also one that does not move it, starts them again; stability is no use and does not."""
    assert confidence("signals", "SUCCEEDED", start=0.8, hours=29 * 24, days=29) == 0.8
    assert confidence("signals", "STABLE", start=0.8, hours=29 * 24, days=29) == 0.75
    assert confidence("signals", "SUCCEEDED", start=0.8, hours=60 * 24, days=29) == 0.7
    assert confidence("signals", "STABLE", "STABLE", start=1.0, hours=3 * 30 * 24 / 2 - 72, days=6) == pytest.approx(
        0.85
    )


def test_signals_what_is_gained_while_unused_is_not_lost_twice() -> None:
    """Three months without use, then found stable twice: the months that follow count from there."""
    learnt = after("signals", "REVERTED", "REVERTED", start=1.0, hours=46 * 24)
    assert learnt.points[-1].value == 0.85  # three months; the two are too far apart to agree
    assert learnt.at(RECORDED + timedelta(days=119)) == 0.85
    assert learnt.at(RECORDED + timedelta(days=120)) == 0.8


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (["HELPFUL"], 0.6), (["SUCCEEDED"], 0.6), (["STABLE"], 0.6),
        (["NOT_HELPFUL"], 0.425), (["FAILED"], 0.425), (["REVERTED"], 0.425),
        (["SUCCEEDED", "SUCCEEDED"], 0.68), (["SUCCEEDED", "FAILED"], 0.51), (["FAILED", "FAILED"], 0.36125),
    ],
)  # fmt: skip
def test_bayesian(said: list[str], value: float) -> None:
    """Success adds 20 % of what is missing to 1, failure takes 15 % of what is there; time does nothing."""
    assert confidence("bayesian", *said) == pytest.approx(value)
    assert confidence("bayesian", *said, days=999) == pytest.approx(value)


@pytest.mark.parametrize(
    ("said", "days", "value"),
    [
        # 0.4 success rate + 0.3 usage frequency + 0.2 recency + 0.1 similarity of contexts; the start is one success
        ([], 0, 0.4 + 0 + 0.2 + 0.1),
        (["SUCCEEDED"], 0, 0.4 + 0.03 + 0.2 + 0.1),
        (["FAILED"], 0, 0.4 / 2 + 0.03 + 0.2 + 0.1),
        (["SUCCEEDED"] * 10, 0, 1.0),
        (["SUCCEEDED"] * 20, 0, 1.0),
        (["SUCCEEDED"] * 10, 1, 0.8 + 0.2 * 0.904837),
        (["SUCCEEDED"] * 10, 60, 0.8),
        (["SUCCEEDED@:0.6", "SUCCEEDED@:0.2"], 0, 0.4 + 0.06 + 0.2 + 0.04),
        (["STABLE"], 0, 0.4 + 0 + 0.2 + 0.1),
        (["FAILED"] * 9, 0, 0.04 + 0.27 + 0.2 + 0.1),
    ],
)
def test_safla(said: list[str], days: float, value: float) -> None:
    """The four parts by their weights; recency falls by the day as it does in recall."""
    assert confidence("safla", *said, start=1.0, days=days) == pytest.approx(value, abs=2e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [0.1, 0.3, 0.5])
def test_a_flood_from_one_source_moves_it_only_so_far(rule: str, most: float) -> None:
    """Praise or blame, hundreds of times: no further than the setting. Others still move it; not so by `safla`, whose
    rate is that of all signals."""
    for word in ("HELPFUL", "SUCCEEDED", "NOT_HELPFUL", "FAILED"):
        before = after(rule, start=0.5).at(RECORDED)
        flooded = confidence(rule, *[f"{word}@one"] * 300, start=0.5, hours=0.01, most=most)
        assert abs(flooded - before) <= most + 1e-6
    if rule == "safla":
        return
    praise = ["SUCCEEDED@one" for _ in range(300)]
    others = [f"FAILED@{n}" for n in range(40)]
    flooded = confidence(rule, *praise, start=0.5, hours=0.01, most=most)
    assert confidence(rule, *praise, *others, start=0.5, hours=0.01, most=most) < flooded - 0.1


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("idle", [0, 5, 61, 200])
def test_a_flood_moves_an_old_lesson_only_so_far(rule: str, most: float, idle: int) -> None:
    """It was not used for days, and one source floods it: what is shown then and ever after is no further above what it
    was, nor below what time alone would have made of it, than the setting."""
    learning = Learning(RULES[rule], most)
    flood = RECORDED + timedelta(days=idle)
    alone = learn(0.5, RECORDED, [], learning)
    for kind in (SignalKind.HELPFUL, SignalKind.SUCCEEDED, SignalKind.NOT_HELPFUL, SignalKind.FAILED):
        said = [
            Signal(id=f"S{n:04}", rb_id=1, kind=kind, source="one", created_time=flood + timedelta(minutes=n))
            for n in range(300)
        ]
        learnt = learn(0.5, RECORDED, said, learning)
        for point in learnt.points[1:]:
            assert abs(point.value - alone.at(flood)) <= most + 2e-6, point
        for days in (0.3, 1, 7, 29, 61, 300):
            later = flood + timedelta(days=days)
            assert alone.at(later) - most - 2e-6 <= learnt.at(later) <= alone.at(flood) + most + 2e-6, (kind, days)


@pytest.mark.parametrize("rule", ["signals", "safla"])
def test_a_source_that_is_used_up_ends_no_time_without_use(rule: str) -> None:
    """It praises a lesson every day for a year: the year passes all the same. Somebody else's praise starts it again."""
    learnt = after(rule, *["SUCCEEDED@one"] * 365, hours=24, most=0.3)
    best = max(point.value for point in learnt.points)
    last = RECORDED + timedelta(days=365)
    assert learnt.at(last) < best - 0.1 and learnt.uses == 365 and learnt.last_used_at == last
    other = after(rule, *["SUCCEEDED@one"] * 365, "SUCCEEDED@two", hours=24, most=0.3)
    assert other.idle_since == int((last + timedelta(days=1)).timestamp())


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (["HELPFUL@ana", "HELPFUL@ana"], 0.5),  # she alone
        (["HELPFUL@ana", "HELPFUL@ben"], 1.0),
        (["HELPFUL@ana", "HELPFUL"], 1.0),  # may be anybody
        (["SUCCEEDED@ana", "SUCCEEDED@ana", "SUCCEEDED@ben"], 0.8),  # all that waited
        (["SUCCEEDED@ana", "SUCCEEDED@ben", "SUCCEEDED@ana"], 0.8),
        (["SUPPORTED@rules", "SUPPORTED@rules"], 0.7),  # one distiller, but other work
    ],
)
def test_signals_two_of_one_source_are_no_agreement(said: list[str], value: float) -> None:
    """Where both are named, they must be different."""
    assert confidence("signals", *said) == pytest.approx(value)


def test_a_history_begins_with_the_first_signal() -> None:
    """Where it is older than the text, as it may be in a lesson that was merged."""
    said = [
        Signal(id=f"S{n}", rb_id=1, kind=SignalKind.HELPFUL, created_time=RECORDED + timedelta(days=n))
        for n in range(4)
    ]
    history = learn(0.5, RECORDED + timedelta(days=2), said, Learning()).history(RECORDED + timedelta(days=9))
    assert [point.time for point in history] == sorted(point.time for point in history)
    assert history[0].why == "starts at 0.50" and history[0].time == RECORDED


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_arrival_does_not_matter(rule: str) -> None:
    """Only the times of the signals do: the function is pure."""
    kinds = ["HELPFUL", "FAILED", "FAILED", "STABLE", "SUCCEEDED", "REVERTED", "NOT_HELPFUL"]
    signals = [
        Signal(id=f"S{n}", rb_id=1, kind=SignalKind(kind), created_time=RECORDED + timedelta(days=5 * n))
        for n, kind in enumerate(kinds)
    ]
    learning = Learning(RULES[rule])
    assert learn(0.8, RECORDED, signals, learning) == learn(0.8, RECORDED, signals[::-1], learning)


@pytest.mark.parametrize("rule", RULES)
def test_history_tells_every_move(rule: str) -> None:
    """It begins with the start, has a reason for each signal, and ends with the confidence of now."""
    learnt = after(rule, "HELPFUL", "HELPFUL", "REVERTED", start=0.5, hours=31 * 24)
    now = RECORDED + timedelta(days=200)
    history = learnt.history(now)
    assert history[0].why == "starts at 0.50" and history[-1].value == learnt.at(now)
    assert [point.time for point in history] == sorted(point.time for point in history)
    assert sum("found helpful" in point.why for point in history) == 2
    assert sum("reverted" in point.why for point in history) == 1


@pytest.mark.parametrize("rule", RULES)
def test_what_is_told_changes_nothing(rule: str) -> None:
    """The confidence alone, without its history, is the same."""
    signals = [
        Signal(
            id=f"S{n}", rb_id=1, kind=kind, source=f"s{n % 3}", created_time=RECORDED + timedelta(days=9 * n * n % 400)
        )
        for n, kind in enumerate([*SignalKind] * 4)
    ]
    told = learn(0.6, RECORDED, signals, Learning(RULES[rule]))
    alone = learn(0.6, RECORDED, signals, Learning(RULES[rule]), telling=False)
    assert (told.ahead, told.idle_since, told.uses) == (alone.ahead, alone.idle_since, alone.uses)
    assert len(told.points) > len(signals)
