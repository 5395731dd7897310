"""The words of plays, blocks and tasks: those we have, and Ansible's that we do not have and refuse by name."""

from __future__ import annotations

# Words that tasks inherit from what is around them.
INHERITED = frozenset((
    "when", "vars", "tags", "environment", "become", "become_user", "check_mode", "delegate_to", "ignore_errors",
    "no_log", "run_once", "timeout",
))  # fmt: skip
LOOPS = {
    "with_items": "items", "with_list": "list", "with_dict": "dict", "with_fileglob": "fileglob",
    "with_first_found": "first_found", "with_file": "file", "with_indexed_items": "indexed_items",
    "with_nested": "nested", "with_together": "together", "with_sequence": "sequence",
    "with_subelements": "subelements",
}  # fmt: skip
TASK = INHERITED | LOOPS.keys() | frozenset((
    "name", "loop", "loop_control", "register", "notify", "args", "changed_when", "failed_when", "until", "retries",
    "delay",
))  # fmt: skip
HANDLER = TASK | {"listen"}
BLOCK = INHERITED | {"name", "block", "rescue", "always"}
IMPORT = INHERITED | {"name"}
INCLUDE = TASK - {"register", "notify", "changed_when", "failed_when", "until", "retries", "delay"}
PLAY = (INHERITED - {"when", "delegate_to", "run_once", "timeout"}) | frozenset((
    "name", "hosts", "vars_files", "pre_tasks", "tasks", "post_tasks", "handlers", "gather_facts", "serial",
    "max_fail_percentage", "any_errors_fatal",
))  # fmt: skip
IMPORT_PLAYBOOK = frozenset(("import_playbook", "name", "when", "vars", "tags"))
LOOP_CONTROL = frozenset(("loop_var", "index_var", "label", "pause"))

# Why, where there is more to say than that it is not supported.
REFUSED = {
    "async": "long steps of sparkops go on by themselves when the connection drops",
    "poll": "long steps of sparkops go on by themselves when the connection drops",
    "strategy": "hosts never wait for one another inside a play, except where the play needs it",
    "vars_prompt": "give variables with -e, or a secret by lookup('env', ...)",
    "local_action": "write the module, and delegate_to: localhost",
    "action": "write the module's name as the key",
    "include": "Ansible dropped it: import_tasks or include_tasks",
    "roles": "they come with another release",
}
ANSIBLES = frozenset((
    "any_errors_fatal", "become_exe", "become_flags", "become_method", "collections", "connection", "debugger",
    "delegate_facts", "diff", "fact_path", "force_handlers", "gather_subset", "gather_timeout", "ignore_unreachable",
    "import_role", "include_role", "loop_control", "module_defaults", "order", "port", "remote_user", "run_once",
    "throttle", "timeout", "with_flattened", "with_random_choice", "with_lines",
    "with_inventory_hostnames", "listen", "validate_argspec", "when", "delegate_to",
)) | REFUSED.keys()  # fmt: skip
