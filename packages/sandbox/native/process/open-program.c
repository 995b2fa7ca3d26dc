// Programs that run while the worker talks to them: it writes to their standard input and reads what they print, piece by piece. Each has
// its own session, which is killed when it is closed.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "../base/errors.h"
#include "calls.h"
#include "pipes.h"
#include "process.h"

/** A program whose output is not read stops here. */
enum { max_waiting = 1 << 20, kept_error_bytes = 16 * 1024, small_input = 16 * 1024 };

/** A call that waits until the program has taken what was written. */
struct waiting_write {
  struct call call;
  struct waiting_write *next;
};

struct program {
  struct call reading;
  bool is_reading;
  struct timer read_timer;
  size_t read_cap;
  long number;
  struct child child;
  bool has_exited;
  int status;
  struct sender in;
  struct waiting_write *writes;
  struct watch out;
  struct watch err;
  struct bytes printed;
  struct bytes errors;
  struct program *next;
};

static struct program *programs;
static long next_number = 1;

static struct program *find(const struct request *request) {
  long number = (long)param_number(request, "program", 0);
  for (struct program *program = programs; program != NULL; program = program->next)
    if (program->number == number) return program;
  reply_error(request->id, "not-found", 0, "there is no program %ld: it was closed", number);
  return NULL;
}

static bool has_ended(const struct program *program) { return program->has_exited && !program->out.is_open && !program->err.is_open; }

/** What the program printed since the last read and, after all of it, how it ended. */
static void reply_read(struct program *program) {
  program->is_reading = false;
  timer_clear(&program->read_timer);
  call_end(&program->reading);
  struct bytes result = {0}, body = {0};
  size_t length = program->printed.length < program->read_cap ? program->printed.length : program->read_cap;
  bytes_add(&body, bytes_text(&program->printed), length);
  bytes_drop(&program->printed, length);
  if (program->printed.length < max_waiting) program->out.events = POLLIN;
  bool is_end = program->printed.length == 0 && has_ended(program);
  bytes_print(&result, "{\"ended\":%s,\"exit_code\":", is_end ? "true" : "false");
  if (is_end) add_exit_code(&result, program->status);
  else bytes_add_text(&result, "null");
  bytes_add_text(&result, ",\"signal\":");
  add_signal(&result, is_end ? program->status : 0);
  bytes_print(&result, ",\"stdout_bytes\":%zu,\"stderr_bytes\":%zu}", length, is_end ? program->errors.length : 0);
  if (is_end) bytes_add(&body, bytes_text(&program->errors), program->errors.length);
  reply_result(program->reading.id, bytes_view(&result), bytes_view(&body));
  bytes_free(&result);
  bytes_free(&body);
}

static void wake(struct program *program) {
  if (program->is_reading && (program->printed.length > 0 || has_ended(program))) reply_read(program);
}

static void on_out(void *owner, short events) {
  (void)events;
  struct program *program = owner;
  struct view chunk;
  if (!read_chunk(program->out.fd, &chunk)) watch_close(&program->out);
  bytes_add(&program->printed, chunk.data, chunk.length);
  if (program->printed.length >= max_waiting) program->out.events = 0;
  wake(program);
}

static void on_err(void *owner, short events) {
  (void)events;
  struct program *program = owner;
  struct view chunk;
  if (!read_chunk(program->err.fd, &chunk)) watch_close(&program->err);
  bytes_add(&program->errors, chunk.data, chunk.length);
  bytes_keep_tail(&program->errors, kept_error_bytes);
  wake(program);
}

static void on_exit_of(void *owner, int status) {
  struct program *program = owner;
  program->has_exited = true;
  program->status = status;
  wake(program);
}

static void reply_write(struct waiting_write *write) {
  call_end(&write->call);
  reply_result(write->call.id, view_of("{}"), (struct view){0});
  free(write);
}

/** When the program has taken all of it, or reads nothing any more. */
static void on_taken(void *owner) {
  struct program *program = owner;
  while (program->writes != NULL) {
    struct waiting_write *write = program->writes;
    program->writes = write->next;
    reply_write(write);
  }
}

void open_program(const struct request *request) {
  struct piped piped;
  struct bytes problem = {0};
  int error = start_piped(request, &piped, &problem);
  if (error != 0) {
    const char *prefix = is_used_up(error) ? "no program can be started: " : "";
    reply_error(request->id, error == ENOENT ? "not-found" : kind_of(error, "failed"), error, "%s%s", prefix, bytes_text(&problem));
    return bytes_free(&problem);
  }
  struct program *program = make(sizeof *program);
  program->number = next_number++;
  program->next = programs;
  programs = program;
  child_add(&program->child, piped.pid, on_exit_of, program);
  sender_open(&program->in, piped.in, on_taken, program);
  watch_open(&program->out, piped.out, POLLIN, on_out, program);
  watch_open(&program->err, piped.err, POLLIN, on_err, program);
  bytes_print(&problem, "{\"program\":%ld}", program->number);
  reply_result(request->id, bytes_view(&problem), (struct view){0});
  bytes_free(&problem);
}

/** The program still gets what was written; only the call is over. */
static void on_write_cancel(struct call *call, bool expired) {
  (void)expired;
  struct waiting_write *write = (struct waiting_write *)call;
  for (struct program *program = programs; program != NULL; program = program->next)
    for (struct waiting_write **at = &program->writes; *at != NULL; at = &(*at)->next)
      if (*at == write) {
        *at = write->next;
        return reply_write(write);
      }
}

void write_program(const struct request *request) {
  struct program *program = find(request);
  if (program == NULL) return;
  sender_add(&program->in, request->body.data, request->body.length);
  if (sender_waiting(&program->in) < small_input) return reply_result(request->id, view_of("{}"), (struct view){0});
  struct waiting_write *write = make(sizeof *write);
  call_begin(&write->call, request->id, on_write_cancel);
  write->next = program->writes;
  program->writes = write;
}

static void on_read_time(void *owner) { reply_read(owner); }

static void on_read_cancel(struct call *call, bool expired) {
  (void)expired;
  reply_read((struct program *)call);
}

void read_program(const struct request *request) {
  struct program *program = find(request);
  if (program == NULL) return;
  if (program->is_reading) reply_read(program); // of two reads, the second one waits
  program->is_reading = true;
  program->reading = (struct call){0};
  program->read_cap = (size_t)param_number(request, "cap_bytes", 0);
  call_begin(&program->reading, request->id, on_read_cancel);
  timer_set(&program->read_timer, param_number(request, "timeout_ms", 0), on_read_time, program);
  wake(program);
}

static void on_closed_exit(void *owner, int status) {
  (void)status;
  free(owner);
}

void close_program(const struct request *request) {
  long number = (long)param_number(request, "program", 0);
  struct program **at = &programs;
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  struct program *program = *at;
  if (program != NULL) {
    *at = program->next;
    kill(-program->child.pid, SIGKILL);
    if (program->is_reading) reply_read(program);
    on_taken(program);
    sender_close(&program->in);
    watch_close(&program->out);
    watch_close(&program->err);
    bytes_free(&program->printed);
    bytes_free(&program->errors);
    if (program->has_exited) free(program);
    else program->child.ended = on_closed_exit;
  }
  reply_result(request->id, view_of("{}"), (struct view){0});
}
