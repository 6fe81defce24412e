"""The only importer of `openai`: embeddings from any endpoint that speaks its API."""

from collections.abc import Sequence

import numpy as np
import openai

from bank.embed import Vectors, normalised
from graph.errors import SetupError, Unavailable

BATCH = 256
CHARACTERS = 8_000  # the models take 8,191 tokens; no script needs more than one a character
RETRIES = 4


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
        for start in range(0, len(texts), BATCH):
            vectors += self._batch([text[:CHARACTERS] for text in texts[start : start + BATCH]])
        return normalised(np.array(vectors, np.float32))

    def _batch(self, texts: list[str]) -> list[list[float]]:
        try:
            answer = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        except openai.APIStatusError as error:
            raise Unavailable(f"The embeddings endpoint answered {error.status_code}.") from error
        except openai.APIError as error:  # no connection, a time-out, an answer that is no JSON
            raise Unavailable(f"The embeddings endpoint did not answer: {type(error).__name__}.") from error
        rows = sorted(answer.data, key=lambda row: row.index)
        if len(rows) != len(texts):
            raise Unavailable(f"The embeddings endpoint answered {len(rows)} vectors for {len(texts)} texts.")
        wrong = {len(row.embedding) for row in rows} - {self.dimensions}
        if wrong:
            raise Unavailable(
                f"The embeddings endpoint answered vectors of {wrong.pop()} dimensions; {self.dimensions} are expected. "
                "Set CAIRN_OPENAI_DIMENSIONS to what the model gives, then run `make reembed`."
            )
        return [row.embedding for row in rows]
