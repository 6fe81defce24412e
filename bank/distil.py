"""What a distiller is: finished work in, lessons out. It reads and proposes; what is stored is decided elsewhere."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from bank.work import Learnt, Work
from graph.errors import CairnError
from graph.model import Value


class Distilled(Value):
    """`nothing`: why there are no lessons, where there are none."""

    lessons: tuple[Learnt, ...] = ()
    tokens_used: int = 0
    nothing: str | None = None


class DistillerFailed(CairnError):
    """The distiller did not do its work this time. `tokens_used`: what the attempt cost all the same."""

    def __init__(self, message: str, tokens_used: int = 0) -> None:
        super().__init__(message)
        self.tokens_used = tokens_used


class DistillerAway(CairnError):
    """The distiller cannot be asked just now, whatever it would be asked: that is no attempt."""


class Distiller(Protocol):
    """`name` is what a lesson carries as `learned_by`. `at_once`: how many sessions of a process it reads at a time, at
    most; None: as many as there are workers, for it mostly waits. `compares`: whether it wants sessions of like
    requests beside the one it reads."""

    name: str
    at_once: int | None
    compares: bool

    async def distil(self, work: Work, like: Sequence[Work]) -> Distilled: ...

    async def close(self) -> None: ...


class RulesDistiller:
    """No model: it compares the session with sessions of like requests."""

    name = "rules"
    at_once: int | None = 1  # more would only take the processor from those who ask
    compares = True

    def __init__(self, compare: Callable[[Work, Sequence[Work]], Distilled]) -> None:
        self._compare = compare

    async def distil(self, work: Work, like: Sequence[Work]) -> Distilled:
        return await asyncio.to_thread(self._compare, work, like)

    async def close(self) -> None:
        """It holds nothing."""
