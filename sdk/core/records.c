/* What a mark does to the open record, and how a record gets into the ring. */

#include "core.h"

#ifdef TEST_CLOCK
int64_t test_now;
#endif

/* ── calling Python ──────────────────────────────────────────────────────────────────────────────── */

/* 0: an exception of ours, counted by `failed`. -1: not an `Exception`; it propagates. */
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

int settled(Core *self, PyObject *done) {
    if (!done) return guarded(self);
    Py_DECREF(done);
    return 0;
}

int call(Core *self, const char *method, int64_t value) {
    return settled(self, PyObject_CallMethod((PyObject *)self, method, "L", (long long)value));
}

/* ── records ─────────────────────────────────────────────────────────────────────────────────────── */

/* All slots are used: the ring grows. A Ctrl-C meanwhile is passed to the loop, but only after the ring has grown.
   The mapping may have changed even if the call failed. */
static int ring_full(Core *self) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    int status = -1;
    for (int tries = 0; status < 0 && tries < GROW_TRIES; tries++) {
        status = call(self, "ring_full", 0);
        if (status < 0 && !type)
            PyErr_Fetch(&type, &value, &trace);
        else
            PyErr_Clear();
    }
    if (self->source && hold(self) < 0) PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return PyErr_Occurred() ? -1 : 0;
}

/* -1: an exception for the loop (Ctrl-C while the ring grew); the record is written regardless. */
static int commit(Core *self) {
    uint64_t number = self->words[H_HEAD] + 1;
    int status = number == self->slots + 1 ? ring_full(self) : 0;
    if (!self->words) return status;
    uint64_t *slot = self->words + DATA_AT + (number - 1) % self->slots * SLOT_WORDS;
    /* 1. Invalidate the slot's old record: clear its first number. */
    store(slot, 0);
    /* A release store orders what precedes it, not what follows. Without this fence a payload word could
       become visible before the cleared number, and a reader would take a mixture of the old and the new
       record for the old one. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    /* 2. The payload, in any order. */
    memcpy(slot + 1, self->scratch + 1, (W_COMMIT - 1) * sizeof *slot);
    /* 3. The number at the end, after the payload: a reader that finds it finds the payload. */
    store(slot + W_COMMIT, number);
    /* 4. The number at the front, after the one at the end: both equal means a whole record. */
    store(slot, number);
    /* 5. The head, last: a reader looks only at records up to it. */
    store(self->words + H_HEAD, number);
    return status;
}

static inline void spend(Core *self, int64_t now) {
    if ((unsigned)self->current < PHASE_SLOTS) self->scratch[W_PHASES + self->current] += (uint64_t)minus(now, self->phase_began);
    self->phase_began = now;
}

/* The record is committed even if the loop gets an exception meanwhile: no step is lost to Ctrl-C. */
static int finish_record(Core *self, int64_t now) {
    if (now > self->phase_began) spend(self, now);
    self->scratch[W_END] = (uint64_t)now;
    self->duration = minus(now, (int64_t)self->scratch[W_BEGIN]);
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    int status = 0;
    if (self->check_record || self->duration > SLOW_STEP_NS) {
        status = call(self, "before_commit", self->duration);
        PyErr_Fetch(&type, &value, &trace);
    }
    self->scratch[W_OVERHEAD] = (uint64_t)self->overhead;
    self->spent = plus(self->spent, self->overhead);
    self->overhead = 0;
    if (self->words && commit(self) < 0) {
        status = -1;
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace);
    }
    self->steps++;
    return status;
}

int roll(Core *self, int64_t now) {
    int status = self->record_open ? finish_record(self, now) : 0;
    memcpy(self->scratch, self->empty, SLOT_WORDS * sizeof *self->scratch);
    self->scratch[W_BEGIN] = (uint64_t)(self->phase_began = now);
    self->scratch[W_FLAGS] = self->next_flags;
    self->next_flags = 0;
    self->work_ended = 0;
    self->record_open = 1;
    self->current = OTHER;
    return status;
}

int begin_phase(Core *self, unsigned phase, int64_t now) {
    int status = 0;
    if (self->requested_at) {
        if (phase == DATA) return 0;
        int64_t asked = self->requested_at;
        self->requested_at = 0;
        if (phase != BETWEEN) {
            status = roll(self, asked);
            self->current = DATA;
        }
    } else if (self->work_ended && phase < PHASE_SLOTS && STARTS >> phase & 1) {
        if (phase == DATA)
            self->requested_at = now;
        else
            status = roll(self, now);
    }
    spend(self, now);
    self->current = (int)phase;
    return status;
}

int leave(Core *self, unsigned live, int64_t now) {
    /* Phase and time share a word: a reader never sees one without the other. Release, so that a phase after a
       commit is not seen before it. */
    uint64_t word = (uint64_t)live << 56 | (uint64_t)now;
    if (self->words) store(self->words + H_LIVE, word);
    if (self->has_device && call(self, "device_mark", (int64_t)word) < 0) return -1;
    if (self->steps && (self->steps >= self->next_call || now > self->next_second))
        if (call(self, "periodic", now) < 0) return -1;
    self->overhead = plus(self->overhead, plus(minus(monotonic(), now), CALL_NS));
    return 0;
}

int mark(Core *self, unsigned phase) {
    int64_t now = monotonic();
    /* With an exception set, no Python may be called; `leave` could do so. */
    return begin_phase(self, phase, now) < 0 ? -1 : leave(self, phase, now);
}

static int step_without_begin(Core *self) {
    int64_t closed = self->work_ended;
    if (self->record_open) {
        uint64_t *between = self->scratch + W_PHASES + BETWEEN;
        uint64_t behind = self->phase_began > closed ? (uint64_t)minus(self->phase_began, closed) : 0;
        *between = *between > behind ? *between - behind : 0;
        self->step_mode = 1;
    }
    self->phase_began = closed;
    return roll(self, closed);
}

static void write_given(Core *self) {
    if (self->given & GIVEN_SAMPLES) self->scratch[W_SAMPLES] = self->given_samples;
    if (self->given & GIVEN_TOKENS) self->scratch[W_TOKENS] = self->given_tokens;
    if (self->given & GIVEN_LOSS) memcpy(self->scratch + W_LOSS, &self->given_loss, sizeof self->given_loss);
    self->given = 0;
}

int work_done(Core *self, int64_t now) {
    int status = self->requested_at ? begin_phase(self, OTHER, now) : 0;
    if (status == 0 && self->work_ended) status = step_without_begin(self);
    if (self->given) write_given(self);
    spend(self, now);
    self->work_ended = now;
    self->current = BETWEEN;
    if (status == 0 && self->step_mode) status = roll(self, now);
    return status;
}

void count_done(Core *self) {
    self->done++;
    /* Release: a reader that counts this step as done finds everything committed before it. */
    if (self->words) store(self->words + H_CLOSED, self->done);
}
