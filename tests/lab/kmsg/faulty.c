/*
 * A kernel log that fails: loaded with LD_PRELOAD, it makes calls on one path answer an error now and then.
 *
 * KMSG_PATH names the log as it is opened, KMSG_FAULTS a file. While that file is there, its first line, a call
 * and a number, is the errno that the next such call answers (`read 32`, `open 1`); the file's lines are used
 * up one by one, and a line that begins with `*` stays. The tests replace the file in one step.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int watched = -1;

static int fault(const char *call) {
    const char *name = getenv("KMSG_FAULTS");
    FILE *file = name ? fopen(name, "r+") : NULL;
    if (file == NULL) {
        return 0;
    }
    char line[64], rest[4096];
    int number = 0;
    if (fgets(line, sizeof line, file) != NULL) {
        const char *text = line[0] == '*' ? line + 1 : line;
        size_t length = strlen(call);
        if (strncmp(text, call, length) == 0 && text[length] == ' ') {
            number = atoi(text + length);
        }
        if (number != 0 && line[0] != '*') {
            size_t left = fread(rest, 1, sizeof rest, file);
            rewind(file);
            fwrite(rest, 1, left, file);
            fflush(file);
            if (ftruncate(fileno(file), (off_t)left) != 0) {
                abort();
            }
        }
    }
    fclose(file);
    return number;
}

int open64(const char *path, int flags, ...) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    const char *log = getenv("KMSG_PATH");
    int is_log = log != NULL && strcmp(path, log) == 0;
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    int number = is_log ? fault("open") : 0;
    if (number != 0) {
        errno = number;
        return -1;
    }
    int descriptor = next(path, flags, mode);
    if (is_log) {
        watched = descriptor;
    }
    return descriptor;
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return open64(path, flags, mode);
}

int close(int descriptor) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (descriptor == watched) {
        watched = -1;
    }
    return next(descriptor);
}

ssize_t read(int descriptor, void *buffer, size_t size) {
    ssize_t (*next)(int, void *, size_t) = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    int number = descriptor >= 0 && descriptor == watched ? fault("read") : 0;
    if (number != 0) {
        errno = number;
        return -1;
    }
    return next(descriptor, buffer, size);
}
