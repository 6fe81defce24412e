"""Whether two lessons say the same, and whether a session was given a lesson before: pure, no I/O."""

import re

from bank.model import Lesson
from bank.words import words_of
from bank.work import Work, WorkStep

# Both must hold: two sentences of one pattern are close in meaning, two about one thing share their words.
SAME_WORDS = 0.6  # of the words that either has
SAME_MEANING = 0.8  # cosine
SAME_CONTEXT = 0.5  # cosine of what the lessons apply to: not about different things
# A lesson that the session was given needs less: whoever repeats it tells it in words of their own.
GIVEN_WORDS = 0.5  # of the words of the shorter one
GIVEN_MEANING = 0.75

_IDENTIFIER = re.compile(r"\b[a-zA-Z]+(?:_[a-zA-Z0-9]+)+\b|\b[a-z]+[A-Z]\w*\b")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*(?!\w)")
_COUNTS = re.compile(r"\b\d+ (?:of|out of|in) (?:the )?\d+\b|\b\d+ (?:sessions?|tries|times|steps?)\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no|don't|doesn't|avoid|without|instead of)\b", re.IGNORECASE)
# How `bank/context.py` writes a lesson into a prompt; an agent may hand it in again with its work.
_RECALLED_LINE = re.compile(r"^.*\(lesson (\d{1,19})\)\s*$", re.MULTILINE)
_MENTIONED = re.compile(r"\blesson[ #:]{1,2}(\d{1,19})\b", re.IGNORECASE)


def say_the_same(one: str, other: str, meaning: float, context: float) -> bool:
    """Two key lessons, the cosine of their vectors, and that of their contexts. Names, figures and a "not" must agree:
    sentences of one pattern that differ in these alone are different lessons. Counts of evidence need not."""
    if _exact_parts(one) != _exact_parts(other):
        return False
    first, second = words_of(_COUNTS.sub("", one)).all, words_of(_COUNTS.sub("", other)).all
    if first == second:
        return context >= SAME_CONTEXT
    shared = len(first & second) / len(first | second)
    return shared >= SAME_WORDS and meaning >= SAME_MEANING and context >= SAME_CONTEXT


def _exact_parts(text: str) -> tuple[frozenset[str], frozenset[str], bool]:
    plain = _COUNTS.sub("", text)
    numbers = frozenset(number.rstrip(".,") for number in _NUMBER.findall(plain))
    return frozenset(_IDENTIFIER.findall(text)), numbers, _NEGATION.search(text) is not None


def repeats_given(learnt: str, given: str, meaning: float) -> bool:
    """Whether a lesson says again what the session was given."""
    first, second = words_of(learnt).all, words_of(given).all
    shorter = min(len(first), len(second))
    return meaning >= GIVEN_MEANING or (shorter > 0 and len(first & second) / shorter >= GIVEN_WORDS)


def mentioned_lessons(work: Work) -> frozenset[int]:
    """The ids of lessons that a session names."""
    found = {int(number) for text in texts_of(work) for number in _MENTIONED.findall(text)}
    return frozenset(number for number in found if 0 < number < 2**63)


def was_given(work: Work, lesson: Lesson) -> bool:
    """Whether a session holds the very words of a lesson."""
    wanted = _one_line(lesson.key_lesson)
    return len(wanted) > 20 and any(wanted in _one_line(text) for text in texts_of(work))


def without_recalled(work: Work) -> Work:
    """The work without the lines of a recalled context: what was learnt before is not to be learnt from it."""

    def cleaned(text: str | None) -> str | None:
        return text if text is None else _RECALLED_LINE.sub(r"[lesson \1, recalled]", text)

    steps = tuple(
        WorkStep(
            action=cleaned(step.action) or "",
            parameters=cleaned(step.parameters),
            result=cleaned(step.result),
            memory=step.memory,
        )
        for step in work.steps
    )
    return work.model_copy(
        update={"request": cleaned(work.request) or "", "steps": steps, "answer": cleaned(work.answer)}
    )


def texts_of(work: Work) -> list[str]:
    """All that was handed in."""
    steps = [text for step in work.steps for text in (step.action, step.parameters, step.result)]
    return [text for text in (work.request, *steps, work.answer) if text]


def _one_line(text: str) -> str:
    return " ".join(text.lower().replace('\\"', '"').split())
