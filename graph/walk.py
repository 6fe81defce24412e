"""Walks over the weighted edges: pure arithmetic on what was fetched, no I/O."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from graph.model import Path, Step

# An edge as `cypher/read/neighbours` returns it: its id, the memory at its other end, its weight, whether it leads away.
LeanEdge = Sequence[object]
# How many partial paths are looked at before the search settles for what it has.
MOST_STEPS = 200_000


class Way(NamedTuple):
    """An edge as it was walked: from where to where, along it or against it."""

    edge: str
    source: str
    target: str
    weight: float
    forward: bool


# A path on its way: its energy so far and the edges it has walked.
_Route = tuple[float, tuple[Way, ...]]


def best_routes(
    starts: Mapping[str, float], ways: Iterable[Way], wanted: Collection[str], max_hops: int, keep: int
) -> dict[str, list[Path]]:
    """The `keep` best ways from any start to each wanted memory, by the start's strength times the weights. To a start
    lead only ways from a stronger one (of equals: the first by id). Every edge is taken both ways. No path visits a
    memory twice. Each hop goes on from the best ways of the hop before, and from the best of each start: a way that may
    end at another start is among these."""
    ways = list(ways)
    lasting = {way.source for way in ways}.union(starts, wanted)
    met = Counter(way.target for way in ways)
    leaving: dict[str, dict[tuple[str, str], Way]] = {}
    for way in ways:
        # A place that one edge leads to and none goes on from, which is what most of them are, is on no way to another.
        if way.weight > 0 and (way.target in lasting or met[way.target] > 1):
            back = Way(way.edge, way.target, way.source, way.weight, not way.forward)
            for one in (way, back):
                leaving.setdefault(one.source, {})[one.edge, one.target] = one
    near = [frozenset(wanted)]  # the places from which a wanted one is at most so many edges away
    for _ in range(max_hops - 1):
        near.append(near[-1].union(*({way.target for way in leaving.get(place, {}).values()} for place in near[-1])))
    rank = {start: place for place, start in enumerate(sorted(starts, key=lambda start: (-starts[start], start)))}
    front: dict[str, list[_Route]] = {start: [(strength, ())] for start, strength in starts.items() if strength > 0}
    best: dict[str, list[_Route]] = {}
    for hop in range(1, max_hops + 1):
        targets = near[max_hops - hop]
        reached: dict[str, list[_Route]] = {}
        strongest: dict[str, list[float]] = {}  # of the routes to a place the `keep` best energies, the weakest first
        best_from: dict[tuple[str, str], float] = {}  # the best energy of those from one start
        for place, routes in front.items():
            for way in leaving.get(place, {}).values():
                if way.target not in targets:
                    continue
                kept = strongest.setdefault(way.target, [])
                for before, walked in routes:
                    energy = before * way.weight
                    pair = walked[0].source if walked else place, way.target
                    # To a start not all routes are told, so that none is left out before that is known.
                    if (
                        len(kept) == keep
                        and energy < kept[0]
                        and way.target not in rank
                        and energy <= best_from.get(pair, 0.0)
                    ):
                        continue
                    if all(way.target not in (one.source, one.target) for one in walked):
                        reached.setdefault(way.target, []).append((energy, (*walked, way)))
                        (heapq.heappush if len(kept) < keep else heapq.heappushpop)(kept, energy)
                        best_from[pair] = max(energy, best_from.get(pair, 0.0))
        for place, routes in reached.items():
            routes.sort(key=_by_energy)
            if place in wanted:
                told = [one for one in routes if place not in rank or rank[one[1][0].source] < rank[place]]
                best[place] = sorted([*best.get(place, ()), *told[:keep]], key=_by_energy)[:keep]
        front = {place: _worth_going_on(routes, keep) for place, routes in reached.items()}
    return {place: [_path(starts, walked) for _, walked in routes] for place, routes in best.items() if routes}


def _worth_going_on(routes: Sequence[_Route], keep: int) -> list[_Route]:
    """Of the routes to a place, best first, the best `keep` and the best from each start."""
    starts: set[str] = set()
    worth = []
    for place, route in enumerate(routes):
        start = route[1][0].source
        if place < keep or start not in starts:
            worth.append(route)
        starts.add(start)
    return worth


def _by_energy(route: _Route) -> tuple[float, int, list[str]]:
    """Best first; of equals the shorter one, then by the ids of the edges."""
    return -route[0], len(route[1]), [way.edge for way in route[1]]


def _path(starts: Mapping[str, float], walked: Sequence[Way]) -> Path:
    start = walked[0].source
    energy = starts[start]
    steps = [Step(memory=start, edge=None, forward=True, energy=energy)]
    for way in walked:
        energy *= way.weight
        steps.append(Step(memory=way.target, edge=way.edge, forward=way.forward, energy=energy))
    return Path(score=energy, steps=tuple(steps))


def best_paths(
    edges: Mapping[str, Sequence[LeanEdge]], source: str, target: str, max_hops: int, limit: int
) -> list[Path]:
    """The `limit` best simple paths by the product of their weights, best first."""
    return _strongest(edges, [source], {target}, max_hops, limit, through=False)[0]


def every_way(
    edges: Mapping[str, Sequence[LeanEdge]], starts: Iterable[str], ends: Collection[str], max_hops: int, most: int
) -> tuple[list[Path], bool]:
    """Every simple path from a start to an end, strongest first by the product of its weights; one that is both is a
    path of one step. A path goes on through an end to others. Also whether there are more than `most` of them."""
    return _strongest(edges, starts, ends, max_hops, most, through=True)


def _strongest(
    edges: Mapping[str, Sequence[LeanEdge]],
    starts: Iterable[str],
    ends: Collection[str],
    max_hops: int,
    most: int,
    through: bool,
) -> tuple[list[Path], bool]:
    """A best-first search whose estimate of the rest is exact without the no-cycle rule, so it is never too low: paths
    come out in their true order, and what cannot reach an end in the hops left is never entered. At an end the estimate
    is the path's own product, so that one that goes on (`through`) comes out in its turn. Also whether there is more."""
    ways = _both_ways(edges)
    reach = _best_products_to(ways, ends, max_hops)
    found: list[Path] = []
    counter = 0  # keeps the heap from comparing paths, and equal scores in the order they were met
    heap: list[tuple[float, int, int, tuple[Step, ...]]] = []
    for start in sorted(set(starts)):
        if (estimate := reach[max_hops].get(start, 0.0)) > 0:
            counter += 1
            first = Step(memory=start, edge=None, forward=True, energy=1.0)
            heapq.heappush(heap, (-estimate, 1, counter, (first,)))
    enough = most + 1 if through else most
    while heap and len(found) < enough and counter < MOST_STEPS:
        _, _, _, steps = heapq.heappop(heap)
        here = steps[-1]
        if here.memory in ends:
            found.append(Path(score=here.energy, steps=steps))
            if not through:
                continue
        hops_left = max_hops - (len(steps) - 1)
        if hops_left == 0:
            continue
        visited = {step.memory for step in steps}
        for edge_id, neighbour, weight, forward in ways.get(here.memory, ()):
            energy = here.energy * weight
            estimate = energy * reach[hops_left - 1].get(neighbour, 0.0)
            if neighbour in visited or estimate <= 0:
                continue
            counter += 1
            step = Step(memory=neighbour, edge=edge_id, forward=forward, energy=energy)
            heapq.heappush(heap, (-estimate, len(steps) + 1, counter, (*steps, step)))
    return sorted(found, key=_by_strength)[:most], len(found) > most or bool(heap)


def within_reach(edges: Mapping[str, Sequence[LeanEdge]], ends: Collection[str], max_hops: int) -> frozenset[str]:
    """The memories from which some way over at most so many edges leads to an end."""
    return frozenset(_best_products_to(_both_ways(edges), ends, max_hops)[max_hops])


def _by_strength(path: Path) -> tuple[float, int, list[tuple[str, str]]]:
    """Strongest first; of equals the shorter one, then by ids."""
    return -path.score, len(path.steps), [(step.memory, step.edge or "") for step in path.steps]


def _both_ways(edges: Mapping[str, Sequence[LeanEdge]]) -> dict[str, list[tuple[str, str, float, bool]]]:
    """Every edge from both of its ends, also where only one end was asked for."""
    ways: dict[str, dict[str, tuple[str, str, float, bool]]] = {}
    for memory, own in edges.items():
        for edge_id, neighbour, weight, forward in own:
            ways.setdefault(memory, {})[str(edge_id)] = (str(edge_id), str(neighbour), float(weight), bool(forward))  # type: ignore[arg-type]
            ways.setdefault(str(neighbour), {})[str(edge_id)] = (str(edge_id), memory, float(weight), not forward)  # type: ignore[arg-type]
    return {memory: sorted(own.values(), key=lambda edge: (-edge[2], edge[0])) for memory, own in ways.items()}


def _best_products_to(
    ways: Mapping[str, Sequence[tuple[str, str, float, bool]]], targets: Iterable[str], max_hops: int
) -> list[dict[str, float]]:
    """For each number of hops: the best product from every memory to any target within so many."""
    reach = [dict.fromkeys(targets, 1.0)]
    for _ in range(max_hops):
        before = reach[-1]
        now = dict(before)
        for memory, product in before.items():
            for _, neighbour, weight, _ in ways.get(memory, ()):
                if product * weight > now.get(neighbour, 0.0):
                    now[neighbour] = product * weight
        reach.append(now)
    return reach
