/* The recorder's hot path in C: the Python module. plain.py is the Python equivalent and explains each part;
   change both together. A test runs the same loops on both.

   Why C: between two marks the training evicts our code and data from every cache; a Python frame then costs
   half a microsecond, and a mark in Python several. Here a mark is a clock read, an addition and a store. Rare
   cases call Python, and of what it raises only KeyboardInterrupt and SystemExit, which are meant for the loop,
   reach it. */

#include "core.h"

/* torch's compiler is told to trace this as True, so it is False only when code really runs. */
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
