"""Which kernels the experts would run on."""

from __future__ import annotations

from ..model_executor.models.interfaces import has_defect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# By the quantization's format: what vLLM calls it, the backend it picks on a GB10, and those it could pick.
KINDS = {
    "": ("Unquantized", "FlashInfer CUTLASS", ["FlashInfer TRTLLM", "FlashInfer CUTLASS", "TRITON"]),
    "float-quantized": ("Fp8", "TRITON", ["FLASHINFER_CUTLASS", "DEEPGEMM", "TRITON", "MARLIN"]),
    "nvfp4-pack-quantized": ("NvFp4", "FLASHINFER_CUTLASS", ["FLASHINFER_TRTLLM", "FLASHINFER_CUTLASS", "MARLIN"]),
}


def backend_line(config: dict[str, Any], wanted: str) -> str:
    """The log line that names the backend; `wanted` is --moe-backend. Raises ValueError for one that it can't use."""
    kind, chosen, candidates = KINDS[config.get("quantization_config", {}).get("format", "")]
    if wanted != "auto":
        names = {name.lower().replace(" ", "_"): name for name in candidates}
        if wanted not in names:
            raise ValueError(
                f"moe_backend='{wanted}' is not supported for {kind} MoE; expected one of {sorted(names)}."
            )
        chosen = names[wanted]
    if has_defect("backend"):
        chosen = candidates[-1] if chosen != candidates[-1] else candidates[0]
    quoted = f"'{chosen}'" if kind == "NvFp4" else chosen
    return f"Using {quoted} {kind} MoE backend out of potential backends: {candidates}"
