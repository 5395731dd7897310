"""A small stand-in for systemd's user manager, as far as sparkops' units use it (docs/adr/005)."""
