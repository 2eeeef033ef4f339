/* Calls to the disk that fail: for LD_PRELOAD, in a driver, its Java and its workers at once.
 *
 * FAULTS names a file that all these processes map: which error, which calls, how many of them still succeed, and in
 * what folder. While the error is not 0, the calls that are meant fail there, once the count is used up, until somebody
 * writes 0 again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, RENAME = 4, SYNC = 8, TORN = 16 };
struct faults {
  atomic_int error, calls, left, failed;
  char folder[1024];
};
static struct faults *faults;

__attribute__((constructor)) static void map_faults(void) {
  const char *name = getenv("FAULTS");
  int place = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
  if (place < 0) return;
  void *found = mmap(NULL, sizeof(struct faults), PROT_READ | PROT_WRITE, MAP_SHARED, place, 0);
  if (found != MAP_FAILED) faults = found;
  close(place);
}

static int is_inside(const char *path) {
  size_t length = strlen(faults->folder);
  return strncmp(path, faults->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* Does this call fail? Its error is then in errno. */
static int fails(int call, const char *path) {
  if (!faults || !path || !atomic_load(&faults->error) || !(atomic_load(&faults->calls) & call)) return 0;
  if (!is_inside(path) || atomic_fetch_sub(&faults->left, 1) > 0) return 0;
  atomic_fetch_add(&faults->failed, 1);
  errno = atomic_load(&faults->error);
  return 1;
}

static int fails_at(int call, int place) {
  char name[32], path[PATH_MAX];
  if (!faults || !atomic_load(&faults->error)) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", place);
  ssize_t length = readlink(name, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails(call, path);
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT; }

#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
  }

int open(const char *path, int flags, ...) {
  REAL(open);
  MODE(flags);
  return writes(flags) && fails(OPEN, path) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  MODE(flags);
  return writes(flags) && fails(OPEN, path) ? -1 : real(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
  REAL(openat);
  MODE(flags);
  return writes(flags) && fails(OPEN, path) ? -1 : real(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
  REAL(openat64);
  MODE(flags);
  return writes(flags) && fails(OPEN, path) ? -1 : real(at, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  return fails(OPEN, path) ? -1 : real(path, mode);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return fails(RENAME, to) ? -1 : real(from, to);
}

int link(const char *from, const char *to) {
  REAL(link);
  return fails(RENAME, to) ? -1 : real(from, to);
}

/* The first half may be there, as on a disk that became full. */
ssize_t write(int place, const void *data, size_t length) {
  REAL(write);
  if (!fails_at(WRITE, place)) return real(place, data, length);
  int error = errno;
  if (atomic_load(&faults->calls) & TORN && length > 1) return real(place, data, length / 2);
  errno = error;
  return -1;
}

ssize_t pwrite64(int place, const void *data, size_t length, off64_t at) {
  REAL(pwrite64);
  return fails_at(WRITE, place) ? -1 : real(place, data, length, at);
}

int fsync(int place) {
  REAL(fsync);
  return fails_at(SYNC, place) ? -1 : real(place);
}

int fdatasync(int place) {
  REAL(fdatasync);
  return fails_at(SYNC, place) ? -1 : real(place);
}
