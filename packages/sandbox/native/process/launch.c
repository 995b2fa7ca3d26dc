#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "process.h"

struct setting setting;

enum { most_files = 8, last_signal = 64 };

char **env_copy(char **env) {
  size_t count = 0;
  while (env[count] != NULL) count += 1;
  char **copy = make((count + 1) * sizeof *copy);
  for (size_t index = 0; index < count; index += 1) copy[index] = strdup(env[index]);
  return copy;
}

char **env_with(char **env, struct view name, struct view value) {
  size_t count = 0;
  while (env[count] != NULL) count += 1;
  char **copy = make((count + 2) * sizeof *copy);
  size_t kept = 0;
  for (size_t index = 0; index < count; index += 1) {
    bool is_same = strncmp(env[index], name.data, name.length) == 0 && env[index][name.length] == '=';
    if (!is_same) copy[kept++] = strdup(env[index]);
  }
  struct bytes pair = {0};
  bytes_add(&pair, name.data, name.length);
  bytes_add_text(&pair, "=");
  bytes_add(&pair, value.data, value.length);
  copy[kept] = pair.data;
  return copy;
}

void env_free(char **env) {
  for (size_t index = 0; env != NULL && env[index] != NULL; index += 1) free(env[index]);
  free(env);
}

/** Where the program may be: in each folder of the PATH that it will have, unless its name has a slash. */
static char **list_paths(const char *file, char **env) {
  const char *path = "/usr/local/bin:/usr/bin:/bin";
  for (size_t index = 0; env[index] != NULL; index += 1)
    if (strncmp(env[index], "PATH=", 5) == 0) path = env[index] + 5;
  size_t count = 2;
  for (const char *at = path; *at != 0; at += 1) count += *at == ':';
  char **paths = make((count + 1) * sizeof *paths);
  if (strchr(file, '/') != NULL) {
    paths[0] = strdup(file);
    return paths;
  }
  for (size_t index = 0;; index += 1) {
    size_t length = strcspn(path, ":");
    struct bytes whole = {0};
    bytes_print(&whole, "%.*s%s%s", (int)length, path, length > 0 ? "/" : "", file);
    paths[index] = whole.data;
    if (path[length] == 0) return paths;
    path += length + 1;
  }
}

static void set_limit(int which, double value) {
  struct rlimit limit = {(rlim_t)value, (rlim_t)value};
  if (value > 0) setrlimit(which, &limit);
}

static int become_any(char **paths, const struct launch *launch, char **shell_argv) {
  int error = ENOENT;
  for (size_t index = 0; paths[index] != NULL; index += 1) {
    execve(paths[index], launch->argv, launch->env);
    if (errno == ENOEXEC) { // a script without a first line that names its program
      shell_argv[1] = paths[index];
      execve("/bin/sh", shell_argv, launch->env);
    }
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (error != ENOENT && error != EACCES) return error;
  }
  return error;
}

/** Runs in the new process, which still shares the executor's memory: it may change only what is its own. */
static int become(const struct launch *launch, char **paths, char **shell_argv) {
  for (int number = 1; number <= last_signal; number += 1) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (launch->has_session) setsid();
  int moved[most_files];
  for (int index = 0; index < launch->file_count; index += 1)
    if ((moved[index] = fcntl(launch->files[index], F_DUPFD_CLOEXEC, most_files)) < 0) return errno;
  for (int index = 0; index < launch->file_count; index += 1) dup2(moved[index], index);
  if (launch->has_terminal) ioctl(0, TIOCSCTTY, 0);
  if (chdir(launch->cwd) < 0) return errno;
  set_limit(RLIMIT_NPROC, setting.max_processes);
  set_limit(RLIMIT_AS, setting.max_memory_mib * 1024 * 1024);
  return become_any(paths, launch, shell_argv);
}

/**
 * Its children inherit the score. The executor's own score is lower; the worker set it before the start. Until the kernel has finished the
 * exec, the process may still count as a copy of the executor, which may not be changed.
 */
static void prefer_as_oom_victim(pid_t pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
  for (int attempt = 0; attempt < 50; attempt += 1) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
      ssize_t written = write(fd, "1000", 4);
      (void)written; // it has ended
      close(fd);
      return;
    }
    if (errno != EACCES) return;
    sched_yield();
  }
}

pid_t launch_program(const struct launch *launch, int *error) {
  char **paths = list_paths(launch->argv[0], launch->env);
  size_t count = 0;
  while (launch->argv[count] != NULL) count += 1;
  char **shell_argv = make((count + 2) * sizeof *shell_argv);
  shell_argv[0] = "sh";
  for (size_t index = 1; index < count; index += 1) shell_argv[index + 1] = launch->argv[index];
  volatile int failed = 0; // written by the new process, in the memory that both share
  pid_t pid = vfork();
  if (pid == 0) {
    failed = become(launch, paths, shell_argv);
    _exit(127);
  }
  if (pid < 0) failed = errno;
  env_free(paths);
  free(shell_argv);
  *error = failed;
  if (failed != 0) return 0; // the loop reaps it
  prefer_as_oom_victim(pid);
  return pid;
}
