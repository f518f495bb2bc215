# Images: the tests start a real registry, and podman runs what was exported.
PACKAGES += docker-registry podman procps runc
