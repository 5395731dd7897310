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

DEFAULT_START_SECONDS = 0.5
CUT_SECONDS = 5.0  # for streams that are cut short to end well-formed
DEATH_SECONDS = 5.0  # from an engine's death to the server's exit, whose status is 0


def serve(args: Namespace) -> int:
    """Serve until told to stop; returns the exit status.

    SIGTERM and SIGINT stop it. For the lab: SIGUSR1 wedges the engine (healthy, no tokens) or frees it, SIGUSR2 is its
    death.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
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
        if start(args, checkpoint, server, stop):
            run(args, server, stop)
            return 0
        return 0 if stop.is_set() else 1


def keys(args: Namespace) -> list[str]:
    """The API keys: of the command line, else of the environment."""
    given: list[str] = args.api_key or [os.environ.get("VLLM_API_KEY", "")]
    return [key for key in given if key]


def shown(args: Namespace) -> dict[str, object]:
    """What was asked for beyond the defaults, without the API key."""
    defaults = vars(parser().parse_args([args.verb, args.model]))
    asked = {name: value for name, value in vars(args).items() if value != defaults[name] and name != "api_key"}
    return {"model_tag": args.model, **asked}


def start(args: Namespace, checkpoint: Checkpoint, server: Server, stop: threading.Event) -> bool:
    """Load the model and let clients in. False: it failed, or was told to stop meanwhile."""
    info("APIServer", "model.py:580", f"Resolved architecture: {', '.join(checkpoint.architectures)}")
    begun = time.monotonic()
    try:
        server.engine = Engine(load(args, checkpoint))
    except (ValueError, OSError, KeyError) as problem:
        error("EngineCore", "core.py:1136", "EngineCore failed to start.")
        error("EngineCore", "core.py:1136", f"{type(problem).__name__}: {problem}")
        write(
            "APIServer",
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        )
        return False
    if stop.wait(float(os.environ.get("SPARKOPS_LAB_START_SECONDS", DEFAULT_START_SECONDS))):
        return False
    taken = time.monotonic() - begun
    info("EngineCore", "core.py:288", f"init engine (profile, create kv cache, warmup model) took {taken:.2f} seconds")
    info("APIServer", "api_server.py:598", f"Starting vLLM server on http://{args.host}:{args.port}")
    server.server_activate()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    web(f"Started server process [{os.getpid()}]")
    web("Waiting for application startup.")
    web("Application startup complete.")
    return True


def run(args: Namespace, server: Server, stop: threading.Event) -> None:
    """Serve until `stop`, then close the listener and let requests end: in their time, or cut short."""
    engine = server.engine
    signal.signal(signal.SIGUSR1, lambda *_: engine.wedged.clear() if engine.wedged.is_set() else engine.wedged.set())
    signal.signal(signal.SIGUSR2, lambda *_: die(engine, stop))
    stop.wait()
    if engine.dead.is_set():
        error(
            "APIServer",
            "async_llm.py:671",
            "AsyncLLM output_handler failed. EngineDeadError: EngineCore encountered an issue.",
        )
        time.sleep(DEATH_SECONDS)
    web("Shutting down")
    server.shutdown()
    server.server_close()
    engine.drain(args.shutdown_timeout)
    engine.stopping.set()
    engine.drain(CUT_SECONDS)
    web("Application shutdown complete.")
    web(f"Finished server process [{os.getpid()}]")


def die(engine: Engine, stop: threading.Event) -> None:
    """The engine's process is gone: no more tokens, /health answers 503."""
    engine.dead.set()
    engine.stopping.set()
    stop.set()
