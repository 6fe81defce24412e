"""The embedder `openai`: vectors from any endpoint that speaks its API."""

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from bank.embed import TextRefused, Vectors, normalised
from bank.openai_client import Embeddings
from graph.errors import SetupError, Unavailable

BATCH = 256
# The models take 8,191 tokens a text and 300,000 a call; no token is shorter than a byte.
TEXT_BYTES = 8_000
BATCH_BYTES = 290_000
SHORT_TEXT = 200  # characters, which every model takes
PLAIN_TEXT = "text"

log = logging.getLogger("cairn.embedder")


class OpenAIModel:
    """`dimensions` is what the data is stored with; an answer of another length is refused."""

    quick = 0

    def __init__(
        self, model: str, dimensions: int, api_key: str | None, base_url: str | None, timeout: float = 30.0
    ) -> None:
        if not api_key and not base_url:
            raise SetupError(
                "The openai embedder needs a key: set CAIRN_OPENAI_API_KEY, or CAIRN_OPENAI_BASE_URL for an endpoint of "
                "your own, or take another embedder with CAIRN_EMBEDDER=onnx."
            )
        self._embeddings = Embeddings(model, api_key, base_url, timeout)
        self.name = f"openai:{model}"
        self.dimensions = dimensions

    def encode(self, texts: Sequence[str], query: bool) -> Vectors:
        vectors: list[list[float]] = []
        for batch in _batches(texts):
            try:
                vectors += self._batch(batch)
            except TextRefused:
                self._batch([PLAIN_TEXT])  # refused as well: then it is not for what the texts say
                vectors += self._in_parts(batch)
        return normalised(np.array(vectors, np.float32))

    def _in_parts(self, texts: list[str]) -> list[list[float]]:
        """Some of these are refused, for their length mostly. One text must not keep all others from being indexed: it is
        cut until it is taken; one that is refused however short it is has no direction, and is found by its words."""
        try:
            return self._batch(texts)
        except TextRefused as error:
            if len(texts) > 1:
                half = len(texts) // 2
                return self._in_parts(texts[:half]) + self._in_parts(texts[half:])
            if len(texts[0]) > SHORT_TEXT:
                return self._in_parts([texts[0][: len(texts[0]) // 2]])
            log.warning("A text is found by its words alone: %s", error)
            return [[0.0] * self.dimensions]

    def _batch(self, texts: list[str]) -> list[list[float]]:
        rows = self._embeddings.of(texts)
        if wrong := {len(row) for row in rows} - {self.dimensions}:
            raise Unavailable(
                f"The embeddings endpoint answered vectors of {wrong.pop()} dimensions; {self.dimensions} are expected. "
                "Set CAIRN_OPENAI_DIMENSIONS to what the model gives, then run `make reembed`."
            )
        return rows


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts cut to what the models take, in calls of what the endpoint takes."""
    batch: list[str] = []
    size = 0
    for text in texts:
        cut = text.encode()[:TEXT_BYTES]
        if batch and (len(batch) == BATCH or size + len(cut) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(cut.decode(errors="ignore"))
        size += len(cut)
    if batch:
        yield batch
