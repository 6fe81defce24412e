"""The best paths and routes, against every path there is."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.walk import Way, best_paths, best_routes

EDGES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])), max_size=16
)


def _lean(edges: list[tuple[int, int, float]]) -> dict[str, list[list[object]]]:
    lean: dict[str, list[list[object]]] = {}
    for number, (source, target, weight) in enumerate(edges):
        if source != target:
            lean.setdefault(str(source), []).append([f"E{number}", str(target), weight, True])
    return lean


def _every_path(
    edges: list[tuple[int, int, float]], max_hops: int, source: int = 0, wanted: int = 6
) -> list[tuple[float, tuple[str, ...]]]:
    """All simple ways from one to the other, over edges in both directions, by brute force."""
    found: list[tuple[float, tuple[str, ...]]] = []

    def go(here: int, seen: tuple[int, ...], used: tuple[str, ...], product: float) -> None:
        if here == wanted:
            found.append((product, used))
            return
        if len(used) == max_hops:
            return
        for number, (source, target, weight) in enumerate(edges):
            for start, end in ((source, target), (target, source)):
                if start == here and end not in seen and weight > 0:
                    go(end, (*seen, end), (*used, f"E{number}"), product * weight)

    go(source, (source,), (), 1.0)
    return sorted(found, key=lambda one: -one[0])


@given(edges=EDGES, max_hops=st.integers(1, 5), limit=st.integers(1, 8))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_best_paths_are_the_best_of_all_paths(edges: list[tuple[int, int, float]], max_hops: int, limit: int) -> None:
    """As many as there are, in the order of their products, each simple and each with its own product."""
    paths = best_paths(_lean(edges), "0", "6", max_hops, limit)
    every = _every_path(edges, max_hops)
    assert [round(path.score, 9) for path in paths] == [round(score, 9) for score, _ in every[:limit]]
    for path in paths:
        used = tuple(step.edge for step in path.steps if step.edge)
        assert used in {edges for _, edges in every}
        assert len({step.memory for step in path.steps}) == len(path.steps)
        assert path.steps[0].energy == 1.0 and path.steps[-1].energy == path.score
        assert all(after.energy <= before.energy for before, after in pairwise(path.steps))


@given(edges=EDGES, max_hops=st.integers(1, 5), keep=st.integers(1, 4))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_routes_are_simple_and_the_best_of_all_where_there_is_room(
    edges: list[tuple[int, int, float]], max_hops: int, keep: int
) -> None:
    """With room for all of them: every path from a start, best first. With little room: some of these in the same order,
    and over one edge or two exactly the best."""
    ways = [Way(f"E{n}", str(a), str(b), weight, True) for n, (a, b, weight) in enumerate(edges) if a != b]
    every = _every_path(edges, max_hops)
    whole = best_routes({"0": 1.0}, ways, {"6"}, max_hops, 10_000).get("6", [])
    few = best_routes({"0": 1.0}, ways, {"6"}, max_hops, keep).get("6", [])
    assert [round(path.score, 9) for path in whole] == [round(score, 9) for score, _ in every]
    assert [path.steps for path in few] == [path.steps for path in whole if path in few]
    for path in few:
        assert len({step.memory for step in path.steps}) == len(path.steps)
    if max_hops < 3:
        assert [path.score for path in few] == [path.score for path in whole[:keep]]


@given(
    edges=EDGES,
    max_hops=st.integers(1, 2),
    keep=st.integers(1, 3),
    strengths=st.lists(st.sampled_from([1.0, 0.9, 0.8, 0.5]), min_size=2, max_size=4),
)
@settings(derandomize=True, max_examples=400, deadline=None)
def test_the_best_way_to_each_start_is_from_a_stronger_one(
    edges: list[tuple[int, int, float]], max_hops: int, keep: int, strengths: list[float]
) -> None:
    """Of several starts, over one edge or two: however many better ways lead to the places between, the best way to a start
    from one before it is told; the first is told none."""
    starts = {str(n): strength for n, strength in enumerate(strengths)}
    ways = [Way(f"E{n}", str(a), str(b), weight, True) for n, (a, b, weight) in enumerate(edges) if a != b]
    order = sorted(starts, key=lambda start: (-starts[start], start))
    told = best_routes(starts, ways, {*starts, "6"}, max_hops, keep)
    for place, start in enumerate(order):
        every = sorted(
            starts[before] * product
            for before in order[:place]
            for product, _ in _every_path(edges, max_hops, int(before), int(start))
        )
        assert [round(path.score, 9) for path in told.get(start, [])[:1]] == [round(score, 9) for score in every[-1:]]
    everywhere = sorted(
        (starts[start] * product for start in starts for product, _ in _every_path(edges, max_hops, int(start))),
        reverse=True,
    )
    assert [round(path.score, 9) for path in told.get("6", [])] == [round(score, 9) for score in everywhere[:keep]]
