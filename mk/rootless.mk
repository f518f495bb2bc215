# Boxes of a user who is not root (docs/rootless.md).

PACKAGES += uidmap passt slirp4netns nftables iproute2
