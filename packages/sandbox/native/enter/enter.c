#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Where bwrap reads the filter of system calls, and a priority that is lower than a worker's: agents, or many starts at once, must not delay it. */
enum { filter_file = 4, niceness = 10 };

static bool write_text(const char *path, int flags, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
  bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return is_written;
}

static bool write_file_at(const char *folder, const char *name, const char *text) {
  char path[4096];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && write_text(path, 0, text);
}

/**
 * In version 1, writing 0 to `tasks` moves one thread, which is all that there is, and does so at once; moving a whole process makes the
 * kernel wait 5 to 15 ms until no process on the machine forks.
 */
static bool enter_group(const char *folder) {
  char pid[16];
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  return write_file_at(folder, "tasks", "0") || (errno == ENOENT && write_file_at(folder, "cgroup.procs", pid));
}

static bool enter_mounts(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool is_in = fd >= 0 && setns(fd, CLONE_NEWNS) == 0;
  if (fd >= 0) close(fd);
  return is_in;
}

/** Only privileged processes can raise their hard limit. */
static bool limit(int which, const char *most) {
  struct rlimit now;
  rlim_t wanted = (rlim_t)strtoull(most, NULL, 10);
  if (getrlimit(which, &now) < 0) return false;
  if (now.rlim_max < wanted) wanted = now.rlim_max;
  return setrlimit(which, &(struct rlimit){wanted, wanted}) == 0;
}

static bool open_filter(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd == filter_file) return fcntl(fd, F_SETFD, 0) == 0;
  bool is_open = fd >= 0 && dup2(fd, filter_file) == filter_file;
  if (fd >= 0) close(fd);
  return is_open;
}

static bool become_user(const char *number) {
  uid_t uid = (uid_t)strtoul(number, NULL, 10);
  return setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
}

/** All that this process inherited above the last that is kept: under a limit of open files, listing them could fail. */
static void close_above(unsigned last) {
  if (syscall(SYS_close_range, last + 1, ~0U, 0) == 0) return;
  for (long fd = (long)last + 1, end = sysconf(_SC_OPEN_MAX); fd < end; fd += 1) close((int)fd);
}

/** What the steps before have named. */
struct steps {
  const char *file;
  int flags;
  uid_t owner;
};

static bool give(const char *path, uid_t owner) { return owner == (uid_t)-1 || chown(path, owner, owner) == 0; }

/** An option that is no step is taken later. */
static bool take_step(struct steps *steps, const char *name, const char *value) {
  if (strcmp(name, "owner") == 0) steps->owner = (uid_t)strtoul(value, NULL, 10);
  else if (strcmp(name, "create") == 0 || strcmp(name, "file") == 0) {
    steps->file = value;
    steps->flags = name[0] == 'c' ? O_CREAT | O_EXCL : 0;
  } else if (strcmp(name, "text") == 0)
    return steps->file != NULL && write_text(steps->file, steps->flags, value) && (steps->flags == 0 || give(steps->file, steps->owner));
  else if (strcmp(name, "try") == 0) return steps->file != NULL && (write_text(steps->file, steps->flags, value) || true);
  else if (strcmp(name, "own") == 0) return give(value, steps->owner);
  else if (strcmp(name, "make") == 0) return mkdir(value, 0777) == 0;
  else if (strcmp(name, "group") == 0) return enter_group(value);
  return true;
}

static const char *find(char **options, const char *name) {
  for (; strcmp(options[0], "--") != 0; options += 2)
    if (strcmp(options[0], name) == 0) return options[1];
  return NULL;
}

static int fail(const char *what, const char *on) {
  fprintf(stderr, "the sandbox could not be entered: %s %s: %s\n", what, on, strerror(errno));
  return 1;
}

int enter_and_become(char **options) {
  char **command = options;
  while (command[0] != NULL && command[1] != NULL && strcmp(command[0], "--") != 0) command += 2;
  if (command[0] == NULL || command[1] == NULL) return fail("options", "");
  close_above(find(options, "keep") != NULL ? 3 : 2);
  struct steps steps = {.owner = (uid_t)-1};
  for (char **at = options; at < command; at += 2)
    if (!take_step(&steps, at[0], at[1])) return fail(at[0], strcmp(at[0], "text") == 0 && steps.file != NULL ? steps.file : at[1]);
  // When the machine runs out of memory, the kernel kills a sandbox before a worker. Some containers do not allow it.
  write_file_at("/proc/self", "oom_score_adj", "500");
  const char *mounts = find(options, "mounts"), *files = find(options, "files"), *data = find(options, "data");
  const char *filter = find(options, "filter"), *user = find(options, "user");
  if (filter != NULL && !open_filter(filter)) return fail("filter", filter);
  if (mounts != NULL && !enter_mounts(mounts)) return fail("mounts", mounts);
  if (!limit(RLIMIT_CORE, "0")) return fail("limit of", "core files");
  if (files != NULL && !limit(RLIMIT_NOFILE, files)) return fail("limit of files", files);
  if (data != NULL && !limit(RLIMIT_DATA, data)) return fail("limit of data", data);
  if (user != NULL && !become_user(user)) return fail("user", user);
  if (getpriority(PRIO_PROCESS, 0) < niceness) setpriority(PRIO_PROCESS, 0, niceness);
  execvp(command[1], command + 1);
  fprintf(stderr, "%s: %s\n", command[1], errno == ENOENT ? "not found" : strerror(errno));
  return errno == ENOENT ? 127 : 126; // as in a shell
}
