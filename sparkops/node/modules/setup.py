"""Gather a node's facts, as the play does before its first task.

Example:
    - name: Look again after a change
      setup:
        gather_subset: ["!all", network]
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path


class Args(Arguments):
    """gather_subset: Ansible's names, `!` excludes. filter: globs of fact names. fact_path: where *.fact files are."""

    gather_subset: list[str] = ["all"]
    filter: list[str] = []
    fact_path: Path = Path("/etc/ansible/facts.d")


def apply(args: Args, node: Node) -> Outcome:
    """The facts as {"ansible_facts": {"ansible_hostname": ...}}; always ok."""
    from sparkops.node import facts

    found = facts.gather(node, args.gather_subset, args.fact_path)
    if args.filter:
        from fnmatch import fnmatchcase

        found = {name: found[name] for name in found if any(fnmatchcase(name, glob) for glob in args.filter)}
        if not found:
            raise Failure(f"no fact's name matches filter {args.filter}")
    return Outcome.ok(ansible_facts=found)
