/* What the other headers share, and no program uses. */
#ifndef SANDBOX_DETAIL_HPP
#define SANDBOX_DETAIL_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sandbox.h"
#include "options.hpp"
#include "words.hpp"

namespace sandbox {
namespace detail {

/* Frees the message of a call that failed. */
class failure {
 public:
  failure() = default;
  failure(const failure &) = delete;
  failure &operator=(const failure &) = delete;
  ~failure() { sandbox_error_free(&error_); }

  CSandboxError *out() noexcept { return &error_; }
  [[noreturn]] void raise(SandboxErrorCode code, std::optional<int> exit_code = std::nullopt) const {
    detail::raise(code, error_.message ? error_.message : "", exit_code);
  }

 private:
  CSandboxError error_{SANDBOX_OK, nullptr};
};

/* Calls f with room for a failure, and throws it. */
template <class F>
void check(F &&f) {
  failure failed;
  if (SandboxErrorCode code = f(failed.out()); code != SANDBOX_OK) failed.raise(code);
}

/* A string of the library, which is freed with it. */
class owned_text {
 public:
  explicit owned_text(char *text = nullptr) noexcept : text_(text) {}
  owned_text(const owned_text &) = delete;
  owned_text &operator=(const owned_text &) = delete;
  ~owned_text() { sandbox_free_string(text_); }

  char **out() noexcept { return &text_; }
  std::string str() const { return text_ ? text_ : ""; }

 private:
  char *text_;
};

/* Returns the string that f gives. */
template <class F>
std::string document(F &&f) {
  owned_text text;
  check([&](CSandboxError *err) { return f(text.out(), err); });
  return text.str();
}

/* Returns the event that f reads; none behind the last one. */
template <class F>
std::optional<std::string> event(F &&f) {
  try {
    return document(std::forward<F>(f));
  } catch (const invalid_state_error &) { /* the last one was read */
    return std::nullopt;
  }
}

/* Returns a time to wait in seconds, as C takes it. */
inline double waiting(std::chrono::duration<double> time) {
  if (time.count() < 0) throw invalid_argument_error("the time to wait must not be negative");
  return time.count();
}

/* A handle of the library. Another thread may close it while it is used. */
template <class T, void (*Free)(T *)>
class handle {
 public:
  explicit handle(T *raw = nullptr) noexcept : raw_(raw) {}
  handle(handle &&other) noexcept : raw_(other.release()) {}
  handle &operator=(handle &&other) noexcept {
    if (this != &other) Free(raw_.exchange(other.release()));
    return *this;
  }
  ~handle() { close(); }

  T *get() const noexcept { return raw_.load(); }
  T *release() noexcept { return raw_.exchange(nullptr); }
  void close() noexcept { Free(release()); }

 private:
  std::atomic<T *> raw_;
};

/* Returns the handle that f gives. */
template <class Handle, class T, class F>
Handle made(F &&f) {
  T *raw = nullptr;
  check([&](CSandboxError *err) { return f(&raw, err); });
  return Handle(raw);
}

/* A range that is read once: what next of Self returns, until that is nothing. */
template <class Self, class T>
class once {
 public:
  struct sentinel {};

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    explicit iterator(once *of) : of_(of) {}

    const T &operator*() const { return *of_->last_; }
    iterator &operator++() {
      of_->advance();
      return *this;
    }
    void operator++(int) { of_->advance(); }

    friend bool operator==(const iterator &i, sentinel) { return i.at_end(); }
    friend bool operator!=(const iterator &i, sentinel s) { return !(i == s); }
    friend bool operator==(sentinel s, const iterator &i) { return i == s; }
    friend bool operator!=(sentinel s, const iterator &i) { return !(i == s); }

   private:
    bool at_end() const { return !of_->last_; }

    once *of_;
  };

  /* Reads the first one. */
  iterator begin() {
    advance();
    return iterator(this);
  }
  sentinel end() const { return {}; }

 private:
  void advance() { last_ = static_cast<Self *>(this)->next(); }

  std::optional<T> last_;
};

/* Returns text for C, where a NUL would end it early. */
inline const char *c_text(const std::string &text, const char *name) {
  if (text.find('\0') != std::string::npos) throw invalid_argument_error(std::string(name) + " has a NUL byte");
  return text.c_str();
}

/* The same, with NULL for what was left out. */
inline const char *optional_text(const std::string &text, const char *name) {
  return text.empty() ? nullptr : c_text(text, name);
}

/* Writes JSON: the only place where this library does. */
class json {
 public:
  explicit json(char open) : text_(1, open) {}

  /* Adds a member, if it is wanted. */
  template <class T>
  json &member(std::string_view name, const T &value, bool wanted = true) {
    if (wanted) text_.append(comma()).append(written(name)).append(":").append(written(value));
    return *this;
  }
  json &item(const std::string &written_value) {
    text_.append(comma()).append(written_value);
    return *this;
  }
  std::string end() const { return text_ + (text_.front() == '{' ? '}' : ']'); }

  static std::string written(bool value) { return value ? "true" : "false"; }
  static std::string written(int value) { return std::to_string(value); }
  static std::string written(const json &value) { return value.end(); }
  static std::string written(const char *value) { return written(std::string_view(value)); }
  static std::string written(std::string_view value) {
    std::string quoted = "\"";
    for (char c : value) quoted += escaped(c);
    return quoted + '"';
  }

 private:
  const char *comma() const { return text_.size() > 1 ? "," : ""; }
  static std::string escaped(char c) {
    char code[8];
    if (c == '"' || c == '\\') return {'\\', c};
    if (static_cast<unsigned char>(c) >= 0x20) return {c};
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
    return code;
  }

  std::string text_;
};

/* Returns texts as an array. */
inline json texts(const std::vector<std::string> &all) {
  json list('[');
  for (const std::string &one : all) list.item(json::written(std::string_view(one)));
  return list;
}

/* Returns the items as an array, each as one returns it. */
template <class Items, class F>
json array(const Items &items, F &&one) {
  json all('[');
  for (const auto &item : items) all.item(json::written(one(item)));
  return all;
}

inline json pairs(const environment &env) {
  return array(env, [](const auto &pair) {
    json both('[');
    return both.item(json::written(std::string_view(pair.first))).item(json::written(std::string_view(pair.second)));
  });
}

/* The pairs as the members of an object. */
inline json object(const environment &env) {
  json all('{');
  for (const auto &pair : env) all.member(pair.first, std::string_view(pair.second));
  return all;
}

/* Calls a function that was given, from C: an exception waits until C has returned. */
class relay {
 public:
  explicit relay(const on_progress &told) : told_(told) {}

  SandboxProgressCallback callback() const noexcept { return told_ ? &relay::call : nullptr; }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static void call(const SandboxProgress *p, void *self) {
    auto *r = static_cast<relay *>(self);
    if (r->thrown_) return;
    try {
      r->told_(*p);
    } catch (...) {
      r->thrown_ = std::current_exception();
    }
  }

  const on_progress &told_;
  std::exception_ptr thrown_;
};

/* Calls f with a callback and its data; what told threw comes before a failure of f. */
template <class F>
void relayed(const on_progress &told, F &&f) {
  relay passed(told);
  failure failed;
  SandboxErrorCode code = f(passed.callback(), static_cast<void *>(&passed), failed.out());
  passed.rethrow();
  if (code != SANDBOX_OK) failed.raise(code);
}

}  // namespace detail
}  // namespace sandbox

#endif /* SANDBOX_DETAIL_HPP */
