// Code in contexts of a box that has the languages of this host.
#include <poll.h>

#include <chrono>
#include <cmath>
#include <thread>
#include <type_traits>
#include <vector>

#include "check.hpp"

using namespace std::chrono_literals;

#if __cplusplus >= 202002L
#include <ranges>
static_assert(std::ranges::input_range<sandbox::code_events>);
#endif
static_assert(!std::is_copy_constructible_v<sandbox::code_run> && std::is_nothrow_move_assignable_v<sandbox::code_run>);

static sandbox::box made(sandbox::runtime &runtime) {
  sandbox::box_options o = small();
  o.volumes = {{"/usr", "/usr", true}, {"/usr/lib", "/lib", true}, {"/usr/lib64", "/lib64", true}};
  return runtime.create(o);
}

static std::vector<std::string> all(sandbox::code_run run) {
  std::vector<std::string> events;
  for (const std::string &event : run.events()) events.push_back(event);
  return events;
}

static void runs(sandbox::box &box) {
  sandbox::code c("import os; print(os.environ['A'], flush=True); x = 41; x + 1");
  c.env = {{"A", "a \"quoted\" text"}};
  const std::vector<std::string> events = all(box.start_code(c));
  CHECK(events.size() == 4 && has(events[0], "\"fresh\":true") && has(events[1], "a \\\"quoted\\\" text\\n") && has(events[2], "\"42\""));
  CHECK(has(events[3], "\"status\":\"" + std::string(sandbox::words::code_status::succeeded) + "\""));

  sandbox::code endless("while True: pass");
  endless.timeout = 300ms;
  CHECK(has(all(box.start_code(endless)).back(), std::string(sandbox::words::code_status::timed_out)));

  endless.timeout = 0s;
  sandbox::code_run run = box.start_code(endless);
  CHECK(has(run.read().value_or(""), std::string(sandbox::words::code_event_type::start)));
  pollfd ready{run.fd(), POLLIN, 0};
  CHECK(poll(&ready, 1, 0) == 0);
  THROWS(timeout_error, run.read_for(0s));
  THROWS(timeout_error, run.read_for(20ms));
  THROWS(invalid_argument_error, run.read_for(-1s));
  CHECK(has(box.interrupt_context("python"), "\"id\":\"python\""));
  CHECK(poll(&ready, 1, -1) == 1);
  CHECK(has(run.read().value_or(""), "KeyboardInterrupt") && has(run.read().value_or(""), "interrupted"));
  CHECK(!run.read() && !run.read_for(0s));
  run = box.start_code(endless); /* its end interrupts it */
  run.close();
  CHECK(has(all(box.start_code(sandbox::code("x")))[1], "\"41\""));
}

static void contexts(sandbox::box &box) {
  sandbox::context_options o;
  o.language = "bash";
  o.working_dir = "/tmp";
  o.user = "1000";
  o.env = {{"A", "made"}};
  const std::string document = box.create_context(o);
  const std::string id = document.substr(document.find("ctx_"), 24);
  CHECK(has(document, "\"working_dir\":\"/tmp\"") && has(box.contexts(), id));
  sandbox::code c("echo $A $B $UID $PWD; B=kept");
  c.context = id;
  CHECK(has(all(box.start_code(c))[1], "made 1000 /tmp\\n"));
  CHECK(has(all(box.start_code(c))[1], "made kept 1000 /tmp\\n"));
  CHECK(has(box.restart_context(id), id));
  CHECK(has(all(box.start_code(c))[1], "made 1000 /tmp\\n"));
  box.remove_context(id);
  THROWS(not_found_error, box.remove_context(id));
  THROWS(not_found_error, box.interrupt_context(id));
  THROWS(not_found_error, box.restart_context(id));
  THROWS(not_found_error, box.start_code(c));
  CHECK(has(box.create_context(), "python"));
}

static void refused(sandbox::box &box) {
  const std::string nul("a\0b", 3);
  THROWS(invalid_argument_error, box.start_code(sandbox::code(nul)));
  THROWS(invalid_argument_error, box.remove_context(nul));
  sandbox::code c("");
  c.language = "cobol";
  THROWS(invalid_argument_error, box.start_code(c));
  c.language = "";
  for (const double seconds : {-1.0, 1e9, std::nan("")}) {
    c.timeout = std::chrono::duration<double>(seconds);
    THROWS(invalid_argument_error, box.start_code(c));
  }
  sandbox::context_options o;
  o.env = {{"PATH", "/nowhere"}};
  CHECK(has(THROWS(execution_error, box.create_context(o)), "python3"));
  box.close();
  THROWS(invalid_argument_error, box.start_code(sandbox::code("")));
  THROWS(invalid_argument_error, box.contexts());
}

static void closed_meanwhile(sandbox::box &box) {
  for (int i = 0; i < 5; i++) {
    sandbox::code_run run = box.start_code(sandbox::code("import time\nwhile True: time.sleep(1)"));
    CHECK(run.read());
    std::thread reader([&] {
      try {
        (void)run.read();
        not_so(__FILE__, __LINE__, "a read that was ended returned");
      } catch (const sandbox::canceled_error &) {
      } catch (const sandbox::invalid_argument_error &) {
      }
    });
    if (i % 2) std::this_thread::yield();
    run.close();
    reader.join();
    THROWS(invalid_argument_error, run.read());
    THROWS(invalid_argument_error, run.fd());
  }
}

int main() {
  sandbox::runtime runtime = opened();
  sandbox::box box = made(runtime);
  runs(box);
  contexts(box);
  closed_meanwhile(box);
  refused(box);
}
