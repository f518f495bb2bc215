/* Commands of boxes. */
#ifndef SANDBOX_EXECUTION_HPP
#define SANDBOX_EXECUTION_HPP

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "detail.hpp"

namespace sandbox {

class output;

/* A command of a box. Its end closes the handle, and the command goes on. */
class execution {
 public:
  explicit execution(CSandboxExecution *raw) noexcept : handle_(raw) {}

  /* The full id, "" of one that was closed. */
  std::string id() const { return detail::owned_text(sandbox_exec_id(raw())).str(); }

  /* The command's document. */
  std::string info() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_exec_info(raw(), out, err); });
  }

  /* Waits for output and reads a piece of it into buffer; none at the end. */
  std::optional<piece> read(char *buffer, std::size_t capacity) {
    std::size_t length = 0;
    SandboxStream from = SANDBOX_STDOUT;
    detail::check([&](CSandboxError *err) { return sandbox_exec_read(raw(), buffer, capacity, &length, &from, err); });
    if (length == 0) return std::nullopt;
    return piece{static_cast<stream>(from), std::string_view(buffer, length)};
  }

  /* The output as a range of pieces: for (sandbox::piece p : execution.pieces()) */
  output pieces();

  /* Writes to the command's input, or types on its terminal. Returns when all is written. */
  void write(std::string_view bytes) {
    detail::check([&](CSandboxError *err) { return sandbox_exec_write_stdin(raw(), bytes.data(), bytes.size(), err); });
  }

  /* Ends the command's input. */
  void close_stdin() {
    detail::check([&](CSandboxError *err) { return sandbox_exec_close_stdin(raw(), err); });
  }

  /*
   * Drops the output that was not read, waits for the end and returns the exit
   * code, -N after death by signal N. Throws execution_error (its exit_code() is
   * 127 or 126), timeout_error, canceled_error.
   */
  int wait() {
    int exit_code = unwritten;
    detail::failure failed;
    SandboxErrorCode code = sandbox_exec_wait(raw(), &exit_code, failed.out());
    if (code != SANDBOX_OK) failed.raise(code, exit_code == unwritten ? std::nullopt : std::optional<int>(exit_code));
    return exit_code;
  }

  /* Ends the command and all that it started: SIGTERM, and SIGKILL after the grace. */
  void kill(std::chrono::duration<double> grace = std::chrono::seconds(2)) {
    detail::check([&](CSandboxError *err) { return sandbox_exec_kill(raw(), grace.count(), err); });
  }

  /* Sends a signal to the command's own process. */
  void signal(int number) {
    detail::check([&](CSandboxError *err) { return sandbox_exec_signal(raw(), number, err); });
  }

  /* Sets the size of the command's terminal. */
  void resize(terminal_size size) {
    detail::check([&](CSandboxError *err) { return sandbox_exec_resize(raw(), size.cols, size.rows, err); });
  }

  /* The descriptor of a stream, for poll. It belongs to the execution. */
  int fd(stream which) const {
    int number = -1;
    detail::check([&](CSandboxError *err) { return sandbox_exec_fd(raw(), static_cast<SandboxStream>(which), &number, err); });
    return number;
  }

  /* Leaves the command and its output to the next box::attach, and closes the handle. */
  void detach() {
    detail::check([&](CSandboxError *err) { return sandbox_exec_detach(raw(), err); });
    handle_.close();
  }

  /* Closes the handle. A read in another thread ends with canceled_error. */
  void close() noexcept { handle_.close(); }

 private:
  static constexpr int unwritten = -1000; /* no command ends with it */

  CSandboxExecution *raw() const noexcept { return handle_.get(); }

  detail::handle<CSandboxExecution, sandbox_exec_free> handle_;
};

/* The output of a command, as a range that is read once. A piece is valid until the next. */
class output : public detail::once<output, piece> {
 public:
  explicit output(execution &of) : of_(&of), buffer_(capacity) {}

 private:
  friend detail::once<output, piece>;
  static constexpr std::size_t capacity = 65536; /* what a pipe holds */

  std::optional<piece> next() { return of_->read(buffer_.data(), buffer_.size()); }

  execution *of_;
  std::vector<char> buffer_;
};

inline output execution::pieces() { return output(*this); }

namespace detail {

/*
 * Writes the input of a command while another thread reads its output: one that
 * waits for its output to be read does not read its input. Its end closes the
 * execution, which ends a write.
 */
class feeder {
 public:
  feeder(execution &of, std::string_view input) : of_(of) {
    if (!input.empty()) thread_ = std::thread([this, input] { feed(input); });
  }
  feeder(const feeder &) = delete;
  feeder &operator=(const feeder &) = delete;
  ~feeder() {
    of_.close();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void feed(std::string_view input) noexcept {
    try {
      of_.write(input);
      of_.close_stdin();
    } catch (const error &) { /* a command need not read all its input */
    }
  }

  execution &of_;
  std::thread thread_;
};

}  // namespace detail

}  // namespace sandbox

#endif /* SANDBOX_EXECUTION_HPP */
