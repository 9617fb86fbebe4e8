/* `Core`: the methods and attributes Python sees. */

#include "core.h"

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

PyObject *core_lap(Core *self, PyObject *name) {
    if (!ours(self)) Py_RETURN_NONE;
    int phase = find(self, name);
    if (phase >= 0) RETURN(mark(self, (unsigned)phase));
    RETURN(settled(self, PyObject_CallMethod((PyObject *)self, "new_lap", "(O)", name)));
}

static PyObject *core_name_phase(Core *self, PyObject *args) {
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

int push(Core *self, unsigned phase) {
    if (!ours(self)) return 0;
    if ((unsigned)self->depth < MOST_NESTED) self->nested[self->depth] = (unsigned char)(self->words[H_LIVE] >> 56);
    self->depth = (int)((unsigned)self->depth + 1);
    return mark(self, phase);
}

int pop(Core *self) {
    if (!self->depth || !ours(self)) return 0;
    self->depth = (int)((unsigned)self->depth - 1);
    return mark(self, self->nested[(unsigned)self->depth < MOST_NESTED ? self->depth : MOST_NESTED - 1]);
}

static PyObject *core_push(Core *self, PyObject *phase) {
    long wanted = PyLong_AsLong(phase);
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    RETURN(push(self, (unsigned)wanted & 255));
}

static PyObject *core_pop(Core *self, PyObject *unused) { RETURN(pop(self)); }

int request_batch(Core *self) {
    if (!ours(self) || self->depth) return 0;
    return mark(self, DATA) < 0 ? -1 : 1;
}

static PyObject *core_request_batch(Core *self, PyObject *unused) {
    int asked = request_batch(self);
    return asked < 0 ? NULL : PyBool_FromLong(asked);
}

/* ── steps ───────────────────────────────────────────────────────────────────────────────────────── */

static PyObject *core_set_step_values(Core *self, PyObject *args) {
    PyObject *samples, *tokens, *loss;
    if (!PyArg_ParseTuple(args, "OOO", &samples, &tokens, &loss)) return NULL;
    self->given = 0;
    unsigned char given = 0;
    if (samples != Py_None) {
        self->given_samples = PyLong_AsUnsignedLongLong(samples);
        given |= GIVEN_SAMPLES;
    }
    if (tokens != Py_None) {
        self->given_tokens = PyLong_AsUnsignedLongLong(tokens);
        given |= GIVEN_TOKENS;
    }
    if (loss != Py_None) {
        self->given_loss = PyFloat_AsDouble(loss);
        given |= GIVEN_LOSS;
    }
    if (PyErr_Occurred()) return NULL;
    self->given = given;
    Py_RETURN_NONE;
}

static int step_details(Core *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *method = PyObject_GetAttrString((PyObject *)self, "step_details");
    PyObject *done = method ? PyObject_Vectorcall(method, args, (size_t)count, names) : NULL;
    Py_XDECREF(method);
    return settled(self, done);
}

PyObject *core_step(Core *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (!ours(self)) Py_RETURN_NONE;
    if ((count || names) && step_details(self, args, count, names) < 0) return NULL;
    int64_t now = monotonic();
    int status = work_done(self, now);
    count_done(self);
    RETURN(status < 0 ? status : leave(self, BETWEEN, now));
}

int complete_and_begin(Core *self, unsigned phase) {
    int64_t now = monotonic();
    if (self->record_open && !self->work_ended) self->work_ended = now;
    int status = begin_phase(self, phase, now);
    count_done(self);
    return status < 0 ? status : leave(self, phase, now);
}

static PyObject *core_complete_and_begin(Core *self, PyObject *phase) {
    long wanted = PyLong_AsLong(phase);
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    RETURN(complete_and_begin(self, (unsigned)wanted & 255));
}

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

static PyObject *core_set_batch_path(Core *self, PyObject *path) {
    PyObject *old = self->path;
    self->path = PyTuple_Check(path) ? Py_NewRef(path) : NULL;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

/* Samples in a batch, by the known path to its first tensor; -1 with an exception if the path leads nowhere. */
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
    return settled(self, PyObject_CallMethod((PyObject *)self, "measure_batch", "(O)", batch));
}

static PyObject *core_count_batch(Core *self, PyObject *batch) { RETURN(count_batch(self, batch)); }

/* A batch has arrived: phase `then` begins, and the batch is counted if `counting`. */
int batch_arrived(Core *self, unsigned then, PyObject *batch, int counting) {
    if (mark(self, then) < 0) return -1;
    return counting ? count_batch(self, batch) : 0;
}

/* ── garbage collections ───────────────────────────────────────────────────────────────────────────────────── */

/* An entry of `gc.callbacks`. In C because a collection can happen anywhere, and Ctrl-C inside a Python callback
   would be lost. */
static PyObject *core_collected(Core *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 1 || !PyUnicode_Check(args[0])) Py_RETURN_NONE;
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        self->gc_began = monotonic();
    } else if (self->gc_began) {
        self->scratch[W_GC] += (uint64_t)minus(monotonic(), self->gc_began);
        self->gc_collections++;
        self->gc_began = 0;
    }
    Py_RETURN_NONE;
}

/* ── the ring, creation and destruction ───────────────────────────────────────────────────────────────────── */

static void let_go(Core *self) {
    if (self->words) {
        unguard_memory(self->words);
        PyBuffer_Release(&self->ring);
    }
    self->words = NULL;
}

/* How many slots the ring has: from its header, or from the object for a ring in memory only. */
static uint64_t slots_of(PyObject *source, const Py_buffer *view) {
    uint64_t room = (uint64_t)view->len / sizeof(uint64_t);
    uint64_t count = room > DATA_AT ? ((uint64_t *)view->buf)[H_SLOTS] : 0;
    if (count && count <= (room - DATA_AT) / SLOT_WORDS) return count;
    PyObject *slots = PyObject_GetAttrString(source, "slots");
    count = slots ? PyLong_AsUnsignedLongLong(slots) : 0;
    Py_XDECREF(slots);
    if (PyErr_Occurred()) return 0;
    if (count && room > DATA_AT && count <= (room - DATA_AT) / SLOT_WORDS) return count;
    PyErr_SetString(PyExc_ValueError, "the ring is too short for its slots");
    return 0;
}

/* Take the memory `source` has now; on failure keep the previous memory. */
int hold(Core *self) {
    Py_buffer view;
    PyObject *source = Py_NewRef(self->source); /* its attributes are Python: they could replace self->source */
    PyObject *words = PyObject_GetAttrString(source, "words");
    int failed = !words || PyObject_GetBuffer(words, &view, PyBUF_WRITABLE) < 0;
    uint64_t slots = failed ? 0 : slots_of(source, &view);
    Py_XDECREF(words);
    Py_DECREF(source);
    if (failed) return -1;
    if (!slots) {
        PyBuffer_Release(&view);
        return -1;
    }
    let_go(self);
    self->ring = view;
    self->words = view.buf;
    self->slots = slots;
    guard_memory(view.buf, (size_t)view.len);
    return 0;
}

static PyObject *core_use(Core *self, PyObject *ring) {
    let_go(self);
    Py_CLEAR(self->source);
    if (ring == Py_None) Py_RETURN_NONE;
    self->source = Py_NewRef(ring);
    RETURN(hold(self));
}

static PyObject *core_phase(Core *self, void *unused) {
    return PyLong_FromLong(self->words ? (long)(self->words[H_LIVE] >> 56) : OTHER);
}

/* The view keeps the memory alive even if the recorder goes away. */
static PyObject *page(Core *self, Py_ssize_t number) {
    Py_ssize_t bytes = SLOT_WORDS * (Py_ssize_t)sizeof(uint64_t);
    PyObject *whole = PyMemoryView_FromObject(self->record_memory);
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
    self->record_memory = PyByteArray_FromStringAndSize(NULL, 2 * SLOT_WORDS * sizeof(uint64_t));
    if (!self->record_memory || PyObject_GetBuffer(self->record_memory, &self->pages, PyBUF_WRITABLE) < 0) {
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
    self->on = self->check_record = 1;
    self->current = OTHER;
    self->phase_began = self->work_ended = monotonic();
    return (PyObject *)self;
}

/* For objects without a recorder yet: every mark is a no-op. */
Core *core_off(void) {
    Core *made = (Core *)PyObject_CallNoArgs((PyObject *)&core_type);
    if (made) made->thread = 0;
    return made;
}

static void core_dealloc(Core *self) {
    let_go(self);
    Py_XDECREF(self->source);
    if (self->pages.obj) PyBuffer_Release(&self->pages);
    while (self->known) Py_DECREF(self->name[--self->known]);
    Py_XDECREF(self->path);
    Py_XDECREF(self->record_memory);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef core_methods[] = {
    {"mark", (PyCFunction)core_mark, METH_O, "This phase begins."},
    {"lap", (PyCFunction)core_lap, METH_O, "Phase `name` begins and lasts until the next lap or `step()`."},
    {"name_phase", (PyCFunction)core_name_phase, METH_VARARGS, "What `lap` calls a phase."},
    {"push", (PyCFunction)core_push, METH_O, "Open a nested phase."},
    {"pop", (PyCFunction)core_pop, METH_NOARGS, "Close it."},
    {"request_batch", (PyCFunction)core_request_batch, METH_NOARGS, "A batch is requested."},
    {"set_step_values", (PyCFunction)core_set_step_values, METH_VARARGS, "What the user says of this step."},
    {"step", (PyCFunction)(void (*)(void))core_step, METH_FASTCALL | METH_KEYWORDS, "The step's work is done."},
    {"complete_and_begin", (PyCFunction)core_complete_and_begin, METH_O, "The step is done, and this phase begins."},
    {"count_done", (PyCFunction)core_count_done, METH_NOARGS, "One more step has its work done."},
    {"roll", (PyCFunction)core_roll, METH_O, "Commit the open record with its end at `now`."},
    {"set_batch_path", (PyCFunction)core_set_batch_path, METH_O, "Where in a batch its first tensor is."},
    {"count_batch", (PyCFunction)core_count_batch, METH_O, "Add the batch's samples to the open record."},
    {"collected", (PyCFunction)(void (*)(void))core_collected, METH_FASTCALL, "An entry of `gc.callbacks`."},
    {"use", (PyCFunction)core_use, METH_O, "Records go to this ring."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef core_members[] = {
    MEMBER(Core, "thread", thread, T_ULONG),
    MEMBER(Core, "phase_began", phase_began, T_LONGLONG),
    MEMBER(Core, "work_ended", work_ended, T_LONGLONG),
    MEMBER(Core, "requested_at", requested_at, T_LONGLONG),
    MEMBER(Core, "steps", steps, T_ULONGLONG),
    MEMBER(Core, "done", done, T_ULONGLONG),
    MEMBER(Core, "next_call", next_call, T_ULONGLONG),
    MEMBER(Core, "next_second", next_second, T_LONGLONG),
    MEMBER(Core, "next_flags", next_flags, T_ULONGLONG),
    MEMBER(Core, "current", current, T_INT),
    MEMBER(Core, "depth", depth, T_INT),
    MEMBER(Core, "on", on, T_BOOL),
    MEMBER(Core, "record_open", record_open, T_BOOL),
    MEMBER(Core, "step_mode", step_mode, T_BOOL),
    MEMBER(Core, "check_record", check_record, T_BOOL),
    MEMBER(Core, "has_device", has_device, T_BOOL),
    MEMBER(Core, "gc_collections", gc_collections, T_ULONGLONG),
    MEMBER(Core, "duration", duration, T_LONGLONG),
    MEMBER(Core, "overhead", overhead, T_LONGLONG),
    MEMBER(Core, "spent_ns", spent, T_LONGLONG),
    MEMBER_END};

static PyGetSetDef core_getset[] = {{"phase", (getter)core_phase, NULL, "The phase that is open now.", NULL},
                                    {"scratch", (getter)core_scratch, NULL, "The open record.", NULL},
                                    {"empty", (getter)core_empty, NULL, "What a record begins as.", NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject core_type = {
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
