"""What counts as healthy: the model, its context, a token, the right kernels, the KV cache, a golden answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.nodes import MODEL, Done, Nodes, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
PROMPT = "The capital of France is"
ENV = "/opt/sparkops/releases/vllm/current/env"
ASK = f"""
import json, urllib.request
body = json.dumps({{"model": "{MODEL}", "prompt": "{PROMPT}", "max_tokens": 64, "temperature": 0}}).encode()
request = urllib.request.Request("http://127.0.0.1:8000/v1/completions", body, {{"Content-Type": "application/json"}})
print(json.load(urllib.request.urlopen(request, timeout=10))["choices"][0]["text"])
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """spark-1 serves fp8; the recipe `golden` knows an answer that it was seen to give."""
    with lab(tmp_path_factory.mktemp("healthy") / "lab", 1) as nodes:
        nodes.sparkops("provision", "spark-1", "--recipe", "fp8")
        nodes.sparkops("deploy", "fp8", "spark-1")
        said = nodes.on("spark-1", "python3", "-c", ASK).split()
        recipes: dict[str, dict[str, object]] = {
            "golden": {"golden": {"prompt": PROMPT, "answer": " ".join(said[2:6])}},
            "strict": {"strict": True},
            # Its published figure is still that of fp8's 6 GiB.
            "pool": {"kv_cache_memory_bytes": 8 << 30, "strict": True},
        }
        (nodes.dir / "recipes").mkdir(exist_ok=True)
        for name, more in recipes.items():
            text = json.dumps({"name": name, "extends": "fp8", **more})
            (nodes.dir / f"recipes/{name}.yml").write_text(text)
        yield nodes


def deploy(nodes: Nodes, recipe: str, defect: str, rc: int) -> Done:
    env = json.dumps({"env": {"SPARKOPS_LAB_DEFECT": defect}})
    return nodes.sparkops("deploy", recipe, "spark-1", "-e", env, rc=rc)


@pytest.mark.parametrize(
    ("recipe", "defect", "said"),
    [
        ("fp8", "length", "max_model_len is 131,072, not 262,144"),
        ("fp8", "backend", "did not log 'Using TRITON Fp8 MoE backend"),
        ("strict", "kv", "KV cache has 307,915 tokens, not the 308,955"),
        ("golden", "garbage", f"to the prompt '{PROMPT}' it answers '!!!!"),
    ],
)
def test_what_starts_and_is_not_healthy_is_undone(node: Nodes, recipe: str, defect: str, said: str) -> None:
    done = deploy(node, recipe, defect, 1)
    message = done.failure("spark-1")["msg"]
    assert said in message, message
    assert "serves again" in message, message
    assert "!!!!" not in node.on("spark-1", "python3", "-c", ASK)


def test_another_size_of_the_cache_is_a_warning(node: Nodes) -> None:
    done = deploy(node, "fp8", "kv", 0)
    said = "the KV cache has 307,915 tokens, not the 308,955 that fit its pool"
    assert f"warning: spark-1: {said}" in done.err
    (told,) = [task for task in done.tasks() if task["module"] == "log_expect"]
    assert told["result"]["warnings"] == [said]
    env = json.dumps({"env": {"SPARKOPS_LAB_DEFECT": "kv"}})
    again = node.plain("deploy", "fp8", "spark-1", "-e", env)
    assert (again.rc, f"warning: spark-1: {said}" in again.out) == (0, True), again.out


def test_the_cache_is_compared_with_the_checkpoint_rather_than_with_what_was_published(node: Nodes) -> None:
    done = node.sparkops("deploy", "pool", "spark-1")
    (told,) = [task for task in done.tasks() if task["module"] == "log_expect"]
    assert (told["result"]["kv_cache_tokens"], told["result"]["warnings"]) == (412_980, [])


@pytest.mark.parametrize("verb", ["restart", "start", "rollback"])
def test_other_verbs_check_what_the_release_says(node: Nodes, verb: str) -> None:
    node.sparkops("deploy", "golden", "spark-1")
    if verb == "rollback":
        node.on("spark-1", "sh", "-c", f"echo SPARKOPS_LAB_DEFECT=garbage >> {ENV}")
        node.sparkops("deploy", "fp8", "spark-1")
    else:
        node.on("spark-1", "sh", "-c", f"echo SPARKOPS_LAB_DEFECT=garbage >> {ENV}")
    if verb == "start":
        node.sparkops("stop", "spark-1")
    failed = node.sparkops(verb, "spark-1", rc=1).failure("spark-1")
    assert "it answers '!!!!" in failed["msg"]
    node.on("spark-1", "sed", "-i", "/DEFECT/d", ENV)
    node.sparkops("restart", "spark-1")
