# The REST API under generated requests. Schemathesis comes from PyPI into a
# directory of the build.
SCHEMATHESIS := 4.32.5
API_CASES    ?= 20000

PACKAGES += python3-venv

.PHONY: fuzz-api

fuzz-api: root deps build deps-logs $(BUILD)/schemathesis/$(SCHEMATHESIS) ## hold a daemon to docs/openapi.yaml with API_CASES (20000) generated requests (needs root)
	test/fuzz/api.sh $(BUILD) $(API_CASES)

$(BUILD)/schemathesis/$(SCHEMATHESIS):
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet schemathesis==$(SCHEMATHESIS)
	touch $@
