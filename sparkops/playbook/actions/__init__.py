"""Modules that the controller carries out itself, one file each: `Args`, and `act(args, scope) -> Acted`.

They are looked up by file name, as the node's are. An argument annotated `Condition` reaches `act` as it is written.
"""
