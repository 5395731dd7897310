"""Filters and tests of Ansible and its collections that sparkops has not, and what to write instead."""

from __future__ import annotations

_VAULT = "Ansible's vault is not supported; take a secret by lookup('env', ...) or from a file that only you can read"
_ADDRESSES = (
    "it is of the collection ansible.utils; give addresses as variables, or take them apart by split and regex_search"
)
_SELECT = "it is of the collection community.general; selectattr(), map(attribute=...) and first do it"

REFUSED = {
    "json_query": _SELECT,
    "jc": "it is of the collection community.general; from_json and regex_findall read a command's output",
    "dict_kv": "it is of the collection community.general; {name: value} does it",
    "counter": "it is of the collection community.general; groupby and length count",
    "groupby_as_dict": "it is of the collection community.general; groupby does it",
    "lists_mergeby": "it is of the collection community.general; combine merges mappings",
    "version_sort": "it is of the collection community.general; 'is version' compares two",
    "random_mac": "it is of the collection community.general",
    "from_csv": "it is of the collection community.general; splitlines() and split(',') read simple files",
    "from_ini": "it is of the collection community.general; regex_search finds a value",
    "to_ini": "it is of the collection community.general; a template writes such a file",
    "keep_keys": "it is of the collection community.general; dict2items, selectattr and items2dict do it",
    "remove_keys": "it is of the collection community.general; dict2items, rejectattr and items2dict do it",
    "flattened": "the filter 'flatten' does it",
    "index_of": _SELECT,
    "get_path": "it is of the collection ansible.utils; a.b['c'] does it",
    "to_paths": "it is of the collection ansible.utils",
    "from_xml": "it is of the collection ansible.utils; regex_search finds a value",
    **dict.fromkeys(
        ("ipaddr", "ipv4", "ipv6", "ipwrap", "ipsubnet", "ipmath", "nthhost", "network_in_network", "network_in_usable",
         "cidr_merge", "hwaddr", "macaddr", "in_network", "ip_address", "ipv4_address", "ipv6_address"), _ADDRESSES,
    ),
    **dict.fromkeys(("vault", "unvault", "vault_encrypted", "vaulted_file"), _VAULT),
    "started": "async is not supported",
    "finished": "async is not supported",
}  # fmt: skip


def instead(name: str) -> str | None:
    """What to write instead of a filter or test that is refused; None: it is nobody's name that we know."""
    if name.startswith("ansible.builtin."):
        return REFUSED.get(name.removeprefix("ansible.builtin."))
    short = name.rpartition(".")[2]
    if short in REFUSED:
        return REFUSED[short]
    return "plugins of collections are not supported" if "." in name else None
