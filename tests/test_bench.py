"""The measurements themselves: they run the service as its users do."""

import subprocess
import sys

from graph.queries import CYPHER

EVERY_PART = """
import os, pkgutil
before = dict(os.environ)
import tests.bench
for part in pkgutil.iter_modules(tests.bench.__path__):
    if part.name != "__main__":
        __import__(f"tests.bench.{part.name}")
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
"""


def test_no_measurement_changes_what_the_service_is_started_with() -> None:
    """The tests start Neo4j with Java's quick compiler and without warming up; a measurement must not."""
    env = {"PATH": ""}
    subprocess.run([sys.executable, "-c", EVERY_PART], cwd=CYPHER.parent, env=env, check=True, timeout=60)
