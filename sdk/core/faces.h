/* What a user holds: `Face` (lap, step), `Phase`, `Batches`. Part of native.c. */

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
