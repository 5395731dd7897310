"""Entry point of the console script `vllm`."""

from __future__ import annotations

from .args import parser


def main() -> int:
    """Returns the exit status."""
    args = parser().parse_args()
    from ..server import serve

    return serve(args)


if __name__ == "__main__":
    raise SystemExit(main())
