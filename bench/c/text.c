/*
 * text BYTES [cyrillic]: writes that many bytes of text to stdout, 64 KiB at a
 * time. Cyrillic text has no ASCII at all: two bytes a letter, and no spaces.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char block[64 << 10];

int main(int argc, char **argv)
{
    static const char ascii[] = "The quick brown fox jumps over the lazy dog, and runs on and on.\n";
    static const char cyrillic[] = "съешьжеещёэтихмягкихфранцузскихбулок";
    const char *line = argc == 3 ? cyrillic : ascii;
    size_t length = strlen(line);
    long long left = argc >= 2 ? atoll(argv[1]) : 0;
    size_t i;

    for (i = 0; i < sizeof block; i++)
        block[i] = line[i % length];
    while (left > 0) {
        ssize_t n = write(1, block, left < (long long)sizeof block ? (size_t)left : sizeof block);
        if (n < 0)
            return 1;
        left -= n;
    }
    return 0;
}
