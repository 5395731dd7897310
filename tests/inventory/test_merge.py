"""Merging, against a plain statement of Ansible's precedence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkops.inventory.groups import Sources
from sparkops.inventory.merge import Merger

NAMES = ["a", "b", "c", "d", "e"]
variables = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 99))


@st.composite
def trees(draw: st.DrawFn) -> Sources:
    """Groups whose children have later names, so that there is no circle; hosts h0-h2 in any of them."""
    sources = Sources()
    for name in ("all", *NAMES):
        group = sources.group(name)
        for variable, value in draw(variables).items():
            group.inline.set(variable, value, None)
        group.priority = draw(st.integers(1, 2))
    for index, parent in enumerate(NAMES):
        for child in draw(st.lists(st.sampled_from(NAMES[index + 1 :]), unique=True)) if index < 4 else []:
            sources.add_child(parent, child, None)
    for number in range(3):
        host = sources.host(f"h{number}", None)
        for variable, value in draw(variables).items():
            host.inline.set(variable, value, None)
        for group_name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
            sources.add_host(group_name, host.name)
    sources.settle()
    return sources


def depth(sources: Sources, name: str) -> int:
    parents = [group for group in sources.groups.values() if name in group.children]
    return max((depth(sources, parent.name) + 1 for parent in parents), default=0)


@given(trees())
def test_the_strongest_layer_that_has_a_variable_gives_it(sources: Sources) -> None:
    for name, host in Merger(sources, []).hosts().items():
        inside = [group for group in sources.groups.values() if name in sources.members(group.name)]
        ranked = sorted(inside, key=lambda group: (depth(sources, group.name), group.priority, group.name))
        for variable in ("x", "y"):
            layers = [group.inline for group in ranked] + [sources.hosts[name].inline]
            values = [layer.vars[variable] for layer in layers if variable in layer.vars]
            assert host.vars.get(variable) == (values[-1] if values else None)


@given(trees())
def test_every_host_is_in_all_and_the_homeless_in_ungrouped(sources: Sources) -> None:
    assert set(sources.members("all")) == set(sources.hosts)
    homes = {host for name in NAMES for host in sources.members(name)}
    assert set(sources.members("ungrouped")) == set(sources.hosts) - homes
