"""Paths as prose, with the edges they run over."""

from collections.abc import Sequence
from typing import Any

from bank.model import first_words
from graph.model import Edge, Memory, Path, Value
from graph.store import Memories


class ToldStep(Value):
    memory: Memory
    edge: Edge | None
    forward: bool
    energy: float


class ToldPath(Value):
    score: float
    steps: tuple[ToldStep, ...]
    text: str


async def told_paths(memories: Memories, paths: Sequence[Path]) -> list[ToldPath]:
    """Two queries for all of them: the memories and the edges."""
    steps = [step for path in paths for step in path.steps]
    known = await memories.by_id(step.memory for step in steps)
    edges = await memories.edges_by_id(step.edge for step in steps if step.edge is not None)
    told = []
    for path in paths:
        if any(s.memory not in known or (s.edge is not None and s.edge not in edges) for s in path.steps):
            continue  # deleted between the walk and the telling
        own = tuple(
            ToldStep.model_construct(
                memory=known[step.memory],
                edge=None if step.edge is None else edges[step.edge],
                forward=step.forward,
                energy=step.energy,
            )
            for step in path.steps
        )
        told.append(ToldPath.model_construct(score=path.score, steps=own, text=prose(own)))
    return told


def prose(steps: Sequence[Any]) -> str:
    """(memory) -[why]-> (memory); an edge that was walked against its direction points back."""
    parts = []
    for step in steps:
        if step.edge is not None:
            sentence = " ".join(step.edge.text.split())
            parts.append(f"-[{sentence}]->" if step.forward else f"<-[{sentence}]-")
        parts.append(f"({step.memory.id}: {first_words(step.memory.text, 120)})")
    return " ".join(parts)
