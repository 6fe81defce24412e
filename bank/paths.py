"""Paths as prose, with the edges they run over."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bank.context import clause, name, quoted
from bank.model import ToldPath, ToldStep, first_words
from graph.model import Edge, Memory, Path
from graph.store import Memories


async def told_paths(memories: Memories, paths: Sequence[Path]) -> list[ToldPath]:
    """One query for all of them."""
    steps = [step for path in paths for step in path.steps]
    known, edges = await memories.by_ids(
        [step.memory for step in steps], [step.edge for step in steps if step.edge is not None]
    )
    walked = [path for path in paths if _as_walked(path, edges)]
    return [one for path in walked if (one := told(path, known, edges)) is not None]


def _as_walked(path: Path, edges: Mapping[str, Edge]) -> bool:
    """Whether each edge still has the weight that it was walked by; one that is gone is for `told` to notice."""
    return all(
        step.edge is None or step.edge not in edges or before.energy * edges[step.edge].weight == step.energy
        for before, step in pairwise(path.steps)
    )


def told(path: Path, memories: Mapping[str, Memory], edges: Mapping[str, Edge]) -> ToldPath | None:
    """None where a memory or an edge of it was deleted between the walk and the telling."""
    if any(step.memory not in memories or (step.edge is not None and step.edge not in edges) for step in path.steps):
        return None
    steps = tuple(
        ToldStep(
            memory=memories[step.memory],
            edge=None if step.edge is None else edges[step.edge],
            forward=step.forward,
            energy=step.energy,
        )
        for step in path.steps
    )
    return ToldPath(score=path.score, steps=steps, text=prose(steps))


def prose(steps: Sequence[Any]) -> str:
    """(memory) -[why]-> (memory); an edge that was walked against its direction points back. What is stored stands
    between quotes, so that no text can add a step."""
    parts = []
    for step in steps:
        if step.edge is not None:
            sentence = clause(step.edge.text)
            parts.append(f"-[{sentence}]->" if step.forward else f"<-[{sentence}]-")
        parts.append(f"({name(step.memory.id)}: {quoted(first_words(step.memory.text, 120))})")
    return " ".join(parts)
