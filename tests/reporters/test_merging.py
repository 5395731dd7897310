from __future__ import annotations

from sparkops.reporters.merging import Merger, stamp

DAY = "2026-11-30T"


def test_stamps_of_other_zones() -> None:
    here = stamp(f"{DAY}12:00:00.500000+0100 node unit[1]: x")
    assert here == stamp(f"{DAY}11:00:00.500000+00:00 node unit[1]: x")
    assert stamp("\ttraceback") is None
    assert stamp("") is None


def test_lines_are_merged_by_time_and_a_host_keeps_its_order() -> None:
    merger = Merger(0)
    one = [f"{DAY}12:00:01.0+0000 a", "  belongs to it", f"{DAY}12:00:03.0+0000 c", f"{DAY}12:00:00.0+0000 clock back"]
    merger.add("one", one, 0)
    merger.add("two", [f"{DAY}13:00:02.0+0100 b"], 0)
    assert [line[-1:] for _, line in merger.rest()] == ["a", "t", "b", "c", "k"]
    assert merger.rest() == []


def test_a_line_waits_for_older_ones() -> None:
    merger = Merger(0.4)
    merger.add("one", [f"{DAY}12:00:02.0+0000 later"], now=1.0)
    assert merger.due(1.3) == []
    merger.add("two", [f"{DAY}12:00:01.0+0000 earlier", f"{DAY}12:00:05.0+0000 last"], now=1.35)
    assert [line.split()[1] for _, line in merger.due(1.5)] == ["earlier", "later"]
    assert merger.due(1.6) == []
    assert [host for host, _ in merger.due(2.0)] == ["two"]
