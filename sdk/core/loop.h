/* `Loop`: the usual path of the auto way. Part of native.c. */

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
