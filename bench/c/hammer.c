/*
 * hammer HOME ROOTFS BOXES: creates, uses and removes BOXES boxes from 8
 * threads at once. Prints the id of each box that went well.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox.h"

#define THREADS 8

static CSandboxRuntime *runtime;
static char options[4096];
static atomic_int left;

static void interrupted(int signal)
{
    (void)signal;
    atomic_store(&left, 0);
}

struct output { char text[64]; };

static void keep(const char *text, int is_stderr, void *data)
{
    struct output *out = data;

    if (!is_stderr)
        strncat(out->text, text, sizeof out->text - strlen(out->text) - 1);
}

/* Says what failed; true if nothing did. */
static int ok(const char *what, SandboxErrorCode code, CSandboxError *err)
{
    if (code == SANDBOX_OK)
        return 1;
    fprintf(stderr, "hammer: %s: %d: %s\n", what, (int)code, err->message);
    sandbox_error_free(err);
    return 0;
}

static void one(void)
{
    CBoxHandle *box = NULL;
    CSandboxError err = {SANDBOX_OK, NULL};
    struct output out = {""};
    int status = -1, good;
    char *id;

    if (!ok("create", sandbox_create_box(runtime, options, &box, &err), &err))
        return;
    id = sandbox_box_id(box);
    good = ok("execute", sandbox_execute(box, "/bin/echo", "[\"hi\"]", keep, &out, &status, &err), &err);
    if (good && (status != 0 || strcmp(out.text, "hi\n") != 0)) {
        fprintf(stderr, "hammer: %s: status %d, output \"%s\"\n", id, status, out.text);
        good = 0;
    }
    if (ok("remove", sandbox_remove(runtime, id, 1, &err), &err) && good)
        puts(id); /* one call: whole lines */
    sandbox_free_string(id);
    sandbox_box_free(box);
}

static void *work(void *unused)
{
    while (atomic_fetch_sub(&left, 1) > 0)
        one();
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction on_interrupt;
    pthread_t threads[THREADS];
    CSandboxError err = {SANDBOX_OK, NULL};
    int i;

    if (argc != 4)
        return 2;
    snprintf(options, sizeof options,
             "{\"rootfs\":{\"RootfsPath\":\"%s\"},\"cpus\":1,\"env\":[],\"volumes\":[],\"network\":\"Isolated\",\"ports\":[]}", argv[2]);
    if (!ok("runtime", sandbox_runtime_new(argv[1], NULL, &runtime, &err), &err))
        return 1;
    memset(&on_interrupt, 0, sizeof on_interrupt);
    on_interrupt.sa_handler = interrupted;
    on_interrupt.sa_flags = SA_ONSTACK | SA_RESTART; /* as the Go runtime needs it */
    sigaction(SIGINT, &on_interrupt, NULL);
    atomic_store(&left, atoi(argv[3]));
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sandbox_runtime_free(runtime);
    return 0;
}
