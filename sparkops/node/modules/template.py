"""Render a template of the controller into a file on a node.

Example:
    - name: Tell the node who it is
      template:
        src: node.conf.j2
        dest: /etc/sparkops/node.conf
        mode: "0644"
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Mode, Node, Outcome, Path, Template


class Args(Arguments):
    """src: a template, rendered on the controller. dest: the file.

    backup: keep what is replaced, as dest.PID.DATE~. force: False only makes a file that is not there. follow: write
    through a link at dest instead of replacing it.
    """

    src: Template
    dest: Path
    mode: Mode | None = None
    owner: str | None = None
    group: str | None = None
    backup: bool = False
    force: bool = True
    follow: bool = False


def apply(args: Args, node: Node) -> Outcome:
    """Result: dest, state, mode, owner, group, uid, gid, size, sha256, and backup_file when one was made."""
    from sparkops.node import placing

    dest = os.path.realpath(args.dest) if args.follow else str(args.dest)
    wanted = placing.Content.of(args.src.encode("utf-8", "surrogateescape"))
    attributes = placing.Attributes(args.mode, args.owner, args.group)
    return placing.place(dest, wanted, attributes, node, backup=args.backup, force=args.force)
