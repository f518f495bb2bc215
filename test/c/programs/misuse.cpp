// What is wrong is refused with the exception of its case, and nothing crashes.
#include <chrono>
#include <fstream>
#include <thread>

#include "check.hpp"

using namespace std::chrono_literals;

static void closed(sandbox::runtime &runtime) {
  sandbox::box box = runtime.create(small());
  sandbox::execution e = box.exec({"sleep", "1000"});
  sandbox::execution moved = std::move(e);
  char buffer[4];
  THROWS(invalid_argument_error, e.read(buffer, sizeof buffer));  // NOLINT: used after the move on purpose
  THROWS(invalid_argument_error, e.wait());
  CHECK(e.id().empty());
  moved.kill();
  for (int i = 0; i < 2; i++) {
    moved.close();
    THROWS(invalid_argument_error, moved.info());
    THROWS(invalid_argument_error, moved.write("x"));
    THROWS(invalid_argument_error, moved.close_stdin());
    THROWS(invalid_argument_error, moved.kill());
    THROWS(invalid_argument_error, moved.signal(15));
    THROWS(invalid_argument_error, moved.resize({1, 1}));
    THROWS(invalid_argument_error, moved.fd(sandbox::stream::out));
    THROWS(invalid_argument_error, moved.detach());
    THROWS(invalid_argument_error, moved.pieces().begin());
  }

  sandbox::box other = std::move(box);
  THROWS(invalid_argument_error, box.info());  // NOLINT: used after the move on purpose
  other.stop();
  for (int i = 0; i < 2; i++) {
    other.close();
    CHECK(other.id().empty());
    THROWS(invalid_argument_error, other.info());
    THROWS(invalid_argument_error, other.metrics());
    THROWS(invalid_argument_error, other.start());
    THROWS(invalid_argument_error, other.stop());
    THROWS(invalid_argument_error, other.run({"true"}));
    THROWS(invalid_argument_error, other.exec({"true"}));
    THROWS(invalid_argument_error, other.execs());
    THROWS(invalid_argument_error, other.attach("exec_a"));
    THROWS(invalid_argument_error, other.copy_in("/a", "/a"));
    THROWS(invalid_argument_error, other.copy_out("/a", "/a"));
    THROWS(invalid_argument_error, other.file_exists("/a"));
    THROWS(invalid_argument_error, other.list_files(sandbox::file_list("/")));
    THROWS(invalid_argument_error, other.watch_files("/"));
  }
}

static void closed_runtime() {
  sandbox::runtime runtime = opened();
  sandbox::box box = runtime.create(small());
  sandbox::execution e = box.exec({"sleep", "1000"});
  for (int i = 0; i < 2; i++) {
    runtime.close();
    THROWS(invalid_argument_error, runtime.list());
    THROWS(invalid_argument_error, runtime.create(small()));
    THROWS(invalid_argument_error, runtime.images());
    THROWS(invalid_argument_error, box.info());  // its box is gone with it
    THROWS(invalid_argument_error, e.wait());
  }
}

// A close in another thread ends a read, whichever comes first.
static void closed_meanwhile(sandbox::box &box) {
  for (int i = 0; i < 20; i++) {
    sandbox::execution e = box.exec({"sleep", "1000"});
    sandbox::execution handle = box.exec({"true"});
    std::thread reader([&] {
      char buffer[4];
      try {
        (void)e.read(buffer, sizeof buffer);
        not_so(__FILE__, __LINE__, "a read that was ended returned");
      } catch (const sandbox::canceled_error &) {          // it waited
      } catch (const sandbox::invalid_argument_error &) {  // it came later
      }
    });
    if (i % 2) std::this_thread::yield();
    e.close();
    reader.join();
    handle.wait();
  }
}

// The same of a watch.
static void watch_closed_meanwhile(sandbox::box &box) {
  box.make_directory("/quiet");
  for (int i = 0; i < 20; i++) {
    sandbox::watch watch = box.watch_files("/quiet");
    std::thread reader([&] {
      try {
        (void)watch.read();
        not_so(__FILE__, __LINE__, "a read that was ended returned");
      } catch (const sandbox::canceled_error &) {
      } catch (const sandbox::invalid_argument_error &) {
      }
    });
    if (i % 2) std::this_thread::yield();
    watch.close();
    reader.join();
  }
}

static void arguments(sandbox::runtime &runtime, sandbox::box &box) {
  const std::string nul("a\0b", 3);
  CHECK(has(THROWS(invalid_argument_error, runtime.get(nul)), "NUL"));
  THROWS(not_found_error, runtime.get(""));
  THROWS(invalid_argument_error, box.run({nul}));
  THROWS(invalid_argument_error, box.run({"echo", nul}));
  THROWS(invalid_argument_error, box.run(sandbox::command(std::vector<std::string>{})));
  THROWS(invalid_argument_error, box.copy_in(nul, "/a"));
  THROWS(invalid_argument_error, box.copy_in("/etc/hostname", "relative"));
  THROWS(invalid_argument_error, box.stat_file(nul));
  THROWS(invalid_argument_error, box.stat_file("/a/../b"));
  THROWS(invalid_argument_error, box.stat_file("/", nul));
  THROWS(invalid_argument_error, box.list_files(sandbox::file_list("/", 65)));
  THROWS(invalid_argument_error, box.make_directory("/a", 010000));
  THROWS(invalid_argument_error, box.watch_files("/etc/passwd"));
  THROWS(invalid_argument_error, box.run(sandbox::command{"\xff\xfe"}));
  sandbox::command late{"true"};
  late.timeout = -1s;
  THROWS(invalid_argument_error, box.run(late));
  sandbox::box_options o = small();
  o.env = {{"A=B", "c"}};
  CHECK(has(THROWS(invalid_argument_error, runtime.create(o)), "env"));
  o = small();
  o.cpus = 0;
  o.memory_mib = 1;
  const std::string both = THROWS(invalid_argument_error, runtime.create(o));
  CHECK(has(both, "cpus") && has(both, "memory_mib"));
  THROWS(invalid_argument_error, runtime.create(sandbox::box_options()));
  sandbox::execution e = box.exec({"sleep", "1000"});
  THROWS(invalid_state_error, e.write("x"));
  THROWS(invalid_state_error, e.resize({1, 1}));
  THROWS(invalid_argument_error, e.signal(65));
  THROWS(invalid_argument_error, e.kill(-1s));
  char buffer[1];
  THROWS(invalid_argument_error, e.read(buffer, 0));
  e.kill(0s);
}

static void classes(sandbox::runtime &runtime, sandbox::box &box) {
  THROWS(not_found_error, runtime.get("nobody"));
  THROWS(not_found_error, box.attach("exec_aaaaaaaaaaaaaaaaaaaa"));
  THROWS(not_found_error, box.copy_out("/nothing", "/tmp/nothing"));
  THROWS(invalid_state_error, box.start());
  THROWS(config_error, sandbox::runtime::remote("ftp://host"));
  THROWS(config_error, sandbox::runtime::open("no-such-profile"));
  THROWS(unavailable_error, sandbox::runtime::remote("unix:///nowhere.sock").list());
  THROWS(config_error, sandbox::runtime::local("", {{"", "", "", "", ""}}));
  THROWS(image_error, runtime.import_image("a:1", variable("SHARE") + "/file"));
  THROWS(execution_error, box.run({"no-such-command"}));
  sandbox::command slow{"sleep", "1000"};
  slow.timeout = 20ms;
  THROWS(timeout_error, box.run(slow));
  sandbox::box_options named = small();
  named.name = "misuse";
  sandbox::box first = runtime.create(named);
  THROWS(already_exists_error, runtime.create(named));
  try {
    box.run({"/etc/passwd"});
    not_so(__FILE__, __LINE__, "it ran");
  } catch (const sandbox::error &e) {
    CHECK(e.exit_code() == 126 && e.code() == SANDBOX_EXECUTION);
  }
}

// Each code has its class; one of a later library is internal_error.
static void codes() {
#define CODE(code, class) CHECK(has(THROWS(class, sandbox::detail::raise(code, "why")), "why"))
  CODE(SANDBOX_INTERNAL, internal_error);
  CODE(SANDBOX_NOT_FOUND, not_found_error);
  CODE(SANDBOX_ALREADY_EXISTS, already_exists_error);
  CODE(SANDBOX_INVALID_STATE, invalid_state_error);
  CODE(SANDBOX_INVALID_ARGUMENT, invalid_argument_error);
  CODE(SANDBOX_CONFIG, config_error);
  CODE(SANDBOX_STORAGE, storage_error);
  CODE(SANDBOX_IMAGE, image_error);
  CODE(SANDBOX_NETWORK, network_error);
  CODE(SANDBOX_EXECUTION, execution_error);
  CODE(SANDBOX_STOPPED, stopped_error);
  CODE(SANDBOX_ENGINE, engine_error);
  CODE(SANDBOX_UNSUPPORTED, unsupported_error);
  CODE(SANDBOX_RESOURCE_EXHAUSTED, resource_exhausted_error);
  CODE(SANDBOX_TIMEOUT, timeout_error);
  CODE(SANDBOX_CANCELED, canceled_error);
  CODE(SANDBOX_UNAUTHENTICATED, unauthenticated_error);
  CODE(SANDBOX_PERMISSION_DENIED, permission_denied_error);
  CODE(SANDBOX_UNAVAILABLE, unavailable_error);
  CODE(static_cast<SandboxErrorCode>(37), internal_error);
}

int main() {
  sandbox::runtime runtime = opened();
  sandbox::box box = runtime.create(small());
  closed(runtime);
  closed_runtime();
  closed_meanwhile(box);
  watch_closed_meanwhile(box);
  arguments(runtime, box);
  classes(runtime, box);
  codes();
  return 0;
}
