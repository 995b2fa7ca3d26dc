#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../process/pipes.h"
#include "../process/process.h"

/** How long the parent has to report that a killed host has ended; the parent itself may be stopped. */
static const double kill_ms = 1000;
/** How long to keep reading after the end of a host while another process holds its pipes. */
static const double drain_ms = 100;
enum { max_reply_head = 1 << 16, max_reply_body = 64 << 20 };

static int open_pipe(pid_t parent, long number, int flags, struct bytes *problem) {
  char path[60];
  struct stat found;
  snprintf(path, sizeof path, "/proc/%d/fd/%ld", (int)parent, number);
  int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd >= 0 && fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode)) return fd;
  bytes_print(problem, "file descriptor %ld is not a pipe", number);
  if (fd >= 0) close(fd);
  return -1;
}

static void on_output(void *owner, short events) {
  (void)events;
  struct host *host = owner;
  struct view chunk;
  if (!read_chunk(host->output.fd, &chunk)) {
    watch_close(&host->output);
    if (host->is_dying) host_bury(host);
    return;
  }
  if (!host->is_running) return host->on_output(chunk, true);
  struct bytes output = {0}, late = {0};
  cell_take_output(&host->cell, chunk, &output, &late);
  if (output.length > 0) host->on_output(bytes_view(&output), false);
  if (late.length > 0) host->on_output(bytes_view(&late), true);
  bytes_free(&output);
  bytes_free(&late);
  if (cell_is_over(&host->cell)) host->on_change();
}

static void take_frame(struct host *host, const struct frame *frame, bool *is_valid) {
  if (!host->is_running) return;
  *is_valid = cell_take_frame(&host->cell, frame);
  if (host->cell.wants_interrupt && !host->cell.has_reply) kill(host->pid, SIGINT);
  host->cell.wants_interrupt = false;
}

static void on_replies(void *owner, short events) {
  (void)events;
  struct host *host = owner;
  struct view chunk;
  if (!read_chunk(host->replies.fd, &chunk)) return watch_close(&host->replies);
  frames_add(&host->reader, chunk.data, chunk.length);
  struct frame frame;
  bool is_valid = true;
  for (enum frame_found found; is_valid && (found = frames_next(&host->reader, &frame)) != frame_none;) {
    is_valid = found == frame_whole;
    if (is_valid) take_frame(host, &frame, &is_valid);
  }
  if (!is_valid) { // the cell has written into its host's pipe, and may go on
    watch_close(&host->replies);
    return kill_session(host->pid);
  }
  if (host->is_running && cell_is_over(&host->cell)) host->on_change();
}

struct host *host_open(struct parent *parent, const struct parent_message *ready, struct bytes *problem) {
  int requests = open_pipe(parent->pid, ready->requests, O_WRONLY, problem);
  int replies = requests < 0 ? -1 : open_pipe(parent->pid, ready->replies, O_RDONLY, problem);
  int output = replies < 0 ? -1 : open_pipe(parent->pid, ready->output, O_RDONLY, problem);
  if (output < 0) {
    if (requests >= 0) close(requests);
    if (replies >= 0) close(replies);
    return NULL;
  }
  struct host *host = make(sizeof *host);
  host->parent = parent;
  host->reader = (struct frame_reader){.max_head = max_reply_head, .max_body = max_reply_body};
  sender_open(&host->requests, requests, NULL, NULL);
  watch_open(&host->replies, replies, POLLIN, on_replies, host);
  watch_open(&host->output, output, POLLIN, on_output, host);
  return host;
}

void host_run(struct host *host, struct view code) {
  struct bytes frame = {0};
  char head[40];
  cell_open(&host->cell);
  host->is_running = true;
  snprintf(head, sizeof head, "{\"nonce\":\"%s\"}", host->cell.nonce);
  frame_render_head(&frame, view_of(head), code.length);
  sender_add(&host->requests, frame.data, frame.length);
  sender_add(&host->requests, code.data, code.length);
  bytes_free(&frame);
}

void host_interrupt(struct host *host) {
  if (!host->is_running) return;
  if (host->cell.has_begun) kill(host->pid, SIGINT);
  else host->cell.wants_interrupt = true;
}

static void on_kill_time(void *owner) {
  struct host *host = owner;
  parent_kill(host->parent);
}

void host_kill(struct host *host) {
  kill_session(host->pid);
  timer_set(&host->kill_timer, kill_ms, on_kill_time, host);
}

static void on_drained(void *owner) {
  struct host *host = owner;
  timer_clear(&host->drain);
  timer_clear(&host->kill_timer);
  sender_close(&host->requests);
  watch_close(&host->replies);
  watch_close(&host->output);
  host->has_ended = true;
  host->on_change();
}

void host_bury(struct host *host) {
  if (!host->is_dying) {
    host->is_dying = true;
    kill_session(host->pid); // the parent may have died before the host
    timer_set(&host->drain, drain_ms, on_drained, host);
  }
  if (!host->output.is_open && !host->has_ended) on_drained(host);
}

void host_free(struct host *host) {
  timer_clear(&host->drain);
  timer_clear(&host->kill_timer);
  sender_close(&host->requests);
  watch_close(&host->replies);
  watch_close(&host->output);
  frames_free(&host->reader);
  cell_free(&host->cell);
  free(host);
}
