"""Boxes for the packages that agents are made with. Each module needs its package: the extra of the same name."""
