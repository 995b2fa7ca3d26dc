// Loaded into the processes of a service with LD_PRELOAD: delays every fsync and fdatasync by what a shared file says, as a slow disk
// does, and counts the delayed calls there.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct control {
  _Atomic int64_t delay_ms;
  _Atomic int64_t delayed;
};

static struct control *control;

__attribute__((constructor)) static void open_control(void) {
  const char *path = getenv("MILLRACE_SLOW_SYNC");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) control = page;
  close(file);
}

static void wait_as_slow_disk(void) {
  int64_t ms = control ? atomic_load(&control->delay_ms) : 0;
  if (ms <= 0) return;
  atomic_fetch_add(&control->delayed, 1);
  struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
  while (nanosleep(&left, &left) == -1 && errno == EINTR) {
  }
}

int fsync(int file) {
  wait_as_slow_disk();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
  wait_as_slow_disk();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
