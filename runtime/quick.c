/* The shortest way from NumPy arrays to a kernel: layerc.runtime._quick.

   A `Quick` is one kernel at one case of shapes and types. Called with arrays it looks at each of them (a plain
   ndarray, of this very type and shape, contiguous and aligned), makes the outputs, or takes those it is given,
   runs the kernel without the GIL and returns them. Whatever is not as it should be is left to the careful way in Python: then it returns
   NotImplemented, before anything has been done. */

#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <stdint.h>
#include "kept.h"

#define MOST_ARRAYS 48
#define LARGE (1 << 14) /* numbers of a result whose memory is kept for the next (kept.c) */
#define MOST_AXES 16

typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;
typedef int (*lc_run)(int kernel, const int64_t *ints, const double *floats, void *const *arrays, lc_call *call);
typedef struct { int type, rank; npy_intp shape[MOST_AXES]; } spec;

typedef struct {
    PyObject_HEAD
    lc_run run;
    int kernel, given, outputs, arguments;
    int64_t *ints;
    double *floats;
    spec *specs;                /* of what is given, then of the outputs */
    int order[MOST_ARRAYS];     /* which of what is given each of the kernel's arguments is */
    uint64_t over[MOST_ARRAYS]; /* for each output, a bit for each argument in whose memory it may lie */
    PyObject *fail;             /* fail(status, info) raises what a status means */
} Quick;

static int32_t threads = 1;

static PyObject *set_threads(PyObject *self, PyObject *count)
{
    long n = PyLong_AsLong(count);
    (void)self;
    if (n == -1 && PyErr_Occurred()) return NULL;
    threads = (int32_t)n;
    Py_RETURN_NONE;
}

static int fits(PyObject *object, const spec *wanted)
{
    if (!PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_TYPE(array) != wanted->type || PyArray_NDIM(array) != wanted->rank) return 0;
    if (!PyArray_ISCARRAY_RO(array)) return 0; /* contiguous, aligned, not swapped */
    for (int k = 0; k < wanted->rank; k++)
        if (PyArray_DIM(array, k) != wanted->shape[k]) return 0;
    return 1;
}

static PyObject *handler; /* of large results */

static PyObject *fresh(const spec *wanted)
{
    npy_intp size = 1;
    for (int k = 0; k < wanted->rank; k++)
        if (__builtin_mul_overflow(size, wanted->shape[k], &size)) size = 0; /* NumPy says so */
    if (size < LARGE) return PyArray_SimpleNew(wanted->rank, wanted->shape, wanted->type);
    PyObject *before = PyDataMem_SetHandler(handler);
    if (!before) return NULL;
    PyObject *made = PyArray_SimpleNew(wanted->rank, wanted->shape, wanted->type);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(PyDataMem_SetHandler(before));
    PyErr_Restore(type, value, trace);
    Py_DECREF(before);
    return made;
}

static PyObject *failed(Quick *self, int status, const lc_call *call)
{
    const int64_t *i = call->info;
    PyObject *nothing = PyObject_CallFunction(
        self->fail, "i(LLLL)", status, (long long)i[0], (long long)i[1], (long long)i[2], (long long)i[3]);
    Py_XDECREF(nothing);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a kernel failed, and nothing was raised");
    return NULL;
}

static int launch(Quick *self, void *const *arrays, lc_call *call)
{
    int status;
    *call = (lc_call){threads, 0, {0, 0, 0, 0}};
    Py_BEGIN_ALLOW_THREADS
    status = self->run(self->kernel, self->ints, self->floats, arrays, call);
    Py_END_ALLOW_THREADS
    return status;
}

static PyObject *quick_call(Quick *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != self->given) Py_RETURN_NOTIMPLEMENTED;
    for (int k = 0; k < self->given; k++)
        if (!fits(args[k], &self->specs[k])) Py_RETURN_NOTIMPLEMENTED;

    void *arrays[MOST_ARRAYS];
    PyObject *made[MOST_ARRAYS];
    for (int k = 0; k < self->arguments; k++) arrays[k] = PyArray_DATA((PyArrayObject *)args[self->order[k]]);
    for (int k = 0; k < self->outputs; k++) {
        spec *o = &self->specs[self->given + k];
        made[k] = fresh(o);
        if (!made[k]) {
            while (k--) Py_DECREF(made[k]);
            return NULL;
        }
        arrays[self->arguments + k] = PyArray_DATA((PyArrayObject *)made[k]);
    }

    lc_call call;
    int status = launch(self, arrays, &call);

    PyObject *result = NULL;
    if (status)
        failed(self, status, &call);
    else if (self->outputs == 1)
        return made[0];
    else if ((result = PyTuple_New(self->outputs)))
        for (int k = 0; k < self->outputs; k++) PyTuple_SetItem(result, k, made[k]);
    if (!result)
        for (int k = 0; k < self->outputs; k++) Py_DECREF(made[k]);
    return result;
}

static int overlap(PyArrayObject *a, PyArrayObject *b)
{
    const char *p = PyArray_BYTES(a), *q = PyArray_BYTES(b);
    return p < q + PyArray_NBYTES(b) && q < p + PyArray_NBYTES(a);
}

/* Whether an output may be written to: apart from all others, and from what is read but where that is allowed. */
static int is_free(Quick *self, PyObject *const *args, int output)
{
    PyArrayObject *out = (PyArrayObject *)args[self->given + output];
    if (!PyArray_ISWRITEABLE(out)) return 0;
    for (int k = 0; k < output; k++)
        if (overlap(out, (PyArrayObject *)args[self->given + k])) return 0;
    for (int k = 0; k < self->arguments; k++) {
        PyArrayObject *read = (PyArrayObject *)args[self->order[k]];
        int same = PyArray_DATA(read) == PyArray_DATA(out) && PyArray_NBYTES(read) == PyArray_NBYTES(out);
        if (overlap(out, read) && !(same && (self->over[output] >> k & 1))) return 0;
    }
    return 1;
}

static PyObject *quick_into(Quick *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != self->given + self->outputs) Py_RETURN_NOTIMPLEMENTED;
    for (int k = 0; k < count; k++)
        if (!fits(args[k], &self->specs[k])) Py_RETURN_NOTIMPLEMENTED;
    for (int k = 0; k < self->outputs; k++)
        if (!is_free(self, args, k)) Py_RETURN_NOTIMPLEMENTED;

    void *arrays[MOST_ARRAYS];
    for (int k = 0; k < self->arguments; k++) arrays[k] = PyArray_DATA((PyArrayObject *)args[self->order[k]]);
    for (int k = 0; k < self->outputs; k++)
        arrays[self->arguments + k] = PyArray_DATA((PyArrayObject *)args[self->given + k]);
    lc_call call;
    int status = launch(self, arrays, &call);
    if (status) return failed(self, status, &call);
    Py_RETURN_NONE;
}

/* -- making one ---------------------------------------------------------------------------------------------- */

static int take_spec(PyObject *pair, spec *into)
{
    PyObject *shape, *type;
    PyArray_Descr *descr = NULL;
    if (!PyArg_ParseTuple(pair, "OO", &shape, &type) || !PyArray_DescrConverter(type, &descr)) return -1;
    into->type = descr->type_num;
    Py_DECREF(descr);
    into->rank = (int)PyTuple_Size(shape);
    if (into->rank < 0 || into->rank > MOST_AXES) {
        PyErr_SetString(PyExc_ValueError, "too many axes");
        return -1;
    }
    for (int k = 0; k < into->rank; k++) {
        into->shape[k] = (npy_intp)PyLong_AsSsize_t(PyTuple_GetItem(shape, k));
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

/* Scalars in the order of the signature: Python ints go to `ints`, floats to `floats`. */
static int take_scalars(Quick *self, PyObject *scalars)
{
    Py_ssize_t n = PyTuple_Size(scalars), ints = 0, floats = 0;
    self->ints = PyMem_Calloc((size_t)n + 1, sizeof *self->ints);
    self->floats = PyMem_Calloc((size_t)n + 1, sizeof *self->floats);
    if (!self->ints || !self->floats) return PyErr_NoMemory(), -1;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *value = PyTuple_GetItem(scalars, k);
        if (PyFloat_Check(value))
            self->floats[floats++] = PyFloat_AsDouble(value);
        else
            self->ints[ints++] = PyLong_AsLongLong(value);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static PyObject *quick_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long address;
    int kernel;
    PyObject *scalars, *given, *order, *outputs, *over, *fail;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "KiO!O!O!O!O!O", &address, &kernel, &PyTuple_Type, &scalars, &PyTuple_Type, &given,
                          &PyTuple_Type, &order, &PyTuple_Type, &outputs, &PyTuple_Type, &over, &fail))
        return NULL;
    Py_ssize_t arguments = PyTuple_Size(order), in = PyTuple_Size(given), out = PyTuple_Size(outputs);
    if (arguments + out > MOST_ARRAYS || in + out > 4 * MOST_ARRAYS || PyTuple_Size(over) != out) {
        PyErr_SetString(PyExc_ValueError, "too many arrays");
        return NULL;
    }
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Quick *self = (Quick *)make(type, 0);
    if (!self) return NULL;
    self->run = (lc_run)(uintptr_t)address;
    self->kernel = kernel;
    self->fail = Py_NewRef(fail);
    self->arguments = (int)arguments;
    self->given = (int)in;
    self->outputs = (int)out;
    self->specs = PyMem_Calloc((size_t)(in + out) + 1, sizeof *self->specs);
    if (!self->specs) goto bad;
    if (take_scalars(self, scalars)) goto bad;
    for (int k = 0; k < in + out; k++)
        if (take_spec(k < in ? PyTuple_GetItem(given, k) : PyTuple_GetItem(outputs, k - in), &self->specs[k])) goto bad;
    for (int k = 0; k < arguments; k++) {
        long at = PyLong_AsLong(PyTuple_GetItem(order, k));
        if (PyErr_Occurred()) goto bad;
        if (at < 0 || at >= in) {
            PyErr_SetString(PyExc_IndexError, "an argument that is not given");
            goto bad;
        }
        self->order[k] = (int)at;
    }
    for (int k = 0; k < out; k++) {
        self->over[k] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(over, k));
        if (PyErr_Occurred()) goto bad;
    }
    return (PyObject *)self;
bad:
    Py_DECREF(self);
    return NULL;
}

static void quick_free(Quick *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyMem_Free(self->ints);
    PyMem_Free(self->floats);
    PyMem_Free(self->specs);
    Py_XDECREF(self->fail);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))quick_call, METH_FASTCALL,
     "run(*arrays): the output, or a tuple of the outputs; NotImplemented where an array is not as it was promised."},
    {"into", (PyCFunction)(void (*)(void))quick_into, METH_FASTCALL,
     "into(*arrays, *outputs): writes the outputs; NotImplemented where an array is not as it was promised, or an\n"
     "output shares memory with another array that it must not."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Quick(run, kernel, scalars, given, order, outputs, over, fail): one kernel at one case of shapes and types.\n\n"
                "run: the address of lc_run; kernel: its number; scalars: ints and floats, in order; given, outputs: (shape,\n"
                "dtype) of each array; order: which of the given each argument of the kernel is; over: for each output, a bit for each\n"
                "argument in whose memory it may lie; fail(status, info) raises."},
    {Py_tp_new, quick_new},
    {Py_tp_dealloc, quick_free},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec quick_type = {"layerc.runtime._quick.Quick", sizeof(Quick), 0, Py_TPFLAGS_DEFAULT, slots};

static PyObject *empty(PyObject *self, PyObject *pair)
{
    spec wanted;
    (void)self;
    if (take_spec(pair, &wanted)) return NULL;
    return fresh(&wanted);
}

static PyObject *kept_bytes(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyLong_FromSize_t(results_kept());
}

static PyObject *release(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    results_release();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_threads", set_threads, METH_O, "set_threads(n): threads that a kernel may use."},
    {"empty", empty, METH_O, "empty((shape, dtype)): an array for a result."},
    {"kept_bytes", kept_bytes, METH_NOARGS, "kept_bytes(): of results that nobody has any more, for the next ones."},
    {"release", release, METH_NOARGS, "release(): gives them back."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_quick", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__quick(void)
{
    import_array();
    if (!(handler = results_handler())) return NULL;
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&quick_type);
    if (!module || !type || PyModule_AddObjectRef(module, "Quick", type)) {
        Py_XDECREF(module);
        module = NULL;
    }
    Py_XDECREF(type);
    return module;
}
