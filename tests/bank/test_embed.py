"""The embedders: the default model itself, word vectors, and OpenAI's API as a small local server speaks it."""

import asyncio
import contextlib
import json
import logging
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bank.openai_client
from api.settings import Settings
from bank.embed import (
    BGE_QUERY_PREFIX,
    LONG_TEXT,
    WORDLLAMA_BATCH,
    WORDLLAMA_CHARACTERS,
    Embedder,
    OnnxModel,
    Vectors,
    WordLlamaModel,
    default_onnx_folder,
)
from bank.openai_embedder import OpenAIModel
from graph.errors import SetupError, Unavailable
from tests.service import serving

KEY = "sk-a-secret-nobody-may-see"
DIMENSIONS = 8


# ---------------------------------------------------------------- onnx


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return default_onnx_folder(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def onnx(model_folder: Path) -> OnnxModel:
    return OnnxModel(model_folder)


def test_the_default_model_gives_384_normalised_numbers(onnx: OnnxModel) -> None:
    """bge-small: 384 dimensions, every vector of length one, and its name says which model made it."""
    vectors = onnx.encode(["Revenue fell in March.", "Ω", "."], query=False)
    assert (onnx.name, onnx.dimensions) == ("onnx:bge-small-en-v1.5-q", 384)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_a_query_gets_the_prefix_and_a_passage_does_not(onnx: OnnxModel) -> None:
    """A query is embedded as the passage that begins with the model's prefix would be; a passage as it is."""
    text = "Why did revenue fall?"
    query, passage = onnx.encode([text], query=True)[0], onnx.encode([text], query=False)[0]
    prefixed = onnx.encode([BGE_QUERY_PREFIX + text], query=False)[0]
    assert query @ passage < 0.99
    assert query @ prefixed == pytest.approx(1.0, abs=1e-5)


def test_what_means_the_same_is_closer(onnx: OnnxModel) -> None:
    """A question is closer to its answer than to a sentence about something else, without a word in common."""
    query = onnx.encode(["Which customers are about to leave us?"], query=True)[0]
    answer, other = onnx.encode(
        ["Churn risk is highest among small accounts.", "The printer on the second floor is out of paper."], query=False
    )
    assert query @ answer > query @ other + 0.1


def test_a_text_has_one_vector_whatever_its_company(onnx: OnnxModel) -> None:
    """Texts of mixed lengths: each in its place, and to the last digit as if it came alone. So an index that is made
    anew is the same as before."""
    topics = ["tax", "rain", "bees", "chess", "steel", "jazz", "ports", "milk", "law", "moons", "wine", "trains"]
    texts = [f"All about {topic}. " + f"More of {topic}. " * (n * 7 % 23) for n, topic in enumerate(topics)]
    together = onnx.encode(texts, query=False)
    assert np.array_equal(together, np.stack([onnx.encode([text], query=False)[0] for text in texts]))
    assert len({vector.tobytes() for vector in together}) == len(texts)


def test_a_text_that_is_too_long_is_cut(onnx: OnnxModel) -> None:
    """What lies beyond 256 tokens has no say; it is no error."""
    start = "margin " * 300
    one, other = onnx.encode([start + "apples", start + "oranges"], query=False)
    assert one @ other == pytest.approx(1.0, abs=1e-5)


def test_any_folder_with_a_model_serves(model_folder: Path, onnx: OnnxModel, tmp_path: Path) -> None:
    """A model, its tokenizer and a few lines on how to use it are enough: name, pooling and prefix are obeyed."""
    folder = shutil.copytree(model_folder, tmp_path / "mine")
    (folder / "cairn.json").write_text(json.dumps({"name": "mine", "pooling": "mean", "query_prefix": "", "tokens": 8}))
    mine = OnnxModel(folder)
    text = "Revenue fell in March."
    assert (mine.name, mine.dimensions) == ("onnx:mine", 384)
    assert mine.encode([text], query=True)[0] @ mine.encode([text], query=False)[0] == pytest.approx(1.0, abs=1e-5)
    assert mine.encode([text], query=False)[0] @ onnx.encode([text], query=False)[0] < 0.999


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.onnx", None),
        ("model.onnx", "not a model"),
        ("tokenizer.json", None),
        ("tokenizer.json", '{"not": "a tokenizer"}'),
        ("cairn.json", None),
        ("cairn.json", "{"),
        ("cairn.json", "[]"),
        ("cairn.json", '{"pooling": "cls"}'),
        ("cairn.json", '{"name": "mine", "pooling": "max"}'),
    ],
)
def test_a_bad_folder_says_what_is_needed(model_folder: Path, tmp_path: Path, file: str, content: str | None) -> None:
    """A file that is missing or is something else: the error names the folder and all that it needs."""
    folder = shutil.copytree(model_folder, tmp_path / "bad")
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(SetupError) as refused:
        OnnxModel(folder)
    for part in (str(folder), "model.onnx", "tokenizer.json", "cairn.json"):
        assert part in str(refused.value)


def test_an_unpacking_that_was_cut_off_is_done_again(model_folder: Path, tmp_path: Path) -> None:
    """Half a model in the folder is no model: the next start unpacks it anew."""
    half = tmp_path / model_folder.name
    half.mkdir()
    (half / "model.onnx").write_bytes(b"half of it")
    assert OnnxModel(default_onnx_folder(tmp_path)).dimensions == 384


# ---------------------------------------------------------------- wordllama


def test_wordllama_is_the_same_every_time() -> None:
    """256 dimensions, length one, the same text the same vector, whatever else is in the batch."""
    model = WordLlamaModel()
    text = "Revenue fell in March."
    alone = model.encode([text], query=False)[0]
    among = model.encode(["Something else entirely, and longer than that.", text], query=True)[1]
    assert (model.dimensions, alone.shape) == (256, (256,))
    assert np.linalg.norm(alone) == pytest.approx(1.0, abs=1e-5)
    assert among == pytest.approx(alone, abs=1e-5)


def test_wordllama_gives_every_text_a_direction() -> None:
    """Milvus wants finite vectors of some length: also for a text with no word in it."""
    odd = ["", " ", "\u200b", "\t\n", "\U0001f5fb" * 40, "\u0e01\u0e33", "-" * 5_000, "\u202e", "a"]
    vectors = WordLlamaModel().encode(odd, query=False)
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_wordllama_takes_long_texts_a_few_at_a_time() -> None:
    """A hundred long texts beside short ones: each vector is what the text gets alone, of a long one what its beginning
    gets, and no call to the library holds more than a batch."""
    model = WordLlamaModel()
    embed, sizes = model._model.embed, []

    def counted(texts: list[str]) -> Any:
        sizes.append(len(texts) * max(map(len, texts)))
        return embed(texts)

    model._model.embed = counted
    long = [f"Harbour {n} barion kelato. " * 2_500 for n in range(12)]
    texts = [text for n, one in enumerate(long) for text in (one, f"A short text {n}.")]
    vectors = model.encode(texts, query=False)
    assert max(sizes) <= WORDLLAMA_BATCH
    for text, vector in zip(texts, vectors, strict=True):
        assert vector == pytest.approx(model.encode([text[:WORDLLAMA_CHARACTERS]], query=False)[0], abs=1e-5)


# ---------------------------------------------------------------- the cache


class Counting:
    """Word vectors, and what was asked of them."""

    name = WordLlamaModel.name
    dimensions = WordLlamaModel.dimensions
    quick = 0

    def __init__(self) -> None:
        self._model = WordLlamaModel()
        self.asked: list[tuple[bool, list[str]]] = []

    def encode(self, texts: Sequence[str], query: bool) -> Vectors:
        self.asked.append((query, list(texts)))
        return self._model.encode(texts, query)


async def test_a_question_does_not_wait_for_ever() -> None:
    """A model elsewhere that hangs: the question is told soon, the next one at once, and later it is asked again."""

    class Hanging(Counting):
        def encode(self, texts: Sequence[str], query: bool) -> Vectors:
            time.sleep(0.5)
            return super().encode(texts, query)

    model = Hanging()
    embedder = Embedder(model, query_seconds=0.05)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await embedder.query("ship")
    await asyncio.sleep(0.6)  # the call that was left comes to its end
    assert len(model.asked) == 1
    patient = Embedder(model)
    assert (await patient.query("ship")).shape == (model.dimensions,)


async def test_the_same_text_is_embedded_once() -> None:
    """Twice in one call, or again in the next: once. As a query it is another thing."""
    model = Counting()
    embedder = Embedder(model)
    first = await embedder.passages(["a text", "another", "a text"])
    second = await embedder.passages(["another", "a third", "a text"])
    await embedder.query("a text")
    await embedder.query("a text")
    assert model.asked == [(False, ["a text", "another"]), (False, ["a third"]), (True, ["a text"])]
    assert (first[0] == first[2]).all()
    assert (first[0] == second[2]).all()
    assert await embedder.passages([]) == []


async def test_a_long_text_is_remembered_without_its_letters() -> None:
    """Once embedded, twice asked; what is kept of it is as short as of any other."""
    model = Counting()
    embedder = Embedder(model)
    long = "A long text about harbours. " * 2_000
    first, again = await embedder.passages([long]), await embedder.passages([long])
    assert len(model.asked) == 1 and (first[0] == again[0]).all()
    assert max(len(key) for _, key in embedder._kept._young) <= LONG_TEXT


# ---------------------------------------------------------------- openai


def vector_of(text: str) -> list[float]:
    """A vector that tells its text: its own direction for each number that the text ends with."""
    number = int(text.split()[-1]) if text.split()[-1:] and text.split()[-1].isdigit() else len(text)
    angle = number / 1_000
    return [float(np.cos(angle)), float(np.sin(angle))] + [0.0] * (DIMENSIONS - 2)


def embeddings(texts: list[str]) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]
    return {"object": "list", "model": "m", "data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


Answer = Callable[[list[str]], tuple[int, Any]]


class Endpoint:
    """POST /v1/embeddings on a port of its own. `script` answers the next calls; after that all is well."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.keys: set[str] = set()
        self.script: list[Answer] = []
        self.always: Answer | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.calls.append(body["input"])
                endpoint.keys.add(self.headers["authorization"])
                assert self.path == "/v1/embeddings"
                answer = endpoint.script.pop(0) if endpoint.script else endpoint.always or all_well
                status, content = answer(body["input"])
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def all_well(texts: list[str]) -> tuple[int, Any]:
    return 200, embeddings(texts)


def says(status: int, content: Any = None) -> Answer:
    return lambda texts: (status, content if content is not None else {"error": {"message": f"no, says {KEY}"}})


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    endpoint.start()
    yield endpoint
    endpoint.stop()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's pauses between tries, shortened: what is tried is the number of tries."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.02)


def model_at(endpoint: Endpoint, dimensions: int = DIMENSIONS, timeout: float = 5.0) -> OpenAIModel:
    return OpenAIModel("m", dimensions, KEY, endpoint.url, timeout)


def test_many_texts_go_in_several_calls_and_come_back_in_order(endpoint: Endpoint) -> None:
    """At most 256 texts a call, and an endpoint that answers in another order changes nothing."""

    def backwards(texts: list[str]) -> tuple[int, Any]:
        answer = embeddings(texts)
        answer["data"].reverse()
        return 200, answer

    endpoint.always = backwards
    texts = [f"text {n}" for n in range(600)]
    vectors = model_at(endpoint).encode(texts, query=False)
    assert [len(call) for call in endpoint.calls] == [256, 256, 88]
    assert vectors == pytest.approx(np.array([vector_of(text) for text in texts]), abs=1e-6)
    assert endpoint.keys == {f"Bearer {KEY}"}


def test_no_call_is_larger_than_the_models_take(endpoint: Endpoint) -> None:
    """8,191 tokens a text and 300,000 a call, whatever the script: a token is at least one byte."""
    texts = ["\u0f40\U0001f5fb" * 5_000 + f" {n}" for n in range(60)]
    assert model_at(endpoint).encode(texts, query=False).shape == (60, DIMENSIONS)
    assert sum(len(call) for call in endpoint.calls) == 60
    assert max(len(text.encode()) for call in endpoint.calls for text in call) <= 8_191
    assert max(sum(len(text.encode()) for text in call) for call in endpoint.calls) <= 300_000


def test_too_many_requests_and_a_failing_server_are_tried_again(endpoint: Endpoint) -> None:
    """429, 500 and 503 pass by: the call succeeds in the end."""
    endpoint.script = [says(429), says(500), says(503)]
    vectors = model_at(endpoint).encode(["text 7"], query=True)
    assert vectors[0] == pytest.approx(vector_of("text 7"), abs=1e-6)
    assert len(endpoint.calls) == 4


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (500, None, "500"),
        (429, None, "429"),
        (401, None, "401"),
        (404, None, "404"),
        (200, b"<html>welcome</html>", "no list of vectors"),
        (200, b'{"data": [', "no list of vectors"),
        (200, {"data": None}, "no list of vectors"),
        (200, {"data": []}, "0 vectors for 2 texts"),
        (200, {}, "no list of vectors"),
        (200, b"null", "no list of vectors"),
        (200, {"data": [{"index": 0, "embedding": None}, {"index": 1, "embedding": None}]}, "no list of vectors"),
        (200, {"data": [{"index": 0, "embedding": ["a"] * 8}, {"index": 1}]}, "no list of vectors"),
        (200, embeddings(["one"]), "1 vectors for 2 texts"),
        (200, embeddings(["one", "two", "three"]), "3 vectors for 2 texts"),
        (200, json.dumps(embeddings(["one", "two"])).replace(" 0.0,", " NaN,").encode(), "not finite"),
    ],
)
def test_an_endpoint_that_does_not_do_its_work_is_unavailable(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture, status: int, content: Any, said: str
) -> None:
    """Whatever it answers: an error that may be tried again, says what was wrong, and never tells the key."""
    caplog.set_level(logging.INFO)
    endpoint.always = says(status, content)
    with pytest.raises(Unavailable) as refused:
        model_at(endpoint).encode(["one", "two"], query=False)
    assert said in str(refused.value)
    assert KEY not in str(refused.value)
    assert KEY not in caplog.text
    tries = 1 + bank.openai_client.RETRIES if status in (429, 500) else 1
    assert len(endpoint.calls) == tries


def refuses(is_bad: Callable[[str], bool]) -> Answer:
    return lambda texts: says(400)(texts) if any(map(is_bad, texts)) else all_well(texts)


def test_a_text_that_is_too_long_for_the_endpoint_is_cut(endpoint: Endpoint) -> None:
    """It refuses the whole call for one of its texts: that one has the vector of its beginning, the others their own."""
    endpoint.always = refuses(lambda text: len(text) > 300)
    long = "long " * 500
    vectors = model_at(endpoint).encode(["text 7", long, "text 9"], query=False)
    assert vectors[0] == pytest.approx(vector_of("text 7"), abs=1e-6)
    assert vectors[2] == pytest.approx(vector_of("text 9"), abs=1e-6)
    (taken,) = {text for call in endpoint.calls for text in call if text.startswith("long") and len(text) <= 300}
    assert vectors[1] == pytest.approx(vector_of(taken), abs=1e-6)


def test_a_text_that_is_refused_however_short_keeps_no_other_from_its_vector(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """It has a direction all the same, for the index wants one, and the log says that words alone will find it."""
    endpoint.always = refuses(lambda text: "poison" in text)
    vectors = model_at(endpoint).encode(["text 7", "poison", "text 9"], query=False)
    assert vectors[0] == pytest.approx(vector_of("text 7"), abs=1e-6)
    assert vectors[2] == pytest.approx(vector_of("text 9"), abs=1e-6)
    assert np.linalg.norm(vectors[1]) == pytest.approx(1.0)
    assert "found by its words alone" in caplog.text and "poison" not in caplog.text


def test_an_endpoint_that_refuses_every_text_is_unavailable(endpoint: Endpoint) -> None:
    """Then it is not for what the texts say, and nothing is indexed without a vector."""
    endpoint.always = says(400)
    with pytest.raises(Unavailable, match="400"):
        model_at(endpoint).encode(["one", "two"], query=False)
    assert len(endpoint.calls) == 2


def test_a_wrong_dimension_names_the_setting(endpoint: Endpoint) -> None:
    """A model that gives other vectors than were said: which setting to change, and the command to run then."""
    with pytest.raises(Unavailable, match=r"8 dimensions; 3072 are expected.*CAIRN_OPENAI_DIMENSIONS.*make reembed"):
        model_at(endpoint, dimensions=3072).encode(["one"], query=False)


def test_an_endpoint_that_hangs_is_left(endpoint: Endpoint) -> None:
    """A call takes no longer than the setting says, times the tries."""
    over = threading.Event()

    def hang(texts: list[str]) -> tuple[int, Any]:
        over.wait(20)
        return 200, embeddings(texts)

    endpoint.always = hang
    try:
        with pytest.raises(Unavailable, match="did not answer: APITimeoutError"):
            model_at(endpoint, timeout=0.1).encode(["one"], query=False)
    finally:
        over.set()


def test_no_connection_is_unavailable(endpoint: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody listens there: an error that may be tried again, without the key."""
    endpoint.stop()
    with pytest.raises(Unavailable, match="did not answer: APIConnectionError") as refused:
        model_at(endpoint).encode(["one"], query=False)
    assert KEY not in str(refused.value) + caplog.text


def test_without_a_key_and_an_endpoint_it_does_not_start() -> None:
    """Neither is set: the message names both, and the embedder that needs none."""
    with pytest.raises(SetupError, match=r"CAIRN_OPENAI_API_KEY.*CAIRN_OPENAI_BASE_URL.*CAIRN_EMBEDDER=onnx"):
        OpenAIModel("m", 8, None, None)


async def test_a_write_is_acknowledged_while_the_endpoint_is_away(
    settings: Settings, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """No embeddings: `remember` answers all the same and the memory can be read and found by its words; it is pending, and becomes searchable
    when the endpoint is back, without a restart. The key is in no answer and in no log."""
    caplog.set_level(logging.DEBUG, "cairn")
    endpoint.stop()
    ours = settings.model_copy(
        update={
            "embedder": "openai",
            "openai_model": "m",
            "openai_base_url": endpoint.url,
            "openai_dimensions": DIMENSIONS,
            "openai_api_key": Settings(openai_api_key=KEY).openai_api_key,
        }
    )
    async with serving(ours) as cairn:
        asked = '{ recall(input: {query: "Did the warehouse burn?"}) { degraded memories { why memory { id } } } }'
        assert "embedder is away" in (await cairn.ask(asked))["recall"]["degraded"]
        written = await cairn.remember(memories=[{"event": {"id": "E1", "text": "The warehouse burned down in May 1"}}])
        assert written["created"] == 1
        read = await cairn.ask('{ memory(id: "E1") { text } status { pending stores { name up detail } } }')
        assert read["memory"]["text"].startswith("The warehouse")
        assert read["status"]["pending"] > 0
        index = next(store for store in read["status"]["stores"] if store["name"] == "index")
        assert "embeddings endpoint" in index["detail"]
        assert KEY not in json.dumps(read)
        recalled = (await cairn.ask(asked))["recall"]
        assert "index is behind" in recalled["degraded"]
        assert [one["memory"]["id"] for one in recalled["memories"]] == ["E1"]

        endpoint.start()
        report = await cairn.settled()
        assert report["ok"], report
        search = '{ searchMemories(query: "warehouse 1") { memory { id } } }'
        found = await cairn.ask(search)
        assert [row["memory"]["id"] for row in found["searchMemories"]] == ["E1"]
        started = time.monotonic()
        while (await cairn.ask(asked))["recall"]["degraded"]:  # the embedder is asked again by itself
            assert time.monotonic() - started < 20
            await asyncio.sleep(0.2)
        up = await cairn.ask("{ status { pending stores { up } } }")
        assert up["status"] == {"pending": 0, "stores": [{"up": True}, {"up": True}]}
    assert KEY not in caplog.text
