"""Every interleaving of the steps of `bank/sync.py` over one record: two indexers, a remover, a sweeper, writes, deletions,
crashes and late wake-ups. An actor that sleeps is one that does not move for as long as the others like."""

from collections import deque
from typing import NamedTuple

from bank.sync import ACTORS, Pair, deleted, written

# (actor, how many): the second indexer is another process.
CAST = ("indexer", "indexer", "remover", "sweeper")
WRITES, CRASHES = 3, 1


class Doing(NamedTuple):
    """Where an actor is: the step it takes next, and what it read."""

    step: int = 0
    held: int | None = None


class World(NamedTuple):
    pair: Pair
    cast: tuple[Doing, ...]
    writes: int
    crashes: int


def _after(world: World) -> list[World]:
    """Every world that one step leads to."""
    found = []
    for place, (name, doing) in enumerate(zip(CAST, world.cast, strict=True)):
        pair, held = ACTORS[name][doing.step](world.pair, doing.held)
        step = (doing.step + 1) % len(ACTORS[name])
        if doing.step == 0 and held is None and name != "sweeper":
            continue  # nothing to do: it does not start; for a sweeper no row is something to judge too
        found.append(world._replace(pair=pair, cast=_put(world.cast, place, Doing(step, held if step else None))))
        if doing.step and world.crashes:
            found.append(world._replace(cast=_put(world.cast, place, Doing()), crashes=world.crashes - 1))
    if world.writes < WRITES:
        done = world.writes + 1
        found.append(world._replace(pair=written(world.pair, done), writes=done))
        if world.pair.record is not None:
            found.append(world._replace(pair=deleted(world.pair), writes=done))
    return found


def _put(cast: tuple[Doing, ...], place: int, doing: Doing) -> tuple[Doing, ...]:
    return (*cast[:place], doing, *cast[place + 1 :])


def _every_world() -> set[World]:
    start = World(Pair(), (Doing(),) * len(CAST), 0, CRASHES)
    seen, left = {start}, deque([start])
    while left:
        for world in _after(left.popleft()):
            if world not in seen:
                seen.add(world)
                left.append(world)
    return seen


def _run(pair: Pair, name: str) -> Pair:
    held = None
    for step in ACTORS[name]:
        pair, held = step(pair, held)
    return pair


def _quiet(world: World) -> bool:
    return all(doing.step == 0 for doing in world.cast) and not world.pair.marked and not world.pair.removal


def test_a_sweep_leaves_no_quiet_state_in_which_the_stores_disagree() -> None:
    """After a sweep, an indexer and a remover have run, the row is the record's, or both are gone; and then they stay so."""
    worlds = _every_world()
    quiet = [world for world in worlds if _quiet(world)]
    assert len(worlds) > 5_000 and len(quiet) > 20
    wrong_without_sweep = [world for world in quiet if world.pair.row != world.pair.record]
    assert wrong_without_sweep  # late wake-ups do happen here: the sweep has something to find
    for world in worlds:
        if all(doing.step == 0 for doing in world.cast):
            pair = world.pair
            for name in ("sweeper", "remover", "indexer"):
                pair = _run(pair, name)
            assert pair.row == pair.record and not pair.marked and not pair.removal, (world, pair)
            again = pair
            for name in ("sweeper", "remover", "indexer"):
                again = _run(again, name)
            assert again == pair


def test_a_mark_is_only_cleared_for_the_revision_that_was_indexed() -> None:
    """No step takes the mark off a record whose newest revision nobody has put into the index since it was written."""
    for world in _every_world():
        for after in _after(world):
            if world.pair.marked and not after.pair.marked and after.pair.record is not None:
                indexers = [doing for name, doing in zip(CAST, world.cast, strict=True) if name == "indexer"]
                assert any(doing.held == world.pair.record for doing in indexers)
