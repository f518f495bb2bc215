/* Code that runs in contexts of a box. */
#ifndef SANDBOX_CODE_HPP
#define SANDBOX_CODE_HPP

#include <chrono>
#include <optional>
#include <string>

#include "detail.hpp"

namespace sandbox {

class code_events;

/* Code that runs in a context of a box. Its end interrupts code that still runs. */
class code_run {
 public:
  explicit code_run(CSandboxCodeRun *raw) noexcept : handle_(raw) {}

  /* Waits for the next event and returns its document; none behind the last one, whose type is "end". */
  std::optional<std::string> read() { return next(-1); }

  /* The same, and throws timeout_error after the time. Nothing is lost by that; 0 does not wait. */
  std::optional<std::string> read_for(std::chrono::duration<double> time) { return next(detail::waiting(time)); }

  /* The events as a range: for (const std::string &event : run.events()) */
  code_events events();

  /* A descriptor for poll, readable while an event waits and from the end on. It belongs to the run. */
  int fd() const {
    int number = -1;
    detail::check([&](CSandboxError *err) { return sandbox_code_fd(handle_.get(), &number, err); });
    return number;
  }

  /* Interrupts code that still runs, and waits for its end. A read in another thread ends with canceled_error. */
  void close() noexcept { handle_.close(); }

 private:
  std::optional<std::string> next(double seconds) {
    return detail::event([&](char **out, CSandboxError *err) { return sandbox_code_read(handle_.get(), seconds, out, err); });
  }

  detail::handle<CSandboxCodeRun, sandbox_code_free> handle_;
};

/* The events of a run, as a range that is read once. */
class code_events : public detail::once<code_events, std::string> {
 public:
  explicit code_events(code_run &of) : of_(&of) {}

 private:
  friend detail::once<code_events, std::string>;

  std::optional<std::string> next() { return of_->read(); }

  code_run *of_;
};

inline code_events code_run::events() { return code_events(*this); }

}  // namespace sandbox

#endif /* SANDBOX_CODE_HPP */
