"""The numbers of a sentence: written as words, or counting only the evidence behind a lesson. Pure."""

import re

_UNITS = (
    "two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
NUMBER_WORDS = {word: number for number, word in enumerate(_UNITS.split(), start=2)}
NUMBER_WORDS |= {word: number for number, word in zip(range(20, 101, 10), _TENS.split(), strict=True)}

_COUNT = rf"(?:\d+|one|{'|'.join(NUMBER_WORDS)})"
_SEEN = r"(?:tries|try|sessions?|attempts?|cases?|runs?)\b"
# As `bank/telling.py` counts them: "in 2 of 3 failed tries", "in one session", "all 3 tries", "4 times with the same …".
_COUNTS = re.compile(
    rf"\b{_COUNT} (?:of|out of|in) (?:the )?{_COUNT} (?=(?:\w+ ){{0,2}}{_SEEN})"
    rf"|\b(?<=\bin ){_COUNT} (?=(?:\w+ )?{_SEEN})|\b(?<=\ball ){_COUNT} (?=(?:\w+ )?{_SEEN})"
    rf"|\b{_COUNT} times (?=with the same parameters)",
    re.IGNORECASE,
)


def without_counts(text: str) -> str:
    """A text without its counts of evidence: with more of it, a lesson says what it said."""
    return _COUNTS.sub("", text)
