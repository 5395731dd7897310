"""The HTTP side: paths, the API key, answers whole and streamed."""

from __future__ import annotations

import hmac
import json
import socket
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .._version import __version__
from ..engine import metrics
from ..engine.core import Answer
from ..logger import web
from . import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..engine.core import Engine


class Server(ThreadingHTTPServer):
    """A listener bound at once, as vLLM binds: with SO_REUSEPORT, and refusing connections until `server_activate`.

    names: what the model is served as. root: its folder. keys: the API keys, none to let everyone in.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 2048
    engine: Engine

    def __init__(self, address: tuple[str, int], *, names: list[str], root: str, keys: list[str]) -> None:
        self.names = names
        self.root = root
        self.keys = keys
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler, bind_and_activate=False)
        self.server_bind()

    def server_bind(self) -> None:
        """Without HTTPServer's look-up of our name, which waits for DNS on a node that has none."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Health, models, metrics, version."""
        engine = self.server.engine
        if not self.authorized():
            return
        if self.path in ("/health", "/ping"):
            self.reply(503 if engine.dead.is_set() else 200, b"", "application/json")
        elif self.path == "/v1/models":
            self.reply_json(200, protocol.models(self.server.names, self.server.root, engine.loaded.max_model_len))
        elif self.path == "/metrics":
            self.reply(200, metrics.render(engine, self.server.names[0]).encode(), metrics.CONTENT_TYPE)
        elif self.path == "/version":
            self.reply_json(200, {"version": __version__})
        else:
            known = self.path in ("/v1/completions", "/v1/chat/completions", "/tokenize")
            status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
            self.reply_json(status, {"detail": status.phrase})

    def do_POST(self) -> None:
        """Completions and tokens."""
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.authorized():
            return
        engine = self.server.engine
        try:
            if self.path in ("/v1/completions", "/v1/chat/completions"):
                call = protocol.Call(
                    document(content),
                    chat="chat" in self.path,
                    names=self.server.names,
                    max_model_len=engine.loaded.max_model_len,
                )
                self.answer(call)
            elif self.path == "/tokenize":
                self.reply_json(200, protocol.tokenized(document(content), engine.loaded.max_model_len))
            else:
                self.reply_json(404, {"detail": "Not Found"})
        except protocol.BadRequest as error:
            self.reply_json(error.status, error.document)

    def authorized(self) -> bool:
        """Whether the request has a key that is asked for; if not it has been refused. Only /v1 asks, as in vLLM."""
        given = self.headers.get("Authorization", "").encode()
        if not self.server.keys or not self.path.startswith("/v1"):
            return True
        if any(hmac.compare_digest(given, f"Bearer {key}".encode()) for key in self.server.keys):
            return True
        self.reply_json(401, {"error": "Unauthorized"})
        return False

    def answer(self, call: protocol.Call) -> None:
        """Generate, and write as the tokens come or at the end."""
        engine = self.server.engine
        if engine.dead.is_set():
            raise protocol.BadRequest("EngineCore encountered an issue.", status=500, kind="InternalServerError")
        asked = Answer(engine, call.prompt, limit=call.limit, ignore_eos=call.ignore_eos)
        with engine.request(asked) as answer:
            if call.stream:
                self.stream(call, answer)
            else:
                text = "".join(answer)
                self.reply_json(200, call.whole(answer, text))

    def stream(self, call: protocol.Call, answer: Answer) -> None:
        """Server-sent events; also an answer that is cut short ends with a reason, its counts and [DONE]."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if call.chat:
            self.event(json.dumps(call.chunk("", role="assistant")))
        for text in answer:
            self.event(json.dumps(call.chunk(text, answer.finish_reason)))
        if answer.finish_reason == "abort":
            self.event(json.dumps(call.chunk("", answer.finish_reason)))
        if call.include_usage:
            self.event(json.dumps(call.usage_chunk(answer)))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: str) -> None:
        """One event in one chunk."""
        line = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def reply_json(self, status: int, body: dict[str, Any]) -> None:
        """A JSON document."""
        self.reply(status, json.dumps(body).encode(), "application/json")

    def reply(self, status: int, body: bytes, content_type: str) -> None:
        """A whole response."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """vLLM's server calls itself so."""
        return "uvicorn"

    def log_request(self, code: int | str = "-", _size: int | str = "-") -> None:
        """The access log."""
        host, port = self.client_address[:2]
        web(f'{host}:{port} - "{self.requestline}" {code} {HTTPStatus(int(code)).phrase}')

    def log_message(self, format: str, *args: Any) -> None:
        """What the library would write to stderr."""
        web(format % args)


def document(content: bytes) -> dict[str, Any]:
    """A request's JSON body. Raises BadRequest."""
    try:
        body = json.loads(content)
    except ValueError as error:
        raise protocol.BadRequest(f"JSON decode error: {error}") from error
    if not isinstance(body, dict):
        raise protocol.BadRequest("the body must be a JSON object")
    return body
