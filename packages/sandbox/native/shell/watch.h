// Watches a bash that runs a command, because the end marker may never come. A program that dies of SIGINT makes bash discard the rest of
// its line, a shell can stop itself, and a command can break a shell so that it runs nothing.

#ifndef MILLRACE_WATCH_H
#define MILLRACE_WATCH_H

#include "../base/loop.h"

struct bash_watch {
  pid_t pid;
  double began_ms;
  /** Since when bash has waited for input; 0 if it does not. */
  double idle_since_ms;
  bool is_broken;
  struct timer timer;
  /** Bash waits for input although the command has not ended. */
  void (*on_idle)(void *owner);
  /** Bash has waited for input ever since, for a while. */
  void (*on_broken)(void *owner);
  void *owner;
};

/** The pid and the callbacks are set. */
void bash_watch_open(struct bash_watch *watch);
void bash_watch_close(struct bash_watch *watch);

#endif
