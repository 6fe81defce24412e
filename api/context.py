"""What a request carries: the service, the batching loaders, and how much it may still read."""

from dataclasses import dataclass

from api.loaders import Budget, Loaders
from api.settings import Settings
from bank.bank import Bank
from bank.consolidate import Consolidation
from bank.embed import Embedder
from bank.lesson_links import LessonLinks
from bank.offers import Offers
from bank.prune import Prune
from bank.reading import ReadAhead
from bank.recall import Recall
from bank.remember import Remember
from bank.scopes import Scopes
from bank.search import Search
from bank.sessions import Sessions
from bank.signals import Signals
from bank.sweeps import Sweeps
from bank.sync import Sync
from bank.upkeep import Upkeep
from bank.vectors import Vectors
from graph.session import Graph


@dataclass(frozen=True)
class Cairn:
    """The running service: what `api/app.py` wired."""

    settings: Settings
    graph: Graph
    vectors: Vectors
    embedder: Embedder
    sync: Sync
    remember: Remember
    bank: Bank
    links: LessonLinks
    upkeep: Upkeep
    consolidation: Consolidation
    sweeps: Sweeps
    search: Search
    recall: Recall
    reading: ReadAhead
    signals: Signals
    offers: Offers
    prune: Prune
    scopes: Scopes
    sessions: Sessions


class Context:
    def __init__(self, cairn: Cairn) -> None:
        self.cairn = cairn
        self.budget = Budget()
        self.degraded: str | None = None
        self.withheld: set[int] = set()  # lessons that a recall of this request leaves out by chance
        self.loaders = Loaders(cairn.bank.memories, cairn.bank.lessons, cairn.signals, cairn.links)

    def note(self, degraded: str | None) -> None:
        """What an answer had to do without; it stands in the response's extensions."""
        self.degraded = degraded or self.degraded
