/* What a mark does to the open record, and how a record gets into the ring. Part of native.c. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

#ifndef __linux__
#error "only where CLOCK_MONOTONIC is the clock of time.monotonic_ns; elsewhere plain.py is used"
#endif

/* The format, as in ring.py and phases.py. */
enum { DATA = 0, FORWARD = 2, BACKWARD = 3, OPTIMIZER = 4, BETWEEN = 5, PHASE_SLOTS = 16, OTHER = 255 };
enum { STARTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 10 };
enum { H_HEAD = 3, H_LIVE = 11, H_CLOSED = 15, DATA_AT = 65536 / 8 };
enum { W_BEGIN = 1, W_END, W_FLAGS, W_SAMPLES = 5, W_TOKENS, W_OVERHEAD, W_PHASES };
enum { W_LOSS = 28, W_COMMIT = 31, SLOT_WORDS };

enum {
    CALL_NS = 600,           /* entering and leaving, not visible from inside; in place */
    SLOW_STEP_NS = 10000000, /* nothing compiles in less */
    MOST_NAMES = 20,         /* more than there are phases; further names go the slow way */
    MOST_NESTED = 64,
    SHAPES_EVERY = 8,
};
enum { TOLD_SAMPLES = 1, TOLD_TOKENS = 2, TOLD_LOSS = 4 };

/* What a mark touches comes first and together: every cache line of it is cold. */
typedef struct {
    PyObject_HEAD
    unsigned long thread;
    uint64_t *words, *scratch;
    int64_t since, closed, asked;
    uint64_t steps, next_call;
    int64_t next_slow, overhead;
    int cur, depth, known;
    char on, begun, step_mode, special, watched;
    unsigned char told, phase[MOST_NAMES];
    PyObject *name[MOST_NAMES];
    uint64_t *empty, slots, done, next_flags, told_samples, told_tokens, seen;
    int64_t duration, spent;
    double told_loss;
    PyObject *path, *book;
    Py_buffer ring, pages;
    unsigned char nested[MOST_NESTED];
} Core;

#ifdef TEST_CLOCK /* a clock that a test sets: `native.set_clock(ns)` */
static int64_t test_now;
static int64_t monotonic(void) { return test_now; }
static PyObject *set_clock(PyObject *unused, PyObject *now) {
    test_now = PyLong_AsLongLong(now);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
#else
static inline int64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

static inline void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

static inline int ours(const Core *self) {
    return PyThread_get_thread_ident() == self->thread && self->words;
}

#define RETURN(status) do { if ((status) < 0) return NULL; Py_RETURN_NONE; } while (0)

/* ── calling Python ──────────────────────────────────────────────────────────────────────────────── */

/* 0: an exception of our own, which `failed` has counted. -1: what is no `Exception` goes on. */
static int guarded(Core *self) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *done = PyObject_CallMethod((PyObject *)self, "failed", "(O)", value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (done) {
        Py_DECREF(done);
    } else if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
    } else {
        return -1;
    }
    return 0;
}

static int settled(Core *self, PyObject *done) {
    if (!done) return guarded(self);
    Py_DECREF(done);
    return 0;
}

static int call(Core *self, const char *method, int64_t value) {
    return settled(self, PyObject_CallMethod((PyObject *)self, method, "L", (long long)value));
}

/* ── records ─────────────────────────────────────────────────────────────────────────────────────── */

static int commit(Core *self) {
    uint64_t number = self->words[H_HEAD] + 1;
    if (number == self->slots + 1) {
        if (call(self, "full", 0) < 0) return -1;
        if (!self->words) return 0;
    }
    uint64_t *slot = self->words + DATA_AT + (number - 1) % self->slots * SLOT_WORDS;
    store(slot, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    memcpy(slot + 1, self->scratch + 1, (W_COMMIT - 1) * sizeof *slot);
    store(slot + W_COMMIT, number);
    store(slot, number);
    store(self->words + H_HEAD, number);
    return 0;
}

static inline void spend(Core *self, int64_t now) {
    if (self->cur < PHASE_SLOTS) self->scratch[W_PHASES + self->cur] += (uint64_t)(now - self->since);
    self->since = now;
}

static int roll(Core *self, int64_t now) {
    if (self->begun) {
        if (now > self->since) spend(self, now);
        self->scratch[W_END] = (uint64_t)now;
        self->duration = now - (int64_t)self->scratch[W_BEGIN];
        if (self->special || self->duration > SLOW_STEP_NS)
            if (call(self, "unusual", self->duration) < 0) return -1;
        self->scratch[W_OVERHEAD] = (uint64_t)self->overhead;
        self->spent += self->overhead;
        self->overhead = 0;
        if (self->words && commit(self) < 0) return -1;
        self->steps++;
    }
    memcpy(self->scratch, self->empty, SLOT_WORDS * sizeof *self->scratch);
    self->scratch[W_BEGIN] = (uint64_t)(self->since = now);
    self->scratch[W_FLAGS] = self->next_flags;
    self->next_flags = 0;
    self->closed = 0;
    self->begun = 1;
    self->cur = OTHER;
    return 0;
}

static int begin_phase(Core *self, unsigned phase, int64_t now) {
    if (self->asked) {
        if (phase == DATA) return 0;
        int64_t asked = self->asked;
        self->asked = 0;
        if (phase != BETWEEN) {
            if (roll(self, asked) < 0) return -1;
            self->cur = DATA;
        }
    } else if (self->closed && phase < PHASE_SLOTS && STARTS >> phase & 1) {
        if (phase == DATA)
            self->asked = now;
        else if (roll(self, now) < 0)
            return -1;
    }
    spend(self, now);
    self->cur = (int)phase;
    return 0;
}

static int leave(Core *self, unsigned live, int64_t now) {
    if (self->words) store(self->words + H_LIVE, (uint64_t)live << 56 | (uint64_t)now);
    if (self->steps && (self->steps >= self->next_call || now > self->next_slow))
        if (call(self, "rare", now) < 0) return -1;
    self->overhead += monotonic() - now + CALL_NS;
    return 0;
}

static int mark(Core *self, unsigned phase) {
    int64_t now = monotonic();
    return begin_phase(self, phase, now) < 0 ? -1 : leave(self, phase, now);
}

static int step_without_begin(Core *self) {
    int64_t closed = self->closed;
    if (self->begun) {
        uint64_t *between = self->scratch + W_PHASES + BETWEEN;
        uint64_t behind = self->since > closed ? (uint64_t)(self->since - closed) : 0;
        *between = *between > behind ? *between - behind : 0;
        self->step_mode = 1;
    }
    self->since = closed;
    return roll(self, closed);
}

static void write_told(Core *self) {
    if (self->told & TOLD_SAMPLES) self->scratch[W_SAMPLES] = self->told_samples;
    if (self->told & TOLD_TOKENS) self->scratch[W_TOKENS] = self->told_tokens;
    if (self->told & TOLD_LOSS) memcpy(self->scratch + W_LOSS, &self->told_loss, sizeof self->told_loss);
    self->told = 0;
}

static int work_done(Core *self, int64_t now) {
    if (self->asked && begin_phase(self, OTHER, now) < 0) return -1;
    if (self->closed && step_without_begin(self) < 0) return -1;
    if (self->told) write_told(self);
    spend(self, now);
    self->closed = now;
    self->cur = BETWEEN;
    return self->step_mode ? roll(self, now) : 0;
}

static void count_done(Core *self) {
    self->done++;
    if (self->words) store(self->words + H_CLOSED, self->done);
}
