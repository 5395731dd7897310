"""What a run is asked to do, beside its plays and hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.playbook.model import Task
from sparkops.runner.batch import Budget

FORKS = 16


@dataclass(frozen=True)
class Options:
    """check: change nothing. extra: variables that win over all others. defaults: those that lose
    to all. about: who runs what, for the lease. start_at: the task's name, or
    a glob of it, before which nothing runs. step: ask before each task. budget: how many hosts may fail."""

    check: bool = False
    diff: bool = False
    forks: int = FORKS
    tags: frozenset[str] = frozenset()
    skip_tags: frozenset[str] = frozenset()
    extra: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    become_password: str | None = field(default=None, repr=False)
    limit: str | None = None
    start_at: str | None = None
    step: bool = False
    budget: Budget | None = None
    state_dir: str = "~/.local/share/sparkops/state"
    lease: bool = True
    about: Mapping[str, Any] = field(default_factory=dict)

    def selects(self, task: Task) -> bool:
        """Whether --tags and --skip-tags leave a task in."""
        return self.selects_tags(task.words.tags)

    def selects_tags(self, tags: frozenset[str]) -> bool:
        """Whether they leave in what has these tags; `always`, `never`, `all` and the like as in Ansible."""
        kinds = tags | {"tagged" if tags else "untagged"}
        if self.skip_tags & kinds or ("all" in self.skip_tags and "always" not in tags):
            return False
        if not self.tags or "all" in self.tags:
            return "never" not in tags or bool(self.tags & tags)
        if "always" in tags or self.tags & tags:
            return True
        return "never" not in tags and ("tagged" if tags else "untagged") in self.tags
