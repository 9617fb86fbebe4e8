/* What the parts of the C core share: the ring's format, the core's structure, and the functions used across
   files. Bodies are in the .c files; only functions of a few instructions are inline here. */

#ifndef GPUMON_CORE_H
#define GPUMON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

#ifndef __linux__
#error "only where CLOCK_MONOTONIC is the clock of time.monotonic_ns; elsewhere plain.py is used"
#endif

/* The format, as in ring.py and phases.py; test_core.py compares them. */
enum { DATA = 0, FORWARD = 2, BACKWARD = 3, OPTIMIZER = 4, BETWEEN = 5, PHASE_SLOTS = 16, OTHER = 255 };
enum { MICRO_SHIFT = 16, MOST_MICRO = 65535 };
enum { STARTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 10 };
enum { H_SLOTS = 2, H_HEAD, H_LIVE = 11, H_CLOSED = 15, DATA_AT = 65536 / 8 };
enum { W_BEGIN = 1, W_END, W_FLAGS, W_SAMPLES = 5, W_TOKENS, W_OVERHEAD, W_PHASES };
enum { W_LOSS = 28, W_GC, W_COMMIT = 31, SLOT_WORDS };

enum {
    CALL_NS = 600,           /* entering and leaving a mark: an estimate; see plain.py */
    SLOW_STEP_NS = 10000000, /* as in plain.py */
    MOST_NAMES = 20,         /* 16 phases and spare; Python looks up further names */
    MOST_NESTED = 64,        /* as in plain.py */
    SHAPES_EVERY = 8,        /* as in plain.py */
    GROW_TRIES = 5,          /* chosen: after this many interrupts in a row, a ring stops trying to grow */
};
enum { GIVEN_SAMPLES = 1, GIVEN_TOKENS = 2, GIVEN_LOSS = 4 };

/* Hidden: the names below are private, and calls between our files need no symbol lookup. Calls across files
   then cost nothing measurable (about 1 ns of 184 for two laps and a step), so we do without link-time
   optimization. */
#pragma GCC visibility push(hidden)

/* The fields a mark touches come first and together: every cache line is cold. */
typedef struct {
    PyObject_HEAD
    unsigned long thread;
    uint64_t *words, *scratch;
    int64_t phase_began, work_ended, requested_at;
    uint64_t steps, next_call;
    int64_t next_second, overhead;
    int current, depth, known;
    char on, record_open, step_mode, check_record, has_device;
    unsigned char given, phase[MOST_NAMES];
    PyObject *name[MOST_NAMES];
    uint64_t *empty, slots, done, next_flags, given_samples, given_tokens, seen;
    uint64_t gc_collections;
    int64_t duration, spent, gc_began;
    double given_loss;
    PyObject *path, *record_memory, *source;
    Py_buffer ring, pages;
    unsigned char nested[MOST_NESTED];
} Core;

extern PyTypeObject core_type, marks_type, phase_type, batches_type, loop_type;

#ifdef TEST_CLOCK /* a clock that a test sets: `native.set_clock(ns)` */
extern int64_t test_now;
static inline int64_t monotonic(void) { return test_now; }
#else
static inline int64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

/* A reader in another process polls the ring without a lock. Every word it relies on is stored whole (an
   aligned 8-byte store never tears) and with release order: earlier stores become visible first.
   On x86 this is a plain store; on ARM it is one `stlr`. */
static inline void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

/* Times and their sums: a test or a broken clock can overflow them, which is undefined in signed arithmetic. */
static inline int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

static inline int ours(const Core *self) {
    return PyThread_get_thread_ident() == self->thread && self->words;
}

#define RETURN(status) do { if ((status) < 0) return NULL; Py_RETURN_NONE; } while (0)
#define MEMBER(type, name, field, kind) {name, kind, offsetof(type, field), 0, NULL}
#define MEMBER_END {NULL, 0, 0, 0, NULL}

/* records.c. -1: an exception meant for the loop is set (KeyboardInterrupt, SystemExit). */
int settled(Core *self, PyObject *done);
int call(Core *self, const char *method, int64_t value);
int roll(Core *self, int64_t now);
int begin_phase(Core *self, unsigned phase, int64_t now);
int leave(Core *self, unsigned live, int64_t now);
int mark(Core *self, unsigned phase);
int work_done(Core *self, int64_t now);
void count_done(Core *self);
Core *core_off(void);

/* guard.c */
void guard_memory(const void *from, size_t bytes);
void unguard_memory(const void *from);

/* core.c */
PyObject *core_lap(Core *self, PyObject *name);
PyObject *core_step(Core *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
int push(Core *self, unsigned phase);
int pop(Core *self);
int request_batch(Core *self);
int complete_and_begin(Core *self, unsigned phase);
int hold(Core *self);
int batch_arrived(Core *self, unsigned then, PyObject *batch, int counting);

#pragma GCC visibility pop
#endif
