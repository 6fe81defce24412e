"""For whom a lesson is: its own namespace, its team, the whole organisation. Promoted on request, suggested by evidence.

A lesson has proved itself in a namespace where it was used well at least twice, and more often well than badly. One that
has done so in two namespaces is suggested for their team, or for the organisation where they are of several teams.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from bank.learn import GOOD, USES
from bank.lessons import lock_lesson, revise
from bank.model import Lesson, Promotion, Scope, Signal, team_of
from bank.sync import Change, Sync
from graph.errors import BadInput, Problem
from graph.session import Graph, Transaction

WELL = 2  # good uses in a namespace before the lesson has proved itself there
TRUSTED = 0.7  # a lesson below this confidence is suggested to nobody


class Scopes:
    def __init__(self, graph: Graph, sync: Sync) -> None:
        self._graph = graph
        self._sync = sync

    async def promote(self, rb_id: int, scope: Scope) -> Lesson:
        """Makes a lesson one of its team's or of the organisation's, if it may be (`may_widen`)."""

        async def work(tx: Transaction) -> tuple[Lesson, bool]:
            row = await lock_lesson(tx, rb_id)
            old = Scope(row["properties"]["scope"])
            if scope.width < old.width:
                raise BadInput.of(
                    [Problem("scope", f"lesson {rb_id} is for {old} already; promoting it to {scope} would narrow it")]
                )
            return await revise(tx, row, {"scope": scope.value}, datetime.now(UTC), revision)

        async with self._sync.writing() as revision:
            lesson, has_changed = await self._graph.write(work)
            await self._sync.index(revision, [Change(lesson)] if has_changed else [], [lesson])
        return lesson

    async def suggestions(self, first: int) -> list[Promotion]:
        """Lessons that should be for more than they are, newest id first."""
        rows = await self._graph.read("promotable_lessons", min_confidence=TRUSTED, limit=first)
        return [
            Promotion(
                lesson=Lesson.from_row(row["properties"]),
                scope=Scope(row["properties"]["suggested_scope"]),
                namespaces=tuple(row["properties"]["proven_in"]),
            )
            for row in rows
        ]


def proven_in(namespace: str, signals: Iterable[Signal]) -> list[str]:
    """The namespaces in which a lesson of this one has proved itself; a use that does not say where was in its own."""
    good: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for signal in signals:
        if signal.kind in USES:
            (good if signal.kind in GOOD else bad)[signal.namespace or namespace] += 1
    return sorted(where for where, times in good.items() if times >= WELL and times > bad[where])


def suggested_scope(namespace: str, scope: Scope, proven: Iterable[str]) -> Scope | None:
    """A wider scope than it has, if it has proved itself in several namespaces."""
    where = set(proven)
    if len(where) < 2:
        return None
    wide = Scope.TEAM if {team_of(one) for one in where} == {team_of(namespace)} else Scope.ORG
    return wide if wide.width > Scope(scope).width else None
