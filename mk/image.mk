# Images: the tests start a real registry.
PACKAGES += docker-registry
