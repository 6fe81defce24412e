"""The routes: GraphQL over HTTP, a page to try it, and whether the service is up."""

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphql import GraphQLSyntaxError
from graphql.validation.validate import ValidationAbortedError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from strawberry.schema.exceptions import CannotGetOperationTypeError

from api.context import Cairn, Context
from api.problems import formatted, internal
from api.schema import schema, version
from api.settings import Settings
from api.status import status_of

PAGE = Path(__file__).parent / "page.html"


class BadRequest(Exception):
    """A body that is no GraphQL request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def routes(cairn: Cairn) -> list[BaseRoute]:
    async def graphql(request: Request) -> Response:
        try:
            _check_browser(request, cairn.settings)
            body = await _body(request, cairn.settings.max_body_bytes)
            query, variables, operation = _request(body)
        except BadRequest as error:
            return _refused(error)
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            context = Context(cairn)
            result = await schema.execute(query, variables, context, operation_name=operation)
        except CannotGetOperationTypeError:
            return _refused(
                BadRequest(400, f"`query` holds no operation{f' named {operation!r}' if operation else ''}.")
            )
        except RecursionError:
            return _json(
                {"errors": [{"message": "The query nests too deeply.", "extensions": {"code": "LIMIT_EXCEEDED"}}]}, 400
            )
        except Exception as error:  # noqa: BLE001  the border to the client: nothing else may leave it
            return _json({"errors": [internal(error)]}, 500)
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            answer["errors"] = [formatted(error) for error in result.errors]
        if context.degraded is not None:
            answer["extensions"] = {"degraded": context.degraded}
        # What is no query, in its form or its size, is a bad request; what is wrong inside one is an answer.
        unread = any(isinstance(error, GraphQLSyntaxError | ValidationAbortedError) for error in result.errors or ())
        return _json(answer, 400 if unread else 200)

    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"))

    async def health(request: Request) -> Response:
        status = await status_of(cairn, version())
        stores = {store.name: {"engine": store.engine, "up": store.up} for store in status.stores}
        return _json({"ready": status.ready, "stores": stores}, 200 if status.ready else 503)

    return [
        Route("/graphql", graphql, methods=["POST"]),
        Route("/graphql", page, methods=["GET"]),
        Route("/", page, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
    ]


def _check_browser(request: Request, settings: Settings) -> None:
    """A browser on this machine is asked by pages from anywhere, and the service asks callers for no password."""
    if "origin" not in request.headers:
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A page elsewhere can make a browser post anything but JSON to this machine without asking first.
        raise BadRequest(415, "A page in a browser must send the request as Content-Type: application/json.")
    # Whoever owns a name can have it lead to this machine, and so make his page one of ours; a number he cannot.
    name = _host_of(request)
    known = {"localhost", settings.host, *settings.allowed_hosts.lower().replace(",", " ").split()}
    if name not in known and not _is_address(name):
        raise BadRequest(
            403,
            f"A page in a browser may not ask under the name {name!r}. If it is yours, add it to CAIRN_ALLOWED_HOSTS.",
        )


def _host_of(request: Request) -> str:
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:  # half an address
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def _body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    too_large = BadRequest(
        413, f"The request is larger than {limit:,} bytes. Send less at once, or raise CAIRN_MAX_BODY_BYTES."
    )
    if declared.isdigit() and int(declared) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def _request(body: bytes) -> tuple[str, dict[str, Any], str | None]:
    try:
        said = json.loads(body.decode(), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise BadRequest(400, f"The body is not UTF-8: byte {error.start} is none of it.") from None
    except RecursionError:
        raise BadRequest(400, "The body nests too deeply.") from None
    except ValueError as error:
        raise BadRequest(400, f"The body is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise BadRequest(400, 'The body must be a JSON object: {"query": "…", "variables": {…}}.')
    query, variables, operation = said.get("query"), said.get("variables"), said.get("operationName")
    if not isinstance(query, str) or not query.strip():
        raise BadRequest(400, "`query` must be given, as text.")
    if variables is not None and not isinstance(variables, dict):
        raise BadRequest(400, "`variables` must be an object.")
    if operation is not None and not isinstance(operation, str):
        raise BadRequest(400, "`operationName` must be text.")
    return query, variables or {}, operation


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _refused(error: BadRequest) -> Response:
    code = "LIMIT_EXCEEDED" if error.status == 413 else "BAD_USER_INPUT"
    return _json({"errors": [{"message": str(error), "extensions": {"code": code}}]}, error.status)


class Answer(JSONResponse):
    def render(self, content: Any) -> bytes:
        """A lone surrogate that a message repeats is no UTF-8: it leaves as it came, as JSON's escape."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode(errors="backslashreplace")


def _json(content: Any, status: int = 200) -> Response:
    return Answer(content, status)
