# The C++ interface: include/sandbox.hpp with include/sandbox/.
INSTALLS += install-cpp
PACKAGES += clang cmake nlohmann-json3-dev
NEEDS    += $(BUILD)/conformance/cpp

.PHONY: conformance-cpp test-cpp install-cpp

test-cpp: ## run the C++ tests of the library (needs root)
	$(GO) test -count=1 -run TestCPP ./test/c

conformance-cpp: $(BUILD)/conformance/cpp

# Under the sanitizers, so that every case of the suite looks for leaks too, and without
# optimization, which doubles the time that the compiler takes.
$(BUILD)/conformance/cpp: bindings/cpp/conformance/driver.cpp $(wildcard include/*.h* include/sandbox/*.hpp) | $(BUILD)/libsandbox.so
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -g -O0 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all \
	  -Iinclude -o $@ $< -L$(BUILD) -lsandbox -pthread -Wl,-rpath,'$$ORIGIN/..'

install-cpp: install-lib
	install -d '$(DESTDIR)$(PREFIX)/include/sandbox' '$(DESTDIR)$(PREFIX)/lib/cmake/Sandbox'
	install -m 644 include/sandbox.hpp '$(DESTDIR)$(PREFIX)/include/'
	install -m 644 include/sandbox/*.hpp '$(DESTDIR)$(PREFIX)/include/sandbox/'
	for name in SandboxConfig SandboxConfigVersion; do \
	  sed -e 's|@VERSION@|$(VERSION)|' -e 's|@SOVERSION@|$(SOVERSION)|' bindings/cpp/cmake/$$name.cmake.in > '$(DESTDIR)$(PREFIX)/lib/cmake/Sandbox/'$$name.cmake && \
	  chmod 644 '$(DESTDIR)$(PREFIX)/lib/cmake/Sandbox/'$$name.cmake || exit 1; done
