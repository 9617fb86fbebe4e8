/* The hot half of the recorder in C. plain.py is the same in Python and says what each part means; the two
   change together, and a test plays the same loops on both.

   Why C: between two marks the training has thrown our code and data out of every cache, and there a
   Python frame costs half a microsecond and a mark written in Python several. Here a mark is a clock, an
   addition and a store. Python is called for what is rare, and nothing it raises reaches the loop but what
   is meant for it (KeyboardInterrupt, SystemExit). */

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

/* ── marks ───────────────────────────────────────────────────────────────────────────────────────── */

static PyObject *core_mark(Core *self, PyObject *phase) {
    long wanted = PyLong_AsLong(phase);
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    RETURN(mark(self, (unsigned)wanted & 255));
}

static int find(const Core *self, PyObject *name) {
    for (int at = 0; at < self->known; at++)
        if (self->name[at] == name) return self->phase[at];
    if (PyUnicode_Check(name))
        for (int at = 0; at < self->known; at++)
            if (PyUnicode_Compare(self->name[at], name) == 0) return self->phase[at];
    return -1;
}

static PyObject *core_lap(Core *self, PyObject *name) {
    if (!ours(self)) Py_RETURN_NONE;
    int phase = find(self, name);
    if (phase >= 0) RETURN(mark(self, (unsigned)phase));
    RETURN(settled(self, PyObject_CallMethod((PyObject *)self, "first_lap", "(O)", name)));
}

static PyObject *core_know(Core *self, PyObject *args) {
    PyObject *name;
    int phase;
    if (!PyArg_ParseTuple(args, "Ui", &name, &phase)) return NULL;
    if (self->known < MOST_NAMES) {
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        self->phase[self->known] = (unsigned char)phase;
        self->name[self->known++] = name;
    }
    Py_RETURN_NONE;
}

static int push(Core *self, unsigned phase) {
    if (!ours(self)) return 0;
    if (self->depth < MOST_NESTED) self->nested[self->depth] = (unsigned char)(self->words[H_LIVE] >> 56);
    self->depth++;
    return mark(self, phase);
}

static int pop(Core *self) {
    if (!self->depth || !ours(self)) return 0;
    self->depth--;
    return mark(self, self->nested[self->depth < MOST_NESTED ? self->depth : MOST_NESTED - 1]);
}

static PyObject *core_push(Core *self, PyObject *phase) {
    long wanted = PyLong_AsLong(phase);
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    RETURN(push(self, (unsigned)wanted & 255));
}

static PyObject *core_pop(Core *self, PyObject *unused) { RETURN(pop(self)); }

static int waiting(Core *self) {
    if (!ours(self) || self->depth) return 0;
    return mark(self, DATA) < 0 ? -1 : 1;
}

static PyObject *core_waiting(Core *self, PyObject *unused) {
    int asked = waiting(self);
    return asked < 0 ? NULL : PyBool_FromLong(asked);
}

/* ── steps ───────────────────────────────────────────────────────────────────────────────────────── */

static PyObject *core_tell(Core *self, PyObject *args) {
    PyObject *samples, *tokens, *loss;
    if (!PyArg_ParseTuple(args, "OOO", &samples, &tokens, &loss)) return NULL;
    self->told = 0;
    unsigned char told = 0;
    if (samples != Py_None) {
        self->told_samples = PyLong_AsUnsignedLongLong(samples);
        told |= TOLD_SAMPLES;
    }
    if (tokens != Py_None) {
        self->told_tokens = PyLong_AsUnsignedLongLong(tokens);
        told |= TOLD_TOKENS;
    }
    if (loss != Py_None) {
        self->told_loss = PyFloat_AsDouble(loss);
        told |= TOLD_LOSS;
    }
    if (PyErr_Occurred()) return NULL;
    self->told = told;
    Py_RETURN_NONE;
}

static int say(Core *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *method = PyObject_GetAttrString((PyObject *)self, "say");
    PyObject *done = method ? PyObject_Vectorcall(method, args, (size_t)count, names) : NULL;
    Py_XDECREF(method);
    return settled(self, done);
}

static PyObject *core_step(Core *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (!ours(self)) Py_RETURN_NONE;
    if ((count || names) && say(self, args, count, names) < 0) return NULL;
    int64_t now = monotonic();
    if (self->watched && call(self, "device_ends", now) < 0) return NULL;
    if (work_done(self, now) < 0) return NULL;
    count_done(self);
    RETURN(leave(self, BETWEEN, now));
}

static PyObject *core_end_step(Core *self, PyObject *unused) {
    int64_t now = monotonic();
    if (roll(self, now) < 0) return NULL;
    count_done(self);
    RETURN(leave(self, OTHER, now));
}

static int complete(Core *self) {
    int64_t now = monotonic();
    if (self->begun && !self->closed) self->closed = now;
    if (begin_phase(self, DATA, now) < 0) return -1;
    count_done(self);
    return leave(self, DATA, now);
}

static PyObject *core_complete(Core *self, PyObject *unused) { RETURN(complete(self)); }

static PyObject *core_count_done(Core *self, PyObject *unused) {
    count_done(self);
    Py_RETURN_NONE;
}

static PyObject *core_roll(Core *self, PyObject *now) {
    int64_t at = PyLong_AsLongLong(now);
    if (at == -1 && PyErr_Occurred()) return NULL;
    RETURN(roll(self, at));
}

/* ── batches ─────────────────────────────────────────────────────────────────────────────────────── */

static PyObject *core_sized(Core *self, PyObject *path) {
    PyObject *old = self->path;
    self->path = PyTuple_Check(path) ? Py_NewRef(path) : NULL;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

/* Samples of a batch by the known path to its first tensor; -1 with an exception when that leads nowhere. */
static Py_ssize_t samples_of(PyObject *path, PyObject *batch) {
    PyObject *found = Py_NewRef(batch);
    for (Py_ssize_t at = 0; found && at < PyTuple_Size(path); at++) {
        PyObject *inner = PyObject_GetItem(found, PyTuple_GetItem(path, at));
        Py_DECREF(found);
        found = inner;
    }
    if (!found) return -1;
    Py_ssize_t samples = PyObject_Size(found);
    Py_DECREF(found);
    return samples;
}

static int count_batch(Core *self, PyObject *batch) {
    if (++self->seen % SHAPES_EVERY && self->path) {
        PyObject *path = Py_NewRef(self->path);
        Py_ssize_t samples = samples_of(path, batch);
        Py_DECREF(path);
        if (samples >= 0) {
            self->scratch[W_SAMPLES] += (uint64_t)samples;
            return 0;
        }
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
        PyErr_Clear();
        Py_CLEAR(self->path);
    }
    return settled(self, PyObject_CallMethod((PyObject *)self, "look_at", "(O)", batch));
}

static PyObject *core_count_batch(Core *self, PyObject *batch) { RETURN(count_batch(self, batch)); }

/* The batch is here: `then` follows, and it is counted if that is wanted. */
static int arrived(Core *self, unsigned then, PyObject *batch, int counting) {
    if (mark(self, then) < 0) return -1;
    if (self->watched && call(self, "device_begins", 0) < 0) return -1;
    return counting ? count_batch(self, batch) : 0;
}

/* ── the ring, birth and death ───────────────────────────────────────────────────────────────────── */

static void let_go(Core *self) {
    if (self->words) PyBuffer_Release(&self->ring);
    self->words = NULL;
}

static int hold(Core *self, PyObject *words, PyObject *slots) {
    uint64_t count = slots ? PyLong_AsUnsignedLongLong(slots) : 0;
    if (!words || PyErr_Occurred()) return -1;
    if (PyObject_GetBuffer(words, &self->ring, PyBUF_WRITABLE) < 0) return -1;
    if (!count || (uint64_t)self->ring.len < (DATA_AT + count * SLOT_WORDS) * sizeof(uint64_t)) {
        PyBuffer_Release(&self->ring);
        PyErr_SetString(PyExc_ValueError, "a ring shorter than its slots");
        return -1;
    }
    self->words = self->ring.buf;
    self->slots = count;
    return 0;
}

static PyObject *core_use(Core *self, PyObject *ring) {
    let_go(self);
    if (ring == Py_None) Py_RETURN_NONE;
    PyObject *words = PyObject_GetAttrString(ring, "words");
    PyObject *slots = words ? PyObject_GetAttrString(ring, "slots") : NULL;
    int failed = hold(self, words, slots);
    Py_XDECREF(words);
    Py_XDECREF(slots);
    RETURN(failed);
}

static PyObject *core_phase(Core *self, void *unused) {
    return PyLong_FromLong(self->words ? (long)(self->words[H_LIVE] >> 56) : OTHER);
}

/* A view keeps the memory alive, whatever becomes of the recorder. */
static PyObject *page(Core *self, Py_ssize_t number) {
    Py_ssize_t bytes = SLOT_WORDS * (Py_ssize_t)sizeof(uint64_t);
    PyObject *whole = PyMemoryView_FromObject(self->book);
    PyObject *part = whole ? PySequence_GetSlice(whole, number * bytes, (number + 1) * bytes) : NULL;
    PyObject *words = part ? PyObject_CallMethod(part, "cast", "s", "Q") : NULL;
    Py_XDECREF(whole);
    Py_XDECREF(part);
    return words;
}

static PyObject *core_scratch(Core *self, void *unused) { return page(self, 0); }
static PyObject *core_empty(Core *self, void *unused) { return page(self, 1); }

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Core *self = (Core *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->book = PyByteArray_FromStringAndSize(NULL, 2 * SLOT_WORDS * sizeof(uint64_t));
    if (!self->book || PyObject_GetBuffer(self->book, &self->pages, PyBUF_WRITABLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    memset(self->pages.buf, 0, (size_t)self->pages.len);
    self->scratch = self->pages.buf;
    self->empty = self->scratch + SLOT_WORDS;
    double nothing = Py_NAN;
    memcpy(self->empty + W_LOSS, &nothing, sizeof nothing);
    memcpy(self->scratch, self->empty, SLOT_WORDS * sizeof *self->empty);
    self->thread = PyThread_get_thread_ident();
    self->on = self->special = 1;
    self->cur = OTHER;
    self->since = self->closed = monotonic();
    return (PyObject *)self;
}

static void core_dealloc(Core *self) {
    let_go(self);
    if (self->pages.obj) PyBuffer_Release(&self->pages);
    while (self->known) Py_DECREF(self->name[--self->known]);
    Py_XDECREF(self->path);
    Py_XDECREF(self->book);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef core_methods[] = {
    {"mark", (PyCFunction)core_mark, METH_O, "From here on it is this phase."},
    {"lap", (PyCFunction)core_lap, METH_O, "From here on it is `name`, until the next lap or `step()`."},
    {"know", (PyCFunction)core_know, METH_VARARGS, "What `lap` calls a phase."},
    {"push", (PyCFunction)core_push, METH_O, "Open a nested phase."},
    {"pop", (PyCFunction)core_pop, METH_NOARGS, "Close it."},
    {"waiting", (PyCFunction)core_waiting, METH_NOARGS, "A batch is asked for."},
    {"tell", (PyCFunction)core_tell, METH_VARARGS, "What the user says of the step that ends now."},
    {"step", (PyCFunction)(void (*)(void))core_step, METH_FASTCALL | METH_KEYWORDS, "The step's work is done."},
    {"end_step", (PyCFunction)core_end_step, METH_NOARGS, "The step ends here and the next one begins."},
    {"complete", (PyCFunction)core_complete, METH_NOARGS, "It is done, and the next batch is asked for."},
    {"count_done", (PyCFunction)core_count_done, METH_NOARGS, "One step more has its work done."},
    {"roll", (PyCFunction)core_roll, METH_O, "Commit the open record with its end at `now`."},
    {"sized", (PyCFunction)core_sized, METH_O, "Where in a batch its first tensor is."},
    {"count_batch", (PyCFunction)core_count_batch, METH_O, "Add the batch's samples to the open record."},
    {"use", (PyCFunction)core_use, METH_O, "Records go to this ring."},
    {NULL, NULL, 0, NULL}};

#define MEMBER(type, name, field, kind) {name, kind, offsetof(type, field), 0, NULL}
#define MEMBER_END {NULL, 0, 0, 0, NULL}
static PyMemberDef core_members[] = {
    MEMBER(Core, "thread", thread, T_ULONG),
    MEMBER(Core, "since", since, T_LONGLONG),
    MEMBER(Core, "closed", closed, T_LONGLONG),
    MEMBER(Core, "asked", asked, T_LONGLONG),
    MEMBER(Core, "steps", steps, T_ULONGLONG),
    MEMBER(Core, "done", done, T_ULONGLONG),
    MEMBER(Core, "next_call", next_call, T_ULONGLONG),
    MEMBER(Core, "next_slow", next_slow, T_LONGLONG),
    MEMBER(Core, "next_flags", next_flags, T_ULONGLONG),
    MEMBER(Core, "cur", cur, T_INT),
    MEMBER(Core, "depth", depth, T_INT),
    MEMBER(Core, "on", on, T_BOOL),
    MEMBER(Core, "begun", begun, T_BOOL),
    MEMBER(Core, "step_mode", step_mode, T_BOOL),
    MEMBER(Core, "special", special, T_BOOL),
    MEMBER(Core, "watched", watched, T_BOOL),
    MEMBER(Core, "duration", duration, T_LONGLONG),
    MEMBER(Core, "overhead", overhead, T_LONGLONG),
    MEMBER(Core, "spent_ns", spent, T_LONGLONG),
    MEMBER_END};

static PyGetSetDef core_getset[] = {{"phase", (getter)core_phase, NULL, "The phase that is open now.", NULL},
                                    {"scratch", (getter)core_scratch, NULL, "The open record.", NULL},
                                    {"empty", (getter)core_empty, NULL, "What a record begins as.", NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject core_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Core",
    .tp_doc = "One loop, one thread, one ring; see plain.Core.",
    .tp_basicsize = sizeof(Core),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = core_new,
    .tp_dealloc = (destructor)core_dealloc,
    .tp_methods = core_methods,
    .tp_members = core_members,
    .tp_getset = core_getset,
};

/* ── the marks a user calls every step ───────────────────────────────────────────────────────────── */

typedef struct {
    PyObject_HEAD
    Core *core;
} Face;

static PyObject *face_lap(Face *self, PyObject *name) { return core_lap(self->core, name); }

static PyObject *face_step(Face *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return core_step(self->core, args, count, names);
}

static PyObject *face_recorder(Face *self, void *unused) { return Py_NewRef((PyObject *)self->core); }

static int face_set_recorder(Face *self, PyObject *core, void *unused) {
    if (!core || !PyObject_TypeCheck(core, &core_type)) {
        PyErr_SetString(PyExc_TypeError, "no recorder");
        return -1;
    }
    Py_XSETREF(self->core, (Core *)Py_NewRef(core));
    return 0;
}

static int face_init(Face *self, PyObject *args, PyObject *kwargs) {
    PyObject *core;
    return PyArg_ParseTuple(args, "O", &core) ? face_set_recorder(self, core, NULL) : -1;
}

/* Until it has a recorder it has one that is off: no mark can meet nothing. */
static PyObject *face_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Face *self = (Face *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->core = (Core *)PyObject_CallNoArgs((PyObject *)&core_type);
    if (!self->core) {
        Py_DECREF(self);
        return NULL;
    }
    self->core->thread = 0;
    return (PyObject *)self;
}

static int face_traverse(Face *self, visitproc visit, void *arg) {
    Py_VISIT(self->core);
    return 0;
}

static void face_dealloc(Face *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->core);
    Py_TYPE(self)->tp_free(self);
}

PyDoc_STRVAR(lap_doc, "lap($self, name, /)\n--\n\n"
                      "From here on it is `name`, until the next lap or `step()`: the cheapest mark.");
PyDoc_STRVAR(step_doc, "step($self, loss=None, *, samples=None, tokens=None, **scalars)\n--\n\n"
                       "One optimizer step is done. `loss` and other numbers are read without a device sync.");
static PyMethodDef face_methods[] = {
    {"lap", (PyCFunction)face_lap, METH_O, lap_doc},
    {"step", (PyCFunction)(void (*)(void))face_step, METH_FASTCALL | METH_KEYWORDS, step_doc},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef face_getset[] = {
    {"_recorder", (getter)face_recorder, (setter)face_set_recorder, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject face_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Face",
    .tp_doc = "The marks a user calls every step; see plain.Face.",
    .tp_basicsize = sizeof(Face),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = face_new,
    .tp_init = (initproc)face_init,
    .tp_dealloc = (destructor)face_dealloc,
    .tp_traverse = (traverseproc)face_traverse,
    .tp_methods = face_methods,
    .tp_getset = face_getset,
};

/* ── a phase as a context manager ────────────────────────────────────────────────────────────────── */

typedef struct {
    PyObject_HEAD
    Core *core;
    unsigned phase;
} Phase;

static PyObject *phase_enter(Phase *self, PyObject *unused) { RETURN(push(self->core, self->phase)); }

static PyObject *phase_exit(Phase *self, PyObject *const *failure, Py_ssize_t count) { RETURN(pop(self->core)); }

static PyObject *phase_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *core;
    unsigned char phase;
    if (!PyArg_ParseTuple(args, "O!b", &core_type, &core, &phase)) return NULL;
    Phase *self = (Phase *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->core = (Core *)Py_NewRef(core);
    self->phase = phase;
    return (PyObject *)self;
}

static int phase_traverse(Phase *self, visitproc visit, void *arg) {
    Py_VISIT(self->core);
    return 0;
}

static void phase_dealloc(Phase *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->core);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef phase_methods[] = {
    {"__enter__", (PyCFunction)phase_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))phase_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static PyTypeObject phase_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Phase",
    .tp_doc = "A named phase as a context manager; see plain.Phase.",
    .tp_basicsize = sizeof(Phase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = phase_new,
    .tp_dealloc = (destructor)phase_dealloc,
    .tp_traverse = (traverseproc)phase_traverse,
    .tp_methods = phase_methods,
};

/* ── an iterable with its waits marked ───────────────────────────────────────────────────────────── */

typedef struct {
    PyObject_HEAD
    Core *core;
    PyObject *start, *source;
    int counting;
} Batches;

/* The source has ended or failed: that wait belongs to the step before. Its exception goes on. */
static void exhausted(Core *core) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (mark(core, BETWEEN) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace);
    }
}

static PyObject *batches_next(Batches *self) {
    Core *core = self->core;
    int asked = waiting(core);
    if (asked < 0) return NULL;
    if (!self->source) self->source = PyObject_CallNoArgs(self->start);
    if (self->source && !PyIter_Check(self->source)) {
        Py_CLEAR(self->source);
        PyErr_SetString(PyExc_TypeError, "what is iterated gave no iterator");
    }
    PyObject *batch = self->source ? Py_TYPE(self->source)->tp_iternext(self->source) : NULL;
    if (!asked || !core->on) return batch;
    if (!batch)
        exhausted(core);
    else if (arrived(core, OTHER, batch, self->counting) < 0)
        Py_CLEAR(batch);
    return batch;
}

static PyObject *batches_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *core, *start;
    int counting;
    if (!PyArg_ParseTuple(args, "O!Op", &core_type, &core, &start, &counting)) return NULL;
    Batches *self = (Batches *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->core = (Core *)Py_NewRef(core);
    self->start = Py_NewRef(start);
    self->counting = counting;
    return (PyObject *)self;
}

static int batches_traverse(Batches *self, visitproc visit, void *arg) {
    Py_VISIT(self->core);
    Py_VISIT(self->start);
    Py_VISIT(self->source);
    return 0;
}

static int batches_clear(Batches *self) {
    Py_CLEAR(self->source);
    Py_CLEAR(self->start);
    return 0;
}

static void batches_dealloc(Batches *self) {
    PyObject_GC_UnTrack(self);
    batches_clear(self);
    Py_CLEAR(self->core);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject batches_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Batches",
    .tp_doc = "Iterates what `start()` gives; see plain.Batches.",
    .tp_basicsize = sizeof(Batches),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = batches_new,
    .tp_dealloc = (destructor)batches_dealloc,
    .tp_traverse = (traverseproc)batches_traverse,
    .tp_clear = (inquiry)batches_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)batches_next,
};

/* ── the usual path of the auto way ──────────────────────────────────────────────────────────────── */

typedef struct {
    PyObject_HEAD
    Core *core;
    PyObject *grad_enabled;
    unsigned long long primary, trusted, batches, backwards;
    char training, work, updated, fresh, inner;
} Loop;

static inline unsigned long long id_of(PyObject *object) { return (unsigned long long)(uintptr_t)object; }

static PyObject *loop_asks(Loop *self, PyObject *iterator) {
    Core *core = self->core;
    if (!self->updated || id_of(iterator) != self->trusted || !ours(core) || core->depth) Py_RETURN_FALSE;
    PyObject *grad = PyObject_CallNoArgs(self->grad_enabled);
    if (!grad) return NULL;
    int enabled = grad == Py_True;
    Py_DECREF(grad);
    if (!enabled) Py_RETURN_FALSE;
    self->work = self->updated = 0;
    self->batches = 0;
    if (complete(core) < 0) return NULL;
    Py_RETURN_TRUE;
}

static PyObject *loop_got(Loop *self, PyObject *batch) {
    self->batches = 1;
    RETURN(arrived(self->core, FORWARD, batch, 1));
}

static PyObject *loop_goes_backward(Loop *self, PyObject *unused) {
    Core *core = self->core;
    if (!self->training)
        if (settled(core, PyObject_CallMethod((PyObject *)self, "begin_training", NULL)) < 0) return NULL;
    if (!ours(core)) return PyLong_FromLong(-1);
    long before = (long)(core->words[H_LIVE] >> 56);
    if (before != FORWARD || self->fresh) {
        PyObject *done = PyObject_CallMethod((PyObject *)self, "unusual_backward", "l", before);
        if (settled(core, done) < 0) return NULL;
    }
    self->backwards++;
    self->work = 1;
    return mark(core, BACKWARD) < 0 ? NULL : PyLong_FromLong(before);
}

static PyObject *loop_came_back(Loop *self, PyObject *before) {
    long phase = PyLong_AsLong(before);
    if (phase < 0) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    RETURN(mark(self->core, phase == OPTIMIZER ? OPTIMIZER : OTHER));
}

static PyObject *loop_optimizer_begins(Loop *self, PyObject *const *args, Py_ssize_t count) {
    RETURN(ours(self->core) ? mark(self->core, OPTIMIZER) : 0);
}

static PyObject *loop_optimizer_ends(Loop *self, PyObject *const *args, Py_ssize_t count) {
    Core *core = self->core;
    if (!ours(core) || !count) Py_RETURN_NONE;
    if (core->watched && call(core, "device_ends", 0) < 0) return NULL;
    if (self->batches && id_of(args[0]) == self->primary && !self->updated && !self->inner) {
        self->updated = 1;
        RETURN(mark(core, BETWEEN));
    }
    RETURN(settled(core, PyObject_CallMethod((PyObject *)self, "optimizer_ended", "(O)", args[0])));
}

static int loop_init(Loop *self, PyObject *args, PyObject *kwargs) {
    PyObject *core, *grad_enabled;
    if (!PyArg_ParseTuple(args, "O!O", &core_type, &core, &grad_enabled)) return -1;
    Py_XSETREF(self->core, (Core *)Py_NewRef(core));
    Py_XSETREF(self->grad_enabled, Py_NewRef(grad_enabled));
    return 0;
}

static int loop_traverse(Loop *self, visitproc visit, void *arg) {
    Py_VISIT(self->core);
    Py_VISIT(self->grad_enabled);
    return 0;
}

static void loop_dealloc(Loop *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->core);
    Py_CLEAR(self->grad_enabled);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef loop_methods[] = {
    {"asks", (PyCFunction)loop_asks, METH_O, "A batch is asked for, in the usual way."},
    {"got", (PyCFunction)loop_got, METH_O, "It came."},
    {"goes_backward", (PyCFunction)loop_goes_backward, METH_NOARGS, "A backward pass begins."},
    {"came_back", (PyCFunction)loop_came_back, METH_O, "It is over."},
    {"optimizer_begins", (PyCFunction)(void (*)(void))loop_optimizer_begins, METH_FASTCALL, NULL},
    {"optimizer_ends", (PyCFunction)(void (*)(void))loop_optimizer_ends, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef loop_members[] = {
    MEMBER(Loop, "primary", primary, T_ULONGLONG),
    MEMBER(Loop, "trusted", trusted, T_ULONGLONG),
    MEMBER(Loop, "batches", batches, T_ULONGLONG),
    MEMBER(Loop, "backwards", backwards, T_ULONGLONG),
    MEMBER(Loop, "training", training, T_BOOL),
    MEMBER(Loop, "work", work, T_BOOL),
    MEMBER(Loop, "updated", updated, T_BOOL),
    MEMBER(Loop, "fresh", fresh, T_BOOL),
    MEMBER(Loop, "inner", inner, T_BOOL),
    {"grad_enabled", T_OBJECT_EX, offsetof(Loop, grad_enabled), READONLY, NULL},
    MEMBER_END};

static PyTypeObject loop_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Loop",
    .tp_doc = "The usual path of the auto way; see plain.Loop.",
    .tp_basicsize = sizeof(Loop),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)loop_init,
    .tp_dealloc = (destructor)loop_dealloc,
    .tp_traverse = (traverseproc)loop_traverse,
    .tp_methods = loop_methods,
    .tp_members = loop_members,
};

/* torch's compiler is told to take this for True, so it is False only where code really runs. */
static PyObject *tracing(PyObject *unused, PyObject *nothing) { Py_RETURN_FALSE; }

static PyMethodDef functions[] = {
    {"tracing", tracing, METH_NOARGS, "Whether this is being compiled rather than run."},
#ifdef TEST_CLOCK
    {"set_clock", set_clock, METH_O, NULL},
#endif
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "sdk.core.native", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_native(void) {
    PyObject *made = PyModule_Create(&module);
    PyTypeObject *types[] = {&core_type, &face_type, &phase_type, &batches_type, &loop_type};
    for (size_t at = 0; made && at < sizeof types / sizeof *types; at++)
        if (PyModule_AddType(made, types[at]) < 0) Py_CLEAR(made);
    return made;
}
