#include "stop.h"

static void take_step(void *owner) {
  struct stopper *stopper = owner;
  const struct stop_step *step = stopper->next;
  if (step->act == NULL) return;
  stopper->next += 1;
  timer_set(&stopper->timer, step->wait_ms, take_step, stopper);
  step->act(stopper->owner);
}

static void stop(struct stopper *stopper, enum stop_reason reason) {
  if (stopper->reason != stop_none) return;
  stopper->reason = reason;
  timer_clear(&stopper->timer);
  take_step(stopper);
}

static void on_timeout(void *owner) { stop(owner, stop_timeout); }

void stopper_open(struct stopper *stopper, const struct stop_step *steps, double timeout_ms, void *owner) {
  *stopper = (struct stopper){.next = steps, .owner = owner};
  timer_set(&stopper->timer, timeout_ms, on_timeout, stopper);
}

void stopper_cancel(struct stopper *stopper) { stop(stopper, stop_cancelled); }

void stopper_close(struct stopper *stopper) { timer_clear(&stopper->timer); }
