"""Walks over the weighted edges: pure arithmetic on what was fetched, no I/O."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph.model import Path, Step

# An edge as `cypher/read/neighbours` returns it: its id, the memory at its other end, its weight, whether it leads away.
LeanEdge = Sequence[object]
# How many partial paths are looked at before the search settles for what it has.
MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Way:
    """An edge as it was walked: from where to where, along it or against it."""

    edge: str
    source: str
    target: str
    weight: float
    forward: bool


def best_routes(starts: Mapping[str, float], ways: Sequence[Way], max_hops: int, keep: int) -> dict[str, list[Path]]:
    """The `keep` best ways from any start to each memory that is none, by the start's strength times the weights.
    No path visits a memory twice. Each hop goes on from the best ways of the hop before."""
    leaving: dict[str, list[Way]] = {}
    for way in ways:
        leaving.setdefault(way.source, []).append(way)
    front = {
        start: [Path.model_construct(score=strength, steps=(_first_step(start, strength),))]
        for start, strength in starts.items()
    }
    best: dict[str, list[Path]] = {}
    for _ in range(max_hops):
        reached: dict[str, list[Path]] = {}
        for place, paths in front.items():
            for way in leaving.get(place, ()):
                if way.target in starts:
                    continue
                for path in paths:
                    energy = path.score * way.weight
                    if energy > 0 and all(step.memory != way.target for step in path.steps):
                        step = Step.model_construct(
                            memory=way.target, edge=way.edge, forward=way.forward, energy=energy
                        )
                        longer = Path.model_construct(score=energy, steps=(*path.steps, step))
                        reached.setdefault(way.target, []).append(longer)
        front = {place: sorted(paths, key=_by_score)[:keep] for place, paths in reached.items()}
        for place, paths in front.items():
            best[place] = sorted([*best.get(place, ()), *paths], key=_by_score)[:keep]
    return best


def _first_step(memory: str, energy: float) -> Step:
    return Step.model_construct(memory=memory, edge=None, forward=True, energy=energy)


def _by_score(path: Path) -> tuple[float, int, list[str]]:
    """Best first; of equals the shorter one, then by the ids of the edges."""
    return -path.score, len(path.steps), [step.edge or "" for step in path.steps]


def best_paths(
    edges: Mapping[str, Sequence[LeanEdge]], source: str, target: str, max_hops: int, limit: int
) -> list[Path]:
    """The `limit` best simple paths by the product of their weights, best first.

    A best-first search whose estimate of the rest is exact without the no-cycle rule, so it is never too low:
    paths come out in their true order, and what cannot reach the target in the hops left is never entered.
    """
    ways = _both_ways(edges)
    reach = _best_products_to(ways, target, max_hops)
    found: list[Path] = []
    counter = 0  # keeps the heap from comparing paths, and equal scores in the order they were met
    start = (Step(memory=source, edge=None, forward=True, energy=1.0),)
    heap: list[tuple[float, int, int, tuple[Step, ...]]] = []
    if (estimate := reach[max_hops].get(source, 0.0)) > 0:
        heap.append((-estimate, 0, 0, start))
    while heap and len(found) < limit and counter < MOST_STEPS:
        _, _, _, steps = heapq.heappop(heap)
        here = steps[-1]
        if here.memory == target:
            found.append(Path(score=here.energy, steps=steps))
            continue
        hops_left = max_hops - (len(steps) - 1)
        if hops_left == 0:
            continue
        visited = {step.memory for step in steps}
        for edge_id, neighbour, weight, forward in ways.get(here.memory, ()):
            if neighbour in visited or weight <= 0:
                continue
            energy = here.energy * weight
            estimate = energy * reach[hops_left - 1].get(neighbour, 0.0)
            if estimate <= 0:
                continue
            counter += 1
            step = Step(memory=neighbour, edge=edge_id, forward=forward, energy=energy)
            heapq.heappush(heap, (-estimate, len(steps), counter, (*steps, step)))
    return found


def _both_ways(edges: Mapping[str, Sequence[LeanEdge]]) -> dict[str, list[tuple[str, str, float, bool]]]:
    """Every edge from both of its ends, also where only one end was asked for."""
    ways: dict[str, dict[str, tuple[str, str, float, bool]]] = {}
    for memory, own in edges.items():
        for edge_id, neighbour, weight, forward in own:
            ways.setdefault(memory, {})[str(edge_id)] = (str(edge_id), str(neighbour), float(weight), bool(forward))  # type: ignore[arg-type]
            ways.setdefault(str(neighbour), {})[str(edge_id)] = (str(edge_id), memory, float(weight), not forward)  # type: ignore[arg-type]
    return {memory: sorted(own.values(), key=lambda edge: (-edge[2], edge[0])) for memory, own in ways.items()}


def _best_products_to(
    ways: Mapping[str, Sequence[tuple[str, str, float, bool]]], target: str, max_hops: int
) -> list[dict[str, float]]:
    """For each number of hops: the best product from every memory to the target within so many."""
    reach = [{target: 1.0}]
    for _ in range(max_hops):
        before = reach[-1]
        now = dict(before)
        for memory, product in before.items():
            for _, neighbour, weight, _ in ways.get(memory, ()):
                if product * weight > now.get(neighbour, 0.0):
                    now[neighbour] = product * weight
        reach.append(now)
    return reach
