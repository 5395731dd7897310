"""Asks a lab's node one question and prints the streamed answer as it comes: ask.py INVENTORY NODE QUESTION."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path

import yaml

TIMEOUT = 30


def address(inventory: Path, node: str) -> str:
    """Where a node of the process lab serves; its nodes are this machine."""
    group = yaml.safe_load(inventory.read_text(encoding="utf-8"))["sparks"]
    names = {**group.get("vars", {}), **(group["hosts"][node] or {})}
    return f"http://{names.get('host', '127.0.0.1')}:{names.get('port', 8000)}"


def main() -> None:
    inventory, node, question = sys.argv[1:]
    url = address(Path(inventory), node)
    with urllib.request.urlopen(f"{url}/v1/models", timeout=TIMEOUT) as answer:
        model = json.load(answer)["data"][0]["id"]
    body = {"model": model, "stream": True, "max_tokens": 12, "messages": [{"role": "user", "content": question}]}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    print(f"{url}/v1/chat/completions ({model}): {question}")
    start = time.monotonic()
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        for line in filter(bytes.strip, answer):
            print(f"{time.monotonic() - start:5.2f} s  {line.decode().strip()}", flush=True)


if __name__ == "__main__":
    main()
