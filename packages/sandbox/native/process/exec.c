// One-off programs. The reply is sent when the program exits, even if a background process still holds its pipes.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "../base/errors.h"
#include "calls.h"
#include "pipes.h"
#include "process.h"

/** How long to keep reading after the exit while another process holds the pipes. */
static const double drain_ms = 100;

/** The beginning of what the program prints; the rest is read too, so that the program never blocks. */
struct stream {
  struct watch watch;
  struct exec *of;
  struct bytes kept;
  size_t cut;
};

struct exec {
  struct call call;
  struct child child;
  struct sender in;
  struct stream out;
  struct stream err;
  struct timer timer;
  size_t cap_bytes;
  bool timed_out;
  bool has_exited;
  int status;
};

static void reply_exec(long id, struct view stdout_bytes, struct view stderr_bytes, const struct exec *exec, int failed_code) {
  struct bytes result = {0}, body = {0};
  bytes_add_text(&result, "{\"exit_code\":");
  if (exec != NULL) add_exit_code(&result, exec->status);
  else bytes_print(&result, "%d", failed_code);
  bytes_add_text(&result, ",\"signal\":");
  add_signal(&result, exec != NULL ? exec->status : 0);
  bytes_print(&result, ",\"timed_out\":%s", exec != NULL && exec->timed_out ? "true" : "false");
  bytes_print(&result, ",\"stdout_bytes\":%zu,\"stderr_bytes\":%zu,\"cut_bytes\":%zu}", stdout_bytes.length, stderr_bytes.length,
              exec != NULL ? exec->out.cut + exec->err.cut : 0);
  bytes_add(&body, stdout_bytes.data, stdout_bytes.length);
  bytes_add(&body, stderr_bytes.data, stderr_bytes.length);
  reply_result(id, bytes_view(&result), bytes_view(&body));
  bytes_free(&result);
  bytes_free(&body);
}

static void finish(void *owner) {
  struct exec *exec = owner;
  timer_clear(&exec->timer);
  call_end(&exec->call);
  sender_close(&exec->in);
  watch_close(&exec->out.watch);
  watch_close(&exec->err.watch);
  reply_exec(exec->call.id, bytes_view(&exec->out.kept), bytes_view(&exec->err.kept), exec, 0);
  bytes_free(&exec->out.kept);
  bytes_free(&exec->err.kept);
  free(exec);
}

static bool has_closed(const struct exec *exec) { return !exec->out.watch.is_open && !exec->err.watch.is_open; }

static bool read_stream(struct stream *stream) {
  struct view chunk;
  if (!read_chunk(stream->watch.fd, &chunk)) {
    watch_close(&stream->watch);
    return false;
  }
  size_t room = stream->of->cap_bytes - stream->kept.length;
  size_t kept = chunk.length < room ? chunk.length : room;
  bytes_add(&stream->kept, chunk.data, kept);
  stream->cut += chunk.length - kept;
  return chunk.length > 0;
}

static void on_output(void *owner, short events) {
  (void)events;
  struct stream *stream = owner;
  struct exec *exec = stream->of;
  read_stream(stream);
  if (exec->has_exited && has_closed(exec)) finish(exec);
}

/** On a busy machine the time may be up before what the program wrote was read once; a socket holds some hundred KiB. */
static void on_drained(void *owner) {
  struct exec *exec = owner;
  for (int reads = 0; reads < 32 && exec->out.watch.is_open && read_stream(&exec->out);) reads += 1;
  for (int reads = 0; reads < 32 && exec->err.watch.is_open && read_stream(&exec->err);) reads += 1;
  finish(exec);
}

static void on_exit_of(void *owner, int status) {
  struct exec *exec = owner;
  exec->has_exited = true;
  exec->status = status;
  if (has_closed(exec)) finish(exec);
  else timer_set(&exec->timer, drain_ms, on_drained, exec);
}

/** The program's session has its number even after it has exited, as long as a member lives. */
static void stop(struct exec *exec) {
  if (!exec->has_exited) kill(-exec->child.pid, SIGKILL);
}

static void on_timeout(void *owner) {
  struct exec *exec = owner;
  exec->timed_out = true;
  stop(exec);
}

static void on_cancel(struct call *call, bool expired) {
  struct exec *exec = (struct exec *)call;
  exec->timed_out = exec->timed_out || expired;
  stop(exec);
}

static void open_stream(struct stream *stream, struct exec *exec, int fd) {
  stream->of = exec;
  watch_open(&stream->watch, fd, POLLIN, on_output, stream);
}

/** The program then reads the end of its input. */
static void on_input_taken(void *owner) {
  struct exec *exec = owner;
  watch_close(&exec->in.watch);
}

void run_exec(const struct request *request) {
  struct piped piped;
  struct bytes problem = {0};
  int error = start_piped(request, &piped, &problem);
  if (error != 0) {
    if (error > 0 && is_used_up(error)) {
      reply_error(request->id, "limit", error, "no program can be started: %s", bytes_text(&problem));
    } else {
      // As in a shell: 127 if it is not found, otherwise 126, and the reason on standard error.
      bytes_add_text(&problem, "\n");
      reply_exec(request->id, (struct view){0}, bytes_view(&problem), NULL, error == ENOENT ? 127 : 126);
    }
    return bytes_free(&problem);
  }
  struct exec *exec = make(sizeof *exec);
  exec->cap_bytes = (size_t)param_number(request, "cap_bytes", 0);
  call_begin(&exec->call, request->id, on_cancel);
  child_add(&exec->child, piped.pid, on_exit_of, exec);
  open_stream(&exec->out, exec, piped.out);
  open_stream(&exec->err, exec, piped.err);
  timer_set(&exec->timer, param_number(request, "timeout_ms", 0), on_timeout, exec);
  sender_open(&exec->in, piped.in, on_input_taken, exec);
  sender_add(&exec->in, request->body.data, request->body.length);
}
