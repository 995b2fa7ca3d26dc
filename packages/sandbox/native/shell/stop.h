// Stops a command or a cell that ran out of time or was cancelled, in steps of growing force. Each step is taken only if the one before
// did not end it in time.

#ifndef MILLRACE_STOP_H
#define MILLRACE_STOP_H

#include "../base/loop.h"

struct stop_step {
  void (*act)(void *owner);
  /** How long to wait before the next step. */
  double wait_ms;
};

enum stop_reason { stop_none, stop_timeout, stop_cancelled };

struct stopper {
  enum stop_reason reason;
  /** Ends with a step without an action. */
  const struct stop_step *next;
  struct timer timer;
  void *owner;
};

/** The first step is taken after the time. */
void stopper_open(struct stopper *stopper, const struct stop_step *steps, double timeout_ms, void *owner);
void stopper_cancel(struct stopper *stopper);
void stopper_close(struct stopper *stopper);

#endif
