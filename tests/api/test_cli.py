"""`python -m api run` as an operator meets it: what it prints, how it stops, what it survives, what it refuses."""

import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from api.cli import main
from tests.conftest import free_port

ROOT = Path(__file__).parents[2]
STOP_SECONDS = 60  # the first stop also writes the class archive, and the machine may be busy


class Command:
    """One `python -m api …`, all that it prints, and the processes it started."""

    def __init__(self, environment: dict[str, str], log: Path, *arguments: str) -> None:
        self._log = log
        self.environment = environment
        self.began = time.monotonic()
        own = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")}
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "api", *(arguments or ("run",))],
                cwd=ROOT,
                env={**own, **environment},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def until(self, happened: Callable[[], bool], seconds: float = 150) -> float:
        """Seconds since the command began until this happened."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert self.process.poll() is None, self.printed
            assert time.monotonic() < deadline, self.printed
            time.sleep(0.05)
        return time.monotonic() - self.began

    def until_up(self) -> float:
        return self.until(lambda: "Cairn is up" in self.printed)

    def children(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return found

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)

    def ask(self, query: str, **variables: Any) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.environment['CAIRN_PORT']}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        return answer["data"]


Start = Callable[..., Command]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts a command; what still runs at the end is ended, with its children."""
    begun: list[Command] = []

    def start(environment: dict[str, str], *arguments: str) -> Command:
        command = Command(environment, tmp_path_factory.mktemp("log") / "printed", *arguments)
        begun.append(command)
        return command

    yield start
    for command in begun:
        if command.process.poll() is None:
            for process in (*command.children(), psutil.Process(command.process.pid)):
                process.kill()
            command.process.wait()


def own_stores(folder: Path) -> dict[str, str]:
    return {
        "CAIRN_DATA": str(folder),
        "CAIRN_EMBEDDER": "wordllama",
        "CAIRN_PORT": str(free_port()),
        "CAIRN_NEO4J_BOLT_PORT": str(free_port()),
        "CAIRN_NEO4J_HTTP_PORT": str(free_port()),
        "CAIRN_NEO4J_HEAP": "512m",
    }


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One data folder for the whole story below."""
    return own_stores(tmp_path_factory.mktemp("cairn") / "data")


def processes_on(environment: dict[str, str]) -> list[psutil.Process]:
    """Every process that has our data folder on its command line: Neo4j and Milvus Lite."""
    folder = environment["CAIRN_DATA"]
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(folder in argument for argument in process.info["cmdline"] or [])
    ]


def is_there(command: Command) -> bool:
    """What the first start was given is in the graph and in the index."""
    said = command.ask(
        '{ memory(id: "E1") { text } searchMemories(query: "warehouse") { memory { id } } integrity { ok } }'
    )
    found = [row["memory"]["id"] for row in said["searchMemories"]]
    return bool(said["memory"] and found == ["E1"] and said["integrity"]["ok"])


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `run` says with this environment when it does not start; in this process, which need not load it all again."""

    def refusal(**environment: str) -> str:
        for name in [name for name in os.environ if name.startswith("CAIRN_")]:
            monkeypatch.delenv(name)
        for name, value in {"CAIRN_DATA": str(tmp_path / "data"), **environment}.items():
            monkeypatch.setenv(name, value)
        assert main(["run"]) == 1
        said = capsys.readouterr().err
        return said[said.index("cairn: ") :]

    return refusal


# ---------------------------------------------------------------- the story of one data folder, in this order


@pytest.fixture(scope="module")
def first(start: Start, environment: dict[str, str]) -> Command:
    command = start(environment)
    print(f"first start: {command.until_up():.1f} s")
    return command


def test_the_first_start_says_where_things_are(first: Command, environment: dict[str, str]) -> None:
    """What it is doing, then: GraphQL, Browser, user, where the password is, the data folder, a query to try."""
    printed = first.printed
    folder = Path(environment["CAIRN_DATA"])
    http = f"http://127.0.0.1:{environment['CAIRN_NEO4J_HTTP_PORT']}/browser/"
    for part in (
        "Neo4j is starting",
        "Milvus is starting",
        f"http://127.0.0.1:{environment['CAIRN_PORT']}/graphql",
        http,
        "as neo4j",
        str(folder / "neo4j" / "password"),
        f"Data           {folder}",
        "curl -s",
        "Ctrl-C",
    ):
        assert part in printed
    assert "Warning" not in printed
    password = folder / "neo4j" / "password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert password.read_text().strip() not in printed
    with urllib.request.urlopen(http, timeout=10) as page:
        assert page.status == 200
        assert b"<html" in page.read().lower()


def test_the_query_to_try_works_as_printed(first: Command) -> None:
    """The curl line can be pasted."""
    lines = first.printed[first.printed.index("curl -s") :].split("\n\n")[0]
    answer = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, timeout=30, check=True).stdout
    status = json.loads(answer)["data"]["status"]
    assert status["ready"] is True
    assert [store["up"] for store in status["stores"]] == [True, True]


def test_a_data_folder_in_use_is_refused(
    first: Command, refusal: Callable[..., str], environment: dict[str, str]
) -> None:
    """A second service on the same folder says whose it is and what to change, and leaves the first alone."""
    said = refusal(**{**environment, "CAIRN_PORT": str(free_port())})
    assert environment["CAIRN_DATA"] in said
    assert f"process {first.process.pid}" in said
    assert "CAIRN_DATA" in said
    assert first.ask("{ status { ready } }") == {"status": {"ready": True}}


@pytest.mark.parametrize("variable", ["CAIRN_PORT", "CAIRN_NEO4J_BOLT_PORT", "CAIRN_NEO4J_HTTP_PORT"])
def test_a_taken_port_is_refused(
    first: Command, refusal: Callable[..., str], environment: dict[str, str], tmp_path: Path, variable: str
) -> None:
    """The error names the port and the variable that changes it; nothing stays behind."""
    other = {**own_stores(tmp_path), variable: environment[variable]}
    said = refusal(**other)
    assert f"Port {environment[variable]}" in said
    assert f"set {variable} to a free port" in said
    assert processes_on(other) == []


def test_sigterm_stops_everything(first: Command, environment: dict[str, str]) -> None:
    """In order, with exit code 0, within a minute, and neither Neo4j nor Milvus Lite stays behind."""
    text = "The warehouse burned down in May."
    query = "mutation($input: RememberInput!) { remember(input: $input) { created } }"
    first.ask(query, input={"convId": "c", "memories": [{"event": {"id": "E1", "text": text}}]})
    assert is_there(first)
    children = first.children()
    assert len(children) >= 2
    assert first.end(signal.SIGTERM) == 0
    assert first.printed.rstrip().endswith("Stopped.")
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert processes_on(environment) == []


@pytest.fixture(scope="module")
def second(first: Command, start: Start, environment: dict[str, str]) -> Command:
    if first.process.poll() is None:
        first.end(signal.SIGTERM)
    return start(environment)


def test_the_second_start_is_quick_and_all_is_there(second: Command) -> None:
    """Under 15 s on a quiet machine; asserted generously, since machines are noisy."""
    seconds = second.until_up()
    print(f"second start: {seconds:.1f} s")
    assert seconds < 60
    assert is_there(second)


def test_a_start_after_kill_9_copes_with_what_was_left(
    second: Command, start: Start, environment: dict[str, str]
) -> None:
    """The service dies without a word and its Neo4j lives on: the next start stops that one, and all is there.
    Ctrl-C then stops everything."""
    second.until_up()
    left = second.children()
    second.process.kill()
    second.process.wait()
    neo4j = [process for process in left if process.is_running() and "java" in process.name()]
    assert neo4j
    third = start(environment)
    print(f"start after kill -9: {third.until_up():.1f} s")
    assert psutil.wait_procs(left, timeout=5)[1] == []
    assert is_there(third)
    children = third.children()
    assert third.end(signal.SIGINT) == 0
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert processes_on(environment) == []


def test_sigterm_while_it_starts_leaves_nothing(start: Start, environment: dict[str, str]) -> None:
    """Neo4j is not up yet: it is stopped all the same."""
    command = start(environment)
    command.until(lambda: len(command.children()) > 0)
    children = command.children()
    assert command.end(signal.SIGTERM) == 0
    assert "Cairn is up" not in command.printed
    assert "Traceback" not in command.printed
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert processes_on(environment) == []


# ---------------------------------------------------------------- Neo4j elsewhere


@pytest.fixture
def elsewhere(neo4j: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {
        "CAIRN_DATA": str(tmp_path / "data"),
        "CAIRN_EMBEDDER": "wordllama",
        "CAIRN_PORT": str(free_port()),
        "CAIRN_TENANT": f"test-{secrets.token_hex(4)}",
        "CAIRN_NEO4J_URI": neo4j["neo4j_uri"],
        "CAIRN_NEO4J_USER": neo4j["neo4j_user"],
    }


def test_a_password_may_come_from_a_file(
    neo4j: dict[str, str], elsewhere: dict[str, str], start: Start, tmp_path: Path
) -> None:
    """CAIRN_NEO4J_PASSWORD_FILE, line end and all; no Neo4j of our own is started then."""
    (tmp_path / "secret").write_text(neo4j["neo4j_password"] + "\n")
    command = start({**elsewhere, "CAIRN_NEO4J_PASSWORD_FILE": str(tmp_path / "secret")})
    command.until_up()
    assert neo4j["neo4j_uri"] in command.printed
    assert neo4j["neo4j_password"] not in command.printed.replace(neo4j["neo4j_uri"], "")
    assert command.ask("{ status { ready } }") == {"status": {"ready": True}}
    assert not [process for process in command.children() if "java" in process.name()]
    assert command.end(signal.SIGTERM) == 0


def test_a_wrong_password_is_refused(elsewhere: dict[str, str], refusal: Callable[..., str]) -> None:
    """Which user was refused where, and the settings to look at; never the password."""
    said = refusal(**elsewhere, CAIRN_NEO4J_PASSWORD="not-this-one")
    assert "refused the user 'neo4j'" in said
    assert "CAIRN_NEO4J_PASSWORD" in said
    assert "not-this-one" not in said


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_a_neo4j_that_does_not_answer_is_refused(
    elsewhere: dict[str, str], refusal: Callable[..., str], scheme: str
) -> None:
    """Nobody listens there: the address, and that it does not answer."""
    uri = f"{scheme}://127.0.0.1:{free_port()}"
    said = refusal(**{**elsewhere, "CAIRN_NEO4J_URI": uri, "CAIRN_NEO4J_PASSWORD": "x"})
    assert f"Neo4j at {uri} does not answer" in said


# ---------------------------------------------------------------- refused before anything is started


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CAIRN_PORT", "abc"),
        ("CAIRN_PORT", "70000"),
        ("CAIRN_EMBEDDER", "hash"),
        ("CAIRN_NEO4J_HEAP", "lots"),
        ("CAIRN_TENANT", "a b"),
    ],
)
def test_a_wrong_setting_is_named(refusal: Callable[..., str], variable: str, value: str) -> None:
    """Which variable, what is wrong with it, and where all of them are listed."""
    said = refusal(**{variable: value})
    assert f"cairn: A setting is wrong. {variable}: " in said
    assert "README" in said


def test_a_registry_that_cannot_be_reached_is_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    """No jars here and no way to fetch them: which file, what to set, and that one may simply try again. Soon."""
    began = time.monotonic()
    dead = f"http://127.0.0.1:{free_port()}"
    said = refusal(M2_REPO=str(tmp_path / "m2"), HTTPS_PROXY=dead, https_proxy=dead, CAIRN_EMBEDDER="wordllama")
    assert "could not be fetched" in said
    assert "HTTPS_PROXY" in said
    assert "run the same command again" in said
    assert time.monotonic() - began < 15
