/* Reads the stack of a thread at intervals, without making the thread wait.

   At each tick the sampling thread asks the interpreter for a pending call: the watched thread, if it is the
   main one and runs Python code, then reads its own stack between two of its instructions. No lock changes
   hands and no other thread must be scheduled. If that has not happened after a moment, the watched thread is
   in a long call that has most likely released the interpreter lock; the sampling thread then takes the lock
   and reads the stack itself, all at once, before anyone can change it.

   Only a stack read under a lock that was free shows where the thread was at the tick (EXACT). A thread that
   reads its own stack does so at the interpreter's next check for requests, a few instructions on (CHECKED);
   one that let go of the lock after a wait was anywhere before (LATE). Each sample says which.

   A stack is read as code objects and instruction offsets; names and lines are looked up later. No Python
   function is called, so torch's compiler has nothing to trace. */

#define PY_SSIZE_T_CLEAN
#include <patchlevel.h>
#if PY_VERSION_HEX < 0x030D0000
#define Py_BUILD_CORE_MODULE 1 /* for the interpreter's request flag, see `wake` */
#endif
#include <Python.h>
#if PY_VERSION_HEX < 0x030D0000 && __has_include(<internal/pycore_interp.h>)
#include <internal/pycore_interp.h>
#define CAN_WAKE 1
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <structmember.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef __linux__
#error "made for Linux; elsewhere hotspots.py reads stacks with faulthandler"
#endif
#ifdef Py_GIL_DISABLED
#error "another thread's stack stands still only while the interpreter lock is held"
#endif

enum {
    MOST_FRAMES = 100,   /* as many as faulthandler shows */
    PATIENCE_NS = 50000, /* chosen: Python code reaches its next check within a microsecond or two */
    SLACK_NS = 1000,     /* Linux lets sleeps end 50 µs late unless told otherwise */
    FREE_NS = 20000,     /* chosen: a lock that took longer was not free */
    MOST_IDLE = 8,       /* chosen: while there is nothing to sample, ticks are at most this many times rarer */
};

enum { EXACT, CHECKED, LATE };

typedef struct {
    PyObject_HEAD
    PyObject *subject, *samples;
    unsigned long thread;
    pid_t process;
    int schedstat;
    clockid_t clock; /* of the watched thread's CPU time */
    int has_clock;
    char running, wanted, queued; /* shared by two threads: use only atomic operations */
    char ended;                   /* only with the interpreter lock held */
    int64_t last, last_cpu, last_waited;
    int wakes; /* pending calls run at the main thread's next check */
    int idle;  /* how many times rarer ticks are now; 1: as requested */
    int64_t interval;
    int64_t lost, beside, taken; /* ns of the watched thread and of the sampling one; samples */
} Sampler;

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    return clock_gettime(clock, &now) ? 0 : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(int64_t ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    nanosleep(&time, NULL);
}

#define GET(field) __atomic_load_n(&self->field, __ATOMIC_SEQ_CST)
#define SET(field, value) __atomic_store_n(&self->field, value, __ATOMIC_SEQ_CST)
#define TAKE(field) __atomic_exchange_n(&self->field, 0, __ATOMIC_SEQ_CST)

/* ns on a core and ns waiting for one. The kernel's file has both, but of a thread that runs it tells the first
   as of the last timer tick, up to 10 ms ago; asking the clock brings the file up to date as well. */
static void read_times(Sampler *self, int64_t *cpu, int64_t *waited) {
    char text[64], *end;
    *cpu = self->has_clock ? read_clock(self->clock) : 0;
    ssize_t size = self->schedstat < 0 ? 0 : pread(self->schedstat, text, sizeof text - 1, 0);
    *waited = 0;
    if (size > 0) {
        text[size] = 0;
        int64_t until_tick = strtoll(text, &end, 10);
        if (!self->has_clock) *cpu = until_tick;
        *waited = strtoll(end, NULL, 10);
    }
}

static PyObject *stack_of(PyFrameObject *frame) {
    PyObject *stack[2 * MOST_FRAMES];
    Py_ssize_t count = 0;
    Py_INCREF(frame);
    while (frame && count < 2 * MOST_FRAMES) {
        stack[count++] = (PyObject *)PyFrame_GetCode(frame);
        stack[count++] = PyLong_FromLong(PyFrame_GetLasti(frame));
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (made && stack[at])
            PyTuple_SET_ITEM(made, at, stack[at]);
        else
            Py_XDECREF(stack[at]);
    }
    return made;
}

/* Negative: what happens now is not to be sampled. */
static long phase_of(Sampler *self) {
    PyObject *phase = PyObject_GetAttrString(self->subject, "phase");
    long number = phase ? PyLong_AsLong(phase) : -1;
    Py_XDECREF(phase);
    return number;
}

static void add(Sampler *self, PyFrameObject *frame, int64_t now, int when) {
    int64_t cpu, waited;
    read_times(self, &cpu, &waited);
    /* After idle ticks it is unknown when the work began: the sample then counts as one interval. */
    int64_t whole = self->idle > 1 && now - self->last > self->interval ? self->interval : now - self->last;
    long long on_core = cpu - self->last_cpu, in_queue = waited - self->last_waited;
    self->last = now, self->last_cpu = cpu, self->last_waited = waited;
    if (on_core > whole) on_core = whole;
    if (on_core < 0) on_core = 0; /* it has ended */
    if (in_queue > whole - on_core) in_queue = whole - on_core;
    long phase = phase_of(self);
    self->idle = phase >= 0 ? 1 : self->idle < MOST_IDLE ? 2 * self->idle : MOST_IDLE;
    PyObject *stack = phase < 0 ? NULL : stack_of(frame);
    PyObject *sample =
        stack ? Py_BuildValue("lLLLLiN", phase, (long long)whole, on_core, in_queue, (long long)now, when, stack)
              : NULL;
    if (sample && PyList_Append(self->samples, sample) == 0) self->taken++;
    Py_XDECREF(sample);
}

/* With the interpreter lock held, in either thread. Nothing it raises may surface in the user's line. */
static void sample(Sampler *self, PyFrameObject *frame, int when) {
    if (!frame) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    add(self, frame, read_clock(CLOCK_MONOTONIC), when);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

/* The interpreter calls this in the main thread. A forked child inherits the call but not the sampling. */
static int asked(void *argument) {
    Sampler *self = argument;
    SET(queued, 0);
    if (TAKE(wanted) && GET(running) && getpid() == self->process) {
        int64_t began = read_clock(CLOCK_MONOTONIC);
        sample(self, PyEval_GetFrame(), self->wakes ? CHECKED : LATE);
        self->lost += read_clock(CLOCK_MONOTONIC) - began;
    }
    if (self->ended) { /* `run` left us its reference */
        self->ended = 0;
        Py_DECREF(self);
    }
    return 0;
}

static PyFrameObject *frame_of(unsigned long thread) {
    PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    while (state && state->thread_id != thread) state = PyThreadState_Next(state);
    return state ? PyThreadState_GetFrame(state) : NULL;
}

#ifdef CAN_WAKE
/* Before Python 3.13, a pending call added by another thread waits until the main thread next looks at its
   requests for some other reason, such as a lock it gave away: samples would fall only there. Raise the flag
   that makes it look, as the interpreter itself does, from any thread, for a signal. */
static void wake(void) {
    _Py_atomic_store_relaxed(&PyInterpreterState_Main()->ceval.eval_breaker, 1);
}

/* Whether the flag is where the headers say: its neighbour must be. */
static int can_wake(void) {
    return PyInterpreterState_Main()->ceval.recursion_limit == Py_GetRecursionLimit();
}
#else
static void wake(void) {}
static int can_wake(void) { return PY_VERSION_HEX >= 0x030D0000; }
#endif

static void ask(Sampler *self) {
    if (!GET(queued)) {
        SET(queued, 1);
        if (Py_AddPendingCall(asked, self) < 0) SET(queued, 0); /* too many are waiting; try at the next tick */
    }
    if (self->wakes) wake();
}

/* Sample a thread that has not done so itself; we waited this long for the lock. */
static void read_it_ourselves(Sampler *self, int64_t waited) {
    if (!TAKE(wanted) || !GET(running)) return;
    PyFrameObject *frame = frame_of(self->thread);
    sample(self, frame, waited < FREE_NS ? EXACT : self->wakes ? CHECKED : LATE);
    Py_XDECREF(frame);
}

static PyObject *sampler_run(Sampler *self, PyObject *args) {
    long long interval, longest, most;
    int is_main;
    int schedstat;
    if (!PyArg_ParseTuple(args, "LLLpi", &interval, &longest, &most, &is_main, &schedstat)) return NULL;
    if (GET(running) || GET(queued)) Py_RETURN_FALSE;
    self->schedstat = schedstat;
    self->interval = interval;
    self->idle = 1;
    self->wakes = is_main && can_wake();
    SET(running, 1);
    Py_INCREF(self); /* for the pending call */
    self->process = getpid();
    self->last = read_clock(CLOCK_MONOTONIC);
    PyFrameObject *frame = frame_of(self->thread);
    /* A thread that has ended has no clock, and asking for it then is not safe; the clock itself may be asked. */
    self->has_clock = frame && pthread_getcpuclockid((pthread_t)self->thread, &self->clock) == 0;
    if (frame) read_times(self, &self->last_cpu, &self->last_waited);
    Py_XDECREF(frame);
    int64_t end = self->last + longest, enough = self->taken + most;
    prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
    int64_t before = self->beside - read_clock(CLOCK_THREAD_CPUTIME_ID);
    PyThreadState *state = PyEval_SaveThread();
    while (GET(running) && self->taken < enough && read_clock(CLOCK_MONOTONIC) < end) {
        self->beside = before + read_clock(CLOCK_THREAD_CPUTIME_ID);
        sleep_ns(interval * self->idle);
        SET(wanted, 1);
        if (is_main) {
            ask(self);
            sleep_ns(PATIENCE_NS);
            if (!GET(wanted)) continue;
        }
        int64_t began = read_clock(CLOCK_MONOTONIC);
        PyEval_RestoreThread(state);
        read_it_ourselves(self, read_clock(CLOCK_MONOTONIC) - began);
        state = PyEval_SaveThread();
    }
    PyEval_RestoreThread(state);
    self->beside = before + read_clock(CLOCK_THREAD_CPUTIME_ID);
    SET(running, 0);
    if (GET(queued))
        self->ended = 1; /* the pending call releases our reference */
    else
        Py_DECREF(self);
    self->schedstat = -1;
    Py_RETURN_TRUE;
}

static PyObject *sampler_stop(Sampler *self, PyObject *nothing) {
    SET(running, 0);
    Py_RETURN_NONE;
}

static PyObject *sampler_take(Sampler *self, PyObject *nothing) {
    PyObject *fresh = PyList_New(0);
    if (!fresh) return NULL;
    PyObject *taken = self->samples;
    self->samples = fresh;
    return taken;
}

static PyObject *sampler_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *subject;
    unsigned long thread;
    if (!PyArg_ParseTuple(args, "Ok", &subject, &thread)) return NULL;
    Sampler *self = (Sampler *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->samples = PyList_New(0);
    self->subject = Py_NewRef(subject);
    self->thread = thread;
    self->schedstat = -1;
    if (!self->samples) Py_CLEAR(self);
    return (PyObject *)self;
}

static int sampler_traverse(Sampler *self, visitproc visit, void *arg) {
    Py_VISIT(self->subject);
    Py_VISIT(self->samples);
    return 0;
}

static int sampler_clear(Sampler *self) {
    Py_CLEAR(self->subject);
    return 0;
}

static void sampler_dealloc(Sampler *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->subject);
    Py_CLEAR(self->samples);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef sampler_methods[] = {
    {"run", (PyCFunction)sampler_run, METH_VARARGS,
     "run(interval_ns, longest_ns, most, is_main, schedstat): sample until stopped, in a thread of its own."},
    {"stop", (PyCFunction)sampler_stop, METH_NOARGS, "`run` is to end."},
    {"take", (PyCFunction)sampler_take, METH_NOARGS,
     "The samples since the last call: (phase, ns, ns on a core, ns waiting for one, time, when, (code, offset, …)).\n"
     "when: 0 at the tick, 1 at the interpreter's next check, 2 some time later."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef sampler_members[] = {
    {"taken", T_LONGLONG, offsetof(Sampler, taken), READONLY, "Samples so far."},
    {NULL, 0, 0, 0, NULL}};

static PyObject *sampler_spent(Sampler *self, void *unused) {
    return PyLong_FromLongLong(self->lost + self->beside);
}

static PyGetSetDef sampler_getset[] = {
    {"spent_ns", (getter)sampler_spent, NULL, "What sampling took so far, in both threads.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject sampler_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sdk.sampling._native.Sampler",
    .tp_doc = "Sampler(subject, thread): samples `thread`; `subject.phase` says what it does.",
    .tp_basicsize = sizeof(Sampler),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = sampler_new,
    .tp_dealloc = (destructor)sampler_dealloc,
    .tp_traverse = (traverseproc)sampler_traverse,
    .tp_clear = (inquiry)sampler_clear,
    .tp_methods = sampler_methods,
    .tp_members = sampler_members,
    .tp_getset = sampler_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "sdk.sampling._native", .m_size = -1};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddType(made, &sampler_type) < 0) Py_CLEAR(made);
    return made;
}
