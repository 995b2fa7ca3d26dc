#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

bool process_read(pid_t pid, struct process_stat *stat) {
  char path[40], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = 0;
  // The second field is the program's name in parentheses. The name itself may contain spaces and parentheses.
  const char *rest = strrchr(text, ')');
  int group, session, foreground;
  if (rest == NULL || sscanf(rest, ") %c %*d %d %d %*d %d", &stat->state, &group, &session, &foreground) != 4) return false;
  stat->pid = pid;
  stat->group = group;
  stat->session = session;
  stat->foreground = foreground;
  return stat->state != 'Z' && stat->state != 'X';
}

bool process_next(DIR *proc, struct process_stat *stat) {
  for (struct dirent *entry; proc != NULL && (entry = readdir(proc)) != NULL;)
    if (isdigit((unsigned char)entry->d_name[0]) && process_read(atoi(entry->d_name), stat)) return true;
  return false;
}

enum { passes = 10 };

/** Repeats until none is left: a process may fork while the list is read. */
void kill_session(pid_t leader) {
  if (leader <= 1) return; // 0 would name our own group
  kill(leader, SIGKILL);
  bool is_empty = false;
  for (int pass = 0; pass < passes && !is_empty; pass += 1) {
    is_empty = true;
    DIR *proc = opendir("/proc");
    struct process_stat stat;
    while (process_next(proc, &stat)) {
      if (stat.session != leader) continue;
      is_empty = false;
      kill(stat.pid, SIGKILL);
    }
    if (proc != NULL) closedir(proc);
  }
}

void kill_everything(void) { kill(-1, SIGKILL); }

static const char *signal_names[] = {
    [SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",       [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL",       [SIGTRAP] = "SIGTRAP",
    [SIGABRT] = "SIGABRT", [SIGBUS] = "SIGBUS",       [SIGFPE] = "SIGFPE",   [SIGKILL] = "SIGKILL",     [SIGUSR1] = "SIGUSR1",
    [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",     [SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM",     [SIGTERM] = "SIGTERM",
    [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ",     [SIGPROF] = "SIGPROF", [SIGVTALRM] = "SIGVTALRM", [SIGIO] = "SIGIO",
    [SIGPWR] = "SIGPWR",   [SIGSTKFLT] = "SIGSTKFLT", [SIGSYS] = "SIGSYS",
};

void add_signal(struct bytes *to, int status) {
  if (!WIFSIGNALED(status)) return bytes_add_text(to, "null");
  size_t number = (size_t)WTERMSIG(status);
  const char *name = number < sizeof signal_names / sizeof *signal_names ? signal_names[number] : NULL;
  if (name != NULL) bytes_print(to, "\"%s\"", name);
  else bytes_print(to, "\"signal %zu\"", number);
}

void add_exit_code(struct bytes *to, int status) {
  if (WIFEXITED(status)) bytes_print(to, "%d", WEXITSTATUS(status));
  else bytes_add_text(to, "null");
}
