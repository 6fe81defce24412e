"""The only reader of the environment: every setting, its default and what it is for. The README lists them all."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from graph.errors import SetupError
from graph.model import DEFAULT_TENANT


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="CAIRN_", extra="ignore")

    host: str = Field(default="127.0.0.1", description="The address the service listens on.")
    allowed_hosts: str = Field(
        default="",
        description="Names, separated by commas, under which a browser may reach the service, besides `localhost`.",
    )
    port: int = Field(default=8000, ge=1, le=65535, description="The port of GraphQL.")
    data: Path = Field(default=Path(".cairn"), description="The folder everything is kept in.")
    tenant: str = Field(
        default=DEFAULT_TENANT,
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="Whose records these are; every record, index row and statement carries it.",
    )
    max_body_bytes: int = Field(default=8_000_000, ge=1_000, description="The largest request that is read.")

    neo4j_uri: str | None = Field(
        default=None,
        description="A Neo4j elsewhere (`bolt://…`, `neo4j://…`, `neo4j+s://…`). Without it the service runs its own.",
    )
    neo4j_user: str = Field(default="neo4j", description="The user at that Neo4j.")
    neo4j_password: SecretStr | None = Field(default=None, description="The password at that Neo4j.")
    neo4j_password_file: Path | None = Field(default=None, description="A file that holds the password, instead.")
    neo4j_database: str | None = Field(
        default=None, description="The database at that Neo4j; without it the user's home database."
    )
    neo4j_bolt_port: int = Field(default=7687, ge=1, le=65535, description="The Bolt port of the service's own Neo4j.")
    neo4j_http_port: int = Field(default=7474, ge=1, le=65535, description="The port of its Neo4j Browser.")
    neo4j_heap: str = Field(default="1g", pattern=r"^\d+[mg]$", description="The heap of the service's own Neo4j.")
    warm_up_seconds: float = Field(
        default=8.0,
        ge=0,
        description="How long, behind its start, the service's own Neo4j runs what calls will run, to be quick from then on; "
        "0: all of it once.",
    )

    milvus_uri: str | None = Field(
        default=None,
        description="A Milvus elsewhere (`http://…`). Without it Milvus Lite keeps a file in the data folder.",
    )
    milvus_token: SecretStr = Field(default=SecretStr(""), description="The token at that Milvus, `user:password`.")
    milvus_database: str = Field(default="default", description="The database at that Milvus.")

    embedder: Literal["onnx", "wordllama", "openai"] = Field(
        default="onnx", description="What makes vectors of texts: `onnx`, `wordllama` or `openai`."
    )
    onnx_model: Path | None = Field(
        default=None, description="A folder with another ONNX model (model.onnx, tokenizer.json, cairn.json)."
    )
    openai_api_key: SecretStr | None = Field(default=None, description="The key for the `openai` embedder.")
    openai_base_url: str | None = Field(default=None, description="Another endpoint that speaks OpenAI's API.")
    openai_model: str = Field(default="text-embedding-3-large", description="The embedding model there.")
    openai_dimensions: int = Field(default=3072, ge=1, le=32768, description="How long that model's vectors are.")
    openai_timeout: float = Field(default=10.0, gt=0, description="Seconds that one call there may take.")

    confidence_rule: Literal["signals", "bayesian", "safla"] = Field(
        default="signals", description="How signals make a lesson's confidence: `signals`, `bayesian` or `safla`."
    )
    most_from_one_source: float = Field(
        default=0.3, gt=0, le=1, description="How far one named source may move a lesson's confidence in all."
    )

    withhold_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The share of recalls that leave out one lesson, to compare how work goes without it.",
    )
    distiller: Literal["rules", "openai"] = Field(
        default="rules", description="What learns lessons from finished sessions: `rules` (no model) or `openai`."
    )
    distiller_model: str = Field(default="gpt-4.1-mini", description="The model of the `openai` distiller.")
    distiller_base_url: str | None = Field(
        default=None, description="Its endpoint, which speaks OpenAI's API; without it `CAIRN_OPENAI_BASE_URL`."
    )
    distiller_api_key: SecretStr | None = Field(
        default=None,
        description="Its key; without it, and without an endpoint of its own, `CAIRN_OPENAI_API_KEY`.",
    )
    distiller_timeout: float = Field(default=60.0, gt=0, description="Seconds that one call there may take.")
    workers: int = Field(
        default=4,
        ge=0,
        le=64,
        description="How many sessions this process learns from at once; 0: none. `rules` takes one at a time.",
    )
    worker_lease: float = Field(
        default=60.0,
        ge=1,
        description="Seconds after which a session is given to another worker if its own gives no sign of life.",
    )

    sweep_hours: float | None = Field(
        default=None,
        gt=0,
        description="Hours after which the sweeps over all lessons run again by themselves; not set: only on request.",
    )

    @property
    def embedded_neo4j(self) -> bool:
        return self.neo4j_uri is None

    @property
    def milvus_target(self) -> str:
        return self.milvus_uri or str(self.data / "milvus.db")

    @property
    def distiller_endpoint(self) -> tuple[str | None, str | None]:
        """Key and base URL of the distiller; the embedder's key goes to the embedder's endpoint only."""
        own, shared = self.distiller_api_key, self.openai_api_key
        if self.distiller_base_url is None:
            key = own or shared
            return (key.get_secret_value() if key else None), self.openai_base_url
        return (own.get_secret_value() if own else None), self.distiller_base_url

    def neo4j_secret(self) -> str:
        if self.neo4j_password_file is not None:
            try:
                return self.neo4j_password_file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise SetupError(f"CAIRN_NEO4J_PASSWORD_FILE cannot be read: {error}") from error
        if self.neo4j_password is None:
            raise SetupError(
                "CAIRN_NEO4J_URI is set, but neither CAIRN_NEO4J_PASSWORD nor CAIRN_NEO4J_PASSWORD_FILE is."
            )
        return self.neo4j_password.get_secret_value()
