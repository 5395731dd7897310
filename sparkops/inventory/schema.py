"""The JSON Schema (draft 2020-12) of YAML inventories."""

from __future__ import annotations

from typing import Any

from sparkops.inventory.yaml_source import WORDS

Schema = dict[str, Any]

_TEXT: Schema = {"type": ["string", "number"]}
_TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{"}
# The variables that sparkops itself reads; any other name is a variable too.
CONNECTION: dict[str, Schema] = {
    "ansible_host": {"type": "string", "description": "the address; the host's name without it"},
    "ansible_port": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string"}]},
    "ansible_user": {"type": "string", "description": "who logs in"},
    "ansible_connection": {"enum": ["ssh", "local"]},
    "ansible_ssh_private_key_file": {"type": "string"},
    "ansible_ssh_common_args": {
        "type": "string",
        "description": "read: -o UserKnownHostsFile=FILE, -o ProxyJump=HOST and -J HOST",
    },
    "ansible_become": {"anyOf": [{"type": "boolean"}, _TEMPLATE]},
    "ansible_become_user": {"type": "string"},
    "ansible_become_password": {**_TEXT, "description": "for example \"{{ lookup('env', 'SPARK_SUDO') }}\""},
    "ansible_python_interpreter": {"type": "string"},
    "systemd_scope": {"enum": ["system", "user"], "description": "user: no root is needed"},
    "sparkops_home": {"type": "string"},
    "models_dir": {"type": "string", "description": "~ is expanded on the node"},
    "index_url": {"type": "string", "description": "a simple package index"},
    "fabric_address": {"type": "string", "description": "its address in the fast network: for copies of weights"},
    "hub_url": {"type": "string", "description": "where weights are fetched from (default: HF_ENDPOINT)"},
    "hub_token": {**_TEXT, "description": "for gated models (default: HF_TOKEN)"},
    "hub_stall": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEMPLATE]},
    "provision_packages": {"anyOf": [{"type": "array", "items": {"type": "string"}}, _TEMPLATE]},
    "host": {"type": "string", "description": "the address that a served copy listens on"},
    "port": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string"}]},
}


def inventory_schema() -> Schema:
    """Groups by name; each has hosts, vars and children. Unlike variables, these words are fixed."""
    nothing: list[Schema] = [{"type": "null"}, {"type": "string"}]
    variables = {"$ref": "#/$defs/vars"}
    group: Schema = {
        "type": ["object", "null"],
        "properties": {
            "hosts": {
                "description": "hosts by name; a range such as spark-[01:10] is several",
                "anyOf": [
                    {"type": "object", "additionalProperties": {"anyOf": [variables, {"enum": ["", []]}]}},
                    *nothing,
                ],
            },
            "vars": variables,
            "children": {
                "description": "groups whose hosts are this one's too",
                "anyOf": [{"type": "object", "additionalProperties": {"$ref": "#/$defs/group"}}, *nothing],
            },
        },
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "propertyNames": {"not": {"enum": [*WORDS, "plugin"]}},
        "additionalProperties": {"$ref": "#/$defs/group"},
        "$defs": {"group": group, "vars": {"type": ["object", "null"], "properties": CONNECTION}},
    }
