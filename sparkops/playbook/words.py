"""The words of plays and tasks: those we have, and Ansible's that we do not have (yet) and refuse by name."""

from __future__ import annotations

TASK = frozenset((
    "name", "when", "loop", "register", "notify", "tags", "become", "become_user", "vars", "environment",
    "args", "changed_when", "failed_when", "ignore_errors", "no_log",
))  # fmt: skip
HANDLER = TASK | {"listen"}
PLAY = frozenset((
    "name", "hosts", "vars", "tasks", "handlers", "gather_facts", "become", "become_user", "tags",
    "environment",
))  # fmt: skip

TASK_REFUSED = frozenset((
    "action", "always", "any_errors_fatal", "async", "become_exe", "become_flags", "become_method", "block",
    "check_mode", "collections", "connection", "debugger", "delay", "delegate_facts", "delegate_to", "diff",
    "ignore_unreachable", "import_playbook", "import_role", "import_tasks", "include_role", "include_tasks",
    "include_vars", "local_action", "loop_control", "module_defaults", "poll", "port", "remote_user", "rescue",
    "retries", "run_once", "throttle", "timeout", "until", "with_dict", "with_fileglob", "with_first_found",
    "with_flattened", "with_indexed_items", "with_items", "with_list", "with_nested", "with_sequence",
    "with_subelements", "with_together",
))  # fmt: skip
PLAY_REFUSED = frozenset((
    "any_errors_fatal", "become_exe", "become_flags", "become_method", "check_mode", "collections",
    "connection", "debugger", "diff", "fact_path", "force_handlers", "gather_subset", "gather_timeout",
    "ignore_errors", "ignore_unreachable", "import_playbook", "max_fail_percentage", "module_defaults",
    "no_log", "order", "port", "post_tasks", "pre_tasks", "remote_user", "roles", "run_once", "serial",
    "strategy", "throttle", "timeout", "vars_files", "vars_prompt",
))  # fmt: skip
