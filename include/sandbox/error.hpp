/* Failures: the class that all exceptions of the library are of. */
#ifndef SANDBOX_ERROR_HPP
#define SANDBOX_ERROR_HPP

#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if __cplusplus > 202002L && __has_include(<expected>)
#include <expected>
#endif

#include "../sandbox.h"

namespace sandbox {

/* A failure. what() says what failed and what to do next. */
class error : public std::runtime_error {
 public:
  error(SandboxErrorCode code, const std::string &message, std::optional<int> exit_code = std::nullopt)
      : std::runtime_error(message), code_(code), exit_code_(exit_code) {}

  /* Which case it is. */
  SandboxErrorCode code() const noexcept { return code_; }

  /* Of an execution_error: 127 if there is no such command, else 126. */
  std::optional<int> exit_code() const noexcept { return exit_code_; }

 private:
  SandboxErrorCode code_;
  std::optional<int> exit_code_;
};

#ifdef __cpp_lib_expected
/*
 * Returns what do_it returns, or the failure that it threw:
 *
 *   auto box = sandbox::attempt([&] { return runtime.get("web"); });
 *   if (!box) std::cerr << box.error().what();
 */
template <class F>
auto attempt(F &&do_it) -> std::expected<decltype(std::forward<F>(do_it)()), error> {
  try {
    if constexpr (std::is_void_v<decltype(std::forward<F>(do_it)())>) {
      std::forward<F>(do_it)();
      return {};
    } else {
      return std::forward<F>(do_it)();
    }
  } catch (const error &failure) {
    return std::unexpected(failure);
  }
}
#endif

}  // namespace sandbox

#endif /* SANDBOX_ERROR_HPP */
