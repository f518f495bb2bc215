/*
 * stream HOME ROOTFS COMMAND: makes a box and says "ready". Then, for each line on
 * stdin, a JSON array, runs COMMAND with these arguments in it and answers how
 * many nanoseconds that took and how many bytes of text the callback was given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sandbox.h"

static void count(const char *text, int is_stderr, void *bytes)
{
    if (!is_stderr)
        *(long long *)bytes += (long long)strlen(text);
}

static long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void must(SandboxErrorCode code, CSandboxError *err)
{
    if (code == SANDBOX_OK)
        return;
    fprintf(stderr, "stream: %d: %s\n", (int)code, err->message);
    exit(1);
}

int main(int argc, char **argv)
{
    CSandboxRuntime *runtime = NULL;
    CBoxHandle *box = NULL;
    CSandboxError err = {SANDBOX_OK, NULL};
    char options[4096], args[256];

    if (argc != 4)
        return 2;
    snprintf(options, sizeof options,
             "{\"rootfs\":{\"RootfsPath\":\"%s\"},\"cpus\":1,\"env\":[],\"volumes\":[],\"network\":\"Isolated\",\"ports\":[]}", argv[2]);
    must(sandbox_runtime_new(argv[1], NULL, &runtime, &err), &err);
    must(sandbox_create_box(runtime, options, &box, &err), &err);
    puts("ready");
    fflush(stdout);
    while (fgets(args, sizeof args, stdin)) {
        long long bytes = 0, start = now();
        int status = -1;

        must(sandbox_execute(box, argv[3], args, count, &bytes, &status, &err), &err);
        printf("%lld %lld\n", now() - start, status == 0 ? bytes : -1LL);
        fflush(stdout);
    }
    sandbox_runtime_free(runtime); /* removes the box: it is auto_remove */
    return 0;
}
