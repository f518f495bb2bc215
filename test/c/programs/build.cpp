// Images that are built of recipes.
#include <poll.h>

#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"

using namespace std::chrono_literals;

#if __cplusplus >= 202002L
#include <ranges>
static_assert(std::ranges::input_range<sandbox::build_events>);
#endif
static_assert(!std::is_copy_constructible_v<sandbox::image_build> && std::is_nothrow_move_assignable_v<sandbox::image_build>);

static sandbox::build_options of(const char *recipe) {
  sandbox::build_options o;
  o.recipe = recipe;
  return o;
}

static void whole(sandbox::runtime &runtime) {
  sandbox::build_options o = of("FROM base\nARG A\nRUN echo \"$A\"\nLABEL a=b\n");
  o.name = "built:1";
  o.args = {{"A", "a \"quoted\" text"}};
  o.network = sandbox::network::none;
  o.memory_mib = 64;
  std::vector<std::string> events;
  sandbox::image_build build = runtime.start_build(o);
  pollfd p = {build.fd(), POLLIN, 0};
  CHECK(poll(&p, 1, 60000) == 1);
  std::string printed;
  for (const std::string &event : build.events()) {
    if (has(event, "\"type\":\"" + std::string(sandbox::words::build_event_type::output))) printed += event;
    events.push_back(event);
  }
  CHECK(has(printed, "a \\\"quoted\\\" text\\n") && has(events.back(), "\"type\":\"end\",\"image\":{\"name\":\"built:1\""));
  CHECK(!build.read() && has(build.wait(), "\"labels\":{\"a\":\"b\"}"));
  CHECK(has(runtime.build_image(o), "\"built:1\""));
}

static void failures(sandbox::runtime &runtime) {
  THROWS(invalid_argument_error, runtime.start_build(of("FROM base\nRUM x\n")));
  THROWS(not_found_error, runtime.build_image(of("FROM base\nCOPY nothing /\n")));
  THROWS(image_error, runtime.build_image(of("FROM base\nRUN exit 3\n")));
  sandbox::build_options endless = of("FROM base\nRUN sleep 1000\n");
  endless.timeout = 300ms;
  THROWS(timeout_error, runtime.build_image(endless));
  endless.timeout = -1s;
  THROWS(invalid_argument_error, runtime.build_image(endless));

  sandbox::image_build build = runtime.start_build(of("FROM base\nRUN echo on; sleep 1000\n"));
  while (!has(build.read_for(60s).value(), "\"data\":\"on"));
  THROWS(timeout_error, build.read_for(0s));
  build.close();
  const auto begin = std::chrono::steady_clock::now();
  while (runtime.list() != "[]") CHECK(on_server() && std::chrono::steady_clock::now() - begin < 60s);  // it ends when the server notices
}

int main() {
  sandbox::runtime runtime = opened();
  runtime.import_image("base", variable("ROOTFS"));
  whole(runtime);
  failures(runtime);
}
