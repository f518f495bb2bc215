# The C library, its header, examples and tests.
BUILDS   += $(BUILD)/libsandbox.so
CHECKS   += abi
INSTALLS += install-lib

SOVERSION := 0
VERSION   := $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' core/runtime.go)
CFLAGS    ?= -O2 -Wall -Wextra -Werror
EXAMPLES  := $(patsubst examples_c/%.c,$(BUILD)/examples/%,$(wildcard examples_c/*.c))

.PHONY: $(BUILD)/libsandbox.so $(BUILD)/libsandbox.a examples abi test-c install-lib

# Go's cache decides what is to be done. The version script hides all but the
# names of the header; the link carries the name that programs look for.
$(BUILD)/libsandbox.so:
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 $(GO) build -trimpath -buildmode=c-shared -o $@ \
	  -ldflags '-s -w $(LIB_LDFLAGS) -extldflags "-Wl,--version-script=$(CURDIR)/capi/exports.map -Wl,-soname,libsandbox.so.$(SOVERSION) -Wl,--wrap=pthread_getattr_np"' ./capi
	@rm -f $(BUILD)/libsandbox.h
	@ln -sfn libsandbox.so $@.$(SOVERSION)

# The same for programs that carry it in themselves. A plain build leaves it out,
# because it is linked anew each time and few need it.
$(BUILD)/libsandbox.a:
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 $(GO) build -trimpath -buildmode=c-archive -o $@ -ldflags '-s -w' ./capi
	@rm -f $(BUILD)/libsandbox.h

examples: $(EXAMPLES) ## build the C examples into build/examples/

$(BUILD)/examples/%: examples_c/%.c include/sandbox.h | $(BUILD)/libsandbox.so
	@mkdir -p $(@D)
	$(CC) -std=c99 -pedantic $(CFLAGS) -Iinclude -o $@ $< -L$(BUILD) -lsandbox -Wl,-rpath,'$$ORIGIN/..'

abi: ## hold the header, the exported names and the version script to each other
	$(GO) test -count=1 -run TestABI ./test/c

test-c: ## run the C and Python tests of the library (needs root)
	$(GO) test -count=1 ./test/c

install-lib: $(BUILD)/libsandbox.so $(BUILD)/libsandbox.a
	install -d '$(DESTDIR)$(PREFIX)/lib/pkgconfig' '$(DESTDIR)$(PREFIX)/include'
	install -m 755 $< '$(DESTDIR)$(PREFIX)/lib/libsandbox.so.$(VERSION)'
	ln -sfn libsandbox.so.$(VERSION) '$(DESTDIR)$(PREFIX)/lib/libsandbox.so.$(SOVERSION)'
	ln -sfn libsandbox.so.$(SOVERSION) '$(DESTDIR)$(PREFIX)/lib/libsandbox.so'
	install -m 644 $(BUILD)/libsandbox.a '$(DESTDIR)$(PREFIX)/lib/'
	install -m 644 include/sandbox.h '$(DESTDIR)$(PREFIX)/include/'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' capi/sandbox.pc.in > '$(DESTDIR)$(PREFIX)/lib/pkgconfig/sandbox.pc'
	chmod 644 '$(DESTDIR)$(PREFIX)/lib/pkgconfig/sandbox.pc'
