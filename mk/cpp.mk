# The C++ interface: include/sandbox.hpp and include/sandbox/.
PACKAGES += nlohmann-json3-dev cmake

CXXFLAGS ?= -O2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
CPP_LINK := -L$(BUILD) -lsandbox -pthread

.PHONY: conformance-cpp

# Under the sanitizers, so that every case of the suite looks for leaks too.
conformance-cpp: $(BUILD)/conformance/cpp

$(BUILD)/conformance/cpp: bindings/cpp/conformance/driver.cpp $(wildcard include/*.h* include/sandbox/*.hpp) | $(BUILD)/libsandbox.so
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -g -O1 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all \
	  -Iinclude -o $@ $< $(CPP_LINK) -Wl,-rpath,'$$ORIGIN/..'
