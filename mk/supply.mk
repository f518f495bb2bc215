# What is shipped: a list of its parts, its known holes, and a tarball of all of it.
.PHONY: sbom dist dist-same vulnerabilities

SBOM ?= $(BUILD)/sandbox.cdx.json
sbom: ## write the parts that are shipped, with versions and licences, as CycloneDX into build/sandbox.cdx.json
	@mkdir -p $(BUILD)
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(GO) run ./packaging/sbom -version '$(VERSION)' \
	  -chdb-package @chdb/lib-linux-$(CHDB_ARCH)-gnu -chdb '$(CHDB_VERSION)' -chdb-sha512 '$(CHDB_SHA512)' > $(SBOM)

# The database of known holes is fetched from vuln.go.dev, which not every network
# reaches: so it is no part of `make check`, and says plainly that it has not looked.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULN_DB     ?= https://vuln.go.dev

vulnerabilities: ## look for known holes in what is linked, with govulncheck at a pinned version (needs vuln.go.dev)
	@GOBIN='$(CURDIR)/$(BUILD)/tools' $(GO) install $(GOVULNCHECK)
	@$(BUILD)/tools/govulncheck -db '$(VULN_DB)' $(addprefix ./cmd/,sandbox sandbox-shim sandbox-init sandbox-pod sandbox-logs) ./capi || { \
	  code=$$?; if [ $$code = 3 ]; then echo 'govulncheck has found holes' >&2; \
	  else echo 'nothing was looked at: govulncheck needs the database at $(VULN_DB) (VULN_DB names another, as file:///...)' >&2; fi; exit $$code; }
DIST_NAME := sandbox-$(VERSION)-linux-$(shell $(GO) env GOARCH)
DIST      ?= $(BUILD)/$(DIST_NAME).tar.gz
# Without it the link has an id that tells the directory it was made in.
dist: LIB_LDFLAGS := -buildid= -B=none
dist: programs sandbox-logs $(BUILD)/libsandbox.a $(BUILD)/libsandbox.so wheel ## pack programs, library, headers, documents and bindings into build/; the same commit gives the same bytes
	@stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && to="$$stage/$(DIST_NAME)" && mkdir "$$to" && \
	$(MAKE) --silent -o $(BUILD)/libsandbox.so -o $(BUILD)/libsandbox.a -o programs LIB_LDFLAGS='$(LIB_LDFLAGS)' \
	  install-programs install-lib install-cpp install-completions install-man install-openapi PREFIX=/ DESTDIR="$$to" && \
	install -m 755 $(BUILD)/sandbox-logs "$$to/libexec/sandbox/" && \
	$(MAKE) --silent sbom SBOM="$$to/share/doc/sandbox/sandbox.cdx.json" && \
	cp README.md CHANGELOG.md "$$to" && cp docs/*.md "$$to/share/doc/sandbox/" && \
	mkdir -p "$$to/share/sandbox/bindings" && cp -r examples_c "$$to/share/sandbox/" && cp $(BUILD)/python/*.whl "$$to/share/sandbox/bindings/" && \
	git ls-files -z bindings/node bindings/cpp deploy/kubernetes | xargs -0 cp --parents -t "$$to/share/sandbox" && \
	find "$$to" -type d -exec chmod 755 {} + && \
	tar --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --format=gnu -C "$$stage" -cf - $(DIST_NAME) | gzip -6n > $(DIST) && echo '$(DIST)'

dist-same: ## make the tarball in two fresh clones in different directories, and compare the bytes
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && \
	for at in one another/place; do \
	  git clone --quiet . "$$work/$$at" && env -u SANDBOX_HELPER_DIR $(MAKE) --silent -C "$$work/$$at" dist DIST="$$work/$$(basename $$at).tar.gz" >/dev/null || exit 1; done && \
	sha256sum "$$work"/*.tar.gz && cmp "$$work/one.tar.gz" "$$work/place.tar.gz" && echo 'the same bytes'
