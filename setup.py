"""The package sparkops: what it needs, and the data that its wheel carries."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
DATA = ("playbooks", "templates", "inventory")


class BuildWithData(build_py):
    """Also puts playbooks/, templates/ and inventory/ into the built package, as sparkops/_data/.

    An editable install reads them where they are, beside the package.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in self._data():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._data())]

    def _data(self) -> list[tuple[Path, Path]]:
        built = Path(self.build_lib, "sparkops", "_data")
        return [
            (path, built / path.relative_to(ROOT))
            for folder in DATA
            for path in sorted((ROOT / folder).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        ]


setup(
    name="sparkops",
    version="0.1.0",
    description="vLLM on NVIDIA DGX Spark nodes, over SSH: name the nodes and a recipe",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Console",
        "Intended Audience :: System Administrators",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: System :: Systems Administration",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=["sparkops", "sparkops.*"]),
    package_data={"sparkops": ["py.typed"], "sparkops.recipes": ["*/*.yml", "*/*.lock"], "sparkops.serving": ["*.yml"]},
    cmdclass={"build_py": BuildWithData},
    install_requires=[
        "click>=8.1",
        "fabric>=3.2",
        "jinja2>=3.1",
        "msgspec>=0.18",
        "packaging>=23",
        "paramiko>=3.4",
        "platformdirs>=4",
        "pyyaml>=6",
        "rich>=13.7",
        "tenacity>=8.2",
    ],
    extras_require={
        "plot": ["matplotlib>=3.8"],
        # The filter password_hash; passlib's maintained fork.
        "passwords": ["libpass>=1.9"],
        # The lab's wheels are written by its own code and its SSH server is paramiko's: nothing more is needed.
        "lab": [],
        "dev": [
            "hypothesis>=6.100",
            "import-linter>=2.0",
            "mypy>=1.11",
            "pytest>=8",
            "pytest-timeout>=2.3",
            "ruff>=0.9.10",
            "setuptools>=70.1",
            "types-paramiko",
            "types-PyYAML",
            "types-setuptools",
            # The lab's wheels are tried with it.
            "uv",
            # What Ansible's words mean is asked of Ansible itself.
            "ansible-core==2.19.14; python_version >= '3.11'",
            "jsonschema>=4.18",
            "libpass>=1.9",
            "types-jsonschema",
        ],
    },
    entry_points={"console_scripts": ["sparkops = sparkops.cli.entry:main"]},
)
