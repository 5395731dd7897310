"""The architectures that can be served."""
