"""The workload as a pyinfra user writes it."""

from pathlib import Path

from pyinfra import host
from pyinfra.facts.files import File
from pyinfra.facts.server import Hostname, Kernel, LinuxDistribution
from pyinfra.operations import files, server

TEMPLATES = Path(__file__).parent.parent / "templates"
data = host.data
root = data.node_root
names = ("node_id", "node_root", "app_port", "workers", "region")
values = {name: getattr(data, name) for name in names}

for fact in (Hostname, Kernel, LinuxDistribution):
    host.get_fact(fact)
for folder, mode in (("etc/app", "755"), ("var/app", "750"), ("run/app", "700")):
    files.directory(name=folder, path=f"{root}/{folder}", mode=mode)
for source, name, mode in (
    ("app.conf.j2", "app.conf", "644"),
    ("nginx.conf.j2", "nginx.conf", "644"),
    ("env.j2", "env", "640"),
):
    files.template(name=name, src=str(TEMPLATES / source), dest=f"{root}/etc/app/{name}", mode=mode, **values)
files.line(
    name="ini setting",
    path=f"{root}/etc/app/app.ini",
    line=r"^max_connections *=.*$",
    replace="max_connections = 100",
)
if not host.get_fact(File, path=f"{root}/var/app/.initialized"):
    server.shell(name="init marker", commands=[f"touch {root}/var/app/.initialized"])
if not host.get_fact(File, path=f"{root}/var/app/seed.db"):
    server.shell(name="seed db", commands=[f"cp {root}/etc/app/app.conf {root}/var/app/seed.db"])
files.link(name="symlink current", path=f"{root}/current", target=f"{root}/var/app")
# On a cold run it is there only when the operations above have run.
found = host.get_fact(File, path=f"{root}/etc/app/app.conf")
if found:
    assert found["mode"] == 644, found
unit = f"{root}/home/.config/systemd/user/app.service"
files.template(name="service file", src=str(TEMPLATES / "app.service.j2"), dest=unit, mode="644", **values)
