"""/metrics: the engine's counters as Prometheus text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core import Engine

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(engine: Engine, model: str) -> str:
    """All series, with vLLM's names and labels."""
    series = [
        gauge("num_requests_running", "Number of requests in model execution batches.", engine.running),
        gauge("num_requests_waiting", "Number of requests waiting to be processed.", 0),
        gauge(
            "kv_cache_usage_perc",
            "KV-cache usage. 1 means 100 percent usage.",
            engine.resident_tokens / engine.loaded.kv_tokens,
        ),
        counter("prompt_tokens", "Number of prefill tokens processed.", engine.prompt_tokens),
        counter("generation_tokens", "Number of generation tokens processed.", engine.generated_tokens),
    ]
    if engine.loaded.draft_tokens:
        drafted = engine.drafts * engine.loaded.draft_tokens
        series += [
            counter("spec_decode_num_drafts", "Number of spec decoding drafts.", engine.drafts),
            counter("spec_decode_num_draft_tokens", "Number of draft tokens.", drafted),
            counter("spec_decode_num_accepted_tokens", "Number of accepted tokens.", engine.accepted_tokens),
        ]
    lines = []
    for name, kind, text, value in series:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name}{labels(model)} {value}"]
    for histogram, (count, total) in engine.seconds.items():
        name = f"vllm:{histogram}"
        lines += [f"# HELP {name} Histogram of {histogram}.", f"# TYPE {name} histogram"]
        lines += [
            f"{name}_bucket{labels(model, le='+Inf')} {float(count)}",
            f"{name}_count{labels(model)} {float(count)}",
        ]
        lines += [f"{name}_sum{labels(model)} {total}"]
    name = "vllm:request_success_total"
    lines += [f"# HELP {name} Count of successfully processed requests.", f"# TYPE {name} counter"]
    lines += [
        f"{name}{labels(model, finished_reason=reason)} {float(count)}" for reason, count in engine.finished.items()
    ]
    return "\n".join(lines) + "\n"


def gauge(name: str, text: str, value: float) -> tuple[str, str, str, float]:
    """A value that goes up and down."""
    return f"vllm:{name}", "gauge", text, float(value)


def counter(name: str, text: str, value: int) -> tuple[str, str, str, float]:
    """A value that only grows; Prometheus ends its name in _total."""
    return f"vllm:{name}_total", "counter", text, float(value)


def labels(model: str, **more: str) -> str:
    """A series' labels."""
    pairs = {"engine": "0", **more, "model_name": model}
    return "{" + ",".join(f'{key}="{escape(value)}"' for key, value in pairs.items()) + "}"


def escape(value: str) -> str:
    """A label's value as Prometheus quotes it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
