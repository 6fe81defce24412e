"""Errors within one session: the step that got past one, and those that nothing got past. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bank.literals import read_literal
from bank.mishaps import Mishap
from bank.steps import Done, Given, Reading, noun

AHEAD = 12  # steps in which a later one still counts as the answer to an error
MOST_CHANGES = 4  # a call that differs in more is another call, not a second try
MOST_BETWEEN = 3

How = Literal["again", "changed", "after", "instead", "stuck"]


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter that differs between a failed call and the next that went well."""

    name: str
    before: Given | None
    after: Given | None


@dataclass(frozen=True, slots=True)
class Turn:
    """An error and what came of it. `others`: the actions in between, or the one done instead."""

    reading: Reading
    action: str
    mishap: Mishap
    how: How
    memories: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    others: tuple[str, ...] = ()
    tries: int = 1  # that failed; where nothing got past it, in the very same words

    @property
    def alike(self) -> tuple[str, ...]:
        """What two turns have in common that tell the same: equal for turns of different sessions."""
        names = tuple(sorted(change.name for change in self.changes))
        return (self.action, self.mishap.kind, self.how, *(names or self.others))


def turns(reading: Reading) -> Iterator[Turn]:
    """One for each run of errors of an action, in the order of the steps."""
    steps = reading.steps
    told: set[int] = set()
    for place, step in enumerate(steps):
        if step.mishap is None or place in told:
            continue
        same = [later for later in steps[place + 1 : place + 1 + AHEAD] if later.action == step.action]
        failed = [step]
        passed = None
        for later in same:
            if later.mishap is None:
                passed = later
                break
            failed.append(later)
        told.update(done.place for done in failed)
        if (turn := _turn(reading, failed, passed)) is not None:
            yield turn


def _turn(reading: Reading, failed: list[Done], passed: Done | None) -> Turn | None:
    steps, last = reading.steps, failed[-1]
    assert last.mishap is not None
    memories = tuple(step.memory for step in failed)
    if passed is not None:
        changes = changed(last, passed)
        between = [step for step in steps[last.place + 1 : passed.place] if step.mishap is None]
        others = tuple(dict.fromkeys(step.action for step in between))[:MOST_BETWEEN]
        if len(changes) > MOST_CHANGES or not (changes or _same_call(reading, last, passed)):
            return None  # another call, rather than a second try
        how: How = "changed" if changes else "after" if others else "again"
        if last.mishap.empty and (how != "changed" or len(changes) > 1 or not reading.work.succeeded):
            return None  # another question, rather than the same one asked better
        path = (*memories, *(step.memory for step in between[:MOST_BETWEEN]), passed.memory)
        return Turn(reading, last.action, last.mishap, how, path, changes, others, len(failed))
    following = steps[last.place + 1 : last.place + 2]
    if reading.work.succeeded and following and following[0].mishap is None:
        after = following[0]
        return Turn(reading, last.action, last.mishap, "instead", (*memories, after.memory), (), (after.action,))
    if last.mishap.empty or reading.work.succeeded:
        return None
    tries = sum(_same_call(reading, step, last) for step in failed)
    return Turn(reading, last.action, last.mishap, "stuck", memories, tries=tries)


def _same_call(reading: Reading, one: Done, other: Done) -> bool:
    """By all that was handed in: a name that is quoted is cut, and so are long parameters."""
    before, after = (reading.work.steps[step.place] for step in (one, other))
    return _exact(before.action) == _exact(after.action) and _exact(before.parameters) == _exact(after.parameters)


def _exact(text: str | None) -> object:
    """The same however it is spaced, and in whatever order the names of a JSON object stand."""
    if text is None:
        return None
    try:
        return read_literal(text)
    except ValueError:
        return text.split()


def changed(before: Done, after: Done) -> tuple[Change, ...]:
    names = [*before.given, *(name for name in after.given if name not in before.given)]
    return tuple(
        Change(name, was, now)
        for name in names
        if (was := before.given.get(name)) != (now := after.given.get(name))
        and (was is None or now is None or was.exact != now.exact)
    )


def told_change(change: Change) -> str:
    """As a clause: what was done to the parameter, without anybody's own values."""
    name = f"`{change.name}`" if change.name else "the text"
    was, now = change.before, change.after
    if was is None:
        return f"{name} was added" + (f" ({now.said})" if now is not None and now.literal else "")
    if now is None:
        return f"{name} was left out"
    if was.parts or now.parts:
        return _told_query(name, was.parts, now.parts)
    if was.literal and now.literal:
        return f"{name} was changed from {was.said} to {now.said}"
    if was.number is not None and now.number is not None:
        return f"{name} was given a {'larger' if now.number > was.number else 'smaller'} {noun(now.said)}"
    if was.said == now.said and not change.name:
        return "the text was another one"
    if was.said == now.said:
        other = f"other {now.said.split(' ', 1)[1]}" if now.said[0].isdigit() else f"another {noun(now.said)}"
        return f"{name} was given {other}"
    return f"{name} was changed from {was.said} to {now.said}"


def _told_query(name: str, was: tuple[str, ...], now: tuple[str, ...]) -> str:
    came = [f"`{part}`" for part in now if part not in was][:3]
    went = [f"`{part}`" for part in was if part not in now][:3]
    told = [f"got {', '.join(came)}"] if came else []
    told += [f"lost {', '.join(went)}"] if went else []
    return f"the query in {name} {' and '.join(told) or 'was written differently'}"


def retried(failed: Reading, passed: Reading) -> list[tuple[str, Change, tuple[str, str]]]:
    """What a failed try and a successful one of the same steps gave differently, as far as it can be told to others: the
    action, the change, the two steps. The last call of an action is the one that counts. Nothing where the steps differ."""
    before, after = ({step.action: step for step in reading.steps} for reading in (failed, passed))
    if not before or before.keys() != after.keys():
        return []
    return [
        (action, change, (step.memory, after[action].memory))
        for action, step in before.items()
        for change in changed(step, after[action])
        if _tellable(change)
    ]


def _tellable(change: Change) -> bool:
    was, now = change.before, change.after
    if was is None or now is None:
        return bool(change.name)
    return (was.literal and now.literal) or set(was.parts) != set(now.parts)
