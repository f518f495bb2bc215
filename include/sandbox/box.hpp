/* Boxes. */
#ifndef SANDBOX_BOX_HPP
#define SANDBOX_BOX_HPP

#include <chrono>
#include <climits>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "code.hpp"
#include "detail.hpp"
#include "execution.hpp"
#include "watch.hpp"

namespace sandbox {

/* One box. Its end closes the handle and does not stop the box. */
class box {
 public:
  explicit box(CBoxHandle *raw) noexcept : handle_(raw) {}

  /* The full id, "" of one that was closed. */
  std::string id() const { return detail::owned_text(sandbox_box_id(raw())).str(); }

  /* The box's document. */
  std::string info() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_box_info(raw(), out, err); });
  }

  /* A document of what the box uses. */
  std::string metrics() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_box_metrics(raw(), out, err); });
  }

  /*
   * A document of what the box of a server used over time. from and to are RFC 3339,
   * or how long ago, such as "90m"; empty they are an hour ago, and now. A step of 0
   * is as short as the server has it.
   */
  std::string metrics_series(const std::string &from = {}, const std::string &to = {}, std::chrono::seconds step = std::chrono::seconds(0)) const {
    if (step.count() < 0 || step.count() > INT_MAX) throw invalid_argument_error("a step can't be so long");
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_box_metrics_series(raw(), detail::optional_text(from, "from"), detail::optional_text(to, "to"), static_cast<int>(step.count()), out, err);
    });
  }

  /* Starts the box again after a stop. */
  void start() {
    detail::check([&](CSandboxError *err) { return sandbox_start_box(raw(), err); });
  }

  /* Stops the box. Its disk is kept, unless it has auto_remove. */
  void stop() {
    detail::check([&](CSandboxError *err) { return sandbox_stop_box(raw(), err); });
  }

  /*
   * Has all processes of the box stand still, until resume. With reclaim, the
   * kernel takes back what it can of its memory.
   */
  void pause(bool reclaim = false) {
    detail::check([&](CSandboxError *err) { return sandbox_pause_box(raw(), reclaim, err); });
  }

  /* Lets the processes of a paused box go on. */
  void resume() {
    detail::check([&](CSandboxError *err) { return sandbox_resume_box(raw(), err); });
  }

  /* Changes how long the box lives; changes is the document of sandbox_update_box. */
  void update(const std::string &changes) {
    detail::check([&](CSandboxError *err) { return sandbox_update_box(raw(), detail::c_text(changes, "changes"), err); });
  }

  /*
   * Makes an image of the disk of the box as it is now, and returns its document. The
   * name must be free; one is made up if it is empty. A box that runs stands still
   * meanwhile.
   */
  std::string snapshot(const std::string &name = {}) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_box_snapshot(raw(), detail::optional_text(name, "name"), out, err);
    });
  }

  /*
   * Makes boxes that are like this one, with the files of a snapshot of it, and returns
   * their documents in an array; what says how many and what is otherwise, and is the
   * document of sandbox_box_clone.
   */
  std::string clone(const std::string &what = {}) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_box_clone(raw(), detail::optional_text(what, "what"), out, err);
    });
  }

  /* Gives the box the disk that it had when a snapshot of it was taken. Its commands end, and it is started again if it was up. */
  void rollback(const std::string &snapshot) {
    detail::check([&](CSandboxError *err) { return sandbox_box_rollback(raw(), detail::c_text(snapshot, "snapshot"), err); });
  }

  /* A page of what has changed on the disk since the box was made, or since a snapshot of it. */
  std::string diff(const std::string &from = {}, int page_size = 0, const std::string &page_token = {}) const {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_box_diff(raw(), detail::optional_text(from, "from"), page_size, detail::optional_text(page_token, "page_token"), out, err);
    });
  }

  /* Starts a command and returns at once. */
  execution exec(const command &c) {
    if (c.argv.empty()) throw invalid_argument_error("the command has no words: argv[0] is the program");
    const std::string args = detail::array(std::vector<std::string>(c.argv.begin() + 1, c.argv.end()), [](const std::string &arg) {
                               return std::string_view(arg);
                             }).end();
    const std::string env = detail::pairs(c.env).end();
    const SandboxCommand set{detail::c_text(c.argv.front(), "the command"), args.c_str(), env.c_str(),
                             detail::optional_text(c.working_dir, "working_dir"),
                             detail::optional_text(c.user, "user"), c.timeout.count()};
    const SandboxTerminal size = c.terminal ? SandboxTerminal{c.terminal->cols, c.terminal->rows} : SandboxTerminal{0, 0};
    return detail::made<execution, CSandboxExecution>([&](CSandboxExecution **out, CSandboxError *err) {
      return sandbox_exec_start(raw(), &set, c.open_stdin, c.terminal ? &size : nullptr, out, err);
    });
  }

  /*
   * Runs a command and hands its output to each, which takes a piece, as it
   * comes. Returns as execution::wait does. Where each throws, the command is
   * ended first.
   */
  template <class F, class = std::enable_if_t<std::is_invocable_v<F &, piece>>>
  int run(const command &c, F &&each) {
    execution e = exec(c);
    try {
      for (piece p : e.pieces()) each(p);
    } catch (...) {
      try {
        e.kill();
        e.wait();
      } catch (const error &) { /* it was ended, or can't be reached: what was thrown says more */
      }
      throw;
    }
    return e.wait();
  }

  /* Runs a command with the input and returns all its output. */
  completed run(command c, std::string_view input = {}) {
    completed all;
    c.open_stdin = !input.empty();
    execution e = exec(c);
    detail::feeder feeding(e, input);
    for (piece p : e.pieces()) (p.stream == stream::err ? all.err : all.out).append(p.bytes);
    all.exit_code = e.wait();
    return all;
  }

  /* The documents of the box's last 1,024 commands, in an array. */
  std::string execs() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_exec_list(raw(), out, err); });
  }

  /* Takes over a command that nobody reads any more. */
  execution attach(const std::string &exec_id) {
    return detail::made<execution, CSandboxExecution>([&](CSandboxExecution **out, CSandboxError *err) {
      return sandbox_exec_attach(raw(), detail::c_text(exec_id, "exec_id"), out, err);
    });
  }

  /*
   * The files of a box that runs, for which it needs no program. user is whose
   * rights count and who owns what is made: a name or an id of the box, with
   * :group if wanted; the box's root if empty.
   */

  /* Copies a file or directory of the host into the box. */
  void copy_in(const std::string &host_path, const std::string &box_path, const on_progress &told = {}, const std::string &user = {}) {
    detail::relayed(told, [&](SandboxProgressCallback callback, void *data, CSandboxError *err) {
      return sandbox_copy_in(raw(), detail::c_text(host_path, "host_path"), detail::c_text(box_path, "box_path"), by(user), callback, data, err);
    });
  }

  /* Copies a file or directory of the box to the host. */
  void copy_out(const std::string &box_path, const std::string &host_path, const on_progress &told = {}, const std::string &user = {}) {
    detail::relayed(told, [&](SandboxProgressCallback callback, void *data, CSandboxError *err) {
      return sandbox_copy_out(raw(), detail::c_text(box_path, "box_path"), detail::c_text(host_path, "host_path"), by(user), callback, data, err);
    });
  }

  /* The document of a file. A link that the path leads to is not followed. */
  std::string stat_file(const std::string &path, const std::string &user = {}) const {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_file_stat(raw(), detail::c_text(path, "path"), by(user), out, err);
    });
  }

  /* Whether there is a file of any type, a link that leads nowhere too. */
  bool file_exists(const std::string &path, const std::string &user = {}) const {
    try {
      stat_file(path, user);
    } catch (const not_found_error &) {
      info(); /* of a box that is gone, it throws the same */
      return false;
    }
    return true;
  }

  /* A page of the files below a directory, in the order of their paths. */
  std::string list_files(const file_list &l) const {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_file_list(raw(), detail::c_text(l.path, "path"), l.depth, l.page_size, detail::optional_text(l.page_token, "page_token"),
                               by(l.user), out, err);
    });
  }

  /* Makes a directory, and those missing on the way to it. Returns its document, with "created". */
  std::string make_directory(const std::string &path, int mode = 0755, const std::string &user = {}) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_file_make_dir(raw(), detail::c_text(path, "path"), mode, by(user), out, err);
    });
  }

  /* Gives a file another path, and returns its document from there. */
  std::string move_file(const std::string &from, const std::string &to, const std::string &user = {}) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_file_move(raw(), detail::c_text(from, "from"), detail::c_text(to, "to"), by(user), out, err);
    });
  }

  /* Removes a file, or a directory; one that is not empty if recursive. Returns how many were removed, in a document. */
  std::string remove_file(const std::string &path, bool recursive = false, const std::string &user = {}) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_file_remove(raw(), detail::c_text(path, "path"), recursive, by(user), out, err);
    });
  }

  /* Watches a directory, and if recursive all below it. Returns when the watch stands. */
  watch watch_files(const std::string &path, bool recursive = false, const std::string &user = {}) {
    return detail::made<watch, CSandboxWatch>([&](CSandboxWatch **out, CSandboxError *err) {
      return sandbox_watch_start(raw(), detail::c_text(path, "path"), recursive, by(user), out, err);
    });
  }

  /*
   * Connects to a TCP port of the box, published or not, and returns a connected
   * stream socket, which is the caller's to close. It ends with the box, too.
   */
  int connect(int port) {
    int number = -1;
    detail::check([&](CSandboxError *err) { return sandbox_box_connect(raw(), port, &number, err); });
    return number;
  }

  /*
   * Makes a link to a port of a box of a server, for people without a key, and
   * returns its document. It lasts for at most 30 days; 0 is an hour.
   */
  std::string share(int port, std::chrono::seconds lasting = std::chrono::seconds(0)) {
    if (lasting.count() < 0 || lasting.count() > INT_MAX) throw invalid_argument_error("a link can't last for so long");
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_box_share(raw(), port, static_cast<int>(lasting.count()), out, err);
    });
  }

  /*
   * Code of a language that the box has (python3, node or bash). A context is a
   * process of the language, which keeps what code defines for the next run.
   */

  /* Runs code in a context, and returns when it has begun: runs in the same context wait for each other. */
  code_run start_code(const code &c) {
    const double milliseconds = std::ceil(c.timeout.count() * 1000);
    if (!(milliseconds >= 0 && milliseconds <= INT_MAX)) throw invalid_argument_error("the timeout must be from 0 to 2147483 seconds");
    const std::string document = detail::json('{')
                                     .member("code", c.source)
                                     .member("language", c.language, !c.language.empty())
                                     .member("context", c.context, !c.context.empty())
                                     .member("env", detail::object(c.env))
                                     .member("timeout_ms", static_cast<int>(milliseconds))
                                     .end();
    return detail::made<code_run, CSandboxCodeRun>([&](CSandboxCodeRun **out, CSandboxError *err) {
      return sandbox_code_start(raw(), document.c_str(), out, err);
    });
  }

  /* The documents of the contexts, newest first, in an array. */
  std::string contexts() const {
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_context_list(raw(), out, err); });
  }

  /* Makes a context and returns its document. */
  std::string create_context(const context_options &o = {}) {
    const std::string document = detail::json('{')
                                     .member("language", o.language, !o.language.empty())
                                     .member("working_dir", o.working_dir, !o.working_dir.empty())
                                     .member("user", o.user, !o.user.empty())
                                     .member("env", detail::object(o.env))
                                     .end();
    return detail::document([&](char **out, CSandboxError *err) { return sandbox_context_create(raw(), document.c_str(), out, err); });
  }

  /*
   * Interrupts the code that a context runs, as control-C does. Another thread
   * that does this needs a box of its own: runtime::get returns one.
   */
  std::string interrupt_context(const std::string &id) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_context_interrupt(raw(), detail::c_text(id, "context_id"), out, err);
    });
  }

  /* Ends the processes of a context and starts it anew, with nothing of what code has defined. */
  std::string restart_context(const std::string &id) {
    return detail::document([&](char **out, CSandboxError *err) {
      return sandbox_context_restart(raw(), detail::c_text(id, "context_id"), out, err);
    });
  }

  /* Ends a context with all of its processes. */
  void remove_context(const std::string &id) {
    detail::check([&](CSandboxError *err) { return sandbox_context_remove(raw(), detail::c_text(id, "context_id"), err); });
  }

  /* Closes the handle. The box is not stopped. */
  void close() noexcept { handle_.close(); }

 private:
  CBoxHandle *raw() const noexcept { return handle_.get(); }
  static const char *by(const std::string &user) { return detail::optional_text(user, "user"); }

  detail::handle<CBoxHandle, sandbox_box_free> handle_;
};

}  // namespace sandbox

#endif /* SANDBOX_BOX_HPP */
