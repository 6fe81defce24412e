"""Mints ids: 63-bit numbers in the order of time, and their short readable form.

41 bits count milliseconds since 2024, 22 bits start at random in each millisecond and count up. Two processes may
mint the same number in the same millisecond; a write that meets a minted id which exists already mints another.
"""

import secrets
import threading
import time

_EPOCH_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
COUNTER_BITS = 22
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # no I, L, O, U: nothing that is misread
_lock = threading.Lock()
_last = 0


def mint() -> int:
    """A number larger than every one this process minted before."""
    global _last
    with _lock:
        now = (time.time_ns() // 1_000_000 - _EPOCH_MS) << COUNTER_BITS
        # The upper half of the counter stays free, so that one call can count up by two million.
        _last = max(_last + 1, now + secrets.randbelow(1 << (COUNTER_BITS - 1)))
        return _last


def readable(prefix: str, number: int) -> str:
    """Thirteen letters and digits that sort as the number does."""
    digits = []
    for _ in range(13):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return prefix + "".join(reversed(digits))


def is_young(id: str, seconds: float) -> bool:
    """Whether a readable id was minted within these seconds, by whichever clock. One that was never minted is not."""
    digits = id[1:]
    if len(digits) != 13 or any(digit not in _ALPHABET for digit in digits):
        return False
    number = 0
    for digit in digits:
        number = number * 32 + _ALPHABET.index(digit)
    return abs(time.time() * 1_000 - _EPOCH_MS - (number >> COUNTER_BITS)) < seconds * 1_000


def mint_memory_id() -> str:
    return readable("N", mint())


def mint_edge_id() -> str:
    return readable("E", mint())
