"""Copy a file or a folder of the controller, or a text, to a node.

Example:
    - name: A note for whoever logs in
      copy:
        src: motd
        dest: /etc/motd
        mode: "0644"
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Mode, Node, Outcome, Path, Source


class Args(Arguments):
    """Either src or content. dest: a file, or a folder (it exists, or ends with "/") when src is given.

    src: a file or a folder of the controller, looked for in files/ beside the playbook and beside it; of a folder whose
    name ends with "/", what is in it. directory_mode: of folders that are made. content: the text itself.
    backup: keep what is replaced, as dest.PID.DATE~. force: False only makes a file that is not there. follow: write
    through a link at dest instead of replacing it.
    """

    dest: Path
    src: Source | None = None
    content: str | None = None
    mode: Mode | None = None
    directory_mode: Mode | None = None
    owner: str | None = None
    group: str | None = None
    backup: bool = False
    force: bool = True
    follow: bool = False


def apply(args: Args, node: Node) -> Outcome:
    """Result: dest, state, mode, owner, group, uid, gid, size, sha256, and backup_file when one was made."""
    from sparkops.node import placing

    if (args.src is None) == (args.content is None):
        raise Failure("copy takes one of src and content", dest=args.dest)
    dest = str(args.dest)
    if args.src is not None and args.src.tree is not None:
        from sparkops.node import tree

        attributes = placing.Attributes(args.mode, args.owner, args.group)
        base = os.path.join(dest, args.src.name) if args.src.name else dest.rstrip("/") or "/"
        return tree.place(base, args.src.tree, attributes, args.directory_mode, node, args.backup, args.force)
    if args.src is not None:
        wanted = placing.Content(args.src.digest, args.src.size, args.src.inline, args.src)
        dest = inside(dest, args.src.name, node)
    else:
        wanted = placing.Content.of(str(args.content).encode("utf-8", "surrogateescape"))
        if dest.endswith("/"):
            raise Failure(f"content needs the name of a file, and dest {dest} is a folder", dest=dest)
    if args.follow:
        dest = os.path.realpath(dest)
    attributes = placing.Attributes(args.mode, args.owner, args.group)
    return placing.place(dest, wanted, attributes, node, backup=args.backup, force=args.force)


def inside(dest: str, name: str, node: Node) -> str:
    """The file that dest means: one in it when it is a folder, which a trailing "/" makes if need be."""
    if not dest.endswith("/") and not os.path.isdir(dest):
        return dest
    if not node.check:
        from sparkops.node import files

        try:
            os.makedirs(dest, exist_ok=True)
        except OSError as error:
            raise files.refusal("make the folder", dest, error) from error
    return os.path.join(dest, os.path.basename(name))
