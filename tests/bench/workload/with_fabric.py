"""The workload as a fabric user writes it: a thread a host, a run or a put a step."""

import hashlib
import io
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2
from fabric import Config, Connection

FACTS = "uname -srm; hostname; cat /etc/os-release; nproc; python3 -V"
FILES = (
    ("app.conf.j2", "etc/app/app.conf", "644"),
    ("nginx.conf.j2", "etc/app/nginx.conf", "644"),
    ("env.j2", "etc/app/env", "640"),
)
UNIT = ("app.service.j2", "home/.config/systemd/user/app.service", "644")
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
)


def folder(path: str, mode: str) -> str:
    make = f"mkdir -p $d && chmod {mode} $d && echo CHANGED"
    return f'd={path}; [ "$(stat -c %a $d 2>/dev/null)" = {mode} ] || {{ {make}; }}'


def before(root: str) -> list[str]:
    return [FACTS, folder(f"{root}/etc/app", "755"), folder(f"{root}/var/app", "750"), folder(f"{root}/run/app", "700")]


def after(root: str) -> list[str]:
    line, conf, var = "max_connections = 100", f"{root}/etc/app/app.conf", f"{root}/var/app"
    there = "grep -q '^max_connections *=' $f 2>/dev/null"
    return [
        f"f={root}/etc/app/app.ini; grep -qx '{line}' $f 2>/dev/null ||"
        f" {{ if {there}; then sed -i 's/^max_connections *=.*/{line}/' $f; else echo '{line}' >> $f; fi;"
        " echo CHANGED; }",
        f"[ -e {var}/.initialized ] || {{ touch {var}/.initialized && echo CHANGED; }}",
        f"[ -e {var}/seed.db ] || {{ cp {conf} {var}/seed.db && echo CHANGED; }}",
        f'[ "$(readlink {root}/current)" = {var} ] || {{ ln -sfn {var} {root}/current && echo CHANGED; }}',
        f'[ "$(stat -c %a {conf})" = 644 ]',
    ]


def put(connection: Connection, node: dict, source: str, dest: str, mode: str) -> bool:
    text = TEMPLATES.get_template(source).render(node["vars"]).encode()
    path = f"{node['vars']['node_root']}/{dest}"
    look = f"sha256sum {path} 2>/dev/null | cut -d' ' -f1; stat -c %a {path} 2>/dev/null"
    found = connection.run(look, hide=True, warn=True, in_stream=False).stdout.split()
    changed = found[:1] != [hashlib.sha256(text).hexdigest()]
    if changed:
        connection.put(io.BytesIO(text), path)
    if changed or found[1:] != [mode]:
        connection.run(f"chmod {mode} {path}", hide=True, in_stream=False)
    return changed


def work(node: dict) -> int:
    root, changed = node["vars"]["node_root"], 0
    keys = {"key_filename": node["key"], "look_for_keys": False, "allow_agent": False}
    config = Config(overrides={"load_ssh_configs": False}, lazy=True)
    with Connection(node["host"], user=node["user"], port=node["port"], config=config, connect_kwargs=keys) as one:
        for command in before(root):
            changed += "CHANGED" in one.run(command, hide=True, in_stream=False).stdout
        changed += sum(put(one, node, *each) for each in FILES)
        for command in after(root):
            changed += "CHANGED" in one.run(command, hide=True, in_stream=False).stdout
        changed += put(one, node, *UNIT)
    return changed


nodes = json.loads(Path(os.environ["BENCH_NODES"]).read_text())[: int(os.environ["BENCH_HOSTS"])]
with ThreadPoolExecutor(len(nodes)) as pool:
    print("changed", sum(pool.map(work, nodes)))
sys.exit(0)
