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
from .cli.args import parser
from .http import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

STOP = {signal.SIGTERM, signal.SIGINT}
INIT_FAILED = "Engine core initialization failed. See root cause above."
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
    info("APIServer", "api_server.py:1983", f"vLLM API server version {__version__}, serving model {args.model}")
    info("APIServer", "utils.py:233", f"non-default args: {shown(args)}")
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
    info("APIServer", "model.py:580", f"Resolved architecture: {', '.join(checkpoint.architectures)}")
    begun = time.monotonic()
    try:
        server.engine = Engine(load(args, checkpoint))
    except (ValueError, OSError, KeyError) as problem:
        error("EngineCore", "core.py:1136", "EngineCore failed to start.")
        error("EngineCore", "core.py:1136", f"{type(problem).__name__}: {problem}")
        write("APIServer", f"RuntimeError: {INIT_FAILED} Failed core proc(s): {{}}")
        return False
    taken = time.monotonic() - begun
    info("EngineCore", "core.py:288", f"init engine (profile, create kv cache, warmup model) took {taken:.2f} seconds")
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
    info("APIServer", "api_server.py:598", f"Starting vLLM server on http://{args.host}:{args.port}")
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
        error("APIServer", "async_llm.py:671", "AsyncLLM output_handler failed.")
        error("APIServer", "async_llm.py:671", "EngineDeadError: EngineCore encountered an issue.")
        time.sleep(DEATH_SECONDS)
    web("Shutting down")
    server.shutdown()
    server.server_close()
    engine.drain(args.shutdown_timeout)
    engine.stopping.set()
    engine.drain(CUT_SECONDS)
    web("Application shutdown complete.")
    web(f"Finished server process [{os.getpid()}]")


def toggle(event: threading.Event) -> None:
    """Set what is clear, clear what is set."""
    if event.is_set():
        event.clear()
    else:
        event.set()
