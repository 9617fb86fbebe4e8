/* The hot path of the recorder in C: the Python module. plain.py is the same in Python and says what each part
   means; the two change together, and a test plays the same loops on both.

   Why C: between two marks the training has evicted our code and data from every cache, and then a Python
   frame costs half a microsecond and a mark written in Python several. Here a mark is a clock read, an addition
   and a store. Python is called for what is rare, and nothing it raises reaches the loop but what is meant for
   it (KeyboardInterrupt, SystemExit). */

#include "core.h"

/* torch's compiler is told to trace this as True, so it is False only where code really runs. */
static PyObject *tracing(PyObject *unused, PyObject *nothing) { Py_RETURN_FALSE; }

#ifdef TEST_CLOCK
static PyObject *set_clock(PyObject *unused, PyObject *now) {
    test_now = PyLong_AsLongLong(now);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
#endif

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
    PyTypeObject *types[] = {&core_type, &marks_type, &phase_type, &batches_type, &loop_type};
    for (size_t at = 0; made && at < sizeof types / sizeof *types; at++)
        if (PyModule_AddType(made, types[at]) < 0) Py_CLEAR(made);
    return made;
}
