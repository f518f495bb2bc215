/*
 * host HOME NAME: makes boxes in this process until it is killed or its input
 * ends, runs a command with known output in each and removes it. Each failure
 * is a line: the call, its code, when the call began (ms since 1970), the box,
 * and the message.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sandbox.h"

#define THREADS 2
#define LINES 400
#define PAUSE 20000 /* microseconds after a failure */

static const char options[] = "{\"rootfs\":{\"Image\":\"busybox\"},\"cpus\":1,\"memory_mib\":64,"
                              "\"env\":[],\"volumes\":[],\"network\":\"Isolated\",\"ports\":[]}";
static const char args[] = "[\"-c\",\"i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done; exit 3\"]";

static CSandboxRuntime *runtime;
static const char *prefix;
static atomic_int boxes, over;
static char want[LINES * 16];

static long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

struct output {
    char text[sizeof want + 4096];
};

static void keep(const char *text, int is_stderr, void *data)
{
    struct output *out = data;

    (void)is_stderr;
    strncat(out->text, text, sizeof out->text - strlen(out->text) - 1);
}

/* Tells a failure; true if there is none. */
static int ok(const char *what, const char *name, long long began, SandboxErrorCode code, CSandboxError *err)
{
    if (code == SANDBOX_OK)
        return 1;
    printf("%s %d %lld %s %s\n", what, (int)code, began, name, err->message);
    sandbox_error_free(err);
    return 0;
}

/* Removes a box, however often that takes: a try that failed may have done it. */
static void discard(const char *name)
{
    CSandboxError err = {SANDBOX_OK, NULL};
    SandboxErrorCode code;
    long long began;
    int again;

    for (again = 0;; again = 1) {
        began = now();
        code = sandbox_remove(runtime, name, 1, &err);
        if ((again && code == SANDBOX_NOT_FOUND) || ok("remove", name, began, code, &err))
            break;
        usleep(PAUSE);
    }
    sandbox_error_free(&err);
}

static void one(void)
{
    CBoxHandle *box = NULL;
    CSandboxError err = {SANDBOX_OK, NULL};
    struct output *out = calloc(1, sizeof *out);
    long long began = now();
    char name[128];
    int status = -1;

    snprintf(name, sizeof name, "%s-%d", prefix, atomic_fetch_add(&boxes, 1));
    if (out && ok("create", name, began, sandbox_create_named_box(runtime, name, options, &box, &err), &err)) {
        began = now();
        if (ok("exec", name, began, sandbox_execute(box, "/bin/sh", args, keep, out, &status, &err), &err) &&
            (status != 3 || strcmp(out->text, want) != 0))
            printf("output 0 %lld %s status %d, %zu bytes\n", began, name, status, strlen(out->text));
        discard(name);
    } else {
        usleep(PAUSE);
    }
    sandbox_box_free(box);
    free(out);
}

static void *work(void *unused)
{
    while (!atomic_load(&over))
        one();
    return unused;
}

int main(int argc, char **argv)
{
    CSandboxError err = {SANDBOX_OK, NULL};
    pthread_t threads[THREADS];
    char line[32], byte;
    int i;

    if (argc != 3)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    prefix = argv[2];
    for (i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        strcat(want, line);
    }
    if (!ok("open", prefix, now(), sandbox_runtime_new(argv[1], NULL, &runtime, &err), &err))
        return 1;
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    while (read(0, &byte, 1) > 0)
        ;
    atomic_store(&over, 1);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sandbox_runtime_free(runtime);
    return 0;
}
