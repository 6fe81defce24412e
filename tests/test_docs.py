"""What the README says is so: every setting, every command, every path, and the answers of its first calls."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from api.settings import Settings
from bank.embed import default_onnx_folder
from tests.service import Service

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
TOP_LEVEL = {
    *("README.md", "CHANGELOG.md", "LICENSE", "Makefile", "docker-compose.yml", "pyproject.toml", "requirements.lock"),
    *("api", "bank", "cypher", "graph", "tests"),
}
BROWSER_FILES = {
    path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "cypher" / "browser").glob("*.cypher"))
}


@pytest.fixture(scope="module")
async def settings(settings: Settings) -> Settings:
    """The README's answers come from the default embedder."""
    model = default_onnx_folder(Settings().data / "models")
    return settings.model_copy(update={"embedder": "onnx", "onnx_model": model})


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def body_of(curl: str) -> dict[str, Any]:
    """What a curl command sends: its -d argument, between single quotes, as a shell reads it."""
    assert curl.startswith("curl -s http://127.0.0.1:8000/graphql -H 'Content-Type: application/json' -d '")
    (body,) = re.findall(r"-d '([^']*)'", curl)
    sent: dict[str, Any] = json.loads(body)
    return sent


def shown(default: object) -> str:
    value = default.get_secret_value() if isinstance(default, SecretStr) else default
    return "not set" if value is None or value == "" else f"`{value}`"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_in_the_readme(name: str) -> None:
    """Each setting has a row with its variable, its default and what it means."""
    rows = [
        line.strip("|").split("|") for line in README.splitlines() if line.startswith(f"| `CAIRN_{name.upper()}` |")
    ]
    assert len(rows) == 1, f"the README's table of settings needs one row for CAIRN_{name.upper()}"
    _, default, meaning = (cell.strip() for cell in rows[0])
    assert default == shown(Settings.model_fields[name].default)
    assert meaning


def test_the_readme_names_no_setting_that_does_not_exist() -> None:
    """A variable in the README is one that the service, its tests or the compose file read."""
    known = {f"CAIRN_{name.upper()}" for name in Settings.model_fields} | set(re.findall(r"\$\{(\w+):", COMPOSE))
    tests = "".join((ROOT / "tests" / name).read_text(encoding="utf-8") for name in ("conftest.py", "crash/dying.py"))
    named = set(re.findall(r"\bCAIRN_[A-Z0-9_]+", README))
    assert {name for name in named if name not in known and f'"{name}"' not in tests} == set()


def test_every_command_is_in_the_readme() -> None:
    """Each target that `make` lists has a row, and each row is a target."""
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(re.findall(r"^\| `make ([a-z]+)` \|", README, re.MULTILINE)) == sorted(targets)


def test_the_top_level_holds_nothing_else() -> None:
    """A newcomer sees the folders and a handful of files; all else is a dot-file or in a folder."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = {Path(line).parts[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_every_path_in_the_readme_exists() -> None:
    """Links lead to files that are here, and so do paths in code marks."""
    links = {link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link}
    marked = {
        mark for mark in re.findall(r"`([^`\n]+)`", README) if re.match(r"(api|bank|cypher|graph|tests)/\w", mark)
    }
    assert links
    assert {path for path in links | marked if not (ROOT / path).exists()} == set()


async def test_the_first_write_and_the_first_question_answer_as_printed(cairn: Service) -> None:
    """Pasted in order, the README's calls give the README's answers."""
    write, question = section("A first write"), section("A first question")
    (first_curl,) = blocks(write, "sh")
    for printed in blocks(write, "json"):
        answer = await cairn.http.post("/graphql", json=body_of(first_curl))
        assert answer.json() == json.loads(printed)
    (second_curl,) = blocks(question, "sh")
    (printed,) = blocks(question, "json")
    answer = await cairn.http.post("/graphql", json=body_of(second_curl))
    assert without_scores(answer.json()) == without_scores(json.loads(printed))
    scores = [hit["score"] for hit in answer.json()["data"]["searchMemories"]]
    # Another processor rounds the vectors a little differently.
    assert scores == pytest.approx([hit["score"] for hit in json.loads(printed)["data"]["searchMemories"]], abs=0.05)


def without_scores(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_scores(one) for key, one in value.items() if key != "score"}
    return [without_scores(one) for one in value] if isinstance(value, list) else value


async def test_the_readme_names_every_operation(cairn: Service) -> None:
    """What can be asked and changed is listed, and nothing that is not there."""
    said = await cairn.ask("{ __schema { queryType { fields { name } } mutationType { fields { name } } } }")
    fields = {field["name"] for side in said["__schema"].values() for field in side["fields"]}
    listing = next(line for line in README.splitlines() if line.startswith("What else can be asked"))
    assert set(re.findall(r"`(\w+)`", listing)) | {"remember", "searchMemories"} == fields


@pytest.mark.parametrize("name", BROWSER_FILES)
async def test_a_browser_file_has_a_title_and_runs_as_it_is(name: str, cairn: Service) -> None:
    """Dragged into Neo4j Browser, a file shows its title and runs without parameters, writing nothing."""
    text = BROWSER_FILES[name]
    assert re.match(r"// \w.+\n", text)
    assert "$" not in text
    assert not re.search(r"\b(CREATE|MERGE|SET|DELETE|REMOVE|DROP)\b", text)
    assert f"(cypher/browser/{name})" in README
    await cairn.cairn.graph.explain(text)


def test_the_browser_style_knows_the_six_types() -> None:
    """Each type has a colour of its own and shows its text."""
    style = (ROOT / "cypher" / "browser" / "cairn.grass").read_text(encoding="utf-8")
    types = ("UserRequest", "UserPreference", "AgentAnswer", "AgentAction", "Event", "DataSource")
    rules = {name: re.search(rf"node\.{name} \{{(.*?)\}}\n", style, re.DOTALL) for name in types}
    bodies = [rule.group(1) for rule in rules.values() if rule]
    assert len({re.findall(r"^  color: (#\w+);", body, re.MULTILINE)[0] for body in bodies}) == 6
    assert all('caption: "{text}"' in body for body in bodies)


def test_the_compose_file_has_no_default_password() -> None:
    """Every secret comes from the environment, and compose stops with a message where one is missing."""
    services = yaml.safe_load(COMPOSE)["services"]
    secrets = {
        f"{service}.{name}": value
        for service, said in services.items()
        for name, value in said.get("environment", {}).items()
        if re.search(r"PASSWORD|SECRET|TOKEN|AUTH$", name)
    }
    assert len(secrets) == 6
    for name, value in secrets.items():
        assert re.fullmatch(r"(\w+[:/])?\$\{\w+:\?[^}]+\}", value), f"{name} must be ${{VARIABLE:?message}}"


def test_the_compose_file_is_fit_for_a_server() -> None:
    """Each service is checked, restarted and pinned; what is published is published on loopback only."""
    services = yaml.safe_load(COMPOSE)["services"]
    assert set(services) == {"cairn", "neo4j", "milvus", "etcd", "minio"}
    for name, said in services.items():
        assert said["restart"] == "unless-stopped", name
        assert said["healthcheck"]["test"], name
        assert re.search(r":\S*\d", said["image"]), name
        assert not said["image"].endswith(":latest"), name
        assert all(port.startswith("127.0.0.1:") for port in said.get("ports", [])), name
        assert all(one["condition"] == "service_healthy" for one in said.get("depends_on", {}).values()), name
    assert set(services["cairn"]["environment"]) <= {f"CAIRN_{name.upper()}" for name in Settings.model_fields}
