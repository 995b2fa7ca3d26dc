// The event loop: one thread that waits for files, times and the ends of processes. A callback never blocks and never waits for another.

#ifndef MILLRACE_LOOP_H
#define MILLRACE_LOOP_H

#include <stdbool.h>
#include <sys/types.h>

#include "bytes.h"

/** A file that is being waited for. `fd` is -1 while it is closed; `is_open` guards every use. */
struct watch {
  int fd;
  bool is_open;
  short events;
  void (*ready)(void *owner, short events);
  void *owner;
};

/** Owns the file from here on, and makes it non-blocking. The watch must stay where it is until it is closed. */
void watch_open(struct watch *watch, int fd, short events, void (*ready)(void *owner, short events), void *owner);
/** Closes the file too. Closing twice is the same as closing once. */
void watch_close(struct watch *watch);

struct timer {
  bool is_set;
  double at_ms;
  void (*act)(void *owner);
  void *owner;
  struct timer *next;
};

/** Sets it again if it was set. */
void timer_set(struct timer *timer, double ms, void (*act)(void *owner), void *owner);
void timer_clear(struct timer *timer);

/** A process that the executor has started. All others that become its children are only reaped. */
struct child {
  pid_t pid;
  void (*ended)(void *owner, int status);
  void *owner;
  struct child *next;
};

void child_add(struct child *child, pid_t pid, void (*ended)(void *owner, int status), void *owner);
/** Its end is then not reported. */
void child_forget(struct child *child);

/** Bytes on their way into a file that may be full. */
struct sender {
  struct watch watch;
  struct bytes waiting;
  size_t sent;
  /** Called when all was taken, and when no one reads any more. May be null. */
  void (*drained)(void *owner);
  void *owner;
};

void sender_open(struct sender *sender, int fd, void (*drained)(void *owner), void *owner);
void sender_add(struct sender *sender, const void *data, size_t length);
size_t sender_waiting(const struct sender *sender);
void sender_close(struct sender *sender);

/** Milliseconds since some moment; never goes back. */
double now_ms(void);

void loop_open(void);
/** Waits once, and at most this long unless it is negative. */
void loop_turn(int most_ms);
void loop_run(void);

#endif
