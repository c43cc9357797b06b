/* Preloaded into a Python that runs with PYTHONMALLOC=malloc: counts the allocations of the whole process and
   appends the number to the file named by COUNT_ALLOCATIONS when it ends. For glibc. */
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned long calls;

void *malloc(size_t size) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return __libc_realloc(old, size);
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("COUNT_ALLOCATIONS");
  unsigned long made = calls;
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%lu\n", made);
  fclose(file);
}
