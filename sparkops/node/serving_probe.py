"""Asking a served copy whether it is there: its health, its model, and one generated token (OpenAI's HTTP API)."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse
    from typing import Any

    from sparkops.node.api import Node

# Seconds for a question that costs the server nothing; a first token may wait for kernels to compile.
QUICK, TOKEN = 10.0, 300.0
# In so many tokens a golden answer must come; characters of it that an error quotes.
GOLDEN_TOKENS, SHOWN = 64, 200


class NotYet(Exception):
    """The server is not ready; the message says what it waits for."""


class Wrong(Exception):
    """The server answers, and never will as wanted."""


class Server:
    """An HTTP server by its base URL, asked directly: proxies are for the way out, and this is the node itself."""

    def __init__(self, url: str, key: str | None, node: Node) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Wrong(f"{url!r} is no URL of a server; for example http://127.0.0.1:8000")
        self.tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port
        self.base = parts.path.rstrip("/")
        self.key = key
        self.node = node

    def ask(self, path: str, body: dict[str, Any] | None, timeout: float) -> tuple[int, Any]:
        """Status and JSON (or text) of an answer. Raises NotYet when there is none in time.

        In a thread, so that the task still ends at once when the controller goes away.
        """
        import threading

        answer: list[tuple[int, bytes]] = []
        errors: list[str] = []
        thread = threading.Thread(target=self._ask, args=(path, body, timeout, answer, errors), daemon=True)
        thread.start()
        thread.join(0.2)
        while thread.is_alive():
            self.node.pause(0.1)
        if not answer:
            raise NotYet(f"{path}: {errors[0] if errors else 'no answer'}")
        status, data = answer[0]
        try:
            return status, json.loads(data)
        except ValueError:
            return status, data.decode("utf-8", "replace")

    def _ask(
        self,
        path: str,
        body: dict[str, Any] | None,
        timeout: float,
        answer: list[tuple[int, bytes]],
        errors: list[str],
    ) -> None:
        from http.client import HTTPException

        connection = self.connection(timeout)
        try:
            response = self.send(connection, path, body)
            answer.append((response.status, response.read()))
        except (OSError, HTTPException) as error:
            errors.append(getattr(error, "strerror", None) or str(error) or type(error).__name__)
        finally:
            connection.close()

    def connection(self, timeout: float) -> HTTPConnection:
        """A connection that is not open yet."""
        from http.client import HTTPConnection, HTTPSConnection

        return (HTTPSConnection if self.tls else HTTPConnection)(self.host, self.port, timeout=timeout)

    def send(self, connection: HTTPConnection, path: str, body: dict[str, Any] | None) -> HTTPResponse:
        """Ask, by GET without a body; the answer is not read yet. Raises OSError, HTTPException."""
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        method, content = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, self.base + path, content, headers)
        return connection.getresponse()


def ready(
    server: Server, model: str, left: float, length: int | None = None, golden: dict[str, str] | None = None
) -> dict[str, Any]:
    """{"model", "max_model_len"} of a server that has just generated a token. Raises NotYet, Wrong.

    left: seconds that the answers may take. length: the max_model_len that it must have. golden: {prompt, answer}, see
    `answered`.
    """
    expect(server.ask("/health", None, min(QUICK, left)), "/health")
    models = expect(server.ask("/v1/models", None, min(QUICK, left)), "/v1/models")
    served = {one["id"]: one for one in models["data"]} if isinstance(models, dict) and "data" in models else {}
    if model not in served:
        names = ", ".join(served) or "no model"
        raise Wrong(f"the server there serves {names}, not {model}: another server holds the port, or the name differs")
    found = served[model].get("max_model_len")
    if length is not None and found != length:
        shown = f"{found:,}" if isinstance(found, int) else "not told"
        raise Wrong(f"the server's max_model_len is {shown}, not {length:,} as the recipe says")
    if not generated(complete(server, model, "Hello", 1, left)):
        raise NotYet("/v1/completions: no token was generated")
    if golden is not None:
        answered(server, model, golden, left)
    return {"model": model, "max_model_len": found}


def answered(server: Server, model: str, golden: dict[str, str], left: float) -> None:
    """Ask a question whose greedy answer is known. Raises NotYet, Wrong that shows what was said."""
    prompt, answer = golden["prompt"], golden["answer"]
    said = complete(server, model, prompt, GOLDEN_TOKENS, left)
    text = str(said["choices"][0].get("text")) if generated(said) else ""
    if answer not in text:
        asked = f"to the prompt {prompt[:SHOWN]!r} it answers {text[:SHOWN]!r}, in which there is no {answer[:SHOWN]!r}"
        raise Wrong(f"{asked}: wrong kernels or damaged weights can give garbage without any error")


def complete(server: Server, model: str, prompt: str, tokens: int, left: float) -> Any:
    """The greedy completion of a prompt. Raises NotYet, Wrong."""
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    return expect(server.ask("/v1/completions", body, min(TOKEN, left)), "/v1/completions")


def expect(answer: tuple[int, Any], path: str) -> Any:
    """The content of a 200. Raises NotYet for a server's trouble, Wrong for a refusal."""
    status, content = answer
    if status == 200:
        return content
    if status in (401, 403):
        raise Wrong(f"{path}: the server refuses us ({status}); env_file must hold its VLLM_API_KEY")
    reason = content.get("message") or content.get("error") if isinstance(content, dict) else content
    message = f"{path}: status {status} {str(reason)[:200]}".strip()
    # 404: a server that has just come up may not have all its routes.
    raise (Wrong if 400 <= status < 500 and status not in (404, 408, 429) else NotYet)(message)


def generated(said: Any) -> bool:
    """Whether a completion holds a token."""
    if not isinstance(said, dict) or not said.get("choices"):
        return False
    usage = said.get("usage") or {}
    return bool(usage.get("completion_tokens") or said["choices"][0].get("text"))


def series(text: str) -> dict[str, float]:
    """vLLM's series by name without prefix and labels, summed over engines; histograms' buckets are left out."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        name = name.partition("{")[0]
        if name.startswith("vllm:") and not name.endswith(("_bucket", "_created")):
            try:
                found[name[5:]] = found.get(name[5:], 0.0) + float(value)
            except ValueError:
                continue
    return found


def api_key(text: str) -> str | None:
    """VLLM_API_KEY of an environment file as systemd reads it; None when it is not there."""
    import re

    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.strip() == "VLLM_API_KEY":
            value = value.strip()
            quote = value[0] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else ""
            value = value[1:-1] if quote else value
            return (re.sub(r'\\(["\\`$])', r"\1", value) if quote == '"' else value) or None
    return None
