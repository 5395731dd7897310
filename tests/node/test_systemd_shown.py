"""What a message shows of a journal: lines as the real engine (vLLM 0.24.0) has logged them."""

from __future__ import annotations

from sparkops.node.systemd import SHOWN_LINES, shown

RUN = "Nov 30 16:38:37 spark-1 run[1533]: "
CORE = RUN + "(EngineCore pid=1571) ERROR 11-30 16:38:35 [core.py:1231] "
CAUSE = CORE + "ValueError: Following weights were not initialized from checkpoint: {'visual.merger.norm.bias'}"
LAST = RUN + "(APIServer pid=1533) RuntimeError: Engine core initialization failed. See root cause above."
INSIDE = [
    RUN + '(APIServer pid=1533)   File "/opt/engine/vllm/v1/engine/utils.py", line 1272, in wait_for_engine_startup',
    RUN + "(APIServer pid=1533)     raise RuntimeError(",
    RUN + "(APIServer pid=1533)            ^^^^^^^^^^^^^^^^^^^^^",
    CORE + "    return func(*args, **kwargs)",
    RUN + '  File "/usr/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap',
    RUN + "(APIServer pid=1533) Traceback (most recent call last):",
]


def test_the_insides_of_tracebacks_do_not_push_out_what_they_are_of() -> None:
    assert shown([CAUSE, *INSIDE * 20, LAST]) == [CAUSE, LAST]


def test_the_last_lines() -> None:
    lines = [f"{RUN}line {number}" for number in range(50)]
    assert shown(lines) == lines[-SHOWN_LINES:]
    assert shown([]) == []
