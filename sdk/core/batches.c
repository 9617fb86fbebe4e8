/* `Batches`: an iterator that marks each wait for a batch. */

#include "core.h"

typedef struct {
    PyObject_HEAD
    Core *core;
    PyObject *start, *source;
    int counting;
} Batches;

/* The source has ended or failed: this wait belongs to the previous step. Its exception propagates. */
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
    int asked = request_batch(core);
    if (asked < 0) return NULL;
    if (!self->source) self->source = PyObject_CallNoArgs(self->start);
    if (self->source && !PyIter_Check(self->source)) {
        Py_CLEAR(self->source);
        PyErr_SetString(PyExc_TypeError, "the batches did not return an iterator");
    }
    PyObject *batch = self->source ? Py_TYPE(self->source)->tp_iternext(self->source) : NULL;
    if (!asked || !core->on) return batch;
    if (!batch)
        exhausted(core);
    else if (batch_arrived(core, OTHER, batch, self->counting) < 0)
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

PyTypeObject batches_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.core.native.Batches",
    .tp_doc = "Iterates what `start()` gives; see plain_marks.Batches.",
    .tp_basicsize = sizeof(Batches),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = batches_new,
    .tp_dealloc = (destructor)batches_dealloc,
    .tp_traverse = (traverseproc)batches_traverse,
    .tp_clear = (inquiry)batches_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)batches_next,
};
