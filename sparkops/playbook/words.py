"""The words of plays and tasks: those we have, and Ansible's that we do not have (yet) and refuse by name."""

from __future__ import annotations

TASK = frozenset(
    """name when loop register notify tags become become_user vars environment args changed_when failed_when
    ignore_errors no_log""".split()
)
HANDLER = TASK | {"listen"}
PLAY = frozenset("name hosts vars tasks handlers gather_facts become become_user tags environment".split())

TASK_REFUSED = frozenset(
    """action any_errors_fatal async become_exe become_flags become_method block always rescue check_mode collections
    connection debugger delay delegate_facts delegate_to diff ignore_unreachable local_action loop_control
    module_defaults poll port remote_user retries run_once throttle timeout until with_dict with_fileglob
    with_first_found with_flattened with_indexed_items with_items with_list with_nested with_sequence with_subelements
    with_together import_tasks include_tasks import_role include_role include_vars import_playbook""".split()
)
PLAY_REFUSED = frozenset(
    """any_errors_fatal become_exe become_flags become_method check_mode collections connection debugger diff
    fact_path force_handlers gather_subset gather_timeout ignore_errors ignore_unreachable import_playbook
    max_fail_percentage module_defaults no_log order port post_tasks pre_tasks remote_user roles run_once serial
    strategy throttle timeout vars_files vars_prompt""".split()
)
