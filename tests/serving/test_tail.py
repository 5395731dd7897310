"""A journal's end to one line."""

from __future__ import annotations

from sparkops.serving.tail import cause_of

HEAD = "Nov 30 14:27:04 spark-1 run[19]: "
ERROR = HEAD + "(EngineCore pid=19) ERROR 11-30 14:27:04 [core.py:9] "
LINES = [
    ERROR + "EngineCore failed to start.",
    ERROR
    + "ValueError: To serve at least one request with the model's max seq len (262144), (5.08 GiB KV cache is needed,"
    " which is larger than the available KV cache memory (4.0 GiB). Based on the available memory, the estimated"
    " maximum model length is 205920.",
    HEAD + "(APIServer pid=19) RuntimeError: Engine core initialization failed. See root cause above.",
]


def test_the_cause_is_named_and_not_its_echo() -> None:
    said = cause_of(LINES)
    assert "5.08" in said
    assert "--kv-cache-memory-bytes" in said
    assert "initialization failed" not in said


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert cause_of([]) == ""
