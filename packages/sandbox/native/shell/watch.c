#include "watch.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../process/process.h"
#include "command-file.h"

/**
 * The next looks come after as long as the command has been running, up to the longest. The first is late on purpose: with hundreds of
 * sandboxes on full cores an ordinary command takes 200 ms.
 */
static const double first_ms = 500;
static const double longest_ms = 5000;
/** While bash waits for input. */
static const double idle_ms = 100;
/** On a busy machine, what we typed may take hundreds of milliseconds to reach bash: the kernel passes it on in the background. */
static const double broken_ms = 1500;

static bool reads_terminal(pid_t pid) {
  char link[40], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/%d/fd/0", (int)pid);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false; // bash has ended, or has no standard input
  path[length] = 0;
  return strncmp(path, "/dev/pts/", 9) == 0;
}

static bool is_alone(const struct process_stat *bash) {
  DIR *proc = opendir("/proc");
  struct process_stat other;
  bool found = false;
  while (!found && process_next(proc, &other)) found = other.group == bash->group && other.pid != bash->pid;
  if (proc != NULL) closedir(proc);
  return !found;
}

/**
 * Whether bash sleeps without running the command: it has not read it, or its standard input, which is empty during a command, is the
 * terminal again. A bash that has not been scheduled yet does not sleep.
 */
static bool is_waiting(pid_t pid) {
  struct process_stat stat;
  if (!process_read(pid, &stat)) return false;
  if (stat.state == 'T') kill(pid, SIGCONT);
  if (stat.state != 'S' || stat.foreground != stat.group) return false;
  if (command_was_read() && !reads_terminal(pid)) return false;
  return is_alone(&stat);
}

static void look(void *owner) {
  struct bash_watch *watch = owner;
  bool is_idle = is_waiting(watch->pid);
  double now = now_ms(), elapsed = now - watch->began_ms;
  bool is_new = is_idle && watch->idle_since_ms == 0;
  if (!is_idle) watch->idle_since_ms = 0;
  else if (is_new) watch->idle_since_ms = now;
  timer_set(&watch->timer, is_idle ? idle_ms : elapsed < longest_ms ? elapsed : longest_ms, look, watch);
  if (is_new) return watch->on_idle(watch->owner);
  if (!is_idle || watch->is_broken || now - watch->idle_since_ms < broken_ms) return;
  watch->is_broken = true;
  watch->on_broken(watch->owner);
}

void bash_watch_open(struct bash_watch *watch) {
  watch->began_ms = now_ms();
  watch->idle_since_ms = 0;
  watch->is_broken = false;
  timer_set(&watch->timer, first_ms, look, watch);
}

void bash_watch_close(struct bash_watch *watch) { timer_clear(&watch->timer); }
