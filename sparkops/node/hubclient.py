"""Drives Hugging Face's own client on the node: what a model consists of, and its download under a watchdog.

The client is a venv with huggingface_hub in it. The token goes into its environment, never into an argv or a log.
"""

from __future__ import annotations

import json
import os

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node

# Prints what a model at a revision consists of, or {"error", "status"}.
ASK = """
import json, sys
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError
try:
    info = HfApi().model_info(sys.argv[1], revision=sys.argv[2], files_metadata=True)
    files = {one.rfilename: {"size": one.size, "sha256": one.lfs and one.lfs.sha256, "blob": one.blob_id}
             for one in info.siblings}
    print(json.dumps({"commit": info.sha, "files": files}))
except HfHubHTTPError as error:
    print(json.dumps({"error": str(error).strip(), "status": getattr(error.response, "status_code", 0)}))
"""
# Attempts in a row that bring nothing, and the longest pause between two, in seconds.
ATTEMPTS = 5
LONGEST_PAUSE = 30.0
POLL = 0.25
# What a server says that will say the same a moment later.
FINAL = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 410: "Gone"}
# Files that no engine reads beside safetensors: other forms of the same weights.
OTHER_FORMS = (".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx", ".ckpt")


class Hub:
    """One model on a hub. client: the venv. stall: seconds without a byte after which a download is begun anew."""

    def __init__(self, client: str, endpoint: str, token: str, repo: str, stall: float) -> None:
        self.client = client
        self.repo = repo
        self.stall = stall
        self.token = token
        self.endpoint = endpoint.rstrip("/")
        self.xet = True

    def env(self, scratch: str) -> dict[str, str]:
        """The client's environment; its own caches and notes are in `scratch`."""
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        env.update(
            HF_ENDPOINT=self.endpoint,
            HF_HOME=scratch,
            HF_HUB_DISABLE_PROGRESS_BARS="1",
            HF_HUB_DISABLE_TELEMETRY="1",
            HF_HUB_DISABLE_UPDATE_CHECK="1",
            HF_XET_CHUNK_CACHE_SIZE_BYTES="0",
            NO_COLOR="1",
            # Proxies and certificates as this node has them.
            **{k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or k.startswith("SSL_CERT")},
        )
        if self.token:
            env["HF_TOKEN"] = self.token
        if not self.xet:
            env["HF_HUB_DISABLE_XET"] = "1"
        return env

    def listing(self, revision: str, scratch: str, node: Node) -> dict[str, Any]:
        """{"commit", "files": {name: {size, sha256 | None, blob}}} of a branch, tag or commit. Raises Failure."""
        pause = 1.0
        for attempt in range(1, ATTEMPTS + 1):
            done = node.run([f"{self.client}/bin/python", "-c", ASK, self.repo, revision], env=self.env(scratch))
            try:
                said = json.loads(done.out.strip().splitlines()[-1])
            except (ValueError, IndexError):
                said = {"error": last_line(done.err) or f"status {done.rc}", "status": 0}
            if "files" in said:
                return {"commit": said["commit"], "files": needed(said["files"])}
            if said["status"] in FINAL or attempt == ATTEMPTS:
                break
            node.pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        raise Failure(f"{self.endpoint} does not give {self.repo} at {revision}: {self.hushed(said['error'])}", **said)

    def download(self, commit: str, names: list[str], folder: str) -> None:
        """Bring files of a commit into `folder`, whatever it takes. Raises Failure."""
        import time

        from sparkops.node.incoming import note
        from sparkops.node.weights_record import SCRATCH, size_of

        idle, pause = 0, 1.0
        scratch = os.path.join(folder, SCRATCH)
        os.makedirs(scratch, exist_ok=True)
        while True:
            before = size_of(folder)
            failure = self._once(commit, names, folder, scratch)
            if not failure:
                return
            note(f"the client ended: {failure}")
            idle = 0 if size_of(folder) > before else idle + 1
            if idle >= ATTEMPTS or any(f"{status} {word}" in failure for status, word in FINAL.items()):
                raise Failure(f"{self.endpoint} does not give {self.repo}: {failure}")
            time.sleep(pause if idle else 0.2)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, commit: str, names: list[str], folder: str, scratch: str) -> str:
        """One run of the client; why it failed, "" if it did not."""
        import subprocess
        import time

        from sparkops.node.process import end
        from sparkops.node.weights_record import moved

        argv = [f"{self.client}/bin/hf", "download", self.repo, *names, "--revision", commit, "--local-dir", folder]
        log = os.path.join(scratch, "log")
        with open(log, "wb") as out:
            client = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env(scratch),
                preexec_fn=die_with_parent,
                start_new_session=True,
            )
            seen, since = -1, time.monotonic()
            while client.poll() is None:
                time.sleep(POLL)
                now = moved(folder)
                if now != seen:
                    seen, since = now, time.monotonic()
                elif time.monotonic() - since > self.stall:
                    end(client)
                    # Its own transfer protocol is what hangs most; the plain one is tried from now on.
                    self.xet = False
                    return f"no byte came for {self.stall:g} s"
        if client.returncode == 0:
            return ""
        with open(log, encoding="utf-8", errors="replace") as text:
            return self.hushed(last_line(text.read()) or f"status {client.returncode}")

    def hushed(self, text: str) -> str:
        """A text without the token."""
        return text.replace(self.token, "****") if self.token else text


def needed(listed: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of a model's files those that are to come: not the weights a second time in another form."""
    names = set(listed)
    if any(name.endswith(".safetensors") for name in names):
        names -= {name for name in names if name.endswith(OTHER_FORMS) or name.startswith(("original/", "."))}
    return {name: listed[name] for name in sorted(names)}


def last_line(text: str) -> str:
    """The last line that names an error; else the last one at all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.partition(":")[0].endswith("Error")] or lines[-1:]
    said = told[-1][:500] if told else ""
    return said[len("Error: ") :] if said.startswith("Error: ") else said


def blob_id(path: str) -> str:
    """What git calls a file with these bytes: how a hub names those that have no sha256."""
    import hashlib

    with open(path, "rb") as file:
        data = file.read()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def die_with_parent() -> None:
    """Between fork and exec: be killed when the process that started it is (prctl PR_SET_PDEATHSIG)."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
