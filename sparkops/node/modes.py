"""File modes as people write them: octal ("0644") and symbolic ("u=rwX,go=r"), read as Ansible reads them."""

from __future__ import annotations

from sparkops.node.api import Failure

# Where a person's rwx bits are, and the special bit that is theirs: setuid, setgid, sticky.
SHIFT = {"u": 6, "g": 3, "o": 0}
SPECIAL = {"u": ("s", 0o4000), "g": ("s", 0o2000), "o": ("t", 0o1000)}
RWX = {"r": 4, "w": 2, "x": 1}


def mode_bits(mode: str, current: int, is_folder: bool, umask: int) -> int:
    """The bits (0 to 07777) that `mode` gives a path whose bits are `current`. Raises Failure for a bad mode."""
    if mode[:1].isdigit():
        try:
            bits = int(mode, 8)
        except ValueError:
            raise bad(mode) from None
        if bits > 0o7777:
            raise bad(mode)
        return bits
    for clause in mode.split(","):
        current = apply_clause(mode, clause.strip(), current, is_folder, umask)
    return current


def bad(mode: str) -> Failure:
    """The Failure for a mode that can't be read."""
    return Failure(f'mode {mode!r} is neither octal ("0644") nor symbolic ("u=rw,go=r")')


def apply_clause(mode: str, clause: str, bits: int, is_folder: bool, umask: int) -> int:
    """One clause, such as `ug+rw` or `o=r-w`: who, then operators with their permissions."""
    start = next((at for at, letter in enumerate(clause) if letter in "+-="), -1)
    who, rest = clause[:start], clause[start:]
    if start < 0 or any(letter not in "ugoa" for letter in who):
        raise bad(mode)
    # Without a who it is everyone, less the umask.
    mask = 0o7777 if who else 0o7777 & ~umask
    people = "ugo" if not who or "a" in who else who
    while rest:
        operator, rest = rest[0], rest[1:]
        end = next((at for at, letter in enumerate(rest) if letter in "+-="), len(rest))
        letters, rest = rest[:end], rest[end:]
        wanted = covered = 0
        for person in people:
            wanted |= wanted_bits(mode, letters, person, bits, is_folder)
            covered |= 7 << SHIFT[person] | SPECIAL[person][1]
        wanted &= mask
        if operator == "+":
            bits |= wanted
        elif operator == "-":
            bits &= ~wanted
        else:
            bits = bits & ~covered | wanted
    return bits


def wanted_bits(mode: str, letters: str, person: str, bits: int, is_folder: bool) -> int:
    """The bits that letters such as `rwX`, `s` or `g` (the group's present ones) mean for one person."""
    if letters in SHIFT:
        return (bits >> SHIFT[letters] & 7) << SHIFT[person]
    wanted = 0
    for letter in letters:
        if letter in RWX:
            wanted |= RWX[letter] << SHIFT[person]
        elif letter == "X":
            wanted |= 1 << SHIFT[person] if is_folder or bits & 0o111 else 0
        elif letter in "st":
            owned, bit = SPECIAL[person]
            wanted |= bit if letter == owned else 0
        else:
            raise bad(mode)
    return wanted
