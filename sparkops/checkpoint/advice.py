"""What follows from a checkpoint's tensors: flags, patch and draft, and where files, index and config disagree.

The rules are what vLLM 0.24.0 was seen to do with each (FACTS §2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkops.checkpoint.headers import Index
from sparkops.checkpoint.inspect import Inspection
from sparkops.checkpoint.names import category, layer

GUARD = "qwen3_5-language-only-guard"
GUARDED = "Qwen3_5"


def advice(found: Inspection) -> list[str]:
    """Sentences, what is wrong first."""
    return [*_files(found), *_config(found), *_vision(found), *_draft(found)]


def _vision(found: Inspection) -> Iterator[str]:
    visual = found.count("vision")
    architectures = found.config.document.get("architectures") or []
    guarded = any(str(name).startswith(GUARDED) for name in architectures)
    if visual:
        yield f"do not pass --language-model-only: the {visual} visual tensors are there, so the tower must be built"
        if guarded:
            yield f"no patch: an engine with {GUARD} and that flag refuses a checkpoint with visual tensors"
    elif found.config.has_vision:
        yield (
            "pass --language-model-only: config.json declares a vision tower and no visual tensor is there; without "
            "the flag the engine ends with 'Following weights were not initialized from checkpoint: {visual...'"
        )
        if guarded:
            yield f"no patch needed: released vLLM 0.24 and 0.26 serve it with the flag alone ({GUARD} does no harm)"
    else:
        yield "do not pass --language-model-only: it is a text model, by its config and by its tensors"


def _draft(found: Inspection) -> Iterator[str]:
    declared, held = found.config.draft_layers, found.count("mtp")
    if held and not found.config.draft_layers:
        yield f"no draft: {held} mtp tensors are there, but config.json declares no MTP layer, so nothing loads them"
    elif held:
        yield (
            f"a draft is there ({held} mtp tensors): "
            '--speculative-config \'{"method":"mtp","num_speculative_tokens":3}\' uses it'
        )
        if not _draft_left_out(found):
            yield (
                "quantization_config.ignore does not match the draft, which is not quantized: "
                r'add "re:^mtp\\..*" (a plain "mtp" matches nothing)'
            )
    elif declared:
        yield (
            f"no draft: config.json declares {declared} MTP layer{'s' * (declared > 1)} and no mtp tensor is there; "
            "pass no --speculative-config, or give it a draft first: sparkops checkpoint graft-mtp"
        )


def lacking(found: Inspection, draft: int) -> list[str]:
    """What a copy that drafts `draft` tokens would miss, and the files that a start would."""
    lines = [f"{name} is missing: the index names it, and its bytes are not counted" for name in found.headers.missing]
    if draft and not found.count("mtp"):
        lines.append("no mtp tensor is there to draft with: sparkops checkpoint graft-mtp gives it a draft")
    return lines


def _draft_left_out(found: Inspection) -> bool:
    """Whether the engine knows that the draft is as trained, where the rest is quantized."""
    names = [one.name for one in found.headers.tensors() if category(one.name, found.config.layers) == "mtp"]
    ignored = found.config.quantization.get("ignore")
    if not isinstance(ignored, list) or any(re.search(r"weight_(packed|scale)", name) for name in names):
        return True
    modules = [name.rpartition(".")[0] for name in names if name.endswith("_proj.weight")]
    return all(any(_matches(str(entry), module) for entry in ignored) for module in modules)


def _matches(entry: str, module: str) -> bool:
    """compressed-tensors' rule: `re:` and a pattern that matches from the start, or the module's own name."""
    if not entry.startswith("re:"):
        return entry == module
    try:
        return re.match(entry[3:], module) is not None
    except re.error:
        return False


def _files(found: Inspection) -> Iterator[str]:
    headers = found.headers
    for name in headers.missing:
        yield f"{name} is missing: the index names it"
    if headers.index:
        for file in headers.ignored:
            yield f"{file.name} is ignored ({file.count:,} tensors): the index does not name it"
        yield from _index(headers.index, found)
    if headers.twice.count:
        yield f"tensors that two files hold: {headers.twice}"


def _index(index: Index, found: Inspection) -> Iterator[str]:
    if index.absent.count and not found.headers.missing:
        yield f"tensors that the index names and no file holds: {index.absent}"
    if index.unlisted.count:
        yield f"tensors that the index leaves out (the engine reads them all the same): {index.unlisted}"
    if index.misplaced.count:
        yield f"tensors that lie in another file than the index says: {index.misplaced}"
    if index.total_size not in (None, found.resident_bytes) and not found.headers.missing:
        yield f"the index says {index.total_size:,} bytes of tensors, and there are {found.resident_bytes:,}"


def _config(found: Inspection) -> Iterator[str]:
    config = found.config
    if not config.document:
        yield "there is no config.json: the engine can't load it, and all experts are taken to be read"
        return
    decoder = [
        number
        for one in found.headers.tensors()
        if category(one.name, config.layers) not in ("vision", "audio", "mtp")
        and (number := layer(one.name)) is not None
    ]
    layers = len(set(decoder))
    if config.layers is not None and layers != config.layers:
        yield f"config.json says {config.layers} layers, and tensors of {layers} are there"
    if found.experts and config.experts not in (None, found.experts):
        yield f"config.json says {config.experts} experts a layer, and tensors of {found.experts} are there"
    if found.experts and config.experts_per_token is None:
        yield "config.json does not say how many experts a token goes through: all are taken to be read"
