"""Keeps what was used last, up to a size."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """In two generations, each of half the size: what nobody asks for while the younger one fills up is gone. To look a
    thing up that was used lately moves nothing, as an order of use would; recall does it a thousand times."""

    def __init__(self, most: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self._half = most // 2
        self._size_of = size
        self._size = 0  # of the younger ones
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        if (before := self._young.pop(key, None)) is not None:
            self._size -= self._size_of(before)
        size = self._size_of(value)
        if self._young and self._size + size > self._half:
            self._young, self._old, self._size = {}, self._young, 0
        self._old.pop(key, None)
        self._young[key] = value
        self._size += size
