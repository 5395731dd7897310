"""Whether a recipe can be served on a node, judged before anything on it is touched: pure looks at its evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

from msgspec import Struct, structs

from sparkops.errors import InputError
from sparkops.project.near import did_you_mean
from sparkops.recipes.schema import Recipe
from sparkops.serving import room
from sparkops.serving.preflight_evidence import Evidence
from sparkops.serving.signs import clash, holder
from sparkops.serving.values import gib

GB = 10**9
Verdict = Literal["pass", "warn", "fail"]


class Row(Struct, frozen=True):
    """One check's outcome: what was found, and what to do about it ("" for a pass)."""

    check: str
    verdict: Verdict
    found: str
    remedy: str = ""


class Plan(Struct, frozen=True):
    """What is to be served. architectures: those that the engine has locks for; engine_gb: what it takes on a disk."""

    recipe: Recipe
    service: str
    host: str
    port: int
    architectures: list[str]
    engine_gb: float | None = None


Check = Callable[[Evidence, Plan], Row]


def judge(seen: Evidence, plan: Plan, ignore: Collection[str] = ()) -> list[Row]:
    """A row for each check, in the order of CHECKS; those in `ignore` only warn. Raises InputError: an unknown one."""
    for name in ignore:
        if name not in CHECKS:
            hint = did_you_mean(name, list(CHECKS), f"there are: {', '.join(CHECKS)}")
            raise InputError(f"preflight_ignore: there is no check {name!r}", hint=hint)
    rows = [check(seen, plan) for check in CHECKS.values()]
    return [_ignored(row) if row.check in ignore and row.verdict == "fail" else row for row in rows]


def message(rows: Iterable[Row]) -> str:
    """The failed checks, each with its remedy, a line each; "" when none has failed."""
    failed = [row for row in rows if row.verdict == "fail"]
    lines = [f"- {row.check}: {row.found}; {row.remedy}" for row in failed]
    names = ",".join(row.check for row in failed)
    last = f"nothing was touched; if you know better: -e preflight_ignore={names}"
    return "\n".join(["this node is not ready:", *lines, last]) if failed else ""


def _ignored(row: Row) -> Row:
    return structs.replace(row, verdict="warn", found=f"{row.found} (ignored)")


def driver(seen: Evidence, plan: Plan) -> Row:
    wanted, version = plan.recipe.requires.driver, seen.driver.version
    cure = "install the distribution's, reboot, and run this again (sparkops never installs drivers)"
    if version is None:
        said = f"no NVIDIA driver answers ({seen.driver.error or 'nvidia-smi says nothing'})"
        return Row("driver", "fail", said, cure)
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) < wanted:
        return Row("driver", "fail", f"{version}, and {plan.recipe.name} needs {wanted} or newer", cure)
    return Row("driver", "pass", version)


def architecture(seen: Evidence, plan: Plan) -> Row:
    machine, engine = seen.architecture, plan.recipe.engine
    if machine in plan.architectures:
        return Row("architecture", "pass", machine)
    said = f"{machine}: {engine} has locks for {', '.join(sorted(plan.architectures))}"
    return Row("architecture", "fail", said, f"sparkops engine lock {engine} --architecture {machine}")


def engine(seen: Evidence, plan: Plan) -> Row:
    found, name = seen.engine, plan.recipe.engine
    why = f"{found.path}: {'; '.join(found.problems)}"
    if found.adopted:
        if not found.path.startswith("/"):
            said = f"engine_path is {found.path!r}, no absolute path"
            return Row("engine", "fail", said, "units need one: give it from / on")
        if found.problems:
            cure = (
                f"make it what {plan.recipe.name} needs, or leave engine_path out: then sparkops builds {name} itself"
            )
            return Row("engine", "fail", why, cure)
        return Row("engine", "pass", f"{found.path} is adopted: {name}")
    if found.state in ("missing", "no_lock"):
        return Row("engine", "pass", f"{name} will be built")
    if found.state == "other":
        return Row("engine", "fail", why, f"move {found.path} away, and run this again: it is built anew")
    if found.problems:
        # A redeploy does not mend it, and what runs may do so for weeks.
        cure = f"somebody has changed it: move {found.path} away, and run this again: it is built anew"
        return Row("engine", "warn", why, cure)
    return Row("engine", "pass", f"{name} is there" + (", to be tried yet" if found.state == "untried" else ""))


def disk(seen: Evidence, plan: Plan) -> Row:
    wanted: dict[int, list[tuple[str, float]]] = {}
    for name, size in (("checkpoint", _checkpoint_bytes(seen, plan)), ("engine", _engine_bytes(seen, plan))):
        space = seen.space(name)
        if size and space is not None and space.free is not None:
            wanted.setdefault(space.device, []).append((name, size))
    short = []
    for device, items in wanted.items():
        space = next(one for one in seen.disks if one.device == device and one.name == items[0][0])
        total = sum(size for _, size in items)
        if total > (space.free or 0):
            what = " and ".join(f"the {name} {size / GB:.1f} GB" for name, size in items)
            short.append(f"{space.path} has {(space.free or 0) / GB:.1f} GB free, and needed are for {what}")
    if short:
        cure = "make room (sparkops remove SERVICE --engines, models that nobody serves), or set models_dir elsewhere"
        return Row("disk", "fail", "; ".join(short), cure)
    if not wanted:
        return Row("disk", "pass", "nothing big is to be written")
    return Row("disk", "pass", f"{sum(size for all_ in wanted.values() for _, size in all_) / GB:.1f} GB fit")


def _checkpoint_bytes(seen: Evidence, plan: Plan) -> float:
    """What of the checkpoint is still to come."""
    if seen.checkpoint.present:
        return 0.0
    recipe = plan.recipe
    size = recipe.requires.disk_gb or (recipe.checkpoint.download_gb if recipe.checkpoint else 0)
    return max(0.0, size * GB - seen.checkpoint.held)


def _engine_bytes(seen: Evidence, plan: Plan) -> float:
    """What its build takes; one with the same packages beside it shares their files."""
    building = seen.engine.state == "missing" and not seen.engine.adopted and not seen.engine.kin
    return (plan.engine_gb or 0) * GB if building else 0.0


def memory(seen: Evidence, plan: Plan) -> Row:
    """Both what the copy takes and what the engine's start-up check asks for (it runs with a pinned pool too)."""
    recipe, total, free = plan.recipe, seen.memory.total, room.available(seen)
    need = _need(seen, plan)
    share = recipe.gpu_memory_utilization
    back = " once the copy that serves now has ended" if free > seen.memory.available else ""
    if need.total is not None and need.total > room.usable(total):
        said = f"needs {need}, and {gib(room.usable(total))} of {gib(total)} are usable"
        return Row("memory", "fail", said, "serve a smaller checkpoint, or one with a smaller KV pool")
    if need.total is not None and need.total > free:
        cure = "end what takes the memory, or wait until it is given back (the clean page cache counts as available)"
        return Row("memory", "fail", f"needs {need}, and {gib(free)} are available{back}", cure)
    if share * total > free:
        said = f"the engine's start-up check wants {gib(int(share * total))} (gpu_memory_utilization {share:g})"
        return Row(
            "memory", "fail", f"{said}, and {gib(free)} are available{back}", _lower_share(need, plan, free, total)
        )
    return Row("memory", "pass", f"there is room for {need}")


def _lower_share(need: room.Need, plan: Plan, free: int, total: int) -> str:
    """The cure for a share that is too large: with a pinned pool it feeds the check alone."""
    largest = int(100 * free / total) / 100
    if plan.recipe.kv_cache_memory_bytes and need.total is not None:
        return f"a recipe that extends {plan.recipe.name} with gpu_memory_utilization {largest:g}, or end what takes it"
    return "end what takes the memory, or wait until it is given back"


def port(seen: Evidence, plan: Plan) -> Row:
    foreign = [one for one in seen.listeners if not one.ours and clash(one.address, plan.host)]
    if not foreign:
        return Row("port", "pass", f"{plan.port} is " + ("ours" if seen.listeners else "free"))
    who, stop = holder(foreign[0])
    said = f"{plan.port} is taken by {who}; a second server would share it in silence"
    return Row("port", "fail", said, f"stop it ({stop}), or take another: -e port={plan.port + 1}")


def services(seen: Evidence, plan: Plan) -> Row:
    others, total = seen.others, seen.memory.total
    if not others:
        return Row("services", "pass", "no other service is here")
    same = [one for one in others if one.port == plan.port and clash(one.host, plan.host)]
    if same:
        cure = f"take another port: -e port={plan.port + 1}"
        return Row("services", "fail", f"the service {same[0].name} has port {plan.port}", cure)
    needs = [(f"{one.name} ({one.recipe.get('name') or '?'})", room.of_service(one, total)) for one in others]
    needs.append((plan.service, _need(seen, plan)))
    sum_ = sum(need.total or 0 for _, need in needs)
    parts = ", ".join(f"{name} {gib(need.total) if need.total is not None else 'unknown'}" for name, need in needs)
    said = f"together {gib(sum_)} of {gib(room.usable(total))} usable: {parts}"
    if sum_ > room.usable(total):
        cure = f"sparkops stop or remove --service {others[0].name}, or a recipe with a smaller KV pool or checkpoint"
        return Row("services", "fail", said, cure)
    return Row("services", "warn", said, "nothing, if that is meant: they share the memory and the GPU")


def clock(seen: Evidence, plan: Plan) -> Row:
    del plan
    if seen.in_sync is False:
        cure = "sudo timedatectl set-ntp true (certificates, and the logs of several nodes, need the time)"
        return Row("clock", "warn", "not in sync", cure)
    return Row("clock", "pass", "in sync" if seen.in_sync else "not known")


def tools(seen: Evidence, plan: Plan) -> Row:
    del plan
    needed = {
        "nvcc (in /usr/local/cuda/bin)": seen.tools.nvcc,
        "ninja": seen.tools.ninja,
        "Python.h": seen.tools.headers,
    }
    gone = [name for name, there in needed.items() if not there]
    if not gone:
        return Row("tools", "pass", "nvcc, ninja, Python.h")
    cure = "sparkops provision installs ninja and Python.h; nvcc is part of DGX OS (package cuda-toolkit-13-0)"
    return Row("tools", "warn", f"missing: {', '.join(gone)}; a first start compiles kernels with them", cure)


def reboot(seen: Evidence, plan: Plan) -> Row:
    del plan
    if seen.reboot_required:
        return Row("reboot", "warn", "one is pending (/run/reboot-required)", "reboot when it suits: sudo reboot")
    return Row("reboot", "pass", "none is pending")


def linger(seen: Evidence, plan: Plan) -> Row:
    del plan
    if seen.linger is False:
        return Row("linger", "pass", "off; the deploy switches it on, so that the service runs without a login")
    return Row("linger", "pass", "on" if seen.linger else "not needed")


def _need(seen: Evidence, plan: Plan) -> room.Need:
    from msgspec import to_builtins

    return room.need(to_builtins(plan.recipe), seen.checkpoint.resident, seen.memory.total)


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (driver, architecture, engine, disk, memory, port, services, clock, tools, reboot, linger)
}


class Shown(Struct, frozen=True):
    """A row, and the nodes that have it."""

    row: Row
    hosts: list[str]


def together(rows: dict[str, list[Row]]) -> list[Shown]:
    """The rows of all nodes, check by check; nodes that agree share one."""
    found: list[Shown] = []
    for name in CHECKS:
        hosts: dict[tuple[Any, ...], Shown] = {}
        for host, of_host in rows.items():
            for row in of_host:
                if row.check == name:
                    hosts.setdefault(structs.astuple(row), Shown(row, [])).hosts.append(host)
        found += hosts.values()
    return found
