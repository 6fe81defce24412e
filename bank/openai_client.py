"""The only importer of `openai`: embeddings and answers from any endpoint that speaks its API, and its errors as ours."""

import asyncio
import itertools
import math
from dataclasses import dataclass
from typing import Any

import openai

from bank.distil import DistillerAway
from bank.embed import TextRefused
from graph.errors import Unavailable

RETRIES = 3  # after 429, 5xx, time-outs and lost connections, by the client itself, with growing pauses
DEFAULT_URL = "https://api.openai.com/v1"  # said here: the client would take another one from its environment
CHAT_RETRIES = 1  # whoever asks tries again later anyway
OF_THE_QUESTION = {400, 413, 422}  # what was asked is refused; any other status refuses whoever asks, whatever it is


class Embeddings:
    """Blocking: it is called in a thread."""

    def __init__(self, model: str, api_key: str | None, base_url: str | None, timeout: float) -> None:
        self._client = openai.OpenAI(
            api_key=api_key or "none", base_url=base_url or DEFAULT_URL, timeout=timeout, max_retries=RETRIES
        )
        self._model = model

    def of(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text, of whatever length they are."""
        try:
            answer = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            rows = [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]
            finite = all(map(math.isfinite, itertools.chain.from_iterable(rows)))
        except openai.APIStatusError as error:
            refused = TextRefused if error.status_code in OF_THE_QUESTION else Unavailable
            raise refused(f"The embeddings endpoint answered {error.status_code}.") from error
        except openai.APIError as error:  # no connection, a time-out
            raise Unavailable(f"The embeddings endpoint did not answer: {type(error).__name__}.") from error
        except (ValueError, TypeError, AttributeError) as error:  # the client hands on whatever it was sent
            raise Unavailable("The embeddings endpoint answered something that is no list of vectors.") from error
        if len(rows) != len(texts):
            raise Unavailable(f"The embeddings endpoint answered {len(rows)} vectors for {len(texts)} texts.")
        if not finite:
            raise Unavailable("The embeddings endpoint answered vectors with numbers that are not finite.")
        return rows


@dataclass(frozen=True)
class Said:
    """What a model answered. `tokens` None: the endpoint did not say. `cut_off`: it had more to say than it may."""

    text: str
    tokens: int | None
    cut_off: bool = False


class Chat:
    def __init__(self, model: str, api_key: str | None, base_url: str | None, timeout: float) -> None:
        self._client = openai.AsyncOpenAI(
            api_key=api_key or "none", base_url=base_url or DEFAULT_URL, timeout=timeout, max_retries=CHAT_RETRIES
        )
        self._model = model
        self._most_seconds = timeout * (CHAT_RETRIES + 1) + 10  # an answer that drips is none, either
        self._takes_schema = True

    async def ask(self, system: str, user: str, schema: dict[str, Any]) -> Said:
        """The answer to one question, by the schema where the endpoint can, as it comes where it cannot. DistillerAway:
        no connection, too many questions, a key that is refused, a fault of its own. Unavailable: no answer to this."""
        try:
            async with asyncio.timeout(self._most_seconds):
                if self._takes_schema:
                    try:
                        return await self._complete(system, user, {"type": "json_schema", "json_schema": schema})
                    except (openai.BadRequestError, openai.UnprocessableEntityError):
                        plain = await self._complete(system, user, None)  # fails again if it was not the schema
                        self._takes_schema = False
                        return plain
                return await self._complete(system, user, None)
        except openai.APIStatusError as error:
            said = f"The model's endpoint answered {error.status_code}."
            if error.status_code in OF_THE_QUESTION:
                raise Unavailable(said) from error
            raise DistillerAway(said) from error
        except openai.APIResponseValidationError as error:
            raise Unavailable("The model's endpoint answered something that is no completion.") from error
        except (openai.APIError, TimeoutError) as error:
            raise DistillerAway(f"The model's endpoint did not answer: {type(error).__name__}.") from error

    async def _complete(self, system: str, user: str, response_format: Any) -> Said:
        messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            answer = await self._client.chat.completions.create(
                model=self._model,
                messages=messages,
                response_format=openai.omit if response_format is None else response_format,
            )
            text = _text(answer.choices[0].message.content)
            cut_off = answer.choices[0].finish_reason == "length"
            used = getattr(answer.usage, "total_tokens", None)
        # The client hands on whatever it was sent.
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise Unavailable("The model's endpoint answered something that is no completion.") from error
        if text is None:
            raise Unavailable("The model's endpoint answered without a text.")
        return Said(text, used if isinstance(used, int) and used >= 0 else None, cut_off)

    async def close(self) -> None:
        await self._client.close()


def _text(content: Any) -> str | None:
    """What was answered; some endpoints answer in parts, with thoughts among them. None: there is no text."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "".join(texts) if texts else None
