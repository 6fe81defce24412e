"""Fetches pinned files by their Maven coordinates, checks their SHA-256, and keeps them in Maven's local repository."""

import contextlib
import fcntl
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from jgo.maven import MavenContext
from requests import RequestException

from graph.errors import SetupError

# Told now and then how far it is: (done, of how many).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Pin:
    """`group:artifact:version[:classifier]` and what its jar must hash to."""

    coordinates: str
    sha256: str


def read_pins(path: Path) -> list[Pin]:
    lines = [
        line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    return [Pin(coordinates, digest.removeprefix("sha256:")) for coordinates, digest in lines]


def fetch(pins: Sequence[Pin], progress: Progress = lambda done, total: None) -> list[Path]:
    """The files of these pins, fetched where they are not here yet, in the order of the pins."""
    context = MavenContext(timeout=30)
    found: dict[Pin, Path] = {}
    with _alone_in(Path(context.repo_cache)), ThreadPoolExecutor(16) as pool:
        jobs = {pool.submit(_fetch_one, context, pin): pin for pin in dict.fromkeys(pins)}
        try:
            for job in as_completed(jobs):
                found[jobs[job]] = job.result()
                progress(len(found), len(jobs))
        except BaseException:  # Ctrl-C too: what has not begun is not fetched any more
            pool.shutdown(cancel_futures=True)
            raise
    return [found[pin] for pin in pins]


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time: another one would take a file that is being written for a broken one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".cairn.lock", "a")  # noqa: SIM115  closed below, after a wait
    except OSError as error:
        raise SetupError(f"{folder}, where fetched files are kept, cannot be written: {error}. Set M2_REPO.") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_one(context: MavenContext, pin: Pin) -> Path:
    group, name, version, *classifier = pin.coordinates.split(":")
    artifact = context.project(group, name).at_version(version).artifact(*classifier)
    for attempt in (1, 2, 3):
        try:
            path = Path(artifact.resolve())
        except (RequestException, OSError, RuntimeError, AssertionError) as error:  # jgo: not found, half-way, raced
            if attempt == 3:
                raise SetupError(
                    f"{pin.coordinates} could not be fetched: {error}. Is the Maven registry reachable? "
                    "Behind a proxy, set HTTPS_PROXY. Then run the same command again; what is here already is kept."
                ) from error
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() == pin.sha256:
            return path
        path.unlink(missing_ok=True)  # a download that was cut off, most likely: once more
    raise SetupError(
        f"{pin.coordinates} is not the file that Cairn was made with (its SHA-256 differs), three times over. "
        "Something between here and the Maven registry changes files; fetch over another network."
    )
