/* Builds of images. */
#ifndef SANDBOX_BUILD_HPP
#define SANDBOX_BUILD_HPP

#include <chrono>
#include <climits>
#include <cmath>
#include <optional>
#include <string>

#include "detail.hpp"
#include "options.hpp"

namespace sandbox {

class build_events;

/* A build of an image. Its end ends a build that goes on: what its steps have made stays for the next one. */
class image_build {
 public:
  explicit image_build(CSandboxBuild *raw) noexcept : handle_(raw) {}

  /* Waits for the next event and returns its document; none behind the last one, whose type is "end". */
  std::optional<std::string> read() { return next(-1); }

  /* The same, and throws timeout_error after the time. Nothing is lost by that; 0 does not wait. */
  std::optional<std::string> read_for(std::chrono::duration<double> time) { return next(detail::waiting(time)); }

  /* The events as a range: for (const std::string &event : build.events()) */
  build_events events();

  /* Waits for the end, drops events that were not read, and returns the document of the image. */
  std::string wait() {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_build_wait(handle_.get(), out, err); });
  }

  /* A descriptor for poll, readable while an event waits and from the end on. It belongs to the build. */
  int fd() const {
    int number = -1;
    detail::check([&](CSandboxError *err) { return sandbox_build_fd(handle_.get(), &number, err); });
    return number;
  }

  /* Ends a build that goes on, and waits for that. A read in another thread ends with canceled_error. */
  void close() noexcept { handle_.close(); }

 private:
  std::optional<std::string> next(double seconds) {
    return detail::event([&](char **out, CSandboxError *err) { return sandbox_build_read(handle_.get(), seconds, out, err); });
  }

  detail::handle<CSandboxBuild, sandbox_build_free> handle_;
};

/* The events of a build, as a range that is read once. */
class build_events : public detail::once<build_events, std::string> {
 public:
  explicit build_events(image_build &of) : of_(&of) {}

 private:
  friend detail::once<build_events, std::string>;

  std::optional<std::string> next() { return of_->read(); }

  image_build *of_;
};

inline build_events image_build::events() { return build_events(*this); }

namespace detail {

/* The document of a build. */
inline std::string written(const build_options &o) {
  const double milliseconds = std::ceil(o.timeout.count() * 1000);
  if (!(milliseconds >= 0 && milliseconds <= INT_MAX)) throw invalid_argument_error("the timeout must be from 0 to 2147483 seconds");
  return json('{')
      .member("context", o.context, !o.context.empty())
      .member("recipe", o.recipe.value_or(""), o.recipe.has_value())
      .member("recipe_path", o.recipe_path, !o.recipe_path.empty())
      .member("name", o.name, !o.name.empty())
      .member("target", o.target, !o.target.empty())
      .member("args", object(o.args))
      .member("no_cache", o.no_cache, o.no_cache)
      .member("no_network", o.network == network::none, o.network == network::none)
      .member("timeout_ms", static_cast<int>(milliseconds), milliseconds > 0)
      .member("cpus", o.cpus.value_or(0), o.cpus.has_value())
      .member("memory_mib", o.memory_mib.value_or(0), o.memory_mib.has_value())
      .end();
}

}  // namespace detail

}  // namespace sandbox

#endif /* SANDBOX_BUILD_HPP */
