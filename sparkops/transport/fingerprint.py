"""How a host key is shown."""

from __future__ import annotations

import base64
import hashlib

import paramiko


def fingerprint(key: paramiko.PKey) -> str:
    """As ssh prints it: SHA256:... in base64 without padding."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
