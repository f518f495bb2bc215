/* What boxes and commands are made of. */
#ifndef SANDBOX_OPTIONS_HPP
#define SANDBOX_OPTIONS_HPP

#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sandbox.h"

namespace sandbox {

/* Pairs of a name and a value. */
using environment = std::vector<std::pair<std::string, std::string>>;

/* A directory or a file that a box sees: of the host, or in a claim of a cluster. */
struct volume {
  std::string host_path, guest_path;
  bool read_only = false;
  std::string claim{}; /* the name of one, in place of host_path */
};

enum class protocol { tcp, udp };

/* A port of a box that the host publishes. */
struct port {
  int guest_port = 0;
  int host_port = 0;   /* 0: a free one is chosen */
  std::string host_ip; /* 127.0.0.1 if empty */
  sandbox::protocol protocol = sandbox::protocol::tcp;
};

enum class network { isolated, none };

/* How it is found out whether the main command of a box works. What is left out is as the image says. */
struct health_check {
  std::vector<std::string> test; /* "CMD" and a command, "CMD-SHELL" and a line for /bin/sh -c, or "NONE" */
  std::optional<std::chrono::milliseconds> interval, timeout, start_period, start_interval;
  std::optional<int> retries; /* how many checks fail one after another until it is unhealthy */
};

/* Settings of a new box. What is left out has the default of sandbox.h. */
struct box_options {
  box_options() = default;
  explicit box_options(std::string reference) : image(std::move(reference)) {}

  std::string image;       /* one of image and rootfs_path is required */
  std::string rootfs_path; /* a directory of the host, used read-only */
  std::string name;
  std::optional<int> cpus, memory_mib, disk_size_gb;
  std::string working_dir;
  environment env;
  std::vector<volume> volumes;
  sandbox::network network = sandbox::network::isolated;
  std::vector<port> ports;
  std::optional<bool> auto_remove;
  std::optional<int> ttl_seconds; /* from each start and resume; without end if left out */
  std::optional<int> idle_seconds; /* without use; without end if left out */
  std::string on_expiry;          /* "stop" if empty, "pause" or "remove" */
  bool auto_start = false;        /* what needs it to run starts or resumes it */
  std::string seccomp;            /* which system calls it has: "default" if empty, or "strict" */
  bool allow_unenforced_limits = false; /* run where the user has no cgroups, too */
  std::vector<std::string> command; /* the main command, which is started with the box; none if empty */
  bool image_command = false;       /* the image's own command is the main one */
  std::string restart;              /* "no" if empty, "always", "on-failure" or "on-failure:N" */
  bool stop_with_command = false;   /* the box stops when the command has ended for good */
  std::optional<health_check> healthcheck;
};

/* A registry that images are pulled from. */
struct registry {
  std::string host;
  std::string transport; /* "https" if empty, or "http" */
  std::string username, password, bearer_token;
};

/* Characters of a terminal; 0 is the default. */
struct terminal_size {
  int cols = 0, rows = 0;
};

/* A command and its settings. What is left out is the box's, else the image's. */
struct command {
  command(std::initializer_list<std::string> words) : argv(words) {}
  explicit command(std::vector<std::string> words) : argv(std::move(words)) {}

  std::vector<std::string> argv; /* the program, looked up in the box's PATH, and its arguments */
  environment env;
  std::string working_dir, user;
  std::chrono::duration<double> timeout{0}; /* 0 is none */
  bool open_stdin = false;                  /* for execution::write */
  std::optional<terminal_size> terminal;    /* on a terminal, whose input is always open */
};

/* Code to be run in a context of a box. */
struct code {
  explicit code(std::string text) : source(std::move(text)) {}

  std::string source;
  std::string language;                     /* "python" if empty, "javascript" or "bash" */
  std::string context;                      /* an id; the one that the language has of its own if empty */
  environment env;                          /* variables that only this run sees */
  std::chrono::duration<double> timeout{0}; /* until it is interrupted; 0 is none */
};

/* A context to be made. */
struct context_options {
  std::string language; /* "python" if empty, "javascript" or "bash" */
  std::string working_dir, user;
  environment env;
};

/* An image to be built of a recipe. What is left out has the default of sandbox.h. */
struct build_options {
  std::string context;               /* a directory of the host, whose files can be copied */
  std::optional<std::string> recipe; /* its text; else a file of the host, else the context's Dockerfile */
  std::string recipe_path;
  std::string name;   /* of the image; made of its id if empty */
  std::string target; /* the stage that becomes the image; the last one if empty */
  environment args;   /* the values for ARG */
  bool no_cache = false;
  sandbox::network network = sandbox::network::isolated; /* of the commands */
  std::chrono::duration<double> timeout{0};              /* of each command; 0 is an hour */
  std::optional<int> cpus, memory_mib;                   /* of each box */
};

/* Which page of the list of a directory is wanted. */
struct file_list {
  explicit file_list(std::string directory, int levels = 1) : path(std::move(directory)), depth(levels) {}

  std::string path;
  int depth;              /* levels of directories, 1 to 64 */
  int page_size = 0;      /* 1 to 10,000; 0 is 10,000 */
  std::string page_token; /* "next_page_token" of the page before; empty for the first page */
  std::string user;       /* whose rights count; the box's root if empty */
};

/* The streams of a command; exit is readable when the command has ended. */
enum class stream { in = SANDBOX_STDIN, out = SANDBOX_STDOUT, err = SANDBOX_STDERR, exit = SANDBOX_EXIT };

/* Output of a command, valid until the next piece is read. */
struct piece {
  sandbox::stream stream = sandbox::stream::out;
  std::string_view bytes;
};

/* How a command ended, and what it wrote. */
struct completed {
  int exit_code = 0; /* 0 to 255; -N after death by signal N */
  std::string out, err;
};

/* How far a copy or a pull has come. */
using progress = SandboxProgress;

/* Is told of progress, on the thread that called. */
using on_progress = std::function<void(const progress &)>;

}  // namespace sandbox

#endif /* SANDBOX_OPTIONS_HPP */
