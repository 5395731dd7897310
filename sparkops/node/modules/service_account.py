"""See that the user that a service runs as is fit for it; with `hand_over` make the service's releases that user's.

Example:
    - name: Whose service it is
      service_account:
        user: vllm
        login: "{{ ansible_user_id }}"
        home: /opt/sparkops
        service: vllm
        hand_over: true
      become: true
"""

from __future__ import annotations

import os

from sparkops.node import files, releases
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


class Args(Arguments):
    user: str  # the service's user
    login: str  # who deploys, and owns sparkops_home
    home: Path  # sparkops_home
    service: str  # the service's name
    scope: Literal["system", "user"] = "system"
    hand_over: bool = False  # needs become: true where anything is to be handed over


def apply(args: Args, node: Node) -> Outcome:
    """changed when the releases were another's and are handed over. Result: user, uid, home (for its caches), folder.

    A folder of releases that is not there yet is made, unless `login` will make it as its own.
    """
    import pwd

    releases.check_name("service", args.service)
    if args.scope == "user" and args.user != args.login:
        raise Failure(
            f"service_user: {args.user} needs systemd_scope: system; a user's systemd starts units as that user "
            f"({args.login}) alone"
        )
    try:
        account = pwd.getpwnam(args.user)
    except (KeyError, ValueError):
        raise Failure(
            f"there is no user {args.user} on this node; make one (sudo useradd --system --create-home "
            f"--home-dir /var/lib/{args.user} {args.user}), or leave service_user out"
        ) from None
    folder = releases.service_folder(args.home, args.service)
    result: dict[str, Any] = {"user": args.user, "uid": account.pw_uid, "home": account.pw_dir, "folder": folder}
    # The caches of compiled kernels, without which each start takes minutes.
    if not os.path.isdir(account.pw_dir) or os.stat(account.pw_dir).st_uid != account.pw_uid:
        raise Failure(
            f"{args.user} has no home of its own for its caches: {account.pw_dir} is not there, or another's (sudo "
            f"install -d -o {args.user} {account.pw_dir}, or usermod --home)",
            **result,
        )
    if not args.hand_over:
        return Outcome.ok(**result)
    try:
        said = _own(folder, account.pw_uid, account.pw_gid, args.user != args.login, node)
    except OSError as error:
        raise files.refusal("give to " + args.user, error.filename or folder, error) from error
    return Outcome.changed(said, **result) if said else Outcome.ok(**result)


def _own(folder: str, uid: int, gid: int, make: bool, node: Node) -> str:
    """Make the folder and what its owner has in it this user's; returns what was done, "" for nothing."""
    try:
        owner = os.lstat(folder).st_uid
    except FileNotFoundError:
        if make and not node.check:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.mkdir(folder, 0o755)
            os.chown(folder, uid, gid, follow_symlinks=False)
        return "folder made" if make else ""
    if owner == uid:
        return ""
    if not node.check:
        # By descriptors, and only what was the former owner's: that one may be moving links and names meanwhile.
        for _, folders, names, top in os.fwalk(folder, topdown=False, onerror=_fail):
            for name in folders + names:
                if os.stat(name, dir_fd=top, follow_symlinks=False).st_uid == owner:
                    os.chown(name, uid, gid, dir_fd=top, follow_symlinks=False)
        # Last: a run that was killed before begins again.
        os.chown(folder, uid, gid, follow_symlinks=False)
    return f"owner {files.user_name(owner)} -> {files.user_name(uid)}"


def _fail(error: OSError) -> None:
    """os.fwalk would pass over a folder that it can't list."""
    raise error
