/* `Core`: the methods and attributes Python sees. Part of native.c. */

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
