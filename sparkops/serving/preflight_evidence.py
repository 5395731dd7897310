"""What is known of a node before a deploy: the result of the module serving_preflight, typed. Sizes are bytes."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, convert, field

from sparkops.serving.evidence import Disk, Driver, Listener, Memory


class Engine(Struct, frozen=True):
    """The environment at `path`. adopted: the user named it. problems: why it is not what the recipe needs.

    kin: another engine of the same version is there, with which it would share its files.
    """

    path: str
    adopted: bool = False
    state: Literal["missing", "untried", "complete", "other", "no_lock"] = "complete"
    problems: list[str] = []
    kin: bool = False


class Weights(Struct, frozen=True):
    """The checkpoint. resident: bytes of its tensors, None: not known; held: bytes that a part of it takes."""

    path: str
    present: bool = True
    resident: int | None = None
    held: int = 0


class Space(Disk, frozen=True):
    """A disk, and the number of its file system."""

    device: int = 0


class Service(Struct, frozen=True):
    """A service that is deployed. recipe: what its release says of its memory; pid 0: it does not run."""

    name: str
    unit: str
    own: bool = False
    recipe: dict[str, Any] = {}
    host: str = "127.0.0.1"
    port: int = 8000
    resident: int | None = None
    pid: int = 0
    active: bool = False
    enabled: bool = False

    @property
    def counts(self) -> bool:
        """Whether it takes memory, now or after the next boot."""
        return self.active or self.enabled


class Tools(Struct, frozen=True):
    """What the engine compiles kernels with."""

    nvcc: bool = True
    ninja: bool = True
    headers: bool = True


class Evidence(Struct, frozen=True):
    """All of it. in_sync: the clock, None: can't be told. linger: None where it does not matter."""

    architecture: str
    unit: str
    engine: Engine
    checkpoint: Weights
    memory: Memory
    driver: Driver = field(default_factory=Driver)
    disks: list[Space] = []
    listeners: list[Listener] = []
    services: list[Service] = []
    in_sync: bool | None = None
    tools: Tools = field(default_factory=Tools)
    reboot_required: bool = False
    linger: bool | None = None

    @classmethod
    def of(cls, result: dict[str, Any]) -> Evidence:
        """From the module's result. Raises msgspec.ValidationError for what is none."""
        return convert(result, cls)

    @property
    def own(self) -> Service | None:
        """What this service serves until now."""
        return next((one for one in self.services if one.own), None)

    @property
    def others(self) -> list[Service]:
        """The other services of ours here that take memory."""
        return [one for one in self.services if not one.own and one.counts]

    def space(self, name: str) -> Space | None:
        """A disk by its name: checkpoint, engine."""
        return next((one for one in self.disks if one.name == name), None)
