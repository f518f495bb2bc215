/* Runtimes: where boxes and images are. */
#ifndef SANDBOX_RUNTIME_HPP
#define SANDBOX_RUNTIME_HPP

#include <string>
#include <vector>

#include "box.hpp"
#include "build.hpp"
#include "detail.hpp"

namespace sandbox {

/* The version of the library, such as "0.1.0". */
inline std::string version() { return sandbox_version(); }

/*
 * A home or a server in use. Its end stops and removes the boxes that it made with
 * auto_remove, which is the default; others keep running.
 */
class runtime {
 public:
  explicit runtime(CSandboxRuntime *raw) noexcept : handle_(raw) {}

  /*
   * Where the command line works: on the server that the environment, the stored
   * profile or the home's daemon says, else in this process, which needs root.
   */
  static runtime open(const std::string &profile = {}) {
    return detail::made<runtime, CSandboxRuntime>([&](CSandboxRuntime **out, CSandboxError *err) {
      return sandbox_runtime_open(detail::optional_text(profile, "profile"), out, err);
    });
  }

  /* On a server: http://HOST:PORT, https://HOST, or unix:///PATH, which needs no key. */
  static runtime remote(const std::string &url, const std::string &api_key = {}, const std::string &path_prefix = {}) {
    return detail::made<runtime, CSandboxRuntime>([&](CSandboxRuntime **out, CSandboxError *err) {
      return sandbox_runtime_new_remote(detail::c_text(url, "url"), detail::optional_text(api_key, "api_key"),
                                        detail::optional_text(path_prefix, "path_prefix"), out, err);
    });
  }

  /* In this process, on a home ("" is the default one), with the registries that images come from. */
  static runtime local(const std::string &home = {}, const std::vector<registry> &registries = {}) {
    const std::string json = written(registries);
    return detail::made<runtime, CSandboxRuntime>([&](CSandboxRuntime **out, CSandboxError *err) {
      return sandbox_runtime_new(detail::optional_text(home, "home"), registries.empty() ? nullptr : json.c_str(), out, err);
    });
  }

  /* Makes a box and starts it. */
  box create(const box_options &o) {
    const std::string json = written(o);
    return detail::made<box, CBoxHandle>([&](CBoxHandle **out, CSandboxError *err) {
      return o.name.empty() ? sandbox_create_box(raw(), json.c_str(), out, err)
                            : sandbox_create_named_box(raw(), detail::c_text(o.name, "name"), json.c_str(), out, err);
    });
  }

  /* Finds a box by its id, its name, or the beginning of its id. */
  box get(const std::string &id_or_name) {
    return detail::made<box, CBoxHandle>([&](CBoxHandle **out, CSandboxError *err) {
      return sandbox_get(raw(), detail::c_text(id_or_name, "id_or_name"), out, err);
    });
  }

  /* Removes a box and its disk; one that runs only with force. */
  void remove(const std::string &id_or_name, bool force = false) {
    detail::check([&](CSandboxError *err) { return sandbox_remove(raw(), detail::c_text(id_or_name, "id_or_name"), force, err); });
  }

  /* The documents of all boxes in an array, the newest first. */
  std::string list() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_list_info(raw(), out, err); });
  }

  /* The document of one box, found as by get. */
  std::string info(const std::string &id_or_name) const {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_get_info(raw(), detail::c_text(id_or_name, "id_or_name"), out, err);
    });
  }

  /* A document of what the runtime has counted. */
  std::string metrics() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_runtime_metrics(raw(), out, err); });
  }

  /* The documents of the snapshots of a box, or of all boxes, in an array: each behind the one that it stands on. */
  std::string snapshots(const std::string &box = {}) const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_snapshots(raw(), detail::optional_text(box, "box"), out, err); });
  }

  /* The documents of all images in an array. */
  std::string images() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_image_list(raw(), out, err); });
  }

  /* Gets an image from its registry, and returns its document. */
  std::string pull_image(const std::string &reference, const on_progress &told = {}) {
    detail::owned_text document;
    detail::relayed(told, [&](SandboxProgressCallback callback, void *data, CSandboxError *err) {
      return sandbox_image_pull(raw(), detail::c_text(reference, "reference"), callback, data, document.out(), err);
    });
    return document.str();
  }

  /* Makes an image of a directory or an archive of the host, and returns its document. */
  std::string import_image(const std::string &name, const std::string &source, const on_progress &told = {}) {
    detail::owned_text document;
    detail::relayed(told, [&](SandboxProgressCallback callback, void *data, CSandboxError *err) {
      return sandbox_image_import(raw(), detail::c_text(name, "name"), detail::c_text(source, "source"), callback, data, document.out(), err);
    });
    return document.str();
  }

  /* Writes an image to a file of the host, as an OCI archive; compression is "zstd", "gzip" or "none". */
  void export_image(const std::string &reference, const std::string &path, const std::string &compression = "zstd",
                    const on_progress &told = {}) {
    detail::relayed(told, [&](SandboxProgressCallback callback, void *data, CSandboxError *err) {
      return sandbox_image_export(raw(), detail::c_text(reference, "reference"), detail::c_text(path, "path"),
                                  detail::c_text(compression, "compression"), callback, data, err);
    });
  }

  /* Sends an image to the registry that as names, or its own name if that is empty. Returns what was pushed. */
  std::string push_image(const std::string &reference, const std::string &as = {}, const std::string &compression = "zstd",
                         const on_progress &told = {}) {
    detail::owned_text document;
    detail::relayed(told, [&](SandboxProgressCallback callback, void *data, CSandboxError *err) {
      return sandbox_image_push(raw(), detail::c_text(reference, "reference"), detail::c_text(as, "as"),
                                detail::c_text(compression, "compression"), callback, data, document.out(), err);
    });
    return document.str();
  }

  /* Begins to build an image of a recipe. */
  image_build start_build(const build_options &o) {
    const std::string json = detail::written(o);
    return detail::made<image_build, CSandboxBuild>([&](CSandboxBuild **out, CSandboxError *err) {
      return sandbox_build_start(raw(), json.c_str(), out, err);
    });
  }

  /* Builds an image of a recipe, and returns its document. */
  std::string build_image(const build_options &o) { return start_build(o).wait(); }

  /* Removes an image; one in use only with force. */
  void remove_image(const std::string &reference, bool force = false) {
    detail::check([&](CSandboxError *err) { return sandbox_image_remove(raw(), detail::c_text(reference, "reference"), force, err); });
  }

  /* Stops the boxes that this runtime made, and makes no more: 0 is 10 s for each, -1 no limit. */
  void shutdown(int timeout_seconds = 0) {
    detail::check([&](CSandboxError *err) { return sandbox_runtime_shutdown(raw(), timeout_seconds, err); });
  }

  /* Does at once what the end of the runtime does. */
  void close() noexcept { handle_.close(); }

 private:
  static std::string written(const box_options &o);
  static std::string written(const std::vector<registry> &registries);
  static detail::json written(const health_check &h);

  CSandboxRuntime *raw() const noexcept { return handle_.get(); }

  detail::handle<CSandboxRuntime, sandbox_runtime_free> handle_;
};

inline std::string runtime::written(const box_options &o) {
  using detail::json;
  json rootfs('{');
  rootfs.member("Image", o.image, !o.image.empty()).member("RootfsPath", o.rootfs_path, !o.rootfs_path.empty());
  const json volumes = detail::array(o.volumes, [](const volume &v) {
    return json('{')
        .member("host_path", v.host_path, v.claim.empty())
        .member("claim", v.claim, !v.claim.empty())
        .member("guest_path", v.guest_path)
        .member("read_only", v.read_only);
  });
  const json ports = detail::array(o.ports, [](const port &p) {
    return json('{')
        .member("host_port", p.host_port)
        .member("guest_port", p.guest_port)
        .member("protocol", p.protocol == protocol::udp ? "Udp" : "Tcp")
        .member("host_ip", p.host_ip, !p.host_ip.empty());
  });
  json document('{');
  document.member("rootfs", rootfs)
      .member("env", detail::pairs(o.env))
      .member("volumes", volumes)
      .member("network", o.network == network::none ? "None" : "Isolated")
      .member("ports", ports)
      .member("cpus", o.cpus.value_or(0), o.cpus.has_value())
      .member("memory_mib", o.memory_mib.value_or(0), o.memory_mib.has_value())
      .member("disk_size_gb", o.disk_size_gb.value_or(0), o.disk_size_gb.has_value())
      .member("working_dir", o.working_dir, !o.working_dir.empty())
      .member("auto_remove", o.auto_remove.value_or(true), o.auto_remove.has_value())
      .member("ttl_seconds", o.ttl_seconds.value_or(0), o.ttl_seconds.has_value())
      .member("idle_seconds", o.idle_seconds.value_or(0), o.idle_seconds.has_value())
      .member("on_expiry", o.on_expiry, !o.on_expiry.empty())
      .member("auto_start", o.auto_start, o.auto_start)
      .member("seccomp", o.seccomp, !o.seccomp.empty())
      .member("allow_unenforced_limits", o.allow_unenforced_limits, o.allow_unenforced_limits)
      .member("command", "image", o.image_command)
      .member("command", detail::texts(o.command), !o.command.empty())
      .member("restart", o.restart, !o.restart.empty())
      .member("stop_with_command", o.stop_with_command, o.stop_with_command);
  if (o.healthcheck) document.member("healthcheck", written(*o.healthcheck));
  return document.end();
}

inline detail::json runtime::written(const health_check &h) {
  detail::json check('{');
  const auto time = [&](const char *name, const std::optional<std::chrono::milliseconds> &t) {
    check.member(name, t ? static_cast<int>(t->count()) : 0, t.has_value());
  };
  check.member("test", detail::texts(h.test), !h.test.empty());
  time("interval_ms", h.interval);
  time("timeout_ms", h.timeout);
  time("start_period_ms", h.start_period);
  time("start_interval_ms", h.start_interval);
  return check.member("retries", h.retries.value_or(0), h.retries.has_value());
}

inline std::string runtime::written(const std::vector<registry> &registries) {
  return detail::array(registries, [](const registry &r) {
           return detail::json('{')
               .member("host", r.host)
               .member("transport", r.transport, !r.transport.empty())
               .member("username", r.username, !r.username.empty())
               .member("password", r.password, !r.password.empty())
               .member("bearer_token", r.bearer_token, !r.bearer_token.empty());
         })
      .end();
}

}  // namespace sandbox

#endif /* SANDBOX_RUNTIME_HPP */
