"""Sources of hosts -> hosts with merged variables; patterns that choose among them."""

from sparkops.inventory.inventory import Inventory, NoMatch, load
from sparkops.inventory.merge import Host

__all__ = ["Host", "Inventory", "NoMatch", "load"]
