// The driver of the conformance suite in C++: test/conformance/DRIVERS.md.
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sandbox.hpp>
#include <string>
#include <vector>

namespace {

using json = nlohmann::json;

// What this driver holds.
struct state {
  sandbox::runtime runtime{nullptr};
  std::map<std::string, sandbox::execution> executions;
  std::vector<sandbox::watch> watches;
};

// get returns a member, or what stands for it where it is absent or null.
template <class T>
T get(const json &from, const char *name, T absent = {}) {
  const auto found = from.find(name);
  return found == from.end() || found->is_null() ? absent : found->get<T>();
}

std::optional<int> number(const json &from, const char *name) {
  const auto found = from.find(name);
  if (found == from.end() || found->is_null()) return std::nullopt;
  return found->get<int>();
}

std::string encoded(const std::string &bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t j = 0; j < 3; j++) group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; j++) text += i + j > bytes.size() ? '=' : digits[group >> (18 - 6 * j) & 63];
  }
  return text;
}

std::string decoded(const std::string &text) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (char c : text) {
    if (c == '=') break;
    group = group << 6 | static_cast<unsigned>(digits.find(c));
    if ((bits += 6) >= 8) bytes += static_cast<char>(group >> (bits -= 8) & 255);
  }
  return bytes;
}

sandbox::environment environment(const json &from) { return get<sandbox::environment>(from, "env"); }

sandbox::health_check health(const json &from) {
  sandbox::health_check h;
  h.test = get<std::vector<std::string>>(from, "test");
  const auto time = [&](const char *name) -> std::optional<std::chrono::milliseconds> {
    if (const auto ms = number(from, name)) return std::chrono::milliseconds(*ms);
    return std::nullopt;
  };
  h.interval = time("interval_ms");
  h.timeout = time("timeout_ms");
  h.start_period = time("start_period_ms");
  h.start_interval = time("start_interval_ms");
  h.retries = number(from, "retries");
  return h;
}

sandbox::box_options options(const json &from) {
  sandbox::box_options o(get<std::string>(from, "image"));
  o.rootfs_path = get<std::string>(from, "rootfs_path");
  o.name = get<std::string>(from, "name");
  o.cpus = number(from, "cpus");
  o.memory_mib = number(from, "memory_mib");
  o.disk_size_gb = number(from, "disk_size_gb");
  o.ttl_seconds = number(from, "ttl_seconds");
  o.idle_seconds = number(from, "idle_seconds");
  o.on_expiry = get<std::string>(from, "on_expiry");
  o.auto_start = get(from, "auto_start", false);
  o.seccomp = get<std::string>(from, "seccomp");
  o.allow_unenforced_limits = get(from, "allow_unenforced_limits", false);
  const json main = get<json>(from, "command", json::array());
  o.image_command = main == "image";
  if (main.is_array()) o.command = main.get<std::vector<std::string>>();
  o.restart = get<std::string>(from, "restart");
  o.stop_with_command = get(from, "stop_with_command", false);
  if (from.contains("healthcheck")) o.healthcheck = health(from.at("healthcheck"));
  o.working_dir = get<std::string>(from, "working_dir");
  o.env = environment(from);
  for (const json &v : get<json>(from, "volumes", json::array()))
    o.volumes.push_back({get<std::string>(v, "host_path"), get<std::string>(v, "guest_path"), get(v, "read_only", false), get<std::string>(v, "claim")});
  if (get<std::string>(from, "network") == "None") o.network = sandbox::network::none;
  for (const json &p : get<json>(from, "ports", json::array()))
    o.ports.push_back({get(p, "guest_port", 0), get(p, "host_port", 0), get<std::string>(p, "host_ip"),
                       get<std::string>(p, "protocol") == "Udp" ? sandbox::protocol::udp : sandbox::protocol::tcp});
  const auto remove = from.find("auto_remove");
  if (remove != from.end() && !remove->is_null()) o.auto_remove = remove->get<bool>();
  return o;
}

json failure(const sandbox::error &e);

json start(state &s, const json &from) {
  sandbox::command c(get<std::vector<std::string>>(from, "cmd"));
  c.env = environment(from);
  c.working_dir = get<std::string>(from, "working_dir");
  c.user = get<std::string>(from, "user");
  c.timeout = std::chrono::milliseconds(get(from, "timeout_ms", 0));
  c.open_stdin = from.contains("stdin");
  if (get(from, "tty", false)) c.terminal = sandbox::terminal_size{};
  sandbox::execution e = s.runtime.get(from.at("box")).exec(c);
  if (c.open_stdin) {
    e.write(decoded(from.at("stdin")));
    e.close_stdin();
  }
  std::string id = e.id();
  s.executions.emplace(id, std::move(e));
  return {{"id", id}};
}

json wait(sandbox::execution &e) {
  std::string out, err;
  for (sandbox::piece p : e.pieces()) (p.stream == sandbox::stream::err ? err : out).append(p.bytes);
  json answer = {{"exit_code", nullptr}, {"stdout", encoded(out)}, {"stderr", encoded(err)}, {"failure", nullptr}};
  try {
    answer["exit_code"] = e.wait();
  } catch (const sandbox::error &failed) {
    answer["failure"] = failure(failed);
    if (failed.exit_code()) answer["exit_code"] = *failed.exit_code();
  }
  return answer;
}

json open(state &s, const json &from) {
  const std::string url = get<std::string>(from, "url");
  s.runtime = url.empty() ? sandbox::runtime::local()
                          : sandbox::runtime::remote(url, get<std::string>(from, "api_key"), get<std::string>(from, "path_prefix"));
  return nullptr;
}

sandbox::box box(state &s, const json &from) { return s.runtime.get(from.at("box")); }

sandbox::execution &execution(state &s, const json &from) { return s.executions.at(from.at("exec")); }

using operation = std::function<json(state &, const json &)>;

// done makes an operation of a function that returns nothing.
template <class F>
operation done(F f) {
  return [f](state &s, const json &a) {
    f(s, a);
    return nullptr;
  };
}

// shown makes an operation of a function that returns a document.
template <class F>
operation shown(F f) {
  return [f](state &s, const json &a) { return json::parse(f(s, a)); };
}

std::string text(const json &a, const char *name) { return get<std::string>(a, name); }

bool flag(const json &a, const char *name) { return get(a, name, false); }

// list answers with the files of a page.
json list(state &s, const json &a) {
  sandbox::file_list l(text(a, "path"), get(a, "depth", 1));
  l.user = text(a, "user");
  return json::parse(box(s, a).list_files(l)).at("files");
}

json watch(state &s, const json &a) {
  s.watches.push_back(box(s, a).watch_files(text(a, "path"), flag(a, "recursive"), text(a, "user")));
  return {{"watch", s.watches.size() - 1}};
}

// code runs code and answers with all of its events.
json code(state &s, const json &a) {
  sandbox::code c(text(a, "code"));
  c.language = text(a, "language");
  c.context = text(a, "context");
  const auto env = get<std::map<std::string, std::string>>(a, "env");
  c.env.assign(env.begin(), env.end());
  c.timeout = std::chrono::milliseconds(get(a, "timeout_ms", 0));
  json events = json::array();
  sandbox::code_run run = box(s, a).start_code(c);
  for (const std::string &event : run.events()) events.push_back(json::parse(event));
  return events;
}

// image_build builds an image and answers with all events.
json image_build(state &s, const json &a) {
  sandbox::build_options o;
  o.context = text(a, "context");
  if (a.contains("recipe")) o.recipe = text(a, "recipe");
  o.name = text(a, "name");
  o.target = text(a, "target");
  const auto args = get<std::map<std::string, std::string>>(a, "args");
  o.args.assign(args.begin(), args.end());
  o.no_cache = flag(a, "no_cache");
  o.timeout = std::chrono::milliseconds(get(a, "timeout_ms", 0));
  json events = json::array();
  sandbox::image_build build = s.runtime.start_build(o);
  for (const std::string &event : build.events()) events.push_back(json::parse(event));
  build.wait();
  return events;
}

std::string create_context(state &s, const json &a) {
  sandbox::context_options o;
  o.language = text(a, "language");
  o.working_dir = text(a, "working_dir");
  o.user = text(a, "user");
  const auto env = get<std::map<std::string, std::string>>(a, "env");
  o.env.assign(env.begin(), env.end());
  return box(s, a).create_context(o);
}

const std::map<std::string, operation> operations = {
    {"open", open},
    {"close", done([](state &s, const json &) { s.runtime.close(); })},
    {"version", [](state &, const json &) { return sandbox::version(); }},
    {"metrics", shown([](state &s, const json &) { return s.runtime.metrics(); })},
    {"shutdown", done([](state &s, const json &a) { s.runtime.shutdown(get(a, "timeout_seconds", 0)); })},
    {"create", shown([](state &s, const json &a) { return s.runtime.create(options(a)).info(); })},
    {"get", shown([](state &s, const json &a) { return s.runtime.info(text(a, "box")); })},
    {"list", shown([](state &s, const json &) { return s.runtime.list(); })},
    {"box_metrics", shown([](state &s, const json &a) { return box(s, a).metrics(); })},
    {"start", done([](state &s, const json &a) { box(s, a).start(); })},
    {"stop", done([](state &s, const json &a) { box(s, a).stop(); })},
    {"pause", done([](state &s, const json &a) { box(s, a).pause(get(a, "reclaim", false)); })},
    {"update", done([](state &s, const json &a) { box(s, a).update(a.at("changes").dump()); })},
    {"resume", done([](state &s, const json &a) { box(s, a).resume(); })},
    {"snapshot", shown([](state &s, const json &a) { return box(s, a).snapshot(text(a, "name")); })},
    {"clone", shown([](state &s, const json &a) {
       json what = a;
       what.erase("op");
       what.erase("box");
       return box(s, a).clone(what.dump());
     })},
    {"rollback", done([](state &s, const json &a) { box(s, a).rollback(text(a, "snapshot")); })},
    {"diff", [](state &s, const json &a) { return json::parse(box(s, a).diff(text(a, "from"))).at("changes"); }},
    {"snapshots", shown([](state &s, const json &a) { return s.runtime.snapshots(text(a, "box")); })},
    {"remove", done([](state &s, const json &a) { s.runtime.remove(text(a, "box"), get(a, "force", false)); })},
    {"exec_start", start},
    {"exec_wait", [](state &s, const json &a) { return wait(execution(s, a)); }},
    {"exec_info", shown([](state &s, const json &a) { return execution(s, a).info(); })},
    {"exec_kill", done([](state &s, const json &a) { execution(s, a).kill(std::chrono::milliseconds(get(a, "grace_ms", 2000))); })},
    {"exec_signal", done([](state &s, const json &a) { execution(s, a).signal(a.at("signal")); })},
    {"exec_list", shown([](state &s, const json &a) { return box(s, a).execs(); })},
    {"copy_in", done([](state &s, const json &a) { box(s, a).copy_in(text(a, "host_path"), text(a, "box_path"), {}, text(a, "user")); })},
    {"copy_out", done([](state &s, const json &a) { box(s, a).copy_out(text(a, "box_path"), text(a, "host_path"), {}, text(a, "user")); })},
    {"stat_file", shown([](state &s, const json &a) { return box(s, a).stat_file(text(a, "path"), text(a, "user")); })},
    {"list_files", list},
    {"make_directory", shown([](state &s, const json &a) { return box(s, a).make_directory(text(a, "path"), get(a, "mode", 0755), text(a, "user")); })},
    {"move_file", shown([](state &s, const json &a) { return box(s, a).move_file(text(a, "from"), text(a, "to"), text(a, "user")); })},
    {"remove_file", shown([](state &s, const json &a) { return box(s, a).remove_file(text(a, "path"), flag(a, "recursive"), text(a, "user")); })},
    {"watch_start", watch},
    {"watch_read", shown([](state &s, const json &a) { return s.watches.at(a.at("watch")).read_for(std::chrono::seconds(30)).value_or("null"); })},
    {"code", code},
    {"image_build", image_build},
    {"context_create", shown(create_context)},
    {"context_list", shown([](state &s, const json &a) { return box(s, a).contexts(); })},
    {"context_interrupt", shown([](state &s, const json &a) { return box(s, a).interrupt_context(text(a, "context")); })},
    {"context_restart", shown([](state &s, const json &a) { return box(s, a).restart_context(text(a, "context")); })},
    {"context_remove", done([](state &s, const json &a) { box(s, a).remove_context(text(a, "context")); })},
    {"image_list", shown([](state &s, const json &) { return s.runtime.images(); })},
    {"image_import", shown([](state &s, const json &a) { return s.runtime.import_image(text(a, "name"), text(a, "source")); })},
    {"image_remove", done([](state &s, const json &a) { s.runtime.remove_image(text(a, "reference"), get(a, "force", false)); })},
};

// class_of returns the name of a failure's class.
const char *class_of(const sandbox::error &e) {
#define CLASS(name) \
  if (dynamic_cast<const sandbox::name *>(&e)) return #name
  CLASS(internal_error);
  CLASS(not_found_error);
  CLASS(already_exists_error);
  CLASS(invalid_state_error);
  CLASS(invalid_argument_error);
  CLASS(config_error);
  CLASS(storage_error);
  CLASS(image_error);
  CLASS(network_error);
  CLASS(execution_error);
  CLASS(stopped_error);
  CLASS(engine_error);
  CLASS(unsupported_error);
  CLASS(resource_exhausted_error);
  CLASS(timeout_error);
  CLASS(canceled_error);
  CLASS(unauthenticated_error);
  CLASS(permission_denied_error);
  CLASS(unavailable_error);
#undef CLASS
  return "error";
}

json failure(const sandbox::error &e) {
  return {{"code", e.code()}, {"class", class_of(e)}, {"message", e.what()}};
}

json answer(state &s, const std::string &line) {
  const json asked = json::parse(line);
  try {
    return {{"result", operations.at(asked.at("op"))(s, asked)}};
  } catch (const sandbox::error &e) {
    return {{"failure", failure(e)}};
  }
}

}  // namespace

int main() {
  state s;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(s, line).dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  return 0;
}
