"""Whether two lessons say the same, and whether a session was given a lesson before: pure, no I/O."""

import re

from bank.counts import NUMBER_WORDS, without_counts
from bank.model import Lesson, LessonStatus
from bank.words import words_of
from bank.work import Work, WorkStep

# Both must hold: two sentences of one pattern are close in meaning, two about one thing share their words.
SAME_WORDS = 0.6  # of the words that either has
SAME_MEANING = 0.8  # cosine
SAME_CONTEXT = 0.5  # cosine of what the lessons apply to: not about different things
# Whoever repeats a lesson that they were given tells it in words of their own.
GIVEN_WORDS = 0.6  # of the words of the shorter one
GIVEN_MEANING, GIVEN_MEANING_ALONE = 0.7, 0.85
FEWEST_WORDS = 3
MOST_MENTIONED = 100
SHORTEST_GIVEN = 20  # characters: a shorter lesson may stand in a text by chance

_IDENTIFIER = re.compile(r"\b[a-zA-Z]+(?:_[a-zA-Z0-9]+)+\b|\b[a-z]+[A-Z]\w*\b")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*(?!\w)")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no|cannot|\w+n['’]t|avoid|without|instead of)\b", re.IGNORECASE)
# How `bank/context.py` writes a lesson into a prompt; an agent may hand it in again with its work.
_RECALLED = r"\(lesson (?P<id>\d{1,19})(?:; (?:needed by|CONTRADICTS|rather than) lesson \d[\d, ]*)*\)"
_RECALLED_LINE = re.compile(rf"^.*{_RECALLED}\s*$", re.MULTILINE)
# The same inside a JSON string, where a line ends in a backslash and an n, or in two and an n in a string in a string.
_ENDS = r"(?<!\\)\\{1,2}n"
_RECALLED_IN_JSON = re.compile(rf"(?P<end>{_ENDS})(?:(?!{_ENDS}).)*{_RECALLED}(?=[\\\"]|$)", re.MULTILINE)
_MENTIONED = re.compile(
    r"""\b(?:lesson[ #:]{1,2}|rb_?id[\\"']{0,6}\s{0,3}[:=]\s{0,3}[\\"']{0,6})(\d{1,19})\b""", re.IGNORECASE
)
# What stands for a sign inside a string of JSON or Python, or inside a string in a string.
_HEX = re.compile(r"(?:\\+u[0-9a-f]{4})+")
_SPACE = re.compile(r"\\+[nrt]")
_QUOTE = re.compile(r"\\+([\"'])")


def share_words(one: str, other: str) -> bool:
    """Whether two key lessons may say the same, by their words. Names, figures and a "not" must agree: sentences of one
    pattern that differ in these alone are different lessons. Counts of evidence need not."""
    if exact_parts(one) != exact_parts(other):
        return False
    first, second = words_of(without_counts(one)).all, words_of(without_counts(other)).all
    return first == second or len(first & second) / len(first | second) >= SAME_WORDS


def mean_the_same(meaning: float, context: float) -> bool:
    """Whether they do, by the cosines of the two lessons and of what they apply to."""
    return meaning >= SAME_MEANING and context >= SAME_CONTEXT


def exact_parts(text: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """The identifiers and numbers of a text, and whether it has a "not"."""
    plain = without_counts(text)
    numbers = {number.rstrip(".,") for number in _NUMBER.findall(plain)}
    numbers |= {str(NUMBER_WORDS[word.lower()]) for word in _NUMBER_WORD.findall(plain)}
    return frozenset(_IDENTIFIER.findall(text)), frozenset(numbers), _NEGATION.search(text) is not None


def repeats_given(learnt: str, given: str, meaning: float) -> bool:
    """Whether a lesson says again what the session was given: nothing in it is exact and new."""
    (names, numbers, _), (given_names, given_numbers, _) = exact_parts(learnt), exact_parts(given)
    if not (names <= given_names and numbers <= given_numbers):
        return False
    first, second = words_of(learnt).all, words_of(given).all
    shorter = min(len(first), len(second))
    shared = len(first & second) / shorter if shorter >= FEWEST_WORDS else 0.0
    return meaning >= GIVEN_MEANING_ALONE or (meaning >= GIVEN_MEANING and shared >= GIVEN_WORDS)


class GivenLessons:
    """The lessons that a session was given, as far as its text shows."""

    def __init__(self, work: Work) -> None:
        self._text = _one_line("\n".join(texts_of(work)))
        numbers = dict.fromkeys(int(number) for number in _MENTIONED.findall(self._text))
        self.mentioned = tuple(number for number in numbers if 0 < number < 2**63)[:MOST_MENTIONED]

    def has(self, lesson: Lesson) -> bool:
        """It names the lesson, or holds its very words. A lesson that is put aside is given to nobody."""
        words = _one_line(lesson.key_lesson)
        return lesson.status != LessonStatus.QUARANTINED and (
            lesson.rb_id in self.mentioned or (len(words) >= SHORTEST_GIVEN and words in self._text)
        )


def without_recalled(work: Work) -> Work:
    """The work without the lines of a recalled context: what was learnt before is not to be learnt from it."""

    def cleaned(text: str | None) -> str | None:
        if text is None:
            return None
        text = _RECALLED_LINE.sub(r"[lesson \g<id>, recalled]", text)
        return _RECALLED_IN_JSON.sub(r"\g<end>[lesson \g<id>, recalled]", text)

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
    """In small letters, the same for a text and for a string of a program that holds it."""
    text = _HEX.sub(_signs, text.lower())
    return " ".join(_QUOTE.sub(r"\1", _SPACE.sub(" ", text)).lower().split())


def _signs(found: re.Match[str]) -> str:
    digits = "".join(part[:4] for part in found[0].split("u")[1:])
    return bytes.fromhex(digits).decode("utf-16-be", "replace")
