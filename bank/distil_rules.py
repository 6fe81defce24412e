"""The distiller without a model: it compares a session with earlier ones of like requests, and writes down what it saw.

    contrast     what successful tries did and failed ones did not, and the reverse     three sessions or more
    turn         an error, and the step or the changed parameter that got past it       one session is enough
    retry        what a failed and a successful try of the same steps gave differently  two sessions
    preference   what the user said they want always, never or rather                   one session is enough
    way          the steps of all tries, where all went well or all failed              three sessions or more

Pure, and the same for the same sessions in whatever order they come. A lesson says how many sessions are behind it and
names them; where nothing was seen there is none."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bank.contrast import Contrast, Kind, common_way, contrasts
from bank.distil import Distilled
from bank.model import Outcome
from bank.recoveries import retried, turns
from bank.stated import PREFERENCE, Requests, lasting, names_somebody, preferences, same_preference
from bank.steps import Reading, read, settled
from bank.telling import arrows, named, told_contrast, told_retry, told_turn
from bank.work import Learnt, Work

MOST_LESSONS = 3
MOST_COMPARED = 30
LIKE = 0.38  # two requests that share so much of their words ask for the same kind of thing
LEAST_WAYS = 3
MOST_RETRY_CHANGES = 2
LONGEST_TITLE = 100

log = logging.getLogger("cairn.rules")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something seen in the new session and `others`. `strength` is in bits: chance alone would show it once in 2^strength
    times. It is counted where there is something to count, and set by hand elsewhere."""

    strength: float
    rule: str
    title: str
    lesson: str
    others: tuple[Reading, ...]
    memories: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    outcome: Outcome = Outcome.SUCCESS


def compare(work: Work, like: Sequence[Work]) -> Distilled:
    """At most three lessons from a session and the earlier ones that are like it, the best founded first; or why there
    are none."""
    given = {one.session: one for one in like[:MOST_COMPARED] if one.session != work.session}
    new, *rest = settled([read(work), *_readable(given[session] for session in sorted(given))])
    requests = Requests(new, rest)
    alike = {one.work.session: requests.likeness(one.work) for one in rest}
    near = [one for one in rest if alike[one.work.session] >= LIKE]
    others = sorted(near, key=lambda one: -alike[one.work.session])
    found = [finding for rule in RULES for finding in rule(new, others)]
    found.sort(key=lambda finding: (-finding.strength, finding.rule, finding.title))
    distinct = {finding.title: finding for finding in reversed(found)}
    kept = [finding for finding in found if distinct[finding.title] is finding]
    lessons = tuple(_learnt(requests, new, finding) for finding in kept[:MOST_LESSONS])
    return Distilled(lessons=lessons, nothing=_nothing(new, others))


def _nothing(new: Reading, others: Sequence[Reading]) -> str:
    """What it was compared with, and what was missing."""
    alone = "It has no error that was got past, and states no preference."
    succeeded = sum(one.work.succeeded for one in others)
    many = "one earlier session" if len(others) == 1 else f"{len(others)} earlier sessions"
    if not others:
        return f"No earlier session with a like request is known to compare it with. {alone}"
    if succeeded == (len(others) if new.work.succeeded else 0):
        few = (
            f"{LEAST_WAYS} are needed to tell their way" if len(others) + 1 < LEAST_WAYS else "no way was common to all"
        )
        ended = "succeeded" if new.work.succeeded else "failed"
        return f"It was compared with {many} with like requests, which {ended} as it did: {few}. {alone}"
    return (
        f"It was compared with {many} with like requests, {succeeded} of which succeeded: no difference showed often enough "
        f"to tell success from failure. {alone}"
    )


def _readable(works: Iterable[Work]) -> Iterable[Reading]:
    for work in works:
        try:
            yield read(work)
        except Exception as error:  # one that cannot be read must not keep all like it from being learnt from
            log.error("session %s cannot be compared with", work.session, exc_info=error)


def _contrasts(new: Reading, others: Sequence[Reading]) -> Iterable[Finding]:
    """The strongest of each side: the rest mostly says the same in other words."""
    found = contrasts(new, others)
    told: list[Contrast] = []
    for contrast in found:
        if any(contrast.follow == one.follow or contrast.mirrors(one) for one in told):
            continue
        told.append(contrast)
        title, lesson = told_contrast(contrast, [one for one in found if contrast.mirrors(one)])
        yield Finding(
            strength=contrast.strength,
            rule="contrast",
            title=title,
            lesson=lesson,
            others=tuple(reading for reading in contrast.sessions if reading is not new),
            memories=contrast.memories,
            actions=tuple(
                name
                for trait in contrast.traits
                for name in (trait.names if trait.kind is Kind.BEFORE else trait.names[:1])
            ),
            outcome=Outcome.SUCCESS if contrast.follow else Outcome.FAILURE,
        )


def _turns(new: Reading, others: Sequence[Reading]) -> Iterable[Finding]:
    earlier = [turn for reading in others for turn in turns(reading)]
    told: set[tuple[str, ...]] = set()
    for turn in turns(new):
        if turn.alike in told:
            continue
        told.add(turn.alike)
        same = [one for one in earlier if one.alike == turn.alike]
        readings = tuple({one.reading.work.session: one.reading for one in same}.values())
        if turn.how == "stuck" and turn.tries < 2 and not readings:
            continue  # one error in one failed session may have had nothing to do with it
        succeeded = sum(reading.work.succeeded for reading in (new, *readings))
        title, lesson = told_turn(turn, 1 + len(readings), succeeded)
        first = {"changed": 2.1, "after": 1.9, "again": 1.8, "stuck": 1.4, "instead": 1.2}[turn.how]
        yield Finding(
            strength=first - 0.8 * turn.mishap.empty - 0.5 * (not succeeded) + 0.7 * len(readings),
            rule="turn",
            title=title,
            lesson=lesson,
            others=readings,
            memories=tuple(memory for one in (turn, *same) for memory in one.memories),
            actions=(turn.action, *turn.others),
            outcome=Outcome.FAILURE if turn.how == "stuck" else Outcome.SUCCESS,
        )


def _retries(new: Reading, others: Sequence[Reading]) -> Iterable[Finding]:
    """Against the most like session that ended the other way. Where both ends are there twice, contrasts tell more."""
    succeeded = sum(reading.work.succeeded for reading in (new, *others))
    if min(succeeded, 1 + len(others) - succeeded) > 1:
        return
    for other in others:
        if other.work.succeeded == new.work.succeeded:
            continue
        failed, passed = (other, new) if new.work.succeeded else (new, other)
        found = retried(failed, passed)
        actions = {action for action, _, _ in found}
        if len(actions) == 1 and len(found) <= MOST_RETRY_CHANGES:
            action = found[0][0]
            title, lesson = told_retry(action, [change for _, change, _ in found], new.work.succeeded)
            memories = tuple(memory for _, _, steps in found for memory in steps)
            yield Finding(1.7, "retry", title, lesson, (other,), memories, (action,))
        return


def _preferences(new: Reading, others: Sequence[Reading]) -> Iterable[Finding]:
    earlier = [(one, preferences(one)) for one in others]
    for stated in preferences(new):
        same = tuple(one for one, lines in earlier if any(same_preference(stated, line) for line in lines))
        if not same and (not lasting(stated) or names_somebody(stated)):
            continue
        often = f"Users said so in {1 + len(same)} sessions" if same else "The user said so in one session"
        yield Finding(
            strength=1.3 + 0.7 * len(same),
            rule="preference",
            title=f"{PREFERENCE}{stated}",
            lesson=f"{often}, in their own words: “{stated}”. Keep to it where a request leaves it open, or ask.",
            others=same,
        )


def _way(new: Reading, others: Sequence[Reading]) -> Iterable[Finding]:
    readings = [new, *others]
    if len(readings) < LEAST_WAYS or len({reading.work.succeeded for reading in readings}) > 1:
        return
    way = common_way(readings)
    if len(way) < 2:
        return
    first = [{step.action: step.memory for step in reversed(reading.steps)} for reading in readings]
    worked = new.work.succeeded
    yield Finding(
        strength=0.3 * len(readings),
        rule="way",
        title=f"The way that {'worked' if worked else 'has not worked yet'}: {arrows(way)}",
        lesson=f"All {len(readings)} tries for requests like this {'succeeded' if worked else 'failed'}, and all of them went "
        f"this way: {arrows(way)}. No {'failed' if worked else 'successful'} try is known to compare with.",
        others=tuple(others),
        memories=tuple(steps[action] for steps in first for action in way),
        actions=tuple(way),
        outcome=new.work.outcome,
    )


RULES = (_contrasts, _turns, _retries, _preferences, _way)


def _learnt(requests: Requests, new: Reading, finding: Finding) -> Learnt:
    others = sorted(finding.others, key=lambda reading: reading.work.session)
    works = [reading.work for reading in others]
    words = requests.common_words(works)
    tags = tuple(tag for tag in new.work.tags if all(tag in work.tags for work in works))
    when = [f"the request is about {', '.join(words)}"] if words else []
    when += [f"the work uses {named(list(dict.fromkeys(finding.actions)))}"] if finding.actions else []
    when += [f"it is tagged {', '.join(tags)}"] if tags else []
    ends = (memory for reading in (new, *others) for memory in reading.ends)
    title = finding.title
    return Learnt(
        title=title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…",
        key_lesson=finding.lesson,
        context_to_prefer=f"When {' and '.join(when)}." if when else "When the same kind of request comes again.",
        tags=tags,
        outcome=finding.outcome,
        sources=tuple(dict.fromkeys((*sorted(finding.memories), *ends))),
        sessions=(new.work.session, *(work.session for work in works)),
    )
