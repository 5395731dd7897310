"""Offer a checkpoint to one other node, which copies it with weights_take; `state: absent` ends the offer.

It is served by an rsync daemon that reads only, asks for the run's secret, and lives no longer than this connection.

Example:
    - name: Offer the weights
      weights_offer:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
        address: 192.168.100.11
        to: 192.168.100.12
        secret: "{{ transfer_secret }}"
      register: offer
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class Args(Arguments):
    path: Path  # the checkpoint's folder
    state: Literal["present", "absent"] = "present"
    address: str = ""  # of this node, where it listens
    to: str = ""  # the only address that is served
    secret: str = ""  # what it must know; one for each run


def apply(args: Args, node: Node) -> Outcome:
    """Result: address, port, source, revision, files (their sizes and hashes)."""
    from sparkops.node import offers
    from sparkops.node import weights_record as weights

    path = os.path.abspath(args.path)
    offer = offers.Offer(path, node)
    if node.check:
        return Outcome.ok("", address=args.address, port=0, source="", revision="", files={})
    if args.state == "absent":
        offer.end()
        return Outcome.ok("")
    if not args.address or not args.to or not args.secret:
        raise Failure("an offer needs address, to and secret")
    record = weights.adopt(path, node)
    # Neither the node nor the world is another than before: the offer goes with the connection.
    port = offer.begin(args.address, args.to, args.secret)
    origin = {"source": record.source, "revision": record.revision}
    return Outcome.ok("", address=args.address, port=port, files=record.wanted(), **origin)
