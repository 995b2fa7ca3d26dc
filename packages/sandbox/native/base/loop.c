#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct watch **watches;
static struct pollfd *polls;
static size_t watch_count, watch_room;
static struct timer *timers;
static struct child *children;
static struct watch signals;

double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void watch_open(struct watch *watch, int fd, short events, void (*ready)(void *, short), void *owner) {
  if (watch_count == watch_room) {
    watch_room = watch_room * 2 + 16;
    watches = realloc(watches, watch_room * sizeof *watches);
    polls = realloc(polls, watch_room * sizeof *polls);
    if (watches == NULL || polls == NULL) exit(1);
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  *watch = (struct watch){.fd = fd, .is_open = true, .events = events, .ready = ready, .owner = owner};
  watches[watch_count] = watch;
  watch_count += 1;
}

/** Leaves a gap, because the loop may be walking over the list. */
void watch_close(struct watch *watch) {
  if (!watch->is_open) return;
  close(watch->fd);
  watch->is_open = false;
  watch->fd = -1;
  for (size_t index = 0; index < watch_count; index += 1)
    if (watches[index] == watch) watches[index] = NULL;
}

void timer_set(struct timer *timer, double ms, void (*act)(void *), void *owner) {
  timer_clear(timer);
  *timer = (struct timer){.is_set = true, .at_ms = now_ms() + ms, .act = act, .owner = owner, .next = timers};
  timers = timer;
}

void timer_clear(struct timer *timer) {
  if (!timer->is_set) return;
  timer->is_set = false;
  struct timer **at = &timers;
  while (*at != timer) at = &(*at)->next;
  *at = timer->next;
}

void child_add(struct child *child, pid_t pid, void (*ended)(void *, int), void *owner) {
  *child = (struct child){.pid = pid, .ended = ended, .owner = owner, .next = children};
  children = child;
}

void child_forget(struct child *child) {
  for (struct child **at = &children; *at != NULL; at = &(*at)->next)
    if (*at == child) {
      *at = child->next;
      return;
    }
}

static void reap(void *owner, short events) {
  (void)owner, (void)events;
  struct signalfd_siginfo ignored[8];
  while (read(signals.fd, ignored, sizeof ignored) > 0) continue;
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    struct child *child = children;
    while (child != NULL && child->pid != pid) child = child->next;
    if (child == NULL) continue;
    child_forget(child);
    child->ended(child->owner, status);
  }
}

void loop_open(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGPIPE, SIG_IGN);
  watch_open(&signals, signalfd(-1, &mask, SFD_CLOEXEC), POLLIN, reap, NULL);
}

/** Runs those that are due now, but none that they set, so that files have their turn. Returns how long to wait for the next; -1 if there is none. */
static int run_timers(void) {
  double began = now_ms();
  for (;;) {
    struct timer *next = timers;
    for (struct timer *timer = timers; timer != NULL; timer = timer->next)
      if (timer->at_ms < next->at_ms) next = timer;
    if (next == NULL) return -1;
    if (next->at_ms > began) {
      double wait = next->at_ms - now_ms();
      return wait <= 0 ? 0 : wait > 60000 ? 60000 : (int)wait + 1;
    }
    timer_clear(next);
    next->act(next->owner);
  }
}

static void close_gaps(void) {
  size_t kept = 0;
  for (size_t index = 0; index < watch_count; index += 1)
    if (watches[index] != NULL) watches[kept++] = watches[index];
  watch_count = kept;
}

void loop_turn(int most_ms) {
  int wait_ms = run_timers();
  if (most_ms >= 0 && (wait_ms < 0 || wait_ms > most_ms)) wait_ms = most_ms;
  close_gaps();
  for (size_t index = 0; index < watch_count; index += 1)
    polls[index] = (struct pollfd){.fd = watches[index]->events == 0 ? -1 : watches[index]->fd, .events = watches[index]->events};
  size_t count = watch_count; // callbacks may add more
  if (poll(polls, count, wait_ms) < 0) return;
  for (size_t index = 0; index < count; index += 1) {
    struct watch *watch = watches[index];
    if (watch != NULL && polls[index].revents != 0 && watch->fd == polls[index].fd) watch->ready(watch->owner, polls[index].revents);
  }
}

void loop_run(void) {
  for (;;) loop_turn(-1);
}

static void send_more(void *owner, short events) {
  (void)events;
  struct sender *sender = owner;
  while (sender->sent < sender->waiting.length) {
    ssize_t taken = write(sender->watch.fd, sender->waiting.data + sender->sent, sender->waiting.length - sender->sent);
    if (taken > 0) {
      sender->sent += (size_t)taken;
      continue;
    }
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0 && errno == EAGAIN) {
      sender->watch.events = POLLOUT;
      return;
    }
    watch_close(&sender->watch); // no one reads it
    break;
  }
  bytes_free(&sender->waiting);
  sender->sent = 0;
  sender->watch.events = 0;
  if (sender->drained != NULL) sender->drained(sender->owner);
}

void sender_open(struct sender *sender, int fd, void (*drained)(void *), void *owner) {
  *sender = (struct sender){.drained = drained, .owner = owner};
  watch_open(&sender->watch, fd, 0, send_more, sender);
}

void sender_add(struct sender *sender, const void *data, size_t length) {
  if (!sender->watch.is_open) return;
  bytes_add(&sender->waiting, data, length);
  if (sender->watch.events == 0) send_more(sender, 0);
}

size_t sender_waiting(const struct sender *sender) { return sender->waiting.length - sender->sent; }

void sender_close(struct sender *sender) {
  watch_close(&sender->watch);
  bytes_free(&sender->waiting);
  sender->sent = 0;
}
