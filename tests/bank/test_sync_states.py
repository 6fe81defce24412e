"""Every interleaving of the steps of `bank/sync.py` over one record: two indexers, two removers, a sweeper, writes, deletions,
crashes and late wake-ups. An actor that sleeps is one that does not move for as long as the others like."""

import functools
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import pytest

import bank.sync
from bank.sync import ACTORS, Held, Pair, Step, deleted, written

WRITES = 3
MOST_NUMBERS = 6  # of revisions and notes: what goes on beyond, goes on as before


class Doing(NamedTuple):
    """Where an actor is: the step it takes next, and what it read."""

    step: int = 0
    held: Held = None


class World(NamedTuple):
    pair: Pair
    cast: tuple[Doing, ...]
    writes: int  # that are still to come
    crashes: int


def _after(world: World, cast: Sequence[str]) -> list[World]:
    """Every world that one step leads to."""
    found = []
    for place, (name, doing) in enumerate(zip(cast, world.cast, strict=True)):
        pair, held = ACTORS[name][doing.step](world.pair, doing.held)
        step = (doing.step + 1) % len(ACTORS[name])
        if doing.step == 0 and held is None and name != "sweeper":
            continue  # nothing to do: it does not start; for a sweeper no row is something to judge too
        found.append(world._replace(pair=pair, cast=_put(world.cast, place, Doing(step, held if step else None))))
        if doing.step and world.crashes:
            found.append(world._replace(cast=_put(world.cast, place, Doing()), crashes=world.crashes - 1))
    if world.writes:
        left = world.writes - 1
        found.append(world._replace(pair=written(world.pair), writes=left))
        if world.pair.record is not None:
            found.append(world._replace(pair=deleted(world.pair), writes=left))
    return [one for one in found if one.pair.last <= MOST_NUMBERS]


def _put(cast: tuple[Doing, ...], place: int, doing: Doing) -> tuple[Doing, ...]:
    return (*cast[:place], doing, *cast[place + 1 :])


def _every_world(cast: Sequence[str], crashes: int, writes: int = WRITES) -> set[World]:
    """By the table as it is at this moment."""
    return _known_worlds(tuple(cast), crashes, writes, tuple(ACTORS.values()))


@functools.cache
def _known_worlds(cast: tuple[str, ...], crashes: int, writes: int, table: tuple[tuple[Step, ...], ...]) -> set[World]:
    start = World(Pair(), (Doing(),) * len(cast), writes, crashes)
    seen, left = {start}, deque([start])
    while left:
        for world in _after(left.popleft(), cast):
            if world not in seen:
                seen.add(world)
                left.append(world)
    return seen


def _run(pair: Pair, name: str) -> Pair:
    held: Held = None
    for place, step in enumerate(ACTORS[name]):
        pair, held = step(pair, held)
        if place == 0 and held is None and name != "sweeper":
            return pair
    return pair


def _quiet(world: World) -> bool:
    return all(doing.step == 0 for doing in world.cast) and not world.pair.marked and world.pair.removal is None


def _disagreeing(cast: Sequence[str], crashes: int, writes: int = WRITES) -> list[World]:
    quiet = [world for world in _every_world(cast, crashes, writes) if _quiet(world)]
    assert len(quiet) > 10
    return [world for world in quiet if world.pair.row != world.pair.record]


TWO_PROCESSES = ("indexer", "indexer", "remover", "remover")


def test_where_nobody_dies_the_stores_agree_whenever_it_is_quiet() -> None:
    """Two processes, however late each of them wakes up: no sweep is needed for it."""
    assert len(_every_world(TWO_PROCESSES, crashes=0)) > 10_000
    assert _disagreeing(TWO_PROCESSES, crashes=0) == []


def _marked_only(pair: Pair, held: Held) -> tuple[Pair, Held]:
    """Clears marks as one might do it without thinking of other processes."""
    if pair.record is None:
        return bank.sync._noted(pair), None
    return pair._replace(marked=pair.record != held), None


def _never_noted(pair: Pair, held: Held) -> tuple[Pair, Held]:
    return (pair, None) if pair.record is None else bank.sync._clear_mark(pair, held)


def _any_note(pair: Pair, held: Held) -> tuple[Pair, Held]:
    """Drops a note that is not the one it has read."""
    assert isinstance(held, tuple)
    return bank.sync._settle_removal(pair, held if pair.removal is None else (pair.removal, held[1]))


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("indexer", (bank.sync._read_marked, bank.sync._put_row, _marked_only)),
        ("indexer", (bank.sync._read_marked, bank.sync._put_row, _never_noted)),
        ("remover", (bank.sync._read_removal, bank.sync._drop_row, _any_note)),
        ("remover", (bank.sync._read_removal, lambda pair, held: (pair, held), bank.sync._settle_removal)),
    ],
)
def test_with_one_step_less_they_would_not(name: str, steps: tuple[Step, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The search finds what is wrong with a table that is not quite right."""
    monkeypatch.setitem(ACTORS, name, steps)
    assert _disagreeing(TWO_PROCESSES, crashes=0)


@pytest.mark.parametrize(
    ("cast", "crashes", "writes"),
    [
        (("indexer", "indexer", "remover", "sweeper"), 3, WRITES),
        ((*TWO_PROCESSES, "sweeper"), 2, 2),
    ],
)
def test_after_crashes_a_sweep_leaves_no_quiet_state_in_which_the_stores_disagree(
    cast: tuple[str, ...], crashes: int, writes: int
) -> None:
    """After a sweep, a remover and an indexer have run, the row is the record's, or both are gone; and then they stay so."""
    assert len(_every_world(cast, crashes, writes)) > 30_000
    assert _disagreeing(cast, crashes, writes)  # who wakes up late and dies leaves the sweep something to find
    for world in _every_world(cast, crashes, writes):
        if all(doing.step == 0 for doing in world.cast):
            pair = world.pair
            for name in ("sweeper", "remover", "indexer"):
                pair = _run(pair, name)
            assert pair.row == pair.record and not pair.marked and pair.removal is None, (world, pair)
            again = pair
            for name in ("sweeper", "remover", "indexer"):
                again = _run(again, name)
            assert again == pair


def test_a_mark_is_only_cleared_for_the_revision_that_was_indexed() -> None:
    """No step takes the mark off a record whose newest revision nobody has put into the index since it was written."""
    cast = ("indexer", "indexer", "remover", "sweeper")
    for world in _every_world(cast, crashes=1):
        for after in _after(world, cast):
            if world.pair.marked and not after.pair.marked and after.pair.record is not None:
                indexers = [doing for name, doing in zip(cast, world.cast, strict=True) if name == "indexer"]
                assert any(doing.held == world.pair.record for doing in indexers)
