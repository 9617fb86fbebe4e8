/* `Loop`: the usual path of automatic instrumentation. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    Core *core;
    PyObject *grad_enabled;
    unsigned long long closer, last, inside, training_iterator, batches, passes, backwards;
    unsigned char arrival;
    char training, had_backward, had_update, usual_update, untrained, settled, stepped, steps_within_batch, learning, tail;
} Loop;

static PyObject *training_name;

static inline unsigned long long id_of(PyObject *object) { return (unsigned long long)(uintptr_t)object; }

/* 1: gradients are recorded; -1: an exception. */
static int with_gradients(Loop *self) {
    PyObject *grad = self->grad_enabled ? PyObject_CallNoArgs(self->grad_enabled) : Py_NewRef(Py_False);
    if (!grad) return -1;
    int enabled = grad == Py_True;
    Py_DECREF(grad);
    return enabled;
}

static int ask(Loop *self, const char *method) {
    return settled(self->core, PyObject_CallMethod((PyObject *)self, method, NULL));
}

/* The step's work is done: note how many micro-batches it had, and reset for the next step. */
static void count_micro_batches(Loop *self) {
    unsigned long long micro = self->passes;
    if (self->batches && self->batches < micro) micro = self->batches;
    if (micro > MOST_MICRO) micro = MOST_MICRO;
    if (micro > 1) self->core->scratch[W_FLAGS] |= micro << MICRO_SHIFT;
    self->had_backward = self->had_update = self->usual_update = 0;
    self->batches = self->passes = 0;
}

static PyObject *loop_count_micro_batches(Loop *self, PyObject *unused) {
    count_micro_batches(self);
    Py_RETURN_NONE;
}

/* What followed the evaluation's last call was not part of the evaluation. */
static inline int end_tail(Loop *self) { return self->tail ? ask(self, "tail_ended") : 0; }

/* ── batches ─────────────────────────────────────────────────────────────────────────────────────── */

static PyObject *loop_usual_request(Loop *self, PyObject *iterator) {
    Core *core = self->core;
    if (!self->settled || self->learning || !(self->had_update || self->passes)) Py_RETURN_FALSE;
    if (id_of(iterator) != self->training_iterator || !ours(core) || core->depth) Py_RETURN_FALSE;
    int gradients = with_gradients(self);
    if (gradients < 0) return NULL;
    if (!gradients) Py_RETURN_FALSE;
    if (end_tail(self) < 0) return NULL;
    self->inside = 0;
    int status;
    if (self->had_update) {
        count_micro_batches(self);
        status = complete_and_begin(core, DATA);
    } else {
        status = mark(core, DATA);
    }
    if (status < 0) return NULL;
    Py_RETURN_TRUE;
}

static PyObject *loop_usual_batch(Loop *self, PyObject *batch) {
    self->batches++;
    RETURN(batch_arrived(self->core, self->arrival, batch, 1));
}

/* ── the model ───────────────────────────────────────────────────────────────────────────────────── */

/* Whether this forward pass certainly begins a step: the step's last optimizer has stepped, and steps do not end
   with a batch. */
static inline int begins_step(const Loop *self) {
    return self->settled && self->last == self->closer && (!self->batches || self->steps_within_batch);
}

static int forward_begins(Loop *self) {
    Core *core = self->core;
    if (end_tail(self) < 0) return -1;
    if (self->inside) { /* a closure */
        if (self->had_update && ask(self, "begin_at_open_phase") < 0) return -1;
        return mark(core, FORWARD);
    }
    if (self->had_update && begins_step(self)) {
        count_micro_batches(self);
        return complete_and_begin(core, FORWARD);
    }
    if (self->had_update || (!self->stepped && self->had_backward))
        if (ask(self, "unsure_start") < 0) return -1;
    return mark(core, FORWARD);
}

static PyObject *unusual_call(Loop *self, PyObject *module) {
    PyObject *wanted = PyObject_CallMethod((PyObject *)self, "unusual_call", "(O)", module);
    if (wanted) return wanted;
    if (settled(self->core, NULL) < 0) return NULL;
    Py_RETURN_FALSE;
}

static PyObject *loop_call_begins(Loop *self, PyObject *module) {
    Core *core = self->core;
    if (!ours(core) || core->depth || core->current == BACKWARD) Py_RETURN_FALSE;
    if (self->learning) return unusual_call(self, module);
    int gradients = with_gradients(self);
    if (gradients < 0) return NULL;
    if (gradients && core->current == FORWARD) Py_RETURN_FALSE;
    PyObject *trains = gradients ? PyObject_GetAttr(module, training_name) : NULL;
    if (gradients && !trains) PyErr_Clear();
    int usual = trains == Py_True;
    Py_XDECREF(trains);
    if (!usual) return unusual_call(self, module);
    if (forward_begins(self) < 0) return NULL;
    Py_RETURN_FALSE;
}

static PyObject *loop_forward_begins(Loop *self, PyObject *unused) { RETURN(forward_begins(self)); }

static PyObject *loop_backward_begins(Loop *self, PyObject *unused) {
    Core *core = self->core;
    if (!self->training && ask(self, "begin_training") < 0) return NULL;
    if (!ours(core) || core->current == BACKWARD) return PyLong_FromLong(-1);
    long before = core->current;
    if (before != FORWARD || self->untrained || !self->stepped || self->learning) {
        PyObject *done = PyObject_CallMethod((PyObject *)self, "unusual_backward", "l", before);
        if (settled(core, done) < 0) return NULL;
    }
    self->backwards++;
    self->had_backward = 1;
    if (!self->inside) self->passes++;
    return mark(core, BACKWARD) < 0 ? NULL : PyLong_FromLong(before);
}

static PyObject *loop_backward_ends(Loop *self, PyObject *before) {
    long phase = PyLong_AsLong(before);
    if (phase < 0) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    if (mark(self->core, self->inside ? OPTIMIZER : OTHER) < 0) return NULL;
    RETURN(self->stepped ? 0 : ask(self, "after_backward"));
}

/* ── optimizers ──────────────────────────────────────────────────────────────────────────────────── */

static PyObject *loop_optimizer_begins(Loop *self, PyObject *const *args, Py_ssize_t count) {
    if (!count || !ours(self->core)) Py_RETURN_NONE;
    if (self->inside && self->inside != id_of(args[0])) Py_RETURN_NONE;
    self->inside = id_of(args[0]);
    RETURN(mark(self->core, OPTIMIZER));
}

static PyObject *loop_optimizer_ends(Loop *self, PyObject *const *args, Py_ssize_t count) {
    Core *core = self->core;
    if (!count || !ours(core) || self->inside != id_of(args[0])) Py_RETURN_NONE;
    self->inside = 0;
    int usual = self->settled && id_of(args[0]) == self->closer && !self->had_update;
    if (usual && !self->learning && !self->untrained) {
        self->had_update = self->usual_update = 1;
        self->last = self->closer;
        RETURN(mark(core, BETWEEN));
    }
    RETURN(settled(core, PyObject_CallMethod((PyObject *)self, "optimizer_ended", "(O)", args[0])));
}

/* ── the type ────────────────────────────────────────────────────────────────────────────────────── */

static int loop_init(Loop *self, PyObject *args, PyObject *kwargs) {
    PyObject *core, *grad_enabled;
    if (!PyArg_ParseTuple(args, "O!O", &core_type, &core, &grad_enabled)) return -1;
    Py_XSETREF(self->core, (Core *)Py_NewRef(core));
    Py_XSETREF(self->grad_enabled, Py_NewRef(grad_enabled));
    return 0;
}

/* Until it gets its recorder, it has one that is off. */
static PyObject *loop_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (!training_name && !(training_name = PyUnicode_InternFromString("training"))) return NULL;
    Loop *self = (Loop *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->arrival = OTHER;
    self->core = core_off();
    if (!self->core) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
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
    {"usual_request", (PyCFunction)loop_usual_request, METH_O, "A batch is requested, and this is the usual case."},
    {"usual_batch", (PyCFunction)loop_usual_batch, METH_O, "It came."},
    {"call_begins", (PyCFunction)loop_call_begins, METH_O, "An outermost module is called."},
    {"forward_begins", (PyCFunction)loop_forward_begins, METH_NOARGS, "A forward pass begins."},
    {"count_micro_batches", (PyCFunction)loop_count_micro_batches, METH_NOARGS, "The step's work is done."},
    {"backward_begins", (PyCFunction)loop_backward_begins, METH_NOARGS, "A backward pass begins."},
    {"backward_ends", (PyCFunction)loop_backward_ends, METH_O, "It is over."},
    {"optimizer_begins", (PyCFunction)(void (*)(void))loop_optimizer_begins, METH_FASTCALL, NULL},
    {"optimizer_ends", (PyCFunction)(void (*)(void))loop_optimizer_ends, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef loop_members[] = {
    MEMBER(Loop, "closer", closer, T_ULONGLONG),
    MEMBER(Loop, "last", last, T_ULONGLONG),
    MEMBER(Loop, "inside", inside, T_ULONGLONG),
    MEMBER(Loop, "training_iterator", training_iterator, T_ULONGLONG),
    MEMBER(Loop, "batches", batches, T_ULONGLONG),
    MEMBER(Loop, "passes", passes, T_ULONGLONG),
    MEMBER(Loop, "backwards", backwards, T_ULONGLONG),
    MEMBER(Loop, "arrival", arrival, T_UBYTE),
    MEMBER(Loop, "training", training, T_BOOL),
    MEMBER(Loop, "had_backward", had_backward, T_BOOL),
    MEMBER(Loop, "had_update", had_update, T_BOOL),
    MEMBER(Loop, "usual_update", usual_update, T_BOOL),
    MEMBER(Loop, "untrained", untrained, T_BOOL),
    MEMBER(Loop, "settled", settled, T_BOOL),
    MEMBER(Loop, "stepped", stepped, T_BOOL),
    MEMBER(Loop, "steps_within_batch", steps_within_batch, T_BOOL),
    MEMBER(Loop, "learning", learning, T_BOOL),
    MEMBER(Loop, "tail", tail, T_BOOL),
    {"grad_enabled", T_OBJECT_EX, offsetof(Loop, grad_enabled), READONLY, NULL},
    MEMBER_END};

PyTypeObject loop_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Loop",
    .tp_doc = "The usual path of automatic instrumentation; see plain_marks.Loop.",
    .tp_basicsize = sizeof(Loop),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = loop_new,
    .tp_init = (initproc)loop_init,
    .tp_dealloc = (destructor)loop_dealloc,
    .tp_traverse = (traverseproc)loop_traverse,
    .tp_methods = loop_methods,
    .tp_members = loop_members,
};
