"""Findings as plain sentences: what was seen, in how many tries, with names quoted and nothing else repeated. Pure."""

from collections.abc import Sequence

from bank.contrast import Contrast, Kind, common_way
from bank.recoveries import Change, Turn, told_change
from bank.stated import names_in, topic
from bank.words import words_of

MOST_NAMED = 5


def named(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """`a`, `b` and `c`; a parameter that has no name is a text."""
    quoted = [f"`{name}`" if name else "a text" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def arrows(way: Sequence[str]) -> str:
    return " → ".join(f"`{action}`" for action in way)


def told_contrast(contrast: Contrast, mirrors: Sequence[Contrast] = ()) -> tuple[str, str]:
    """A title and the lesson. `mirrors`: contrasts that say the same from the other side."""
    short, was = _told_traits(contrast)
    among = contrast.traits[0].among
    sides = [
        (contrast.successes, contrast.of_successes, "successful"),
        (contrast.failures, contrast.of_failures, "failed"),
    ]
    (many, of, side), (few, of_others, other) = sides if contrast.follow else reversed(sides)
    seen = (
        f"For requests like this, in {many} of {_tries(of, side)}{f' that used `{among}`' if among else ''} {was}; "
        f"in {few} of {_tries(of_others, f'such {other}' if among else other)} that was so."
    )
    title = f"Do: {short}" if contrast.follow else f"Seen in failed tries: {short}"
    return title, f"{seen}{_instead(contrast, mirrors)}{_way_of_successes(contrast)}"


def _instead(contrast: Contrast, mirrors: Sequence[Contrast]) -> str:
    """The value that the other side gave to the same parameter."""
    first = contrast.traits[0]
    others = {
        trait.names[2]
        for mirror in mirrors
        for trait in mirror.traits
        if first.kind is trait.kind is Kind.VALUE and trait.names[:2] == first.names[:2]
    }
    side = "failed" if contrast.follow else "successful"
    return f" The {side} ones gave {' or '.join(sorted(others))}." if others else ""


def _told_traits(contrast: Contrast) -> tuple[str, str]:
    """What the traits are, briefly and as a clause."""
    traits, first = contrast.traits, contrast.traits[0].names
    same = [trait for trait in traits if trait.among == traits[0].among]
    match traits[0].kind:
        case Kind.DID:
            what = named(_in_order(contrast))
            return what, f"{what} {'were' if len(traits) > 1 else 'was'} done"
        case Kind.BEFORE:
            earlier = named([trait.names[0] for trait in same])
            return f"{earlier} before `{first[1]}`", f"{earlier} came before it"
        case Kind.MORE:
            return f"`{first[0]}` more than once", "it was called more than once, with different parameters"
        case Kind.WITH:
            given = named([trait.names[1] for trait in same])
            return f"{given} in `{first[0]}`", f"it was given {given}"
        case Kind.VALUE:
            given = f"{first[2]} for `{first[1]}`" if first[1] else first[2]
            return f"{given} in `{first[0]}`", f"it was given {given}"
        case Kind.PART:
            parts = named([trait.names[2] for trait in same if trait.names[1] == first[1]])
            return f"{parts} in the query of `{first[0]}`", f"its query had {parts}"
        case Kind.MISHAP:
            return f"`{first[0]}` with the error “{first[1]}”", f"it ended with the error “{first[1]}”"
        case Kind.NOTHING:
            return "an answer without any step", "the answer was given without any step"


def _in_order(contrast: Contrast) -> list[str]:
    """The names of a group of actions, in the order in which the first session that did them did."""
    names = {trait.names[0] for trait in contrast.traits}
    for reading in contrast.sessions:
        order = list(dict.fromkeys(step.action for step in reading.steps))
        if names <= set(order):
            return [name for name in order if name in names]
    return sorted(names)


def _way_of_successes(contrast: Contrast) -> str:
    good = [reading for reading in contrast.sessions if reading.work.succeeded]
    way = common_way(good)
    if len(way) < 2:
        return ""
    who = {1: "The successful one", 2: "Both successful ones"}.get(len(good), "All the successful ones")
    return f" {who} went this way: {arrows(way)}."


def told_turn(turn: Turn, sessions: int, succeeded: int) -> tuple[str, str]:
    """`sessions`: in how many it was seen; `succeeded`: how many of these went well as a whole."""
    error, call, others = _told_mishap(turn), f"`{turn.action}`", named(turn.others)
    after = f"{call} after {error.split(' (', 1)[0].removeprefix('the error ')}"
    seen = f"{'In one session' if sessions == 1 else f'In {sessions} sessions'} {call} ended with {error}"
    then = "" if succeeded else f" {'The session' if sessions == 1 else 'All of them'} failed in the end all the same."
    match turn.how:
        case "again":
            return f"{after}: try again", f"{seen}; the same call made again went well.{then}"
        case "changed":
            names = named([change.name for change in turn.changes if change.name]) or "the text"
            first = f"After {others}, the" if others else "The"
            changes = "; ".join(map(told_change, turn.changes))
            return f"{after}: change {names}", f"{seen}. {first} next call went well when {changes}.{then}"
        case "after":
            return f"{after}: first {others}", f"{seen}; after {others} the same call went well.{then}"
        case "instead":
            return f"{after}: go on with {others}", f"{seen}; the work went on with {others} and succeeded."
        case "stuck":
            often = f", {turn.tries} times with the same parameters in the last of them," if turn.tries > 1 else ""
            return (
                f"{after}: nothing got past it",
                f"{seen}{often} and nothing that was tried got past it.{then} "
                f"Change what the error is about, or find out more, before calling it again.",
            )


def _told_mishap(turn: Turn) -> str:
    mishap = turn.mishap
    if mishap.empty:
        return mishap.kind
    names = " ".join((turn.action, *(name for step in turn.reading.steps[:200] for name in step.given)))
    known = words_of(names.replace("_", " ").replace(".", " ")).all | (topic(turn.reading) - names_in(turn.reading))
    about = ", ".join(mishap.about(known))
    detail = "; ".join(filter(None, (mishap.code, f"about {about}" if about else "")))
    kind = mishap.kind if mishap.kind == "an error" else f"the error “{mishap.kind.removeprefix('a ')}”"
    return f"{kind} ({detail})" if detail else kind


def told_retry(action: str, changes: Sequence[Change], succeeded_later: bool) -> tuple[str, str]:
    names = named([change.name for change in changes if change.name]) or "the text"
    told = "; ".join(map(told_change, changes))
    order = (
        "A failed try and a later, successful one" if succeeded_later else "A successful try and a later, failed one"
    )
    return (
        f"`{action}`: mind {names}",
        f"{order} for like requests took the same steps. From the failed to the successful one, in `{action}`, {told}.",
    )


def _tries(count: int, which: str) -> str:
    return f"{count} {which} {'try' if count == 1 else 'tries'}"
