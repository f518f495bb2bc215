/* Watches of the directories of a box. */
#ifndef SANDBOX_WATCH_HPP
#define SANDBOX_WATCH_HPP

#include <chrono>
#include <optional>
#include <string>

#include "detail.hpp"

namespace sandbox {

class watch_events;

/* A watch of a directory of a box. Its end ends it. */
class watch {
 public:
  explicit watch(CSandboxWatch *raw) noexcept : handle_(raw) {}

  /* Waits for the next event and returns its document; none behind the last one, whose type is "end". */
  std::optional<std::string> read() { return next(-1); }

  /* The same, and throws timeout_error after the time. Nothing is lost by that; 0 does not wait. */
  std::optional<std::string> read_for(std::chrono::duration<double> time) { return next(detail::waiting(time)); }

  /* The events as a range: for (const std::string &event : watch.events()) */
  watch_events events();

  /* A descriptor for poll, readable while an event waits and from the end on. It belongs to the watch. */
  int fd() const {
    int number = -1;
    detail::check([&](CSandboxError *err) { return sandbox_watch_fd(handle_.get(), &number, err); });
    return number;
  }

  /* Ends the watch. A read in another thread ends with canceled_error. */
  void close() noexcept { handle_.close(); }

 private:
  std::optional<std::string> next(double seconds) {
    return detail::event([&](char **out, CSandboxError *err) { return sandbox_watch_read(handle_.get(), seconds, out, err); });
  }

  detail::handle<CSandboxWatch, sandbox_watch_free> handle_;
};

/* The events of a watch, as a range that is read once. */
class watch_events : public detail::once<watch_events, std::string> {
 public:
  explicit watch_events(watch &of) : of_(&of) {}

 private:
  friend detail::once<watch_events, std::string>;

  std::optional<std::string> next() { return of_->read(); }

  watch *of_;
};

inline watch_events watch::events() { return watch_events(*this); }

}  // namespace sandbox

#endif /* SANDBOX_WATCH_HPP */
