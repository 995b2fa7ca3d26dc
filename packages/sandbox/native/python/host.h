// A Python host: the process that runs IPython cells. Each has its own pipes, opened through its parent's /proc entry, so they never contain
// half-written data of an earlier host.

#ifndef MILLRACE_HOST_H
#define MILLRACE_HOST_H

#include "../base/loop.h"
#include "cell.h"
#include "parent.h"

struct host {
  pid_t pid;
  struct sender requests;
  struct watch replies;
  struct watch output;
  struct frame_reader reader;
  struct timer drain;
  struct timer kill_timer;
  struct parent *parent;
  bool is_running;
  struct cell cell;
  /** The parent has reported its end; what it printed may still be read. */
  bool is_dying;
  bool has_ended;
  /** `is_late`: no cell runs, or the running one has ended its output. */
  void (*on_output)(struct view chunk, bool is_late);
  /** The running cell is over, or the host has ended. */
  void (*on_change)(void);
};

/**
 * Opens the pipes of the next host. A program of the agent may have written the message: the numbers may be those of any file, or of none.
 * Null, with the reason, if they are not pipes.
 */
struct host *host_open(struct parent *parent, const struct parent_message *ready, struct bytes *problem);
void host_run(struct host *host, struct view code);
void host_interrupt(struct host *host);
/** Kills the host and every process in its session. */
void host_kill(struct host *host);
/** Call it when its parent has reported its end, or has ended itself. */
void host_bury(struct host *host);
void host_free(struct host *host);

#endif
