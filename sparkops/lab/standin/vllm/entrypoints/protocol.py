"""The documents of the OpenAI-compatible API."""

from __future__ import annotations

import time
import uuid

from ..engine import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..engine.core import Answer

DEFAULT_COMPLETION_TOKENS = 16


class BadRequest(Exception):
    """A request that gets an error document: its HTTP status, its type and the parameter it is about."""

    def __init__(
        self, message: str, *, param: str | None = None, status: int = 400, kind: str = "BadRequestError"
    ) -> None:
        super().__init__(message)
        self.status = status
        self.document = {"error": {"message": message, "type": kind, "param": param, "code": status}}


class Call:
    """What a client asks of /v1/completions or (`chat`) /v1/chat/completions. Raises BadRequest.

    prompt: token ids. limit: the most tokens to generate.
    """

    def __init__(self, body: dict[str, Any], *, chat: bool, names: list[str], max_model_len: int) -> None:
        self.chat = chat
        self.model = body.get("model", names[0])
        if self.model not in names:
            message = f"The model `{self.model}` does not exist."
            raise BadRequest(message, param="model", status=404, kind="NotFoundError")
        self.prompt = prompt_of(body, chat=chat)
        self.limit = limit_of(body, chat=chat, longest=max_model_len, prompt=len(self.prompt))
        self.ignore_eos = bool(body.get("ignore_eos"))
        self.stream = bool(body.get("stream"))
        self.include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self.id = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())

    def whole(self, answer: Answer, text: str) -> dict[str, Any]:
        """The answer in one document."""
        told = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        choice = {"index": 0, **told, "logprobs": None, "finish_reason": answer.finish_reason}
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._head(kind), "choices": [choice], "usage": usage(answer)}

    def chunk(self, text: str, finish_reason: str | None = None, *, role: str | None = None) -> dict[str, Any]:
        """A piece of a streamed answer."""
        told: dict[str, Any] = {"text": text}
        if self.chat:
            told = {"delta": {"role": role, "content": text} if role else {"content": text}}
        choice = {"index": 0, **told, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head(self._chunk_kind()), "choices": [choice]}

    def usage_chunk(self, answer: Answer) -> dict[str, Any]:
        """The last piece of a streamed answer, when the client wants its counts."""
        return {**self._head(self._chunk_kind()), "choices": [], "usage": usage(answer)}

    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def prompt_of(body: dict[str, Any], *, chat: bool) -> list[int]:
    """The prompt's token ids: of the messages, or of a prompt that is a text or ids already."""
    if chat:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
            raise BadRequest("messages must be a list of messages", param="messages")
        return tokens.encode_chat(messages)
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return tokens.encode(prompt)
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return prompt
    raise BadRequest("prompt must be a text or a list of token ids", param="prompt")


def limit_of(body: dict[str, Any], *, chat: bool, longest: int, prompt: int) -> int:
    """The most tokens to generate: as asked, else 16, else (a chat) as many as there is room for."""
    room = longest - prompt
    asked = body.get("max_completion_tokens") if chat else None
    if asked is None:
        asked = body.get("max_tokens")
    if asked is None:
        asked = room if chat else min(DEFAULT_COMPLETION_TOKENS, room)
    if isinstance(asked, int) and asked > longest:
        raise BadRequest(
            f"max_tokens={asked} cannot be greater than max_model_len=max_total_tokens={longest}. Please request fewer "
            f"output tokens. (parameter=max_tokens, value={asked})",
            param="max_tokens",
        )
    if not isinstance(asked, int) or asked < 1 or asked > room:
        raise BadRequest(
            f"'max_tokens' or 'max_completion_tokens' must be at least 1 and fit the context: {asked} were asked for, "
            f"and the prompt leaves room for {room}.",
            param="max_tokens",
        )
    return asked


def usage(answer: Answer) -> dict[str, int]:
    """How many tokens went in and came out."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        "completion_tokens": answer.completion_tokens,
    }


def models(names: list[str], root: str, max_model_len: int) -> dict[str, Any]:
    """/v1/models."""
    permission = {"object": "model_permission", "allow_sampling": True, "allow_view": True, "organization": "*"}
    common = {"object": "model", "created": int(time.time()), "owned_by": "vllm", "root": root, "parent": None}
    common["permission"] = [permission]
    return {"object": "list", "data": [{"id": name, **common, "max_model_len": max_model_len} for name in names]}


def tokenized(body: dict[str, Any], max_model_len: int) -> dict[str, Any]:
    """/tokenize: of a `prompt`, or of `messages`."""
    ids = prompt_of(body, chat="messages" in body)
    return {"count": len(ids), "max_model_len": max_model_len, "tokens": ids, "token_strs": None}
