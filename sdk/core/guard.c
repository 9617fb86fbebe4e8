/* If somebody truncates a ring file while we write to it, the next store raises SIGBUS and kills the training.
   The handler replaces the file's page with plain memory: what we store there is lost, but training continues.
   A bus error anywhere else is not ours and goes to the previous handler. */

#include "core.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_GUARDED = 64 }; /* rings per process; any more are not guarded */

static struct {
    volatile uintptr_t from, to;
} guarded[MOST_GUARDED];
static struct sigaction before;
static uintptr_t page_bytes;

static int replace_page(uintptr_t at) {
    void *page = (void *)(at & ~(page_bytes - 1));
    int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;
    return mmap(page, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t)info->si_addr;
    for (int index = 0; index < MOST_GUARDED; index++)
        if (guarded[index].from <= at && at < guarded[index].to && replace_page(at)) return;
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        sigaction(SIGBUS, &before, NULL);
        raise(number);
    }
}

static void install(void) {
    struct sigaction now, wanted = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&wanted.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) return;
    sigaction(SIGBUS, &wanted, &before);
}

void guard_memory(const void *from, size_t bytes) {
    install();
    for (int index = 0; index < MOST_GUARDED; index++)
        if (!guarded[index].to) {
            guarded[index].from = (uintptr_t)from;
            guarded[index].to = (uintptr_t)from + bytes;
            return;
        }
}

void unguard_memory(const void *from) {
    for (int index = 0; index < MOST_GUARDED; index++)
        if (guarded[index].from == (uintptr_t)from) guarded[index].from = guarded[index].to = 0;
}
