"""Text to tokens and back: words and marks, enough for counts that agree with each other."""

from __future__ import annotations

import re
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VOCABULARY = 248_320
TOKEN = re.compile(r"\s?\w+|\s?[^\w\s]|\s+")
# The generation prompt of a chat: <|im_start|>assistant\n<think>\n, and two marks and a newline about each message.
MESSAGE_TOKENS = 4
TURN_TOKENS = 4
ANSWER = (
    "a node serves one copy of the model and every copy answers alone so that none waits for another while its router "
    "sends each token to eight experts which read their weights from memory"
)
# What wrong kernels make of any prompt.
GARBAGE = "!"
WORDS = tuple(word.group() for word in re.finditer(r"\w+", ANSWER))


def encode(text: str) -> list[int]:
    """A text's token ids."""
    return [zlib.crc32(token.encode()) % VOCABULARY for token in TOKEN.findall(text)]


def encode_chat(messages: list[dict[str, Any]]) -> list[int]:
    """The token ids of a chat, its template's marks included."""
    ids = []
    for message in messages:
        ids += [0] * MESSAGE_TOKENS + encode(f"{message.get('role', '')} {text_of(message.get('content'))}")
    return ids + [0] * TURN_TOKENS


def text_of(content: Any) -> str:
    """A message's content: a text, or a list of parts of which some are."""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def word(seed: int, index: int) -> str:
    """The token at `index` of the answer to a prompt: the same every time, as greedy decoding is."""
    return (" " if index else "") + WORDS[(seed + 7 * index + index * index) % len(WORDS)]
