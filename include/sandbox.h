/*
 * sandbox.h - isolated Linux boxes from inside your own program.
 *
 * A box is a small Linux of its own (its own processes, file system, users and
 * network) in which a program runs code that it does not trust. It stands on
 * the host's kernel: namespaces, cgroups and system call filters hold it, not
 * a virtual machine.
 *
 *
 * INSTALL AND LINK
 *
 *   make install PREFIX=/usr/local        (DESTDIR for packagers)
 *   cc -std=c99 prog.c $(pkg-config --cflags --libs sandbox) -o prog
 *   cc -std=c99 prog.c -lsandbox -o prog  (the same without pkg-config)
 *   cc -std=c99 prog.c $(pkg-config --cflags sandbox) \
 *     $(pkg-config --variable=libdir sandbox)/libsandbox.a -pthread -o prog
 *                                         (with the library in the program)
 *
 *   libsandbox.so.0 is the ABI. Functions and error codes are only added;
 *   structs of this header never change.
 *
 *
 * A FIRST PROGRAM is examples_c/hello.c: sandbox_runtime_new, then
 * sandbox_create_box, then sandbox_execute, then the two release functions.
 *
 *
 * WHAT THE HOST NEEDS
 *
 *   Linux 5.19 or newer, cgroups (v1, v2 or both), and root: a program without
 *   it gets SANDBOX_UNSUPPORTED when it makes a box. `sandbox doctor`
 *   checks the host and names a command that adds what is missing.
 *
 *   Two programs do the work, so that nothing privileged happens in
 *   your process: sandbox-shim (one for a home, started by the first box,
 *   gone within seconds after the last) and sandbox-init (process 1 of each
 *   box). They are looked for, in this order: in the directory that the
 *   environment variable SANDBOX_HELPER_DIR names; in the directory of the
 *   library's own file; in ../libexec/sandbox from there; in each directory of
 *   PATH, and in ../libexec/sandbox from it. If they are nowhere,
 *   sandbox_runtime_new fails and names every place it tried.
 *
 *
 * WHAT THIS VERSION CANNOT DO YET
 *
 *   - A Udp port on an IPv6 host_ip: SANDBOX_UNSUPPORTED.
 *
 *
 * HOME
 *
 *   Boxes and images live in a directory: the argument home_dir, else the
 *   environment variable SANDBOX_HOME, else /var/lib/sandbox for root and
 *   ~/.sandbox for others. Several processes may use one home at once, and
 *   each sees all its boxes. A box does not end with the process that made
 *   it, unless it has auto_remove.
 *
 *
 * SERVERS
 *
 *   A runtime is a home in this process (sandbox_runtime_new), or the boxes of
 *   a daemon (sandbox_runtime_new_remote); sandbox_runtime_open takes what the
 *   environment says. All functions that take a runtime, or a handle that came
 *   from one, then do the same. What is different on a server:
 *
 *   - No root is needed, no helper programs, and no home. Calls also fail with
 *     SANDBOX_UNAVAILABLE (the server can't be reached, or went away; nothing
 *     waits for it), SANDBOX_UNAUTHENTICATED and SANDBOX_PERMISSION_DENIED (the
 *     key).
 *   - Volumes and RootfsPath are paths of the server's host. Through its Unix
 *     socket any path is taken, over TCP those below its --host-root, which
 *     bounds users of the socket too who are not root.
 *     sandbox_copy_in, sandbox_copy_out and sandbox_image_import take paths of
 *     this host; of an import no progress is told.
 *   - Boxes with auto_remove are removed by sandbox_runtime_free, as in process.
 *     When this process ends without it, in a crash too, they are left to the
 *     server: they run on until something stops them.
 *   - sandbox_runtime_shutdown gives a box a day at most, -1 too.
 *   - Output is kept by the server, 64 MiB of a command unless set otherwise: a
 *     command that nobody reads goes on until that is full, and can be taken
 *     over again after sandbox_exec_free too. Its input stays open after
 *     sandbox_exec_detach.
 *   - sandbox_exec_fd gives ends of pipes that threads of the library fill and
 *     empty.
 *   - sandbox_exec_write_stdin does not notice that a command has closed its
 *     input. sandbox_exec_kill returns when the command has ended.
 *     sandbox_exec_signal takes the signals that have names, 1 to 31.
 *
 *
 * ERRORS
 *
 *   Functions that can fail return a SandboxErrorCode. The last parameter is
 *   the caller's own CSandboxError, or NULL. On failure its code and message
 *   are set (their old values are overwritten, not freed), and out
 *   parameters are set to NULL; on success it is not touched.
 *   The code says what a caller can do; the message is for people and may
 *   change. Treat a code that you do not know as SANDBOX_INTERNAL. Codes are
 *   never renumbered.
 *
 *   Every function that takes a handle, an out parameter or a text that is
 *   not said to be optional answers NULL there with SANDBOX_INVALID_ARGUMENT
 *   and names the parameter. Every function may also answer SANDBOX_INTERNAL
 *   (an error inside the library), SANDBOX_ENGINE (a shim is missing, of another
 *   version, or died) and SANDBOX_STORAGE (the home is full, read-only or
 *   damaged); they are not repeated below.
 *
 *
 * OWNERSHIP
 *
 *   Parameters are only read, and only during the call. What a function
 *   returns belongs to the caller, who releases it with the function named there;
 *   never with free(). All release functions accept NULL and never fail.
 *
 *   A handle that was released, or that belongs to a runtime that was
 *   released, is answered with SANDBOX_INVALID_ARGUMENT; releasing it again
 *   does nothing. (The library remembers the last 65,536 released handles.)
 *   Strings, results and error messages are plain memory: release them once.
 *
 *
 * THREADS
 *
 *   All calls block until they are done. A CSandboxRuntime may be shared by
 *   threads. A CBoxHandle and a CSandboxSimple are used by one thread at a
 *   time (CSandboxExecution has rules of its own, see there); a second thread
 *   gets its own handle on the same box with sandbox_get.
 *   Output callbacks run on the thread that called, before the call returns.
 *
 *
 * PROCESS RULES: the library is written in Go, whose runtime comes with it
 *
 *   - Never dlclose it.
 *   - After fork, the child must not use it before exec. (Start it in the
 *     child instead, or use posix_spawn.)
 *   - It puts its own handler before yours for SIGSEGV, SIGBUS, SIGFPE,
 *     SIGPIPE, SIGURG and signal 33, and hands on what is not meant for it.
 *     Every handler that you install, before or after, must have SA_ONSTACK.
 *   - It makes threads of its own. It never changes the working directory,
 *     the environment, the umask or the signal mask of yours, never prints,
 *     and never leaves you a child process to wait for.
 *   - A callback must return: no longjmp and no C++ exception out of it.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. Each code is a different case for the caller. */
typedef enum SandboxErrorCode {
  SANDBOX_OK = 0,
  SANDBOX_INTERNAL = 1,            /* an error inside the library */
  SANDBOX_NOT_FOUND = 2,           /* no such box */
  SANDBOX_ALREADY_EXISTS = 3,      /* the name is taken; an id prefix names several boxes */
  SANDBOX_INVALID_STATE = 4,       /* the box is not in the state this needs */
  SANDBOX_INVALID_ARGUMENT = 5,    /* NULL, a dead handle, bad JSON, a value that is not allowed */
  SANDBOX_CONFIG = 6,              /* home_dir or registries_json is invalid */
  SANDBOX_STORAGE = 7,             /* the home is full, read-only or damaged */
  SANDBOX_IMAGE = 8,               /* the image can't be fetched or read */
  SANDBOX_NETWORK = 9,             /* a port is taken; the network can't be set up */
  SANDBOX_EXECUTION = 10,          /* the command can't be started */
  SANDBOX_STOPPED = 11,            /* the runtime was shut down */
  SANDBOX_ENGINE = 12,             /* a shim is missing, of another version, or died */
  SANDBOX_UNSUPPORTED = 13,        /* not root; the kernel, or this version, does not support it */
  SANDBOX_RESOURCE_EXHAUSTED = 20, /* a limit of the host or of the library is reached */
  SANDBOX_TIMEOUT = 32,            /* the timeout has passed */
  SANDBOX_CANCELED = 33,           /* ended on request, such as a stop of the box */
  SANDBOX_UNAUTHENTICATED = 34,    /* a key is missing or unknown (remote use) */
  SANDBOX_PERMISSION_DENIED = 35,  /* a key lacks the permission (remote use) */
  SANDBOX_UNAVAILABLE = 36         /* not available now; try again */
} SandboxErrorCode;

/* Handles. */
typedef struct CSandboxRuntime CSandboxRuntime; /* a home or a server in use */
typedef struct CBoxHandle CBoxHandle;           /* one box of it */
typedef struct CSandboxExecution CSandboxExecution; /* one command of a box */
typedef struct CSandboxSimple CSandboxSimple;   /* a box with nothing to set up */

/* A failure. The caller owns the struct; sandbox_error_free frees the message. */
typedef struct CSandboxError {
  SandboxErrorCode code;
  char *message; /* UTF-8; says what failed and what to do next */
} CSandboxError;

/* The result of a command of sandbox_simple_run. */
typedef struct CSandboxExecResult {
  int exit_code;
  char *stdout_text;
  char *stderr_text;
} CSandboxExecResult;

/*
 * Takes a piece of a command's output, as it comes.
 *
 * text is UTF-8, NUL-terminated, never empty, never ends inside a character,
 * and is valid until the callback returns; a NUL byte and bytes that are not
 * UTF-8 arrive as U+FFFD. is_stderr is 1 for standard error, 0 for standard
 * output. user_data is the caller's own value, passed on unchanged.
 *
 * Runs on the thread that called, and the command waits while it runs. It may
 * call the library, also on its own box, and may release any handle; the
 * running call is not affected. To end the command early, stop the
 * box through a second handle (sandbox_get), from the callback or from another
 * thread.
 */
typedef void (*SandboxOutputCallback)(const char *text, int is_stderr, void *user_data);

/* A command with all its settings. Set a member to 0 to leave it out. */
typedef struct SandboxCommand {
  const char *command;   /* required: a path, or a name that is looked up in the box's PATH */
  const char *args_json; /* JSON array of strings, the command's own name not included */
  const char *env_json;  /* JSON array of [key, value] pairs, on top of the box's */
  const char *workdir;   /* absolute, in the box; else the box's, else the image's, else / */
  const char *user;      /* name or uid, optionally :group; else the image's, else root */
  double timeout_secs;   /* 0 for none; when it passes the whole process tree is killed */
} SandboxCommand;

/* ---- Library ---- */

/*
 * The version, such as "0.1.0". A static string that is never freed. Any
 * thread.
 */
const char *sandbox_version(void);

/* ---- Runtime ---- */

/*
 * Opens a home: checks it and finds the programs. Starts nothing.
 *
 * home_dir: NULL for the default (see HOME above).
 * registries_json: NULL, or a JSON array of registry hosts, each a string such
 *   as "docker.io" or an object {"host", "transport": "https" or "http",
 *   "username", "password", "bearer_token"}. Checked now. A create that pulls
 *   an image looks for a short name in these registries, in this order, and
 *   logs in with these credentials.
 * *out: release with sandbox_runtime_free.
 *
 * Any thread.
 * Errors: SANDBOX_CONFIG (home_dir, registries_json), SANDBOX_ENGINE (names
 * every place where a shim was looked for), SANDBOX_STORAGE,
 * SANDBOX_UNSUPPORTED (the home's file system can't hold boxes).
 */
SandboxErrorCode sandbox_runtime_new(const char *home_dir, const char *registries_json,
                                     CSandboxRuntime **out, CSandboxError *err);

/*
 * Uses the boxes of a server: the same functions on a daemon (`sandbox serve`),
 * so that a program without root uses the same code. Checks the parameters and
 * does not connect yet. See SERVERS above.
 *
 * url: http://HOST:PORT, https://HOST, or unix:///PATH, the path of a daemon's
 *   socket. The URL of a hosted service ends in /api.
 * api_key: may be NULL, which is enough for a Unix socket.
 * path_prefix: the route prefix of a server (its --prefix); NULL for none.
 * *out: release with sandbox_runtime_free.
 *
 * Any thread.
 * Errors: SANDBOX_CONFIG (url, api_key).
 */
SandboxErrorCode sandbox_runtime_new_remote(const char *url, const char *api_key,
                                            const char *path_prefix, CSandboxRuntime **out,
                                            CSandboxError *err);

/*
 * Uses the boxes that the command line would use. The first of these that
 * applies: the server of SANDBOX_REST_URL, with SANDBOX_API_KEY and
 * SANDBOX_REST_PATH_PREFIX; that of the stored profile that SANDBOX_PROFILE
 * names; that of the profile "default", unless it is this host's own daemon; the
 * daemon of the home, and that of root's home where SANDBOX_HOME is not set, if
 * it listens on its socket; the home in this process, where root makes boxes, and
 * others too unless the host forbids them user namespaces.
 *
 * profile: NULL, or the name of a stored profile (`sandbox auth login`), whose
 *   server is used then.
 * *out: release with sandbox_runtime_free.
 *
 * Any thread.
 * Errors: SANDBOX_UNAVAILABLE (none applies: the message says what to do),
 * SANDBOX_CONFIG (the profile, a URL), and those of sandbox_runtime_new.
 */
SandboxErrorCode sandbox_runtime_open(const char *profile, CSandboxRuntime **out,
                                      CSandboxError *err);

/*
 * Stops all boxes that this runtime created, all at once, and refuses to make
 * further ones (SANDBOX_STOPPED). A second call succeeds and does nothing. The
 * runtime still needs sandbox_runtime_free.
 *
 * timeout_seconds: how long a box has between SIGTERM and SIGKILL; 0 means 10
 *   seconds, -1 waits without a limit.
 *
 * Any thread, also while commands run, which then end.
 * Errors: SANDBOX_INVALID_ARGUMENT (below -1).
 */
SandboxErrorCode sandbox_runtime_shutdown(CSandboxRuntime *runtime, int timeout_seconds,
                                          CSandboxError *err);

/*
 * Counts as a JSON object: boxes_created_total, boxes_failed_total,
 * total_commands_executed and total_exec_errors of this runtime, and
 * num_running_boxes of the whole home.
 *
 * *out_json: release with sandbox_free_string. Any thread.
 */
SandboxErrorCode sandbox_runtime_metrics(CSandboxRuntime *runtime, char **out_json,
                                         CSandboxError *err);

/*
 * Releases the runtime and every handle of its boxes. Stops and removes the
 * boxes that this runtime created with auto_remove; others keep running.
 *
 * NULL and a second release do nothing. Any thread; commands that still run in
 * the removed boxes end with SANDBOX_CANCELED.
 */
void sandbox_runtime_free(CSandboxRuntime *runtime);

/* ---- Boxes ---- */

/*
 * Makes a box and starts it.
 *
 * options_json: the box options document, at most 1 MiB:
 *
 *   rootfs        object   required  {"Image": "debian:12"}, pulled if the home lacks it (unless
 *                                    HOME/config.toml says pull = "never"), or {"RootfsPath":
 *                                    "/directory"}, which is used read-only and never changed
 *   env           array    required  [key, value] pairs (an object works too)
 *   volumes       array    required  {"host_path", "guest_path", "read_only"}: a directory or file of
 *                                    the host, whose owner is the box's root. In a directory of the
 *                                    host's root a box can leave set-user-id programs of root, for
 *                                    every user who can reach them on the host: share it read-only,
 *                                    or mounted with nosuid. Boxes of a cluster take "claim", the name
 *                                    of a PersistentVolumeClaim, in place of "host_path"
 *   network       string   required  "Isolated", or "None"
 *   ports         array    required  {"host_port", "guest_port", "protocol": "Tcp" or "Udp", "host_ip":
 *                                    127.0.0.1 if left out}
 *   cpus          integer  2         at most the host's
 *   memory_mib    integer  512       16 or more, at most the host's
 *   disk_size_gb  integer  null      of 1024 MiB; needs mkfs.ext4 (e2fsprogs). null: the host's space,
 *                                    or disk_ceiling_gb of HOME/config.toml
 *   working_dir   string   null      absolute
 *   auto_remove   boolean  true      remove the box when it stops
 *   seccomp       string   "default" "strict": the system calls that Python, bash and compilers need,
 *                                    and little else
 *   allow_unenforced_limits boolean false  run where the user has no cgroups, too (docs/rootless.md)
 *   command       array    null      the main command, which is started with the box, each time: its
 *                                    arguments, or the string "image" for the image's Entrypoint with
 *                                    its Cmd. sandbox_box_info shows how it is doing
 *   restart       string   "no"      when it is started again: "always", "on-failure", or "on-failure:N"
 *                                    for N times at most
 *   stop_with_command boolean false  stop the box when the command has ended for good
 *   healthcheck   object   null      {"test": ["CMD", ...], ["CMD-SHELL", line] or ["NONE"], "interval_ms",
 *                                    "timeout_ms", "start_period_ms", "start_interval_ms", "retries"}; what
 *                                    is left out is as the image says
 *
 * *out: release with sandbox_box_free, which does not stop the box.
 *
 * Any thread. On failure no box is left.
 * Errors: SANDBOX_INVALID_ARGUMENT (the document: the message begins with
 * "invalid box options JSON:", and names everything that is missing or not
 * allowed; the host: a directory that is not there, more CPUs or memory than it
 * has), SANDBOX_IMAGE (it can't be pulled or read), SANDBOX_UNSUPPORTED (not root; what the host or
 * this version lacks), SANDBOX_RESOURCE_EXHAUSTED, SANDBOX_STOPPED (after
 * sandbox_runtime_shutdown).
 */
SandboxErrorCode sandbox_create_box(CSandboxRuntime *runtime, const char *options_json,
                                    CBoxHandle **out, CSandboxError *err);

/*
 * The same, with a name for the box: 1 to 128 letters, digits, '_', '.' or
 * '-', beginning with a letter or digit, not with "box_" or "exec_".
 *
 * Errors: as sandbox_create_box, and SANDBOX_ALREADY_EXISTS.
 */
SandboxErrorCode sandbox_create_named_box(CSandboxRuntime *runtime, const char *name,
                                          const char *options_json, CBoxHandle **out,
                                          CSandboxError *err);

/*
 * Starts a box again after a stop. Its disk is as it was.
 *
 * One thread a handle.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (it runs), SANDBOX_STOPPED.
 */
SandboxErrorCode sandbox_start_box(CBoxHandle *box, CSandboxError *err);

/*
 * Stops a box: SIGTERM to every process in it, SIGKILL after 10 seconds. The
 * disk is kept, unless the box has auto_remove: then it is gone. The handle
 * stays valid for sandbox_box_free.
 *
 * One thread a handle. Commands that run in the box end with SANDBOX_CANCELED.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (it does not run).
 */
SandboxErrorCode sandbox_stop_box(CBoxHandle *box, CSandboxError *err);

/*
 * Has all processes of a box stand still until sandbox_resume_box: they use no
 * CPU time, the timeouts of its commands wait, and what is read of them comes
 * when they go on. Nothing can be started in the box meanwhile. Its memory stays
 * where it is: a pause is no snapshot, and a restart of the host ends it.
 *
 * reclaim: not 0 has the kernel take back what it can of the box's memory, which
 *   takes time, now and after the box goes on.
 *
 * One thread a handle.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (it does not run),
 * SANDBOX_TIMEOUT (a process waits in the kernel, as for a disk: the box runs
 * on), SANDBOX_UNSUPPORTED (reclaim, where the kernel can't).
 */
SandboxErrorCode sandbox_pause_box(CBoxHandle *box, int reclaim, CSandboxError *err);

/*
 * Lets the processes of a paused box go on.
 *
 * One thread a handle.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (it is not paused).
 */
SandboxErrorCode sandbox_resume_box(CBoxHandle *box, CSandboxError *err);

/*
 * Changes how long a box lives, in whatever state it is.
 *
 * update_json: an object with some of these members; the others stay as they are.
 *   ttl_seconds: how long the box lives from now on, and from each start and
 *     resume: 1 to 31536000, or null for no end.
 *   idle_seconds: how long nobody may use it: no command runs in it, and nobody
 *     is connected to it. In the same range.
 *   on_expiry: what becomes of it then: "stop" (the default, which null is too),
 *     "pause" or "remove".
 *   auto_start: what needs the box to run starts or resumes it: true or false.
 *
 * One thread a handle.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_ARGUMENT.
 */
SandboxErrorCode sandbox_update_box(CBoxHandle *box, const char *update_json, CSandboxError *err);

/*
 * Finds a box of the home, whichever program made it.
 *
 * id_or_name: the full id, the name, or the beginning of an id that is not
 *   ambiguous ("box_" and at least 4 characters).
 * *out: a handle of its own; release with sandbox_box_free.
 *
 * Any thread.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_ALREADY_EXISTS (ambiguous).
 */
SandboxErrorCode sandbox_get(CSandboxRuntime *runtime, const char *id_or_name, CBoxHandle **out,
                             CSandboxError *err);

/*
 * Removes a box and its disk. A box that runs is removed only if force is not
 * 0. Handles of it stay valid for sandbox_box_free.
 *
 * Any thread.
 * Errors: as sandbox_get, and SANDBOX_INVALID_STATE (it runs).
 */
SandboxErrorCode sandbox_remove(CSandboxRuntime *runtime, const char *id_or_name, int force,
                                CSandboxError *err);

/*
 * All boxes of the home as a JSON array, newest first, "[]" when there are
 * none. Each is the object of sandbox_box_info without env.
 *
 * *out_json: release with sandbox_free_string. Any thread.
 */
SandboxErrorCode sandbox_list_info(CSandboxRuntime *runtime, char **out_json, CSandboxError *err);

/*
 * One box as a JSON object, found as by sandbox_get.
 *
 * *out_json: release with sandbox_free_string. Any thread.
 * Errors: as sandbox_get.
 */
SandboxErrorCode sandbox_get_info(CSandboxRuntime *runtime, const char *id_or_name, char **out_json,
                                  CSandboxError *err);

/*
 * The box as a JSON object: id, name, status, state {status, running, pid,
 * reason}, image, rootfs_path, cpus, memory_mib, disk_size_gb, network,
 * working_dir, env, volumes, ports, auto_remove, auto_start, labels, created_at,
 * updated_at, started_at, stopped_at, paused_at, ttl_seconds, idle_seconds,
 * on_expiry, expires_at, error {code, message}; with a main command also command,
 * restart, stop_with_command, healthcheck, and in state command {status, exec_id,
 * restarts, exit_code} and health {status, failing_streak, exit_code, output}. What
 * is not set is null. status is
 * "created", "running", "paused", "stopped" or "failed". Times are RFC 3339, UTC.
 *
 * *out_json: release with sandbox_free_string. One thread a handle.
 * Errors: SANDBOX_NOT_FOUND (the box was removed).
 */
SandboxErrorCode sandbox_box_info(CBoxHandle *box, char **out_json, CSandboxError *err);

/*
 * Statistics of the box as a JSON object: cpu_percent (the mean since it was
 * started; 100 is one CPU), memory_bytes, commands_executed_total,
 * exec_errors_total, bytes_sent_total (to the stdin of commands since the box
 * was started), bytes_received_total (of their output),
 * total_create_duration_ms, network_bytes_sent, network_bytes_received (by the
 * box's network since it was started, headers included; 0 with network None),
 * memory_cache_bytes (of memory_bytes, what files take up that are kept in
 * memory), processes (processes and threads of its commands), disk_bytes (that
 * its own disk takes up on the host; null without disk_size_gb),
 * disk_bytes_read and disk_bytes_written (from and to devices since it was
 * started; null where the host has cgroup v1).
 * Values that are unknown are null, as are most of a box that does not run.
 *
 * *out_json: release with sandbox_free_string. One thread a handle.
 * Errors: SANDBOX_NOT_FOUND.
 */
SandboxErrorCode sandbox_box_metrics(CBoxHandle *box, char **out_json, CSandboxError *err);

/*
 * What the box used over time, as its server has measured it: an object with box_id,
 * from, to, step_seconds and points, oldest first. Each has at, cpu_percent (the mean
 * since the point before; 100 is one CPU) and the largest memory_bytes,
 * memory_cache_bytes, processes and disk_bytes of its step; disk_bytes_read,
 * disk_bytes_written, network_bytes_sent and network_bytes_received count from the
 * box's start. What is unknown is null.
 *
 * from, to: RFC 3339, or how long ago, such as "90m" or "2d"; NULL is an hour ago,
 *   and now.
 * step_seconds: 0 is as short as the server has it for so long a time.
 * *out_json: release with sandbox_free_string.
 *
 * One thread a handle. Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_ARGUMENT,
 * SANDBOX_UNSUPPORTED (a home in this process keeps nothing), SANDBOX_UNAVAILABLE (the
 * server keeps nothing, or its log engine is down).
 */
SandboxErrorCode sandbox_box_metrics_series(CBoxHandle *box, const char *from, const char *to,
                                            int step_seconds, char **out_json, CSandboxError *err);

/*
 * The id of the box, or NULL if the handle is NULL or was released.
 *
 * Release with sandbox_free_string. One thread a handle.
 */
char *sandbox_box_id(CBoxHandle *box);

/*
 * Releases the handle. The box is not stopped. NULL and a second release do
 * nothing. A call that is running on the handle goes on.
 */
void sandbox_box_free(CBoxHandle *box);

/* ---- Snapshots ---- */

/*
 * Makes an image of the disk of a box as it is now: the box's image with one more
 * layer. Boxes are made of it as of any image, and sandbox_image_remove removes it.
 * Of a box that is stopped it takes milliseconds, whatever the size of its disk; one
 * that runs stands still while its disk is copied.
 *
 * name: of the image; one that exists is SANDBOX_ALREADY_EXISTS. NULL is "snapshot:"
 *   and 12 digits.
 * *out_json: the image's document with parent (the id of the image below), box (the
 *   id of the box) and paused_ms (for how long the box stood still); release with
 *   sandbox_free_string.
 *
 * One thread a handle. Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_ARGUMENT,
 * SANDBOX_UNSUPPORTED (a box of RootfsPath), SANDBOX_RESOURCE_EXHAUSTED (too many
 * layers), SANDBOX_TIMEOUT (the copy takes over a minute: stop the box first),
 * SANDBOX_STORAGE. The box is as it was then.
 */
SandboxErrorCode sandbox_box_snapshot(CBoxHandle *box, const char *name, char **out_json,
                                      CSandboxError *err);

/*
 * Makes boxes that are like a box, with the files of a snapshot of it. Ports of the
 * host are chosen anew. If one can't be made, none is. Those with auto_remove end as
 * if sandbox_create_box had made them.
 *
 * clone_json: NULL, or an object with some of these members.
 *   n: how many, 1 (the default) to 100.
 *   name_prefix: the names are this with -1, -2 and so on behind it; else they have
 *     none.
 *   snapshot: a snapshot of the box; else one is taken now.
 *   options: an object with members of the box options document that are otherwise,
 *     but for rootfs; env may be an object, and user, hostname and labels may stand
 *     there too.
 * *out_json: the documents of the boxes in an array; release with
 *   sandbox_free_string. sandbox_get gives handles.
 *
 * One thread a handle. Errors: those of sandbox_box_snapshot and sandbox_create_box.
 */
SandboxErrorCode sandbox_box_clone(CBoxHandle *box, const char *clone_json, char **out_json,
                                   CSandboxError *err);

/*
 * Gives a box the disk that it had when a snapshot of it was taken. The commands of a
 * box that is up end (SANDBOX_CANCELED), and it is started again; a stopped one stays
 * stopped. What was written since is gone, unless another snapshot has it.
 *
 * One thread a handle. Errors: SANDBOX_NOT_FOUND (the box, the snapshot),
 * SANDBOX_INVALID_ARGUMENT (it is no snapshot of this box), SANDBOX_IMAGE (a layer of
 * it is missing), SANDBOX_STORAGE.
 */
SandboxErrorCode sandbox_box_rollback(CBoxHandle *box, const char *snapshot, CSandboxError *err);

/*
 * Tells what has changed on the disk of a box: a page of it, in the order of the
 * paths. A directory that was removed is one change; of a new one each file is.
 *
 * from: a snapshot of the box; NULL is what the box was made of.
 * page_size: at most so many changes, up to 10000; 0 is 10000.
 * page_token: NULL, or next_page_token of the page before.
 * *out_json: {"changes": [{"path", "kind"}], "next_page_token"}; kind is "added",
 *   "changed" or "removed". next_page_token is null on the last page. Release with
 *   sandbox_free_string.
 *
 * One thread a handle. Errors: SANDBOX_NOT_FOUND (the box, the snapshot),
 * SANDBOX_INVALID_ARGUMENT (it is no snapshot of this box), SANDBOX_UNSUPPORTED (a box
 * of RootfsPath), SANDBOX_STORAGE.
 */
SandboxErrorCode sandbox_box_diff(CBoxHandle *box, const char *from, int page_size,
                                  const char *page_token, char **out_json, CSandboxError *err);

/*
 * The snapshots of a box, or of all boxes, as a JSON array: documents of images with
 * parent and box (see sandbox_box_snapshot), added_bytes (what its own layer occupies
 * on the disk) and boxes (the names, or else the ids, of those that stand on it). Each
 * stands behind the one below it.
 *
 * box: an id or a name, also the id of a box that is gone; NULL for all.
 * *out_json: release with sandbox_free_string. Any thread. Errors: SANDBOX_STORAGE.
 */
SandboxErrorCode sandbox_snapshots(CSandboxRuntime *runtime, const char *box, char **out_json,
                                   CSandboxError *err);

/* ---- Commands ---- */

/*
 * Runs a command in a box that runs, hands its output to callback, and waits
 * for its end.
 *
 * command: a path, or a name that is looked up in the box's PATH. No shell.
 * args_json: NULL, or a JSON array of strings; the command's own name is not
 *   part of it.
 * callback: NULL to drop the output. user_data is passed to it unchanged.
 * *out_exit_code: 0 to 255; -N if signal N ended the command (-9 also when it
 *   used more memory than the box has).
 *
 * One thread a handle; callbacks on that thread.
 * Returns SANDBOX_OK whenever the command ran to its own end, whatever its
 * exit code.
 * Errors: SANDBOX_EXECUTION (it can't be started: *out_exit_code is 127 if
 * there is no such command, 126 if it is not executable, its working directory
 * is missing or its user unknown), SANDBOX_CANCELED (the box was stopped or
 * removed during the call), SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (the box does
 * not run), SANDBOX_INVALID_ARGUMENT. Except as said, *out_exit_code is not
 * written then.
 */
SandboxErrorCode sandbox_execute(CBoxHandle *box, const char *command, const char *args_json,
                                 SandboxOutputCallback callback, void *user_data,
                                 int *out_exit_code, CSandboxError *err);

/*
 * The same, with environment, working directory, user and timeout.
 *
 * Errors: as sandbox_execute, and SANDBOX_TIMEOUT (timeout_secs passed: the
 * command and all that it started are gone, *out_exit_code is not written).
 */
SandboxErrorCode sandbox_execute_cmd(CBoxHandle *box, const SandboxCommand *cmd,
                                     SandboxOutputCallback callback, void *user_data,
                                     int *out_exit_code, CSandboxError *err);

/* ---- Executions: commands that are read, written to and ended as the caller likes ---- */

/* The descriptors of an execution. */
typedef enum SandboxStream {
  SANDBOX_STDIN = 0,
  SANDBOX_STDOUT = 1,
  SANDBOX_STDERR = 2,
  SANDBOX_EXIT = 3 /* readable when the command has ended; not to be read */
} SandboxStream;

/* The size of a terminal in characters. 0 means 80 columns, 24 rows. */
typedef struct SandboxTerminal {
  int cols, rows;
} SandboxTerminal;

/*
 * Starts a command in a box that runs, and returns at once.
 *
 * command: as for sandbox_execute_cmd.
 * open_stdin: not 0 for a standard input that sandbox_exec_write_stdin writes
 *   to; with 0 it is empty.
 * terminal: NULL for pipes; else the command runs on a terminal of that size,
 *   whose input and output are one stream, SANDBOX_STDOUT, and which is always
 *   open for input.
 * *out: release with sandbox_exec_free, also when the command could not be
 *   started: sandbox_exec_wait then says why. It belongs to the runtime and not
 *   to the handle of the box, which may be released before.
 *
 * Threads, here and below: one thread at a time reads or waits; another one
 * that tries gets SANDBOX_INVALID_STATE. Writing, signals and sandbox_exec_free
 * are allowed from other threads meanwhile.
 * Errors: SANDBOX_INVALID_ARGUMENT, SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE
 * (the box does not run), SANDBOX_RESOURCE_EXHAUSTED.
 */
SandboxErrorCode sandbox_exec_start(CBoxHandle *box, const SandboxCommand *command, int open_stdin,
                                    const SandboxTerminal *terminal, CSandboxExecution **out,
                                    CSandboxError *err);

/*
 * The commands of the box as a JSON array, newest first, the last 1,024: id,
 * box_id, cmd, working_dir, user, tty, status, reason, exit_code, signal,
 * created_at, started_at, ended_at.
 *
 * *out_json: release with sandbox_free_string. One thread a handle of a box.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (the box does not run).
 */
SandboxErrorCode sandbox_exec_list(CBoxHandle *box, char **out_json, CSandboxError *err);

/*
 * Takes over a command that no longer has a reader: its reader called
 * sandbox_exec_detach, or the process of its reader ended. Output that was not
 * read yet can still be read.
 *
 * exec_id: its full id.
 * *out: release with sandbox_exec_free.
 *
 * One thread a handle of a box.
 * Errors: SANDBOX_NOT_FOUND (the box, the command), SANDBOX_INVALID_STATE
 * (another reader has it; its reader released it).
 */
SandboxErrorCode sandbox_exec_attach(CBoxHandle *box, const char *exec_id, CSandboxExecution **out,
                                     CSandboxError *err);

/*
 * The id of the command, or NULL if the handle is NULL or was released.
 *
 * Release with sandbox_free_string. Any thread.
 */
char *sandbox_exec_id(CSandboxExecution *execution);

/*
 * The command as a JSON object, as sandbox_exec_list has it.
 *
 * *out_json: release with sandbox_free_string. Any thread.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (the box does not run).
 */
SandboxErrorCode sandbox_exec_info(CSandboxExecution *execution, char **out_json,
                                   CSandboxError *err);

/*
 * Waits for output and reads a piece of it: the bytes as the command wrote
 * them.
 *
 * buffer, capacity: where to, and how many bytes fit, 1 or more; 262144 is what
 *   the pipe of a command holds that prints much.
 * *out_length: bytes read; 0 when the command has ended and all output has been
 *   read. Output of a child that it left in the background is waited for 200
 *   milliseconds at most.
 * *out_stream: SANDBOX_STDOUT or SANDBOX_STDERR; may be NULL. Not written at
 *   the end.
 *
 * Errors: SANDBOX_CANCELED (the handle was released meanwhile),
 * SANDBOX_INVALID_STATE (another thread reads or waits).
 */
SandboxErrorCode sandbox_exec_read(CSandboxExecution *execution, void *buffer, size_t capacity,
                                   size_t *out_length, SandboxStream *out_stream,
                                   CSandboxError *err);

/*
 * A descriptor of the command, for poll, epoll and read or write by the caller.
 * It does not block: read and write fail with EAGAIN where they would. It
 * belongs to the execution, is closed by sandbox_exec_free, and must not be
 * closed by the caller. Who reads by descriptors ends with sandbox_exec_wait,
 * and does not call sandbox_exec_read; who only waits on them does. A stream of
 * which poll says POLLHUP without POLLIN has ended.
 *
 * stream: SANDBOX_STDIN (to write to), SANDBOX_STDOUT, SANDBOX_STDERR (not with
 *   a terminal), SANDBOX_EXIT.
 *
 * Any thread.
 * Errors: SANDBOX_INVALID_ARGUMENT (no such stream), SANDBOX_INVALID_STATE (the
 * command has no such stream, or its input was closed).
 */
SandboxErrorCode sandbox_exec_fd(CSandboxExecution *execution, SandboxStream stream, int *out_fd,
                                 CSandboxError *err);

/*
 * Writes to the command's standard input, or types on its terminal. Returns
 * when all is written.
 *
 * data, length: may be NULL and 0.
 *
 * One thread at a time, beside one that reads: a command that waits for its
 * output to be read does not read its input.
 * Errors: SANDBOX_INVALID_STATE (it has no open input, or has closed it),
 * SANDBOX_CANCELED (the handle was released meanwhile).
 */
SandboxErrorCode sandbox_exec_write_stdin(CSandboxExecution *execution, const void *data,
                                          size_t length, CSandboxError *err);

/*
 * Ends the command's input. A second call does nothing. Any thread.
 */
SandboxErrorCode sandbox_exec_close_stdin(CSandboxExecution *execution, CSandboxError *err);

/*
 * Waits for the end of the command, and drops the output that has not been
 * read. It can be called again, and then says the same.
 *
 * *out_exit_code and the return are those of sandbox_execute, with
 * SANDBOX_TIMEOUT as of sandbox_execute_cmd, and SANDBOX_CANCELED also after
 * sandbox_exec_kill.
 */
SandboxErrorCode sandbox_exec_wait(CSandboxExecution *execution, int *out_exit_code,
                                   CSandboxError *err);

/*
 * Ends the command and all that it started: SIGTERM, and SIGKILL after
 * grace_secs seconds (0 or more).
 *
 * Returns at once; sandbox_exec_wait waits for the end. Any thread.
 * Errors: SANDBOX_INVALID_STATE (it has ended), SANDBOX_INVALID_ARGUMENT.
 */
SandboxErrorCode sandbox_exec_kill(CSandboxExecution *execution, double grace_secs,
                                   CSandboxError *err);

/*
 * Sends a signal to the command's own process, such as SIGINT.
 *
 * Any thread.
 * Errors: SANDBOX_INVALID_STATE (it has ended), SANDBOX_INVALID_ARGUMENT (not a
 * number from 1 to 64).
 */
SandboxErrorCode sandbox_exec_signal(CSandboxExecution *execution, int signal_number,
                                     CSandboxError *err);

/*
 * Sets the size of the command's terminal, 1 to 65535 columns and rows.
 *
 * Any thread.
 * Errors: SANDBOX_INVALID_STATE (it has no terminal, it has ended),
 * SANDBOX_INVALID_ARGUMENT.
 */
SandboxErrorCode sandbox_exec_resize(CSandboxExecution *execution, int cols, int rows,
                                     CSandboxError *err);

/*
 * Leaves the command and its output to the next sandbox_exec_attach, of this
 * process or another one. The command goes on, and waits when its pipes are
 * full. The handle is released with it.
 */
SandboxErrorCode sandbox_exec_detach(CSandboxExecution *execution, CSandboxError *err);

/*
 * Releases the handle and closes its descriptors. A command that still runs
 * goes on, and its output is dropped: sandbox_exec_kill ends it. A call that
 * waits on the handle in another thread ends with SANDBOX_CANCELED. NULL and a
 * second release do nothing. Any thread.
 */
void sandbox_exec_free(CSandboxExecution *execution);

/* ---- Files ---- */

/* How far a call has come. Valid until the callback returns. */
typedef struct SandboxProgress {
  const char *stage; /* "copy"; of an image's layer: "fetch", "unpack", "pack", "send", "done" */
  int part, parts;   /* which layer, from 1, of how many; 1 of 1 of a copy */
  long long done;    /* bytes */
  long long total;   /* bytes, or -1 if that is not known */
} SandboxProgress;

/*
 * Is told how far a call has come, on the thread that called, which waits while
 * it runs. It may call the library. user_data is what the caller gave.
 */
typedef void (*SandboxProgressCallback)(const SandboxProgress *progress, void *user_data);

/*
 * Copies a file or a directory of the host into a box that runs.
 *
 * host_path: relative to the working directory, or absolute.
 * box_path: absolute. The copy goes into it if it is a directory or ends in
 *   "/", and becomes it otherwise. Missing directories are made. Modes are
 *   kept.
 * user: whose rights count and who owns what is made: a name or id of the box,
 *   with :group if wanted. NULL is the box's root.
 * callback: may be NULL. A directory passes as a tar, whose headers count.
 *
 * One thread a handle. No program of the box is needed.
 * Errors: SANDBOX_NOT_FOUND (the box, host_path), SANDBOX_INVALID_STATE (the box
 * does not run), SANDBOX_INVALID_ARGUMENT (a path, a user that the box does not
 * have), SANDBOX_PERMISSION_DENIED (host_path, or the user lacks the right),
 * SANDBOX_STORAGE (the box's disk).
 */
SandboxErrorCode sandbox_copy_in(CBoxHandle *box, const char *host_path, const char *box_path,
                                 const char *user, SandboxProgressCallback callback,
                                 void *user_data, CSandboxError *err);

/*
 * Copies a file or a directory of a box that runs to the host.
 *
 * box_path: absolute.
 * host_path: the copy goes into it if it is a directory or ends in "/", and
 *   becomes it otherwise. What is made belongs to this process's user and has
 *   the modes of the box, without set-user-id, set-group-id and what the umask
 *   forbids; devices, FIFOs and sockets are left out. Nothing is made outside of
 *   it, whatever the box holds.
 * user, callback: as of sandbox_copy_in; a user owns nothing on this host.
 *
 * One thread a handle. Errors: as sandbox_copy_in, with SANDBOX_NOT_FOUND for
 * box_path too.
 */
SandboxErrorCode sandbox_copy_out(CBoxHandle *box, const char *box_path, const char *host_path,
                                  const char *user, SandboxProgressCallback callback,
                                  void *user_data, CSandboxError *err);

/*
 * The functions below work on the files of a box that runs, where they are.
 *
 * path, from, to: absolute and UTF-8, without "..". They are resolved in the box,
 *   so no link leads out of it.
 * user: whose rights count and who owns what is made: a name or id of the box,
 *   with :group if wanted. NULL is the box's root.
 * *out_json: release with sandbox_free_string.
 *
 * A file is a document with name, path, type ("file", "directory", "symlink",
 * "fifo", "socket", "char_device", "block_device"), size, mode (octal, as in
 * "0755"), uid, gid, owner and group (names of the box's, or null), modified_at,
 * and target of a symlink. Where a path or target is not UTF-8, its exact bytes
 * are in path_base64 or target_base64.
 *
 * One thread a handle. No program of the box is needed. Errors:
 * SANDBOX_NOT_FOUND (the box, the path), SANDBOX_INVALID_STATE (the box does not
 * run), SANDBOX_INVALID_ARGUMENT (a path, a user that the box does not have),
 * SANDBOX_PERMISSION_DENIED (the user lacks the right), SANDBOX_STORAGE (the
 * box's disk), SANDBOX_UNSUPPORTED (the box was started by an older version).
 */

/* One file. A symlink that the path leads to is not followed. */
SandboxErrorCode sandbox_file_stat(CBoxHandle *box, const char *path, const char *user,
                                   char **out_json, CSandboxError *err);

/*
 * A page of the files below a directory, in the order of their paths:
 * {"files":[...],"next_page_token":...}. Links below it are not followed. A file
 * has "unreadable":true if it is a directory that the user may not read and that
 * was to be listed.
 *
 * depth: levels of directories, 1 to 64; 0 is 1.
 * page_size: 1 to 10,000; 0 is 10,000.
 * page_token: next_page_token of the page before, which is null on the last one;
 *   NULL for the first page.
 */
SandboxErrorCode sandbox_file_list(CBoxHandle *box, const char *path, int depth, int page_size,
                                   const char *page_token, const char *user, char **out_json,
                                   CSandboxError *err);

/*
 * Makes a directory, and those missing on the way to it. The document is the
 * directory's, with "created": false if it was there already.
 *
 * mode: permission bits of the directory itself, if it is made; -1 is 0755.
 */
SandboxErrorCode sandbox_file_make_dir(CBoxHandle *box, const char *path, int mode,
                                       const char *user, char **out_json, CSandboxError *err);

/*
 * Gives a file another path, and returns its document from there. A file that has
 * this path is replaced, a directory only by another one and if it is empty.
 * SANDBOX_INVALID_ARGUMENT also where it would move to another file system.
 */
SandboxErrorCode sandbox_file_move(CBoxHandle *box, const char *from, const char *to,
                                   const char *user, char **out_json, CSandboxError *err);

/*
 * Removes a file, or a directory; one that is not empty if recursive is not 0:
 * {"path":...,"removed":n}. No link is followed, and what is mounted below it, as a
 * volume, is not removed. What was removed before a failure is gone.
 */
SandboxErrorCode sandbox_file_remove(CBoxHandle *box, const char *path, int recursive,
                                     const char *user, char **out_json, CSandboxError *err);

/* A watch of a directory of a box. */
typedef struct CSandboxWatch CSandboxWatch;

/*
 * Begins to watch a directory of a box that runs, and if recursive is not 0 all
 * directories below it, those too that are made later. It returns once the watch
 * stands: no event after that is lost without an "overflow".
 *
 * *out: release with sandbox_watch_free; it ends with the runtime too.
 *
 * One thread a box handle. Errors: as of the functions above, and
 * SANDBOX_RESOURCE_EXHAUSTED (as many inotify watches as the box may have).
 */
SandboxErrorCode sandbox_watch_start(CBoxHandle *box, const char *path, int recursive,
                                     const char *user, CSandboxWatch **out, CSandboxError *err);

/*
 * Waits for the next event: a document with type ("create", "modify", "remove",
 * "rename", "attributes") and path; of a rename the new one, beside from; with
 * "directory":true of a directory. "overflow" says that others were lost before it.
 * "end" is the last, with reason "removed" (the directory), "box_stopped" or
 * "failed" (message says why).
 *
 * timeout_secs: SANDBOX_TIMEOUT after this time, and nothing is lost; -1 waits for
 *   ever, 0 does not wait.
 * *out_json: release with sandbox_free_string.
 *
 * Any thread. Errors: SANDBOX_INVALID_STATE (the last event was read),
 * SANDBOX_CANCELED (released meanwhile), SANDBOX_UNAVAILABLE (the server).
 */
SandboxErrorCode sandbox_watch_read(CSandboxWatch *watch, double timeout_secs, char **out_json,
                                    CSandboxError *err);

/*
 * A descriptor that can be read, as poll and epoll say, while an event waits, and
 * from the end on: sandbox_watch_read does not wait long then. It belongs to the
 * watch, is closed by sandbox_watch_free, and must not be read or closed by the
 * caller.
 *
 * Any thread. Errors: SANDBOX_CANCELED (released meanwhile).
 */
SandboxErrorCode sandbox_watch_fd(CSandboxWatch *watch, int *out_fd, CSandboxError *err);

/* Ends the watch and releases its handle. NULL does nothing. Any thread. */
void sandbox_watch_free(CSandboxWatch *watch);

/* ---- Ports ---- */

/*
 * Connects to a TCP port of a box that runs, published or not, whatever network the
 * box has: to a program that listens on its 127.0.0.1, ::1 or own address.
 *
 * *out_fd: a connected stream socket (AF_UNIX, blocking, close-on-exec), which is the
 *   caller's: read, write, poll and shutdown it as any, and close it with close(2).
 *   The library passes its bytes on, and each direction ends for itself. It ends with
 *   the box and with the runtime, and also where the connection breaks off.
 *
 * One thread a box handle. Errors: SANDBOX_NETWORK (nothing listens there, or accepts
 * within 10 s), SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE (the box does not run),
 * SANDBOX_INVALID_ARGUMENT (the port), SANDBOX_RESOURCE_EXHAUSTED (descriptors).
 */
SandboxErrorCode sandbox_box_connect(CBoxHandle *box, int port, int *out_fd, CSandboxError *err);

/*
 * Makes a link that leads people without a key to a TCP port of a box of a server. It
 * ends with the box, too.
 *
 * expires_in_seconds: at most 30 days; 0 is an hour.
 * *out_json: a document with url, box_id, port and expires_at; release with
 *   sandbox_free_string.
 *
 * One thread a box handle. Errors: SANDBOX_UNSUPPORTED (the boxes of a home have no
 * links), SANDBOX_NOT_FOUND, SANDBOX_INVALID_ARGUMENT, SANDBOX_UNAVAILABLE (no browser
 * can reach the server).
 */
SandboxErrorCode sandbox_box_share(CBoxHandle *box, int port, int expires_in_seconds, char **out_json,
                                   CSandboxError *err);

/* ---- Code ---- */

/* A run of code in a context of a box. */
typedef struct CSandboxCodeRun CSandboxCodeRun;

/*
 * Runs code in a context of a box that runs: a process of a language, which keeps
 * what the code defines. It returns once the code runs, and waits for the runs in
 * the same context that were asked for before.
 *
 * code_json: a document with code, and optionally language ("python", the default,
 *   "javascript" or "bash"), context (an id; else the one that the language has of
 *   its own), env (an object) and timeout_ms.
 * *out: release with sandbox_code_free; it ends with the runtime too.
 *
 * One thread a box handle. Errors: SANDBOX_INVALID_ARGUMENT, SANDBOX_NOT_FOUND (the
 * box, the context), SANDBOX_INVALID_STATE (the box does not run; another program
 * runs code in the context), SANDBOX_EXECUTION (the box does not have the language),
 * SANDBOX_RESOURCE_EXHAUSTED (too many runs wait), SANDBOX_TIMEOUT (the language does
 * not start).
 */
SandboxErrorCode sandbox_code_start(CBoxHandle *box, const char *code_json, CSandboxCodeRun **out,
                                    CSandboxError *err);

/*
 * Waits for the next event: a document with type. "start" is the first, with
 * context_id, execution_count and fresh; "stdout" and "stderr" have text, "result" a
 * result in all its forms, "error" an error with name, value and traceback. "end" is
 * the last, with status ("succeeded", "failed", "interrupted", "timed_out", "lost"),
 * duration_ms and restarted.
 *
 * timeout_secs: SANDBOX_TIMEOUT after this time, and nothing is lost; -1 waits for
 *   ever, 0 does not wait.
 * *out_json: release with sandbox_free_string.
 *
 * Any thread. Errors: SANDBOX_INVALID_STATE (the last event was read),
 * SANDBOX_CANCELED (released meanwhile), SANDBOX_UNAVAILABLE (the server).
 */
SandboxErrorCode sandbox_code_read(CSandboxCodeRun *run, double timeout_secs, char **out_json,
                                   CSandboxError *err);

/*
 * A descriptor that can be read, as poll and epoll say, while an event waits, and
 * from the end on: as sandbox_watch_fd, with sandbox_code_read.
 *
 * Any thread. Errors: SANDBOX_CANCELED (released meanwhile).
 */
SandboxErrorCode sandbox_code_fd(CSandboxCodeRun *run, int *out_fd, CSandboxError *err);

/* Releases a run, and interrupts code that still runs. NULL does nothing. Any thread. */
void sandbox_code_free(CSandboxCodeRun *run);

/*
 * Makes a context. options_json may be NULL; a document with language, working_dir,
 * user and env (an object).
 *
 * *out_json: the context (id, box_id, exec_id, language, working_dir, user,
 *   created_at); release with sandbox_free_string.
 *
 * One thread a box handle. Errors: as of sandbox_code_start, and
 * SANDBOX_RESOURCE_EXHAUSTED (the box has as many contexts as it may have).
 */
SandboxErrorCode sandbox_context_create(CBoxHandle *box, const char *options_json, char **out_json,
                                        CSandboxError *err);

/*
 * The contexts of a box as a JSON array, newest first.
 *
 * *out_json: release with sandbox_free_string. One thread a box handle. Errors:
 * SANDBOX_NOT_FOUND, SANDBOX_INVALID_STATE.
 */
SandboxErrorCode sandbox_context_list(CBoxHandle *box, char **out_json, CSandboxError *err);

/*
 * Interrupts the code that a context runs, as control-C does on a terminal. Between
 * two runs nothing happens. From another thread it needs a box handle of its own.
 *
 * *out_json: the context; release with sandbox_free_string. Errors: as of
 * sandbox_context_list, SANDBOX_NOT_FOUND of the context too.
 */
SandboxErrorCode sandbox_context_interrupt(CBoxHandle *box, const char *context_id, char **out_json,
                                           CSandboxError *err);

/*
 * Ends the processes of a context and starts it anew, with nothing of what code has
 * defined. A run in it ends with the status "lost".
 *
 * *out_json: the context; release with sandbox_free_string. Errors: as of
 * sandbox_context_interrupt.
 */
SandboxErrorCode sandbox_context_restart(CBoxHandle *box, const char *context_id, char **out_json,
                                         CSandboxError *err);

/* Ends a context with all of its processes. Errors: as of sandbox_context_interrupt. */
SandboxErrorCode sandbox_context_remove(CBoxHandle *box, const char *context_id, CSandboxError *err);

/* ---- Images ---- */

/*
 * The images of the home as a JSON array: name, id, digest, layers, size,
 * architecture, env, working_dir, user, entrypoint, cmd, healthcheck, stop_signal,
 * labels, exposed_ports, created_at.
 *
 * *out_json: release with sandbox_free_string. Any thread.
 */
SandboxErrorCode sandbox_image_list(CSandboxRuntime *runtime, char **out_json, CSandboxError *err);

/*
 * Gets an image from its registry, also if the home has one of that name. Layers
 * that the home has are not fetched; a pull that broke off is gone on with.
 *
 * reference: an alias, or a reference such as "debian:12".
 * callback: may be NULL.
 * *out_json: the image, as sandbox_image_list has it; release with
 *   sandbox_free_string. out_json may be NULL.
 *
 * Any thread. Errors: SANDBOX_IMAGE (it can't be pulled or read),
 * SANDBOX_NETWORK (the registry can't be reached), SANDBOX_INVALID_ARGUMENT
 * (reference).
 */
SandboxErrorCode sandbox_image_pull(CSandboxRuntime *runtime, const char *reference,
                                    SandboxProgressCallback callback, void *user_data,
                                    char **out_json, CSandboxError *err);

/*
 * Makes an image of a directory or an archive of the host.
 *
 * name: what it is called, such as "mine:1".
 * source: a directory with a root file system, a tar of one (plain, gzip or
 *   zstd), a docker-archive, an OCI layout or a tar of one.
 * callback, out_json: as of sandbox_image_pull.
 *
 * Any thread. Errors: SANDBOX_INVALID_ARGUMENT (name, source), SANDBOX_IMAGE (it
 * can't be read).
 */
SandboxErrorCode sandbox_image_import(CSandboxRuntime *runtime, const char *name,
                                      const char *source, SandboxProgressCallback callback,
                                      void *user_data, char **out_json, CSandboxError *err);

/*
 * Writes an image to a file: an OCI archive, for sandbox_image_import, podman and
 * docker. The same image always gives the same bytes.
 *
 * reference: as of sandbox_image_pull; the image must be there already.
 * path: of the host. A file is replaced once the new one is whole.
 * compression: of the layers: "zstd", "gzip" or "none"; NULL is "zstd".
 * callback: as of sandbox_image_pull. A server tells no progress.
 *
 * Any thread. Errors: SANDBOX_NOT_FOUND (reference), SANDBOX_INVALID_ARGUMENT,
 * SANDBOX_IMAGE (it has what no image can have, or lacks a layer),
 * SANDBOX_STORAGE.
 */
SandboxErrorCode sandbox_image_export(CSandboxRuntime *runtime, const char *reference,
                                      const char *path, const char *compression,
                                      SandboxProgressCallback callback, void *user_data,
                                      CSandboxError *err);

/*
 * Sends an image to a registry. What the registry has is not sent.
 *
 * reference: as of sandbox_image_export.
 * as: where to, with the registry, such as "registry.example/team/app:1"; NULL is
 *   the image's own name.
 * compression, callback: as of sandbox_image_export.
 * *out_json: {"reference","digest"}; release with sandbox_free_string. out_json
 *   may be NULL.
 *
 * Any thread. Errors: those of sandbox_image_export, SANDBOX_NETWORK (the registry
 * can't be reached, or refuses it).
 */
SandboxErrorCode sandbox_image_push(CSandboxRuntime *runtime, const char *reference, const char *as,
                                    const char *compression, SandboxProgressCallback callback,
                                    void *user_data, char **out_json, CSandboxError *err);

/* A build of an image. */
typedef struct CSandboxBuild CSandboxBuild;

/*
 * Begins to build an image of a recipe, the common subset of Dockerfile that
 * docs/build.md lists. It returns once the recipe was read and the context was looked
 * through.
 *
 * build_json: a document with recipe (its text) or recipe_path (a file of the host),
 *   else the recipe is the file Dockerfile of the context. context is the directory of
 *   the host whose files the recipe may copy: it may be left out where the recipe
 *   copies none, and is sent to a server. name is that of the image; else it is made
 *   of the id. Optional too: target (the stage that becomes the image), args (an
 *   object, the values for ARG), no_cache, no_network (RUN has none), timeout_ms (of
 *   each RUN; an hour), cpus and memory_mib (of each box).
 * *out: release with sandbox_build_free; it ends with the runtime too.
 *
 * Any thread. Errors: SANDBOX_INVALID_ARGUMENT (the document; the recipe, with all that
 * is wrong by its line; the context).
 */
SandboxErrorCode sandbox_build_start(CSandboxRuntime *runtime, const char *build_json,
                                     CSandboxBuild **out, CSandboxError *err);

/*
 * Waits for the next event: a document with type, and a member of that name. "progress"
 * is that of a layer of an image that the recipe stands on; "step" says that a step
 * begins or has ended: step and steps, line and text of the recipe, stage ("begun",
 * "cached", "done") and ms; "output" is what the command of a step prints: step, stream
 * ("stdout", "stderr"), data, and encoding where data is not text: no piece ends inside
 * a character. "end" is the last, with the image, or with error (code and message) if the
 * build has failed. While nobody reads or waits, the build waits.
 *
 * timeout_secs: SANDBOX_TIMEOUT after this time, and nothing is lost; -1 waits for
 *   ever, 0 does not wait.
 * *out_json: release with sandbox_free_string.
 *
 * Any thread. Errors: SANDBOX_INVALID_STATE (the last event was read),
 * SANDBOX_CANCELED (released meanwhile).
 */
SandboxErrorCode sandbox_build_read(CSandboxBuild *build, double timeout_secs, char **out_json,
                                    CSandboxError *err);

/*
 * Waits for the end, and drops events that were not read. A second call returns the same.
 *
 * *out_json: the image, as sandbox_image_list has it; release with
 *   sandbox_free_string. out_json may be NULL.
 *
 * Any thread. Errors: SANDBOX_INVALID_ARGUMENT (the recipe), SANDBOX_NOT_FOUND (a file to
 * be copied), SANDBOX_IMAGE (a base image; a command that failed), SANDBOX_TIMEOUT (a
 * command that took too long), SANDBOX_RESOURCE_EXHAUSTED, SANDBOX_UNAVAILABLE (the
 * server), SANDBOX_CANCELED (released meanwhile), and those of sandbox_create_box.
 */
SandboxErrorCode sandbox_build_wait(CSandboxBuild *build, char **out_json, CSandboxError *err);

/*
 * A descriptor that can be read, as poll and epoll say, while an event waits, and
 * from the end on: as sandbox_watch_fd, with sandbox_build_read.
 *
 * Any thread. Errors: SANDBOX_CANCELED (released meanwhile).
 */
SandboxErrorCode sandbox_build_fd(CSandboxBuild *build, int *out_fd, CSandboxError *err);

/*
 * Releases a build, and ends one that goes on: it leaves no box (a server ends it a
 * moment later), and what its steps have made is there for the next build. NULL does
 * nothing. Any thread.
 */
void sandbox_build_free(CSandboxBuild *build);

/*
 * Removes an image and the layers that nothing else needs. Boxes keep their
 * files.
 *
 * reference: as of sandbox_image_pull.
 * force: not 0 removes it also while boxes were made from it, or another alias
 *   stands for it.
 *
 * Any thread.
 * Errors: SANDBOX_NOT_FOUND, SANDBOX_INVALID_ARGUMENT (reference),
 * SANDBOX_INVALID_STATE (it is in use: the message names the users).
 */
SandboxErrorCode sandbox_image_remove(CSandboxRuntime *runtime, const char *reference, int force,
                                      CSandboxError *err);

/* ---- Simple ---- */

/*
 * Makes a box from an image of the default home, with an isolated network, to
 * be used with sandbox_simple_run.
 *
 * cpus, memory_mib: 0 or less for the defaults, 2 and 512.
 * *out: release with sandbox_simple_free.
 *
 * Any thread.
 * Errors: as sandbox_runtime_new and sandbox_create_box.
 */
SandboxErrorCode sandbox_simple_new(const char *image, int cpus, int memory_mib,
                                    CSandboxSimple **out, CSandboxError *err);

/*
 * Runs a command and returns all its output at once.
 *
 * args: argc strings, the command's own name not included; may be NULL when
 *   argc is 0.
 * *out: release with sandbox_result_free. exit_code is that of
 *   sandbox_execute; the texts are cleaned as a callback's are.
 *
 * One thread a handle. The box is the same in every run.
 * Errors: as sandbox_execute, with *out NULL, and SANDBOX_RESOURCE_EXHAUSTED
 * (more than 64 MiB on a stream: the command is killed).
 */
SandboxErrorCode sandbox_simple_run(CSandboxSimple *simple, const char *command,
                                    const char *const *args, int argc, CSandboxExecResult **out,
                                    CSandboxError *err);

/* Releases the handle; stops and removes its box. NULL and a second release do nothing. */
void sandbox_simple_free(CSandboxSimple *simple);

/* ---- Memory ---- */

/* Releases a result of sandbox_simple_run, once. NULL does nothing. Any thread. */
void sandbox_result_free(CSandboxExecResult *result);

/* Releases a string that a function of this header handed out, once. NULL does nothing. Any thread. */
void sandbox_free_string(char *text);

/*
 * Frees the message and makes the struct as new: message NULL, code
 * SANDBOX_OK. The struct itself is the caller's. NULL and a second call do
 * nothing. Any thread.
 */
void sandbox_error_free(CSandboxError *err);

#ifdef __cplusplus
}
#endif

#endif /* SANDBOX_H */
