/* What a user calls: `Marks` (lap, step), and `Phase` as a context manager. */

#include "core.h"

/* ── the marks a user calls every step ───────────────────────────────────────────────────────────── */

typedef struct {
    PyObject_HEAD
    Core *core;
} Marks;

static PyObject *marks_lap(Marks *self, PyObject *name) { return core_lap(self->core, name); }

static PyObject *marks_step(Marks *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return core_step(self->core, args, count, names);
}

static PyObject *marks_recorder(Marks *self, void *unused) { return Py_NewRef((PyObject *)self->core); }

static int marks_set_recorder(Marks *self, PyObject *core, void *unused) {
    if (!core || !PyObject_TypeCheck(core, &core_type)) {
        PyErr_SetString(PyExc_TypeError, "no recorder");
        return -1;
    }
    Py_XSETREF(self->core, (Core *)Py_NewRef(core));
    return 0;
}

static int marks_init(Marks *self, PyObject *args, PyObject *kwargs) {
    PyObject *core;
    return PyArg_ParseTuple(args, "O", &core) ? marks_set_recorder(self, core, NULL) : -1;
}

/* Until it gets its recorder, it has one that is off, so a mark never finds a NULL core. */
static PyObject *marks_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Marks *self = (Marks *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->core = core_off();
    if (!self->core) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int marks_traverse(Marks *self, visitproc visit, void *arg) {
    Py_VISIT(self->core);
    return 0;
}

static void marks_dealloc(Marks *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->core);
    Py_TYPE(self)->tp_free(self);
}

PyDoc_STRVAR(lap_doc, "lap($self, name, /)\n--\n\n"
                      "Phase `name` begins and lasts until the next lap or `step()`: the cheapest mark.");
PyDoc_STRVAR(step_doc, "step($self, loss=None, *, samples=None, tokens=None, **scalars)\n--\n\n"
                       "One optimizer step is done. `loss` and other numbers are read without a device sync.");
static PyMethodDef marks_methods[] = {
    {"lap", (PyCFunction)marks_lap, METH_O, lap_doc},
    {"step", (PyCFunction)(void (*)(void))marks_step, METH_FASTCALL | METH_KEYWORDS, step_doc},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef marks_getset[] = {
    {"_recorder", (getter)marks_recorder, (setter)marks_set_recorder, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject marks_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Marks",
    .tp_doc = "The marks a user calls every step; see plain_marks.Marks.",
    .tp_basicsize = sizeof(Marks),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = marks_new,
    .tp_init = (initproc)marks_init,
    .tp_dealloc = (destructor)marks_dealloc,
    .tp_traverse = (traverseproc)marks_traverse,
    .tp_methods = marks_methods,
    .tp_getset = marks_getset,
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

PyTypeObject phase_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Phase",
    .tp_doc = "A named phase as a context manager; see plain_marks.Phase.",
    .tp_basicsize = sizeof(Phase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = phase_new,
    .tp_dealloc = (destructor)phase_dealloc,
    .tp_traverse = (traverseproc)phase_traverse,
    .tp_methods = phase_methods,
};
