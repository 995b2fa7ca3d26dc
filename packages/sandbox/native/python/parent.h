// The parent of Python's hosts: a process that has IPython imported and forks one host at a time. Its messages are JSON lines on a socket
// that a program of the agent can take over and write to. A line that the parent would not send ends the parent, and no amount of them
// takes the executor's memory.

#ifndef MILLRACE_PARENT_H
#define MILLRACE_PARENT_H

#include "../base/loop.h"

enum parent_event { parent_ready, parent_host, parent_exit, parent_missing, parent_end };

struct parent_message {
  enum parent_event event;
  /** The numbers that it may hold; -1 for each that is none. */
  long pid;
  long requests;
  long replies;
  long output;
  /** Of `missing`, and of `end`: why. */
  struct bytes text;
};

enum { longest_queue = 16 };

struct parent {
  pid_t pid;
  struct child child;
  struct watch control;
  struct watch errors;
  struct bytes line;
  struct bytes error_tail;
  struct timer drain;
  /** It was killed or has exited: the next host needs another one. */
  bool has_ended;
  bool has_exited;
  /** All of its messages have arrived. From then on, every message is its end. */
  bool is_over;
  bool is_refused;
  bool is_abandoned;
  struct parent_message queue[longest_queue];
  size_t queued;
  /** Called when there may be a message to take. */
  void (*on_message)(void);
};

/** Never null: if it cannot be started, its only message is its end. */
struct parent *parent_open(void (*on_message)(void));
/** The next message, which the caller frees; false if there is none yet. */
bool parent_take(struct parent *parent, struct parent_message *message);
/** Makes it fork a host. */
void parent_fork(struct parent *parent);
void parent_kill(struct parent *parent);
/** Call it once. It is killed, and freed when it is over. */
void parent_abandon(struct parent *parent);

/** Reads one line; false if the parent would not send it. */
bool parse_message(struct view line, struct parent_message *message);

#endif
