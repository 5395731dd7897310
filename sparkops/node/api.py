"""What a module is made of: `Arguments`, `Outcome`, `Failure`, and the `Node` it works on.

Runs on the node: standard library only, and as little of it as can be (each import costs a host milliseconds).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar


class Path(str):
    """A path on the node. A leading `~` is expanded there, for the user that the task runs as."""


class Mode(str):
    """A file mode: octal in quotes ("0644") or symbolic ("u=rw,go=r")."""


class Tree:
    """What is in a controller's folder. folders: their names in it, an outer one before its inner ones. files: (name,
    size, sha256).
    """

    def __init__(self, folders: list[str], files: list[tuple[str, int, str]]) -> None:
        self.folders = folders
        self.files = files


class Source:
    """A controller's file that a task names: found there before the run, its bytes fetched only when asked for.

    tree: of a folder, which only copy takes; its name is "" when what is in it is meant.
    """

    def __init__(self, name: str, digest: str, size: int, inline: bytes | None, tree: Tree | None = None) -> None:
        self.name = name
        self.digest = digest
        self.size = size
        self.inline = inline
        self.tree = tree

    def read(self, node: Node) -> Iterator[bytes]:
        """The bytes, in pieces; files up to 64 KiB have come with the task, others are fetched now."""
        if self.inline is not None:
            return iter([self.inline])
        return node.content(self.digest, self.size)


class Template(str):
    """A controller's template that a task names; on the node it is the rendered text."""


class Patch:
    """A declared patch that a task names (patches/NAME.yml on the controller).

    file: the patched file, relative to site-packages. versions: [{"engine", "before", "after"}] with the file's
    sha256 before and after. diff: a unified diff of that one file.
    """

    def __init__(self, name: str, file: str, versions: list[dict[str, str]], diff: str) -> None:
        self.name = name
        self.file = file
        self.versions = versions
        self.diff = diff


class Arguments:
    """Base of a module's `Args`: annotated fields with defaults; a field without one is required.

    The controller reads the annotations (str, int, float, bool, Path, Mode, Source, Template, Patch, Any, list[...],
    dict[...], X | None, Literal[...]), validates and converts; on the node an instance is just a namespace.
    """

    # Names a task may use beside the fields: {"dest": "path"} makes `dest` another word for `path`.
    aliases: ClassVar[dict[str, str]] = {}
    # The field that `module: some text` sets ("" when free text is not taken).
    free_form: ClassVar[str] = ""
    # Whether it takes names that are no fields (set_fact does).
    open_ended: ClassVar[bool] = False

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Outcome:
    """How a task ended: `state` ok | changed | skipped | unknown, a line for people, a diff, and the result."""

    def __init__(
        self, state: str, msg: str = "", diff: str | None = None, result: dict[str, Any] | None = None
    ) -> None:
        self.state = state
        self.msg = msg
        self.diff = diff
        self.result = result or {}

    @classmethod
    def ok(cls, msg: str = "", **result: Any) -> Outcome:
        """Nothing had to change."""
        return cls("ok", msg, None, result)

    @classmethod
    def changed(cls, msg: str = "", diff: str | None = None, **result: Any) -> Outcome:
        """The node was changed, or in check mode would be."""
        return cls("changed", msg, diff, result)

    @classmethod
    def skipped(cls, msg: str = "", **result: Any) -> Outcome:
        """The task does not apply here (`creates` exists, say)."""
        return cls("skipped", msg, None, result)

    @classmethod
    def unknown(cls, msg: str = "", **result: Any) -> Outcome:
        """Check mode only: it depends on a step that has not run."""
        return cls("unknown", msg, None, result)


class Failure(Exception):
    """A module raises it to fail: a message that says what to do, and result keys."""

    def __init__(self, msg: str, **result: Any) -> None:
        super().__init__(msg)
        self.msg = msg
        self.result = result


class Completed:
    """A command that ended: exit status `rc` (negative: a signal), `out` and `err` as text."""

    def __init__(self, argv: list[str], rc: int, out: str, err: str) -> None:
        self.argv = argv
        self.rc = rc
        self.out = out
        self.err = err


class Node:
    """What a module may ask of the machine it runs on. One instance a task.

    check: report what would change and change nothing. home: the task's user's home. state_dir: where sparkops
    keeps its own files on this node (may not exist yet in check mode). env: the task's environment.
    """

    check: bool
    home: str
    state_dir: str
    env: dict[str, str]

    def run(
        self,
        argv: list[str],
        *,
        stdin: str = "",
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout: float | None = None,
        must: bool = False,
        each: Callable[[list[str]], None] | None = None,
    ) -> Completed:
        """Run a command in its own process group; `env` adds to the task's. No shell.

        `each` is given the lines of stdout as they come, which are then not kept.

        It is ended (TERM, then KILL) when the controller goes away or `timeout` seconds have passed (Failure).
        With `must`, an exit status other than 0 is a Failure that quotes the last lines of stderr. A program that
        does not exist gives rc 127.
        """
        raise NotImplementedError

    def which(self, program: str) -> str | None:
        """The path of a program on the task's PATH, with the sbin folders added, or None."""
        raise NotImplementedError

    def progress(self, done: float, total: float | None, unit: str, msg: str = "") -> None:
        """Tell the controller how far a long task is. Cheap; throttled to a few a second."""
        raise NotImplementedError

    def tell(self, lines: list[str]) -> None:
        """Hand lines to the controller now, while the task goes on (a journal that is followed)."""
        raise NotImplementedError

    def pause(self, seconds: float) -> None:
        """Sleep, but end the task at once when the controller goes away."""
        raise NotImplementedError

    def content(self, digest: str, size: int) -> Iterator[bytes]:
        """The bytes of a controller's file, by its sha256: fetched from the controller now, in pieces."""
        raise NotImplementedError

    def contents(self, files: list[tuple[str, int]]) -> Iterator[bytes]:
        """The bytes of several of the controller's files, by (sha256, size), one behind the other in one stream."""
        for digest, size in files:
            yield from self.content(digest, size)

    def job(
        self,
        key: str,
        work: Callable[[Node], dict[str, Any]],
        watch: Callable[[Node], None] | None = None,
    ) -> dict[str, Any]:
        """Run `work(node)` detached, in its own session, so that it goes on when the controller is gone; join a
        job of the same key that is still running instead of starting another.

        `watch(node)` is called a few times a second while waiting (for progress). Returns what `work` returned;
        a Failure raised in `work` is raised here. `work`'s output is in state/jobs/<key>/log.
        """
        raise NotImplementedError

    def start_job(self, key: str, work: Callable[[Node], dict[str, Any]]) -> None:
        """Start a detached job, unless one of that key runs, and go on without it."""
        raise NotImplementedError
