"""Loads every statement in `cypher/` by its name; the folder it lies in is its access mode.

`USING INDEX SEEK` stands in a statement that Neo4j was seen to plan without it by a scan of an index, or by another index:
for some seconds behind a first load its statistics do not know what the index has.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

CYPHER = Path(__file__).parent.parent / "cypher"


@dataclass(frozen=True)
class Statement:
    name: str
    mode: Literal["read", "write"]
    text: str

    @property
    def header(self) -> list[str]:
        lines = self.text.splitlines()
        return [line[2:].strip() for line in lines if line.startswith("//")]

    @property
    def declared_parameters(self) -> frozenset[str]:
        """The parameters that the header promises."""
        declaration = next((line for line in self.header if line.startswith("params:")), "")
        return frozenset(re.findall(r"\$(\w+)", declaration))

    @property
    def used_parameters(self) -> frozenset[str]:
        body = "\n".join(line for line in self.text.splitlines() if not line.startswith("//"))
        return frozenset(re.findall(r"\$(\w+)", body))


@cache
def statements() -> dict[str, Statement]:
    found: dict[str, Statement] = {}
    for mode in ("read", "write"):
        for path in sorted((CYPHER / mode).glob("*.cypher")):
            if path.stem in found:
                raise ValueError(f"two statements are named {path.stem}")
            found[path.stem] = Statement(path.stem, mode, path.read_text(encoding="utf-8"))
    return found
