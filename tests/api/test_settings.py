"""The settings: their names in the environment, their defaults, and secrets that stay secret."""

import os
from pathlib import Path

import pytest

from api.settings import Settings
from graph.errors import SetupError


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CAIRN_")]:
        monkeypatch.delenv(name)


def test_the_defaults_are_what_is_promised() -> None:
    """Nothing set: loopback, the usual ports, one folder, stores of its own, the onnx embedder."""
    settings = Settings()
    assert (settings.host, settings.port, settings.data) == ("127.0.0.1", 8000, Path(".cairn"))
    assert (settings.neo4j_bolt_port, settings.neo4j_http_port) == (7687, 7474)
    assert (settings.tenant, settings.embedder, settings.max_body_bytes) == ("default", "onnx", 8_000_000)
    assert settings.embedded_neo4j
    assert settings.milvus_target == str(Path(".cairn/milvus.db"))
    assert (settings.openai_model, settings.openai_dimensions) == ("text-embedding-3-large", 3072)


@pytest.mark.parametrize(
    ("variable", "value", "field", "read"),
    [
        ("CAIRN_HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("CAIRN_PORT", "9000", "port", 9000),
        ("CAIRN_DATA", "elsewhere", "data", Path("elsewhere")),
        ("CAIRN_NEO4J_URI", "neo4j://db", "neo4j_uri", "neo4j://db"),
        ("CAIRN_NEO4J_USER", "cairn", "neo4j_user", "cairn"),
        ("CAIRN_NEO4J_BOLT_PORT", "17687", "neo4j_bolt_port", 17687),
        ("CAIRN_NEO4J_HTTP_PORT", "17474", "neo4j_http_port", 17474),
        ("CAIRN_MILVUS_URI", "http://milvus:19530", "milvus_target", "http://milvus:19530"),
        ("CAIRN_EMBEDDER", "wordllama", "embedder", "wordllama"),
        ("CAIRN_OPENAI_BASE_URL", "http://models/v1", "openai_base_url", "http://models/v1"),
    ],
)
def test_a_setting_is_read_from_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str, read: object
) -> None:
    """CAIRN_ and the setting's name; the names that are promised."""
    monkeypatch.setenv(variable, value)
    assert getattr(Settings(), field) == read


def test_every_setting_says_what_it_is_for() -> None:
    """What the README lists is written here."""
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password, a token, a key: not in repr, str, a dump as JSON, nor an error about another setting."""
    names = ("CAIRN_NEO4J_PASSWORD", "CAIRN_MILVUS_TOKEN", "CAIRN_OPENAI_API_KEY")
    for name in names:
        monkeypatch.setenv(name, f"secret of {name}")
    settings = Settings()
    shown = repr(settings) + str(settings) + settings.model_dump_json()
    monkeypatch.setenv("CAIRN_PORT", "abc")
    with pytest.raises(ValueError, match="port") as refused:
        Settings()
    assert "secret of" not in shown + str(refused.value)
    assert settings.neo4j_secret() == "secret of CAIRN_NEO4J_PASSWORD"


def test_the_password_of_a_neo4j_elsewhere_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the variable or from a file, the file first; neither, or a file that is not there, is a clear error."""
    monkeypatch.setenv("CAIRN_NEO4J_URI", "bolt://db")
    with pytest.raises(SetupError, match=r"neither CAIRN_NEO4J_PASSWORD nor CAIRN_NEO4J_PASSWORD_FILE"):
        Settings().neo4j_secret()
    monkeypatch.setenv("CAIRN_NEO4J_PASSWORD", "from the variable")
    assert Settings().neo4j_secret() == "from the variable"
    (tmp_path / "secret").write_text("from the file\n")
    monkeypatch.setenv("CAIRN_NEO4J_PASSWORD_FILE", str(tmp_path / "secret"))
    assert Settings().neo4j_secret() == "from the file"
    monkeypatch.setenv("CAIRN_NEO4J_PASSWORD_FILE", str(tmp_path / "none"))
    with pytest.raises(SetupError, match="CAIRN_NEO4J_PASSWORD_FILE cannot be read"):
        Settings().neo4j_secret()
