# The Debian package of the command line and the service.
.PHONY: deb deb-pack deb-lint

DEB_ARCH          ?= $(shell dpkg --print-architecture 2>/dev/null)
# Who has made the commit that is packed.
DEB_MAINTAINER    ?= $(shell git log -1 --format='%an <%ae>' 2>/dev/null)
# The time of the commit, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
DEB_VERSION       ?= $(VERSION)~$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y%m%d%H%M%S)
DEB               ?= $(BUILD)/sandbox_$(DEB_VERSION)_$(DEB_ARCH).deb

# How hard it is packed, from 0 to 9.
DEB_LEVEL         ?= 3

PACKAGES += binutils

deb: programs sandbox-logs ## build the Debian package, with a systemd service, into build/
	@$(MAKE) --silent deb-pack

deb-pack:
	@stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && \
	$(MAKE) --silent install-programs install-completions install-man install-openapi PREFIX=/usr DESTDIR="$$stage" && \
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) DEB_ARCH='$(DEB_ARCH)' DEB_MAINTAINER='$(DEB_MAINTAINER)' DEB_LEVEL=$(DEB_LEVEL) \
	  packaging/deb/build.sh $(BUILD) "$$stage" '$(DEB_VERSION)' '$(DEB)' && echo '$(DEB)'

# The name of the host in the address of who has made a commit is their own.
deb-lint: deb ## hold the Debian package to lintian
	@$(MAKE) deps PACKAGES=lintian
	lintian --allow-root --fail-on error --suppress-tags bogus-mail-host '$(DEB)'
