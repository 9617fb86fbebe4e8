/* System calls that fail when a test says so. The file named by FAULTS contains one line, "READS WRITES NAME":
 * the errno for reads and writes of files whose path contains NAME, 0 for none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fault(int fd, int writing) {
    char link[64], path[4096], line[256], name[128];
    int reads, writes, saved = errno;
    int plan = syscall(SYS_openat, AT_FDCWD, getenv("FAULTS"), O_RDONLY | O_CLOEXEC);
    long got = plan < 0 ? 0 : syscall(SYS_read, plan, line, sizeof line - 1);
    if (plan >= 0)
        syscall(SYS_close, plan);
    errno = saved;
    line[got > 0 ? got : 0] = 0;
    if (sscanf(line, "%d %d %127s", &reads, &writes, name) != 3)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    path[length > 0 ? length : 0] = 0;
    return strstr(path, name) ? (writing ? writes : reads) : 0;
}

#define WRAP(result, function, writing, arguments, ...)                \
    result function arguments {                                        \
        static result(*real) arguments;                                \
        if (!real)                                                     \
            real = (result(*) arguments)dlsym(RTLD_NEXT, #function);   \
        int error = fault(fd, writing);                                \
        if (error) {                                                   \
            errno = error;                                             \
            return -1;                                                 \
        }                                                              \
        return real(__VA_ARGS__);                                      \
    }

WRAP(ssize_t, pread, 0, (int fd, void *to, size_t count, off_t at), fd, to, count, at)
WRAP(ssize_t, pread64, 0, (int fd, void *to, size_t count, off64_t at), fd, to, count, at)
WRAP(ssize_t, write, 1, (int fd, const void *from, size_t count), fd, from, count)
WRAP(ssize_t, pwrite, 1, (int fd, const void *from, size_t count, off_t at), fd, from, count, at)
WRAP(ssize_t, pwrite64, 1, (int fd, const void *from, size_t count, off64_t at), fd, from, count, at)
