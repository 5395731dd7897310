"""What a start that failed logs. As with the real engine, the line that says why stands far above the end."""

from __future__ import annotations

from ..logger import error, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INIT_FAILED = "Engine core initialization failed. See root cause above."
SITE = "/engine/lib/python3/site-packages/vllm"
# File and function of each call, as deep as with vLLM 0.24.0.
CORE = (
    *(("v1/engine/core.py", "run_engine_core"), ("tracing/otel.py", "sync_wrapper"), ("v1/engine/core.py", "__init__")),
    *(("v1/engine/core.py", "__init__"), ("tracing/otel.py", "sync_wrapper"), ("v1/executor/abstract.py", "__init__")),
    *(("v1/executor/uniproc_executor.py", "_init_executor"), ("v1/worker/gpu_worker.py", "load_model")),
    *(("v1/worker/gpu_model_runner.py", "load_model"), ("model_loader/base_loader.py", "load_model")),
)
SERVER = (
    *(("entrypoints/cli/main.py", "main"), ("entrypoints/cli/serve.py", "cmd"), ("entrypoints/launcher.py", "run")),
    *(("entrypoints/launcher.py", "wrapper"), ("entrypoints/openai/api_server.py", "run_server")),
    *(("entrypoints/openai/api_server.py", "run_server_worker"), ("contextlib.py", "__aenter__")),
    *(("entrypoints/openai/api_server.py", "build_async_engine_client"), ("contextlib.py", "__aenter__")),
    *(("v1/engine/async_llm.py", "from_vllm_config"), ("v1/engine/async_llm.py", "__init__")),
    *(("tracing/otel.py", "sync_wrapper"), ("v1/engine/core_client.py", "make_async_mp_client")),
    *(("tracing/otel.py", "sync_wrapper"), ("v1/engine/core_client.py", "__init__")),
    *(("v1/engine/core_client.py", "__init__"), ("contextlib.py", "__exit__")),
    *(("v1/engine/utils.py", "launch_core_engines"), ("v1/engine/utils.py", "wait_for_engine_startup")),
)


def tell(problem: Exception) -> None:
    """The engine's process says why, twice; the server's that there was something."""
    error("EngineCore", "core.py:1231", "EngineCore failed to start.")
    last = f"{type(problem).__name__}: {problem}"
    for line in account(CORE, last):
        error("EngineCore", "core.py:1231", line)
    for line in ["Process EngineCore:", *account(CORE, last)]:
        write("EngineCore", line)
    for line in account(SERVER, f"RuntimeError: {INIT_FAILED} Failed core proc(s): {{}}"):
        write("APIServer", line)


def account(calls: Sequence[tuple[str, str]], last: str) -> list[str]:
    """A traceback's lines."""
    lines = ["Traceback (most recent call last):"]
    for number, (file, function) in enumerate(calls, 1):
        lines += [
            f'  File "{SITE}/{file}", line {number}00, in {function}',
            "    return call(*args)",
            "    " + "^" * 17,
        ]
    return [*lines, last]
