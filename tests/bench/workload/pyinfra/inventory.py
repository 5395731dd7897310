"""The nodes for pyinfra: the first BENCH_HOSTS of BENCH_NODES."""

import json
import os
from pathlib import Path

nodes = [
    (
        node["name"],
        {
            **node["vars"],
            "ssh_hostname": node["host"],
            "ssh_port": node["port"],
            "ssh_user": node["user"],
            "ssh_key": node["key"],
            "ssh_allow_agent": False,
            "ssh_look_for_keys": False,
            "ssh_known_hosts_file": node["known_hosts"],
            "ssh_strict_host_key_checking": "yes",
            "ssh_config_file": "/dev/null",
        },
    )
    for node in json.loads(Path(os.environ["BENCH_NODES"]).read_text())[: int(os.environ["BENCH_HOSTS"])]
]
