/* The two loops over thousands of files that `core/files.py` runs here where this extension was built.

   `files.py` is the reference: it has each of them in Python too, and whatever is not the plain case comes back
   unanswered, so that no error is described here. The stable ABI of Python 3.11; Linux only. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `files.py` uses the extension only if it has this number: one that was built from other sources may lie about. */
#define INTERFACE 1

#define NUMBERS 5        /* of a stamp: device, inode, size, modification and change time */
#define FIRST_READ 4096  /* as in core/limits.py, which is checked when the module is used */
#define NAME_BYTES 255   /* NAME_MAX of Linux */
#define MOST_CHILDREN 64 /* in one call: 256 KiB of heads */

/* Unsigned, since the sum may overflow for a time after 2262; the same 64 bits come out as from Python's integers. */
static uint64_t nanoseconds(struct timespec time) {
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static Py_ssize_t count_names(const char *names, Py_ssize_t size) {
  Py_ssize_t count = 1;
  for (const char *at = names, *end = names + size; (at = memchr(at, 0, (size_t)(end - at))); at++) count++;
  return count;
}

/* Stamps ------------------------------------------------------------------------------------------------------- */

/* Write the stamps of `count` paths, each ending with NUL; return 0 if an entry is missing. Needs no interpreter. */
static int write_stamps(int folder, const char *path, Py_ssize_t count, char *out) {
  for (; count > 0; count--, path += strlen(path) + 1, out += NUMBERS * sizeof(uint64_t)) {
    struct stat status;
    if (fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    uint64_t numbers[NUMBERS] = {(uint64_t)status.st_dev, (uint64_t)status.st_ino, (uint64_t)status.st_size,
                                 nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
    memcpy(out, numbers, sizeof numbers);
  }
  return 1;
}

static PyObject *packed_stamps(PyObject *module, PyObject *arguments) {
  int folder, complete;
  const char *paths;
  Py_ssize_t size;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "iy#", &folder, &paths, &size)) return NULL;
  Py_ssize_t count = count_names(paths, size);
  PyObject *packed = PyBytes_FromStringAndSize(NULL, count * NUMBERS * (Py_ssize_t)sizeof(uint64_t));
  if (!packed) return NULL;
  /* Nobody else has `packed` yet, and `arguments` keeps the paths, which end with a NUL of their own. */
  char *out = PyBytes_AsString(packed);
  Py_BEGIN_ALLOW_THREADS
  complete = write_stamps(folder, paths, count, out);
  Py_END_ALLOW_THREADS
  if (complete) return packed;
  Py_DECREF(packed);
  return PyBytes_FromStringAndSize(NULL, 0);
}

/* Module ------------------------------------------------------------------------------------------------------- */

static PyMethodDef METHODS[] = {
    {"packed_stamps", packed_stamps, METH_VARARGS, "packed_stamps(folder, paths): as `files.packed_stamps`."},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module) {
  if (PyModule_AddIntConstant(module, "FIRST_READ", FIRST_READ) < 0) return -1;
  if (PyModule_AddIntConstant(module, "MOST_CHILDREN", MOST_CHILDREN) < 0) return -1;
  return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill_module}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_doc = "Loops over many files.", .m_methods = METHODS, .m_slots = SLOTS};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&MODULE); }
