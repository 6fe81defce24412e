"""Frozen values of finished work: a session as it was handed in, and what a distiller learnt from it."""

from bank.model import Outcome
from graph.model import Value


class WorkStep(Value):
    """One step: what was done, with what, and what came of it. `memory`: the AgentAction that keeps it."""

    action: str
    parameters: str | None = None
    result: str | None = None
    memory: str


class Work(Value):
    """A session that was handed in. `request_memory` and `answer_memory` name the memories that keep its two ends."""

    session: str
    conv_id: str
    request: str
    outcome: Outcome
    steps: tuple[WorkStep, ...]
    answer: str | None = None
    tags: tuple[str, ...] = ()
    namespace: str = "default"
    request_memory: str
    answer_memory: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.outcome is Outcome.SUCCESS


class Learnt(Value):
    """A lesson that a distiller proposes, with the memories that are its evidence and the sessions they come from."""

    title: str
    key_lesson: str
    context_to_prefer: str
    tags: tuple[str, ...] = ()
    outcome: Outcome
    sources: tuple[str, ...]
    sessions: tuple[str, ...]
