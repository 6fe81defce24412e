"""Lessons in the graph: recorded, revised, linked, parted, deleted; read by id, by page, by the memory they came from.

A link is three things that are written in one transaction, with the memory and the lesson locked: the memory's
`reasoning_pointer_ids`, the lesson's `link_nodes`, and LEARNED_FROM between them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bank.learn import Confidence, Learning, learn
from bank.model import Lesson, LessonDraft, LessonFilter, LessonStatus, Scope, first_words
from graph.checks import LINKS, TAGS, Checks
from graph.errors import Conflict, LimitExceeded, NotFound, Problem
from graph.model import Page
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Row, StartAgain, Transaction
from graph.store import Written, changed

LARGEST_ID = 2**63 - 1
OWN = frozenset({"title", "key_lesson", "context_to_prefer", "outcome", "namespace", "scope"})  # what a lesson says
TITLE_BYTES = 1_024


def check_lessons(checks: Checks, drafts: Sequence[LessonDraft], field: str = "lessons[{}]") -> None:
    for place, draft in enumerate(drafts):
        here = field.format(place)
        if draft.title is not None:
            checks.text(f"{here}.title", draft.title, TITLE_BYTES)
        checks.text(f"{here}.keyLesson", draft.key_lesson)
        checks.text(f"{here}.contextToPrefer", draft.context_to_prefer)
        checks.names(f"{here}.tags", draft.tags)
        checks.names(f"{here}.linkNodes", draft.link_nodes, most=LINKS, limit=256)
        check_namespace(checks, f"{here}.namespace", draft.namespace)


def check_namespace(checks: Checks, field: str, namespace: str) -> None:
    checks.name(field, namespace)
    if any(not part.strip() for part in namespace.split("/")):
        checks.add(field, f"{namespace!r} has an empty part; write team/project, or a team alone")


def parse_rb_id(checks: Checks, field: str, text: str) -> int:
    """An rb_id from its text; 0, with a problem noted, where it is none."""
    if (
        len(text) <= 19
        and text.isascii()
        and text.isdigit()
        and text == str(int(text or 0))
        and 0 < int(text) <= LARGEST_ID
    ):
        return int(text)
    checks.add(field, f"{text!r} is no lesson id: a whole number from 1 to {LARGEST_ID}")
    return 0


# ---------------------------------------------------------------- writing, inside a transaction


async def lock_lessons(tx: Transaction, ids: Iterable[int]) -> dict[int, Row]:
    """Locks lessons, made if they are new."""
    wanted = sorted(set(ids))
    locked = {row["rb_id"]: row for row in await tx.run("lock_lessons", ids=wanted)} if wanted else {}
    if len(locked) < len(wanted) or None in locked:
        raise StartAgain
    return locked


async def stored_sources(tx: Transaction, drafts: Iterable[LessonDraft]) -> set[str]:
    """The memories that these drafts may part their lessons from. They are read ahead, because memories are locked before
    lessons. A draft without an id is new, and one without sources leaves those that are there."""
    ids = sorted({draft.rb_id for draft in drafts if draft.rb_id and draft.link_nodes})
    return {row["id"] for row in await tx.run("sources_of_lessons", ids=ids)} if ids else set()


async def lock_drafted(tx: Transaction, drafts: Sequence[LessonDraft], memories: Collection[str]) -> dict[int, Row]:
    """Locks the lessons of a write, made if they are new. `memories`: those it has locked; if one was joined to a lesson
    after its sources were read, it is not among them and would be parted without its lock."""
    locked = await lock_lessons(tx, [draft.rb_id for draft in drafts if draft.rb_id])
    for draft in drafts:
        if draft.rb_id and draft.link_nodes:
            stored = locked[draft.rb_id]["properties"].get("link_nodes", [])
            if any(node not in memories for node in stored):
                raise StartAgain
    return locked


async def lock_lesson(tx: Transaction, rb_id: int) -> Row:
    """Locks a lesson that must be there."""
    rows = await tx.run("lock_known_lessons", ids=[rb_id])
    if not rows:
        raise NotFound.ids("lesson", "rbId", [str(rb_id)])
    return rows[0]


async def lock_wholes(tx: Transaction, locked: dict[int, Row]) -> dict[int, list[int]]:
    """Locks what these lessons became part of, what that became part of, and so on; all of it is added to `locked`.
    Of each lesson that is a part the ids of those, the nearest first."""
    tried: set[int] = set()
    while wanted := {whole for row in locked.values() if (whole := _whole(row)) is not None} - locked.keys() - tried:
        locked |= {row["rb_id"]: row for row in await tx.run("lock_known_lessons", ids=sorted(wanted))}
        tried |= wanted
    wholes: dict[int, list[int]] = {}
    for rb_id, row in locked.items():
        while (whole := _whole(row)) is not None and whole in locked:
            wholes.setdefault(rb_id, []).append(whole)
            row = locked[whole]
    return wholes


def _whole(row: Row) -> int | None:
    """The lesson that this one became part of."""
    whole: int | None = row["properties"].get("merged_into")
    return whole


async def put_lessons(
    tx: Transaction,
    drafts: Sequence[LessonDraft],
    locked: Mapping[int, Row],
    now: datetime,
    revision: int,
    learning: Learning,
) -> tuple[dict[int, Lesson], dict[int, Written], dict[str, list[int]]]:
    """Writes what has changed, links too. The drafts carry ids; their sources are locked and known to exist.
    Also returns the pointers of every memory whose pointers have changed."""
    lessons: dict[int, Lesson] = {}
    written: dict[int, Written] = {}
    rows: list[dict[str, Any]] = []
    added: list[Any] = []
    parted: list[Any] = []
    for draft in drafts:
        assert draft.rb_id is not None
        if draft.rb_id in lessons:
            continue
        old = locked[draft.rb_id]["properties"]
        created = "version" not in old
        # Whoever writes a lesson again undoes neither what others linked it to nor that it was promoted.
        link_nodes = list(draft.link_nodes) or old.get("link_nodes", [])
        scope = max(draft.scope, Scope(old.get("scope", draft.scope)), key=lambda one: one.width)
        wanted: dict[str, Any] = {
            "title": draft.title or first_words(draft.key_lesson),
            "key_lesson": draft.key_lesson,
            "context_to_prefer": draft.context_to_prefer,
            "tags": list(draft.tags),
            "link_nodes": link_nodes,
            "outcome": draft.outcome.value,
            "namespace": draft.namespace,
            "scope": scope.value,
        }
        if created:
            wanted |= {
                **learnt_properties(learn(draft.start_confidence, now, [], learning), now),
                "status": draft.status.value,
                "start_confidence": draft.start_confidence,
                "learned_by": draft.learned_by,
                "hidden_until_indexed": draft.hidden_until_indexed or None,
                "version": 1,
                "created_at": now,
                "updated_at": now,
            }
        changes = _revised(old, wanted, now, revision)
        if changes:
            if not created:
                changes["kept_by_hand"] = True  # it is no longer only what a session taught
            rows.append({"rb_id": draft.rb_id, "changes": changes})
        before, after = set(old.get("link_nodes", [])), set(link_nodes)
        added += [[draft.rb_id, node] for node in link_nodes if node not in before]
        parted += [[draft.rb_id, node] for node in old.get("link_nodes", []) if node not in after]
        lessons[draft.rb_id] = Lesson.from_row({**old, **changes})
        written[draft.rb_id] = Written(created, bool(changes), fresh=created and not locked[draft.rb_id]["removal"])
    await _write(tx, rows, added, parted)
    pointers: dict[str, list[int]] = {}
    for rb_id, node in added:
        pointers.setdefault(node, []).append(rb_id)
    return lessons, written, pointers


def learnt_properties(learnt: Confidence, now: datetime) -> dict[str, Any]:
    """What is stored of a lesson's confidence: readers take the value of the period without use that they are in."""
    return {
        "confidence": learnt.at(now),
        "confidence_ahead": list(learnt.ahead),
        "idle_since": learnt.idle_since,
        "idle_period": learnt.period,
        "usage_count": learnt.uses,
        "last_used_at": learnt.last_used_at,
    }


async def revise(
    tx: Transaction, row: Row, wanted: dict[str, Any], now: datetime, revision: int
) -> tuple[Lesson, bool]:
    """Changes one lesson that is locked; `wanted` may hold link_nodes. Returns it, and whether anything changed."""
    old = row["properties"]
    changes = _revised(old, wanted, now, revision)
    before = dict.fromkeys(old["link_nodes"])
    after = dict.fromkeys(wanted.get("link_nodes", before))
    await _write(
        tx,
        [{"rb_id": row["rb_id"], "changes": changes}] if changes else [],
        [[row["rb_id"], node] for node in after if node not in before],
        [[row["rb_id"], node] for node in before if node not in after],
    )
    return Lesson.from_row({**old, **changes}), bool(changes)


async def add_sources(
    tx: Transaction, rows: Sequence[Row], sources: Mapping[int, Iterable[str]], now: datetime, revision: int
) -> list[Lesson]:
    """Adds sources to lessons that are locked, as far as there is room. Returns those that are other now."""
    lessons: list[Lesson] = []
    changes: list[dict[str, Any]] = []
    added: list[Any] = []
    for row in rows:
        rb_id, old = row["rb_id"], row["properties"]
        before = dict.fromkeys(old["link_nodes"])
        new = [node for node in dict.fromkeys(sources[rb_id]) if node not in before][: LINKS - len(before)]
        if new:
            own = _revised(old, {"link_nodes": [*before, *new]}, now, revision)
            changes.append({"rb_id": rb_id, "changes": own})
            added += [[rb_id, node] for node in new]
            lessons.append(Lesson.from_row({**old, **own}))
    await _write(tx, changes, added, [])
    return lessons


async def pass_on(
    tx: Transaction, before: Mapping[int, Row], after: Iterable[Lesson], now: datetime, revision: int
) -> dict[int, Lesson]:
    """Sources and tags that a part of a merged lesson was given, or has lost, are the merged lesson's too; what another
    part has stays. Returns the merged lessons that are other now."""
    wholes: dict[int, Lesson] = {}
    for lesson in after:
        old = before[lesson.rb_id]["properties"]
        given = {key: [list(old.get(key, [])), list(getattr(lesson, key))] for key in ("link_nodes", "tags")}
        if lesson.merged_into is None or all(had == has for had, has in given.values()):
            continue
        rows = await tx.run("lock_known_lessons", ids=[lesson.merged_into])
        for row in rows:  # none, if it has been deleted
            parts = await tx.run("parts_of_merged", merged=row["rb_id"])
            wanted: dict[str, Any] = {}
            for key, (had, has) in given.items():
                others = {x for part in parts if part["rb_id"] != lesson.rb_id for x in part[key]}
                lost = {x for x in had if x not in has and x not in others}
                kept = [x for x in row["properties"][key] if x not in lost]
                wanted[key] = [*kept, *(x for x in has if x not in had and x not in kept)]
            if len(wanted["link_nodes"]) > LINKS or len(wanted["tags"]) > TAGS:
                raise LimitExceeded(
                    f"Lesson {row['rb_id']}, which {lesson.rb_id} became part of, would have more than {LINKS:,} sources "
                    f"or {TAGS:,} tags. Take some away first."
                )
            new = [x for x in wanted["link_nodes"] if x not in row["properties"]["link_nodes"]]
            wanted["copied_sources"] = [*row["properties"].get("copied_sources", []), *new]
            whole, _ = await revise(tx, row, wanted, now, revision)
            wholes[whole.rb_id] = whole
            wholes |= await pass_on(tx, {whole.rb_id: row}, [whole], now, revision)
    return wholes


async def revise_all(
    tx: Transaction, rows: Sequence[Row], wanted: Mapping[int, dict[str, Any]], now: datetime, revision: int
) -> list[Lesson]:
    """Changes many lessons that are locked, not their links. Returns those that are other now."""
    changes = {row["rb_id"]: _revised(row["properties"], wanted[row["rb_id"]], now, revision) for row in rows}
    await tx.run("put_lessons", rows=[{"rb_id": rb_id, "changes": own} for rb_id, own in changes.items() if own])
    return [Lesson.from_row({**row["properties"], **own}) for row in rows if (own := changes[row["rb_id"]])]


def _revised(old: Mapping[str, Any], wanted: dict[str, Any], now: datetime, revision: int) -> dict[str, Any]:
    if "link_nodes" in wanted and old.get("lost_sources"):
        # A source that was lost and is there again is no longer lost.
        wanted = {**wanted, "lost_sources": [x for x in old["lost_sources"] if x not in wanted["link_nodes"]]}
    changes = changed(old, wanted)
    whole = old.get("merged_into")
    if whole is not None and "merged_into" not in changes and changes.keys() & OWN:
        raise Conflict(
            f"Lesson {old['rb_id']} became part of lesson {whole}, which is offered in its place. Change {whole}; or part "
            f"them first, with undoConsolidation of {whole} or by setting {old['rb_id']} ACTIVE."
        )
    if "scope" in changes:
        before, after = Scope(old.get("scope", Scope.PROJECT)), Scope(changes["scope"])
        if after.width > before.width:
            may_widen(old.get("namespace", wanted.get("namespace", "")), before, after)
        changes["suggested_scope"] = None
    if changes:
        changes |= {"revision": revision, "to_index": True, "updated_at": now, "version": old.get("version", 0) + 1}
    return changes


def may_widen(namespace: str, before: Scope, after: Scope) -> None:
    """Whether a lesson of this namespace may be for more than it was. Whoever widens a scope comes by here, by promotion,
    by a change or by recording it: who may do so is to be asked here, once the service knows its callers."""


async def _write(tx: Transaction, rows: list[dict[str, Any]], added: list[Any], parted: list[Any]) -> None:
    if rows:
        await tx.run("put_lessons", rows=rows)
    if parted:
        await tx.run("remove_links", pairs=parted)
    if added:
        await tx.run("add_links", pairs=added)


def missing_sources(drafts: Sequence[LessonDraft], known: Collection[str]) -> list[Problem]:
    return [
        Problem(f"lessons[{place}].linkNodes", f"no memory has the id {node}")
        for place, draft in enumerate(drafts)
        for node in draft.link_nodes
        if node not in known
    ]


# ---------------------------------------------------------------- reading


class Lessons:
    """Reads a tenant's lessons; one query for many."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def by_id(self, ids: Iterable[int]) -> dict[int, Lesson]:
        wanted = list(dict.fromkeys(ids))
        rows = await self._graph.read("lessons_by_id", ids=wanted) if wanted else []
        return {row["properties"]["rb_id"]: Lesson.from_row(row["properties"]) for row in rows}

    async def page(self, filter: LessonFilter, first: int, after: str | None) -> Page[Lesson]:
        """Newest id first."""
        before = decode_cursor(after, int)[0] if after else None
        parameters = {
            "tags": list(filter.tags),
            "outcome": filter.outcome,
            "namespace": filter.namespace,
            "scope": filter.scope,
            "status": filter.status,
            "min_confidence": filter.min_confidence,
            "before": before,
            "limit": first + 1,
        }
        if filter.linked_to is not None:
            rows = await self._graph.read("lessons_page_of_memory", linked_to=filter.linked_to, **parameters)
        elif filter.status not in (None, LessonStatus.ACTIVE):  # which most are
            rows = await self._graph.read("lessons_page_of_status", **parameters)
        elif filter.namespace is not None:
            rows = await self._graph.read("lessons_page_of_namespace", **parameters)
        elif filter.status is not None:
            rows = await self._graph.read("lessons_page_of_status", **parameters)
        else:
            rows = await self._graph.read("lessons_page", **parameters)
        nodes = tuple(Lesson.from_row(row["properties"]) for row in rows[:first])
        cursor = encode_cursor(nodes[-1].rb_id) if nodes else None
        return Page[Lesson](nodes=nodes, has_next_page=len(rows) > first, end_cursor=cursor)
