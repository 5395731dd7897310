"""What a Python environment holds, beside what an engine's lock, its CUDA and its patches ask for."""

from __future__ import annotations

import os

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sparkops.node.api import Patch

# How many differing packages are told.
TOLD = 5


def problems(path: str, packages: list[str], expect_cuda: str | None, patches: list[Patch]) -> list[str]:
    """Why the environment at `path` is not the engine that is wanted; []: it is. packages: NAME==VERSION each."""
    from sparkops.node import patched, venv

    if not os.path.isdir(path):
        return ["there is no such folder"]
    try:
        folder = patched.site_packages(os.path.join(path, "lib", "python3*", "site-packages"))
    except Failure:
        return ["it is no Python environment: there is no lib/python3*/site-packages in it"]
    found = [] if os.access(os.path.join(path, "bin", "vllm"), os.X_OK) else ["there is no program bin/vllm in it"]
    found += differences(packages, versions(folder))
    if expect_cuda is not None:
        try:
            venv.check_cuda(folder, expect_cuda, "its origin")
        except Failure as wrong:
            found.append(wrong.msg.partition(": its origin")[0])
    return found + [said for patch in patches if (said := unpatched(patch, folder))]


def versions(site_packages: str) -> dict[str, str]:
    """{package: version} of a site-packages folder, by the names of its *.dist-info; names as PEP 503 has them."""
    pairs = (
        name[: -len(".dist-info")].rpartition("-") for name in os.listdir(site_packages) if name.endswith(".dist-info")
    )
    return {plain(name): version for name, _, version in pairs}


def differences(packages: list[str], found: dict[str, str]) -> list[str]:
    """Where an environment differs from NAME==VERSION lines; what it has besides does not matter."""
    lines = []
    for pin in packages:
        name, _, wanted = pin.partition("==")
        has = found.get(plain(name))
        # A local part (2.11.0+cu130) satisfies a pin that has none (PEP 440).
        if has is None or has not in (wanted, wanted + "+" + has.partition("+")[2]):
            lines.append(f"{name} {has or 'is missing'}, locked: {wanted}")
    more = [f"and {len(lines) - TOLD} packages more"] if len(lines) > TOLD else []
    return lines[:TOLD] + more


def unpatched(patch: Patch, site_packages: str) -> str:
    """Why a patch is not in; "" when it is."""
    from sparkops.node import files

    path = os.path.join(site_packages, patch.file)
    if not os.path.isfile(path):
        return f"{patch.file}, which the patch {patch.name} changes, is missing"
    if files.sha256(path) in [version["after"] for version in patch.versions]:
        return ""
    return f"the patch {patch.name} is not in ({patch.file})"


def plain(name: str) -> str:
    """A package's name as PEP 503 has it."""
    return name.lower().replace("_", "-").replace(".", "-")
