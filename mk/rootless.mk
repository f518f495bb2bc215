# Boxes of a user who is not root (docs/rootless.md).

PACKAGES += uidmap passt nftables iproute2
