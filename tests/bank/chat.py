"""A small server that speaks OpenAI's chat API: it answers as it is told, and keeps what it was asked."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[dict[str, Any]], tuple[int, Any]]


def completion(text: str | None, tokens: int | None = 100, ended: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = (
        {}
        if tokens is None
        else {"usage": {"prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens}}
    )
    choice = {"index": 0, "finish_reason": ended, "message": message}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], **usage}


def says(text: str | None, tokens: int | None = 100) -> Reply:
    return lambda body: (200, completion(text, tokens))


def lessons(*items: dict[str, Any]) -> str:
    return json.dumps({"lessons": list(items)})


def refuses(status: int) -> Reply:
    return lambda body: (status, {"error": {"message": "no"}})


def half(body: dict[str, Any]) -> tuple[int, Any]:
    """Promises a whole answer and hangs up in the middle."""
    return 0, json.dumps(completion("never whole")).encode()[:40]


def record_of(body: dict[str, Any]) -> str:
    return str(body["messages"][1]["content"])


class ChatServer:
    """POST /v1/chat/completions. `script` answers the next calls, then `always`; `takes_schema` False: it refuses
    response_format, as many do. `pause`: seconds before an answer."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.script: list[Reply] = []
        self.always: Reply = says("NO_EXTRACTIONS")
        self.takes_schema = True
        self.pause = 0.0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                chat.calls.append(body)
                chat.keys.add(self.headers["authorization"])
                assert self.path == "/v1/chat/completions"
                time.sleep(chat.pause)
                if not chat.takes_schema and "response_format" in body:
                    status, content = refuses(400)(body)
                else:
                    status, content = (chat.script.pop(0) if chat.script else chat.always)(body)
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(status or 200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(raw) + (0 if status else 500)))
                    self.end_headers()
                    self.wfile.write(raw)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

        self._server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
