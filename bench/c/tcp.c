/*
 * tcp serve PORT: listens, and takes what comes until its end, connection by
 * connection, in the background; ends when it listens.
 * tcp send ADDRESS PORT BYTES STREAMS: sends that many bytes over that many
 * connections at once, and waits until the other side has taken them.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char block[128 << 10];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in address(const char *ip, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};

    if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
        fail(ip);
    return a;
}

static void serve(const char *port)
{
    struct sockaddr_in a = address("0.0.0.0", port);
    int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 64))
        fail("listen");
    if (fork()) {
        puts("ready");
        exit(0);
    }
    setsid();
    close(0), close(1), close(2);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int c = accept(l, NULL, NULL);
        if (c >= 0 && fork() == 0) {
            while (read(c, block, sizeof block) > 0)
                ;
            _exit(0);
        }
        close(c);
    }
}

static void sendall(struct sockaddr_in a, long long left)
{
    int c = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(c, (struct sockaddr *)&a, sizeof a))
        fail("connect");
    while (left > 0) {
        ssize_t n = write(c, block, left < (long long)sizeof block ? (size_t)left : sizeof block);
        if (n < 0)
            fail("write");
        left -= n;
    }
    shutdown(c, SHUT_WR);
    exit(read(c, block, 1) == 0 ? 0 : 1);
}

int main(int argc, char **argv)
{
    int i, status, failed = 0;

    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        serve(argv[2]);
    if (argc != 6 || strcmp(argv[1], "send") != 0)
        return 2;
    for (i = 0; i < atoi(argv[5]); i++)
        if (fork() == 0)
            sendall(address(argv[2], argv[3]), atoll(argv[4]) / atoi(argv[5]));
    while (wait(&status) > 0)
        failed |= status;
    puts(failed ? "failed" : "sent");
    return failed ? 1 : 0;
}
