"""`vllm serve`: from the bound port to the last request."""

from __future__ import annotations

import os
import signal
import threading
import time

from .._version import __version__
from ..engine.core import Engine
from ..engine.loader import load
from ..logger import error, info, web, write
from ..model_executor.checkpoint import Checkpoint, LocalEntryNotFoundError
from . import failing
from .cli.args import parser
from .http import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

STOP = {signal.SIGTERM, signal.SIGINT}
DEFAULT_START_SECONDS = 0.5
POLL_SECONDS = 0.02
CUT_SECONDS = 5.0  # for streams that are cut short to end well-formed
DEATH_SECONDS = 5.0  # from an engine's death to the server's exit, whose status is 0


def serve(args: Namespace) -> int:
    """Serve until told to stop; returns the exit status.

    SIGTERM and SIGINT stop it. For the lab: SIGUSR1 wedges the engine (healthy, no tokens) or frees it, SIGUSR2 is its
    death.
    """
    # Blocked here, so in all threads, and taken by the main thread when it is ready to act on them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP | {signal.SIGUSR1, signal.SIGUSR2})
    names = args.served_model_name or [args.model]
    # The real one draws its name, in letters that are not ASCII and after many spaces.
    info("APIServer", "api_utils.py:339", f"       \N{FULL BLOCK}\N{FULL BLOCK}  version {__version__}")
    info("APIServer", "api_utils.py:339", f"       \N{FULL BLOCK}\N{FULL BLOCK}  model   {args.model}")
    info("APIServer", "api_utils.py:273", f"non-default args: {shown(args)}")
    try:
        checkpoint = Checkpoint(args.model)
        server = Server((args.host, args.port), names=names, root=args.model, keys=keys(args))
    except LocalEntryNotFoundError as problem:
        write("APIServer", f"huggingface_hub.errors.LocalEntryNotFoundError: {problem}")
        return 1
    except OSError as problem:
        write("APIServer", f"OSError: {problem}")
        return 1
    with server:
        started = start(args, checkpoint, server)
        if started and not told_to_stop(float(os.environ.get("SPARKOPS_LAB_START_SECONDS", DEFAULT_START_SECONDS))):
            run(args, server)
    return 0 if started else 1


def keys(args: Namespace) -> list[str]:
    """The API keys: of the command line, else of the environment."""
    given: list[str] = args.api_key or [os.environ.get("VLLM_API_KEY", "")]
    return [key for key in given if key]


def shown(args: Namespace) -> dict[str, object]:
    """What was asked for beyond the defaults, without the API key."""
    defaults = vars(parser().parse_args([args.verb, args.model]))
    asked = {name: value for name, value in vars(args).items() if value != defaults[name] and name != "api_key"}
    return {"model_tag": args.model, **asked}


def start(args: Namespace, checkpoint: Checkpoint, server: Server) -> bool:
    """Load the model. False: it failed, and the log says why."""
    info("APIServer", "model.py:598", f"Resolved architecture: {', '.join(checkpoint.architectures)}")
    begun = time.monotonic()
    try:
        server.engine = Engine(load(args, checkpoint))
    except (ValueError, OSError, KeyError) as problem:
        failing.tell(problem)
        return False
    taken = time.monotonic() - begun
    info("EngineCore", "core.py:344", f"init engine (profile, create kv cache, warmup model) took {taken:.2f} s")
    return True


def told_to_stop(seconds: float) -> bool:
    """Pass the time that a start takes; True as soon as a signal asks to stop."""
    end = time.monotonic() + seconds
    while not signal.sigpending() & STOP:
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, POLL_SECONDS))
    return True


def run(args: Namespace, server: Server) -> None:
    """Let clients in until told to stop, then close the listener and let requests end: in their time, or cut short."""
    engine = server.engine
    info("APIServer", "api_server.py:581", f"Starting vLLM server on http://{args.host}:{args.port}")
    server.server_activate()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS}, daemon=True).start()
    web(f"Started server process [{os.getpid()}]")
    web("Waiting for application startup.")
    web("Application startup complete.")
    while True:
        number = signal.sigwait(STOP | {signal.SIGUSR1, signal.SIGUSR2})
        if number != signal.SIGUSR1:
            break
        toggle(engine.wedged)
    if number == signal.SIGUSR2:
        engine.die()
        error("APIServer", "async_llm.py:704", "AsyncLLM output_handler failed.")
        error(
            "APIServer",
            "async_llm.py:704",
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for "
            "the root cause.",
        )
        time.sleep(DEATH_SECONDS)
    say("APIServer", "launcher.py:100", "API server: shutdown triggered")
    how = "drain" if args.shutdown_timeout else "abort"
    say("EngineCore", "core.py:1333", f"EngineCore: start mode={how} timeout={args.shutdown_timeout}s")
    web("Shutting down")
    server.shutdown()
    server.server_close()
    engine.drain(args.shutdown_timeout)
    say("EngineCore", "core.py:1364", "EngineCore: request processing complete; starting resource teardown")
    engine.stopping.set()
    engine.drain(CUT_SECONDS)
    web("Application shutdown complete.")
    web(f"Finished server process [{os.getpid()}]")


def say(process: str, source: str, message: str) -> None:
    """A line about the shutdown."""
    info(process, source, f"[shutdown] {message}")


def toggle(event: threading.Event) -> None:
    """Set what is clear, clear what is set."""
    if event.is_set():
        event.clear()
    else:
        event.set()
