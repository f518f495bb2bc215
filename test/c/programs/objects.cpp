// Every class of sandbox.hpp and every member, as they are meant to be used.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace std::chrono_literals;

#if __cplusplus >= 202002L
#include <ranges>
static_assert(std::ranges::input_range<sandbox::output>);
static_assert(std::ranges::input_range<sandbox::watch_events>);
#endif
static_assert(!std::is_copy_constructible_v<sandbox::runtime> && std::is_nothrow_move_constructible_v<sandbox::runtime>);
static_assert(!std::is_copy_constructible_v<sandbox::box> && std::is_nothrow_move_assignable_v<sandbox::box>);
static_assert(!std::is_copy_constructible_v<sandbox::watch> && std::is_nothrow_move_assignable_v<sandbox::watch>);
static_assert(!std::is_copy_constructible_v<sandbox::execution> && std::is_nothrow_move_assignable_v<sandbox::execution>);

// Texts that JSON has to escape arrive as they are.
static const std::string awkward = "\"quoted\" back\\slash \b\f\n\r\t\x01\x7f ä€😀 </script>";

static void options(sandbox::runtime &runtime) {
  sandbox::box_options o = small();
  o.name = "objects-" + std::to_string(getpid());
  o.network = sandbox::network::isolated;
  o.cpus = 1;
  o.disk_size_gb = 1;
  o.working_dir = "/tmp";
  o.env = {{"AWKWARD", awkward}, {"EMPTY", ""}};
  o.volumes = {{variable("SHARE"), "/mnt/share", true}};
  o.ports = {{80, 0, "127.0.0.1", sandbox::protocol::tcp}, {53, 0, "", sandbox::protocol::udp}};
  o.auto_remove = false;
  sandbox::box box = runtime.create(o);
  const std::string info = box.info();
  for (const char *part : {"\"cpus\":1", "\"memory_mib\":128", "\"disk_size_gb\":1", "\"working_dir\":\"/tmp\"", "\"read_only\":true",
                           "\"protocol\":\"Udp\"", "\"network\":\"Isolated\"", "\"auto_remove\":false"})
    CHECK(has(info, part));
  CHECK(box.run(script("printf %s \"$AWKWARD\"; pwd; ls /mnt/share; [ \"${EMPTY-unset}\" ] || echo empty")).out == awkward + "/tmp\nfile\nempty\n");
  CHECK(box.run({"printf", "%s", awkward}).out == awkward);
  box.stop();
  CHECK(has(runtime.info(o.name), "\"status\":\"" + std::string(sandbox::words::box_status::stopped) + "\""));
  box.start();
  CHECK(has(runtime.list(), box.id()) && has(box.metrics(), "memory_bytes"));
  CHECK(runtime.get(o.name).id() == box.id());
  runtime.remove(box.id(), true);
}

static void commands(sandbox::box &box) {
  std::string in(1 << 20, 'x');
  in[7] = '\0';
  sandbox::completed done = box.run({"cat"}, in);
  CHECK(done.exit_code == 0 && done.out == in && done.err.empty());
  CHECK(box.run({"true"}, in).exit_code == 0);  // it reads none of its input
  CHECK(box.run(script("kill -9 $$")).exit_code == -9);

  sandbox::command set = script("echo $COLOUR; pwd; id -u; cat");
  set.env = {{"COLOUR", "blue"}};
  set.working_dir = "/tmp";
  set.user = "1000";
  std::string out;
  CHECK(box.run(set, [&](sandbox::piece p) { out.append(p.bytes); }) == 0 && out == "blue\n/tmp\n1000\n");
}

static void executions(sandbox::box &box) {
  sandbox::command c = script("echo begin; read line; echo $line >&2; exit 3");
  c.open_stdin = true;
  sandbox::execution e = box.exec(c);
  CHECK(has(e.info(), e.id()) && has(box.execs(), e.id()));
  char buffer[16];
  std::optional<sandbox::piece> first = e.read(buffer, sizeof buffer);
  CHECK(first && first->stream == sandbox::stream::out && first->bytes == "begin\n");
  e.write("typed\n");
  e.close_stdin();
  std::string err;
  for (sandbox::piece p : e.pieces()) err.append(p.bytes);
  CHECK(err == "typed\n" && !e.read(buffer, sizeof buffer) && e.wait() == 3 && e.wait() == 3);

  sandbox::command terminal = script("stty size; read x; stty size");
  terminal.terminal = sandbox::terminal_size{100, 30};
  sandbox::execution t = box.exec(terminal);
  std::string screen(t.read(buffer, sizeof buffer)->bytes);
  t.resize({90, 20});
  t.write("\n");
  for (sandbox::piece p : t.pieces()) screen.append(p.bytes);
  CHECK(has(screen, "30 100") && has(screen, "20 90") && t.wait() == 0);
}

// Descriptors, for programs with an event loop of their own.
static void descriptors(sandbox::box &box) {
  sandbox::execution e = box.exec({"echo", "polled"});
  pollfd out{e.fd(sandbox::stream::out), POLLIN, 0}, end{e.fd(sandbox::stream::exit), POLLIN, 0};
  char buffer[16];
  CHECK(poll(&out, 1, -1) == 1 && read(out.fd, buffer, sizeof buffer) == 7);
  CHECK(poll(&end, 1, -1) == 1 && e.wait() == 0);
}

static void ends(sandbox::box &box) {
  sandbox::execution e = box.exec(script("trap 'exit 8' USR1; echo up; while :; do sleep 0.01; done"));
  char buffer[16];
  CHECK(e.read(buffer, sizeof buffer));
  e.signal(SIGUSR1);
  CHECK(e.wait() == 8);

  sandbox::execution killed = box.exec({"sleep", "1000"});
  killed.kill(1s);
  THROWS(canceled_error, killed.wait());

  sandbox::execution left = box.exec(script("trap 'echo kept; exit' USR1; echo up; while :; do sleep 0.01; done"));
  CHECK(left.read(buffer, sizeof buffer)->bytes == "up\n");
  const std::string id = left.id();
  left.detach();
  sandbox::execution again = box.attach(id);
  again.signal(SIGUSR1);
  CHECK(again.read(buffer, sizeof buffer)->bytes == "kept\n" && again.wait() == 0);

  // What is thrown in between comes out, and the command is gone.
  bool came = false;
  try {
    box.run(script("echo a; sleep 1000"), [](sandbox::piece) { throw std::runtime_error("mine"); });
  } catch (const std::runtime_error &mine) {
    came = !std::strcmp(mine.what(), "mine");
  }
  CHECK(came && box.run(script("pidof sleep || echo none")).out == "none\n");
}

static void files(sandbox::box &box) {
  const std::string dir = variable("SHARE");
  long long seen = 0;
  box.copy_in(dir + "/file", "/in/", [&](const sandbox::progress &p) { seen = p.done; });
  CHECK(seen > 0);
  box.copy_out("/in/file", dir + "/back");
  std::stringstream back;
  back << std::ifstream(dir + "/back").rdbuf();
  CHECK(back.str() == "shared\n");

  // A callback that throws is not called again; what it threw comes out when C has returned.
  int calls = 0;
  bool came = false;
  try {
    box.copy_in(dir + "/file", "/in/again", [&](const sandbox::progress &) { calls++; throw 42; });
  } catch (int thrown) {
    came = thrown == 42;
  }
  CHECK(came && calls == 1 && box.run({"cat", "/in/file"}).out == "shared\n");
}

static void in_place(sandbox::box &box) {
  CHECK(has(box.make_directory("/place/deep", 02770), "\"created\":true") && has(box.make_directory("/place"), "\"created\":false"));
  box.run(script("echo 12345 > /place/deep/data; ln -s /nosuch /place/link"));
  CHECK(has(box.stat_file("/place/deep/data"), "\"size\":6") && has(box.stat_file("/place/link"), std::string(sandbox::words::file_type::symlink)));
  CHECK(box.file_exists("/place/link") && !box.file_exists("/nosuch"));

  sandbox::file_list list("/place", 2);
  list.page_size = 1;
  CHECK(has(box.list_files(list), "\"/place/deep\"") && has(box.list_files(list), "\"next_page_token\":\"ZGVlcA\""));
  list.page_token = "ZGVlcA";
  list.page_size = 0;
  CHECK(has(box.list_files(list), "/place/deep/data") && has(box.list_files(list), "\"next_page_token\":null"));

  CHECK(has(box.move_file("/place/deep/data", "/place/moved"), "\"/place/moved\""));
  THROWS(invalid_argument_error, box.remove_file("/place"));
  CHECK(has(box.remove_file("/place", true), "\"removed\":4"));
  THROWS(not_found_error, box.stat_file("/place"));
}

static void rights(sandbox::box &box) {
  const std::string file = variable("SHARE") + "/file";
  box.run(script("mkdir -m 777 /open; mkdir -m 700 /closed; echo x > /closed/file"));
  box.copy_in(file, "/open/file", {}, "1000:7");
  CHECK(has(box.stat_file("/open/file"), "\"uid\":1000") && has(box.make_directory("/open/made", 0700, "1000"), "\"uid\":1000"));
  THROWS(permission_denied_error, box.copy_in(file, "/closed/", {}, "1000"));
  THROWS(permission_denied_error, box.copy_out("/closed/file", file, {}, "1000"));
  THROWS(permission_denied_error, box.file_exists("/closed/file", "1000"));
  THROWS(permission_denied_error, box.move_file("/open/file", "/closed/file", "1000"));
  THROWS(permission_denied_error, box.remove_file("/closed", true, "1000"));
  THROWS(permission_denied_error, box.watch_files("/closed", false, "1000"));
}

static void watches(sandbox::box &box) {
  box.make_directory("/watched/below");
  sandbox::watch watch = box.watch_files("/watched", true);
  THROWS(timeout_error, watch.read_for(0s));
  THROWS(timeout_error, watch.read_for(20ms));
  THROWS(invalid_argument_error, watch.read_for(-1s));
  pollfd ready{watch.fd(), POLLIN, 0};
  CHECK(poll(&ready, 1, 0) == 0);
  box.run(script("cd /watched; mkfifo below/p; mv below/p q; rm q; rmdir below; cd /; rmdir /watched"));
  CHECK(poll(&ready, 1, -1) == 1);
  const std::optional<std::string> first = watch.read();
  CHECK(first && has(*first, std::string(sandbox::words::file_event_type::create)) && has(*first, "/watched/below/p"));
  std::vector<std::string> rest;
  for (const std::string &event : watch.events()) rest.push_back(event);
  CHECK(rest.size() == 4 && has(rest[0], "\"from\":\"/watched/below/p\"") && has(rest[3], std::string(sandbox::words::watch_end::removed)));
  CHECK(!watch.read() && !watch.read_for(0s));
}

static void ports(sandbox::box &box) {
  box.run(script("nc -ll -p 8080 -e cat </dev/null >/dev/null 2>&1 & until netstat -ltn | grep -q :8080; do :; done"));
  const int fd = box.connect(8080);
  char back[4];
  CHECK(write(fd, "ping", 4) == 4 && read(fd, back, 4) == 4 && std::memcmp(back, "ping", 4) == 0);
  CHECK(shutdown(fd, SHUT_WR) == 0 && read(fd, back, 4) == 0 && close(fd) == 0);
  CHECK(has(THROWS(network_error, box.connect(1)), "port 1"));
  THROWS(invalid_argument_error, box.connect(65536));
  THROWS(invalid_argument_error, box.share(8080, -1s));
  if (!on_server()) THROWS(unsupported_error, box.share(8080));
}

// Snapshots of a box of the image "objects:1".
static void snapshots(sandbox::runtime &runtime) {
  sandbox::box_options o("objects:1");
  o.network = sandbox::network::none;
  sandbox::box box = runtime.create(o);
  CHECK(has(box.snapshot("objects-good:1"), "\"paused_ms\":"));
  box.run({"touch", "/new", "/newer"});
  CHECK(has(box.diff("objects-good:1"), "{\"path\":\"/new\",\"kind\":\"added\"}"));
  CHECK(has(box.diff({}, 1), "\"next_page_token\":\""));
  box.rollback("objects-good:1");
  CHECK(box.run({"ls", "/new"}).exit_code != 0);
  CHECK(has(box.clone("{\"snapshot\":\"objects-good:1\",\"options\":{\"memory_mib\":96}}"), "\"memory_mib\":96"));
  CHECK(has(runtime.snapshots(box.id()), "objects-good:1"));
  THROWS(already_exists_error, box.snapshot("objects:1"));
  THROWS(not_found_error, box.rollback("nobody:1"));
  THROWS(invalid_argument_error, box.metrics_series("yesterday"));
  if (on_server())
    CHECK(has(box.metrics_series({}, {}, 60s), "\"step_seconds\":60"));
  else
    THROWS(unsupported_error, box.metrics_series());
  runtime.remove_image("objects-good:1", true);
  box.stop();
}

static void images(sandbox::runtime &runtime) {
  bool unpacked = false;
  const std::string image = runtime.import_image("objects:1", variable("ROOTFS"), [&](const sandbox::progress &p) {
    unpacked |= p.stage == sandbox::words::image_stage::done;
  });
  CHECK(unpacked != on_server() && has(image, "objects:1") && has(runtime.images(), "objects:1"));
  bool came = false;
  try {
    runtime.import_image("objects:2", variable("ROOTFS"), [](const sandbox::progress &) { throw 42; });
  } catch (int thrown) {
    came = thrown == 42;
  }
  CHECK(came != on_server());
  sandbox::box_options o("objects:1");
  o.network = sandbox::network::none;
  sandbox::box box = runtime.create(o);
  CHECK(has(box.info(), "objects:1"));
  box.stop();
  snapshots(runtime);
  runtime.export_image("objects:1", "objects.tar");
  CHECK(has(runtime.import_image("objects:3", "objects.tar"), "objects:3") && unlink("objects.tar") == 0);
  runtime.remove_image("objects:3");
  THROWS(invalid_argument_error, runtime.push_image("objects:1"));
  THROWS(network_error, runtime.push_image("objects:1", "127.0.0.1:1/x:1"));
  runtime.remove_image("objects:1");
  runtime.remove_image("objects:2", true);
}

#ifdef __cpp_lib_expected
static void expected(sandbox::runtime &runtime) {
  auto none = sandbox::attempt([&] { return runtime.get("nobody"); });
  CHECK(!none && none.error().code() == SANDBOX_NOT_FOUND && has(none.error().what(), "nobody"));
  auto box = sandbox::attempt([&] { return runtime.create(small()); });
  CHECK(box && sandbox::attempt([&] { box->stop(); }));
}
#endif

int main() {
  CHECK(has(sandbox::version(), "."));
  sandbox::runtime::local(variable("SANDBOX_HOME"), {{"docker.io", "", "", "", ""}, {"127.0.0.1:5000", "http", "me", "pass\"word", ""}}).close();
  sandbox::runtime runtime = opened();
  options(runtime);
  sandbox::box box = runtime.create(small());
  commands(box);
  executions(box);
  descriptors(box);
  ends(box);
  files(box);
  in_place(box);
  rights(box);
  watches(box);
  ports(box);
  images(runtime);
#ifdef __cpp_lib_expected
  expected(runtime);
#endif
  CHECK(has(runtime.metrics(), "boxes_created_total"));
  runtime.shutdown(1);
  THROWS(stopped_error, runtime.create(small()));
  return 0;
}
