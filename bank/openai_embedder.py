"""The only importer of `openai`: embeddings from any endpoint that speaks its API."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import openai

from bank.embed import Vectors, normalised
from graph.errors import SetupError, Unavailable

BATCH = 256
# The models take 8,191 tokens a text and 300,000 a call; no token is shorter than a byte.
TEXT_BYTES = 8_000
BATCH_BYTES = 290_000
RETRIES = 3


class OpenAIModel:
    """`dimensions` is what the data is stored with; an answer of another length is refused."""

    def __init__(
        self, model: str, dimensions: int, api_key: str | None, base_url: str | None, timeout: float = 30.0
    ) -> None:
        if not api_key and not base_url:
            raise SetupError(
                "The openai embedder needs a key: set CAIRN_OPENAI_API_KEY, or CAIRN_OPENAI_BASE_URL for an endpoint of "
                "your own, or take another embedder with CAIRN_EMBEDDER=onnx."
            )
        # The client itself tries again after 429, 5xx, time-outs and lost connections, with growing pauses.
        self._client = openai.OpenAI(api_key=api_key or "none", base_url=base_url, timeout=timeout, max_retries=RETRIES)
        self._model = model
        self.name = f"openai:{model}"
        self.dimensions = dimensions

    def encode(self, texts: Sequence[str], query: bool) -> Vectors:
        vectors: list[list[float]] = []
        for batch in _batches(texts):
            vectors += self._batch(batch)
        return normalised(np.array(vectors, np.float32))

    def _batch(self, texts: list[str]) -> list[list[float]]:
        try:
            answer = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            rows = [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]
            found = {len(row) for row in rows}
            finite = all(map(math.isfinite, itertools.chain.from_iterable(rows)))
        except openai.APIStatusError as error:
            raise Unavailable(f"The embeddings endpoint answered {error.status_code}.") from error
        except openai.APIError as error:  # no connection, a time-out
            raise Unavailable(f"The embeddings endpoint did not answer: {type(error).__name__}.") from error
        except (ValueError, TypeError, AttributeError) as error:  # the client hands on whatever it was sent
            raise Unavailable("The embeddings endpoint answered something that is no list of vectors.") from error
        if len(rows) != len(texts):
            raise Unavailable(f"The embeddings endpoint answered {len(rows)} vectors for {len(texts)} texts.")
        if wrong := found - {self.dimensions}:
            raise Unavailable(
                f"The embeddings endpoint answered vectors of {wrong.pop()} dimensions; {self.dimensions} are expected. "
                "Set CAIRN_OPENAI_DIMENSIONS to what the model gives, then run `make reembed`."
            )
        if not finite:
            raise Unavailable("The embeddings endpoint answered vectors with numbers that are not finite.")
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
