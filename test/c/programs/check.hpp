// What the test programs in C++ share.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <sandbox.hpp>
#include <string>

#define CHECK(condition) ((condition) ? (void)0 : not_so(__FILE__, __LINE__, #condition))

[[noreturn]] inline void not_so(const char *file, int line, const char *condition) {
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
  std::exit(1);
}

// THROWS(class, expression): it throws exactly that class, with its code and a message.
#define THROWS(class, ...) thrown<sandbox::class>(__FILE__, __LINE__, #class ": " #__VA_ARGS__, [&] { (void)(__VA_ARGS__); })

template <class E, class F>
std::string thrown(const char *file, int line, const char *what, F &&f) {
  try {
    f();
  } catch (const E &e) {
    if (E("").code() == e.code() && *e.what()) return e.what();
    not_so(file, line, what);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "threw: %s\n", e.what());
    not_so(file, line, what);
  }
  std::fprintf(stderr, "threw nothing\n");
  not_so(file, line, what);
}

inline bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

inline std::string variable(const char *name) {
  const char *value = std::getenv(name);
  CHECK(value);
  return value;
}

// A runtime on the server SERVER, or else on the home.
inline bool on_server() { return std::getenv("SERVER"); }

inline sandbox::runtime opened() {
  return on_server() ? sandbox::runtime::remote(variable("SERVER")) : sandbox::runtime::local();
}

// The options of a small box.
inline sandbox::box_options small() {
  sandbox::box_options o;
  o.rootfs_path = variable("ROOTFS");
  o.network = sandbox::network::none;
  o.memory_mib = 128;
  return o;
}

inline sandbox::command script(const std::string &text) { return {"sh", "-c", text}; }

#endif
