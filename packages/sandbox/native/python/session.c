#include "session.h"

#include <stdlib.h>

#include "../base/json.h"
#include "../base/loop.h"
#include "../shell/stop.h"
#include "host.h"

/** How long an interrupted cell has to end: a while, since on a busy machine it may get no core for a second. */
static const double interrupt_ms = 2000;
static const double kill_ms = 1000;
static const double start_ms = 60000;
/** How much output between two cells is kept for the second one. */
enum { late_bytes = 8192 };

static const char remedy[] = "An image gets it with `pip install ipython`, a Debian one also with `apt-get install ipython3`.";
static const char lost_between[] = "[the Python process was killed between two cells; this is a new one, without its variables]\n";

/** A cell of the worker. */
struct run {
  struct call call;
  struct run *next;
  struct bytes code;
  double timeout_ms;
  double cap_bytes;
  bool is_restart;
  double began_ms;
};

static struct {
  struct parent *parent;
  struct host *host;
  /** What the parent's next message is: its pipes, the pid of its host, or the end of that host. */
  enum { nothing, pipes, pid, end } expected;
  bool is_running;
  struct run *first;
  struct bytes late;
  struct output_cap output;
  struct stopper stopper;
  struct timer start_timer;
} python;

static void go_on(void);

static void on_output(struct view chunk, bool is_late) {
  if (python.is_running && !is_late) return cap_add(&python.output, chunk);
  bytes_add(&python.late, chunk.data, chunk.length);
  bytes_keep_tail(&python.late, late_bytes);
}

static void forget_host(void) {
  if (python.host != NULL) host_free(python.host);
  python.host = NULL;
}

/** Ends the first call. `cell` is null if none has run to its end. */
static void reply_run(const char *how, bool is_lost, const struct cell *cell) {
  struct run *run = python.first;
  struct kept_output kept = cap_end(&python.output);
  struct bytes body = {0}, result = {0};
  double ms = now_ms() - run->began_ms;
  unsigned long long total = kept.total_bytes, cut = kept.cut_bytes;
  render_output(&kept, &body);
  bytes_print(&result, "{\"end\":\"%s\",\"state_lost\":%s,\"text_bytes\":%zu,\"total_bytes\":%llu,\"cut_bytes\":%llu,\"images\":%s,\"ms\":%.3f}", how,
              is_lost ? "true" : "false", body.length, total, cut, cell != NULL ? bytes_text(&cell->images) : "[]", ms);
  if (cell != NULL) bytes_add(&body, bytes_text(&cell->data), cell->data.length);
  python.first = run->next;
  call_end(&run->call);
  reply_result(run->call.id, bytes_view(&result), bytes_view(&body));
  bytes_free(&run->code);
  free(run);
  bytes_free(&body);
  bytes_free(&result);
}

/** There is no Python with IPython, or it did not start. Whatever went wrong, the next cell has a new parent. */
static void reply_missing(const char *message, const char *advice) {
  struct bytes text = {0};
  bytes_print(&text, "%s. %s", message, advice);
  timer_clear(&python.start_timer);
  python.expected = nothing;
  forget_host();
  parent_abandon(python.parent);
  python.parent = NULL;
  cap_open(&python.output, python.first->cap_bytes);
  cap_add(&python.output, bytes_view(&text));
  bytes_free(&text);
  reply_run("missing", false, NULL);
  go_on();
}

static void explain_missing(const struct parent_message *message) {
  struct bytes text = {0};
  if (message->event != parent_missing) bytes_add_text(&text, "Python could not be started: ");
  if (message->text.length > 0) bytes_add(&text, message->text.data, message->text.length);
  else bytes_add_text(&text, "its parent process sent an unexpected message");
  reply_missing(bytes_text(&text), remedy);
  bytes_free(&text);
}

static void interrupt_cell(void *owner) {
  (void)owner;
  host_interrupt(python.host);
}

static void kill_host(void *owner) {
  (void)owner;
  host_kill(python.host);
}

static const struct stop_step stop_steps[] = {{interrupt_cell, interrupt_ms}, {kill_host, kill_ms}, {NULL, 0}};

static const char *name_end(const struct cell *cell) {
  if (python.stopper.reason == stop_cancelled) return "cancelled";
  if (python.stopper.reason == stop_timeout) return "timeout";
  return cell == NULL ? "host-died" : cell->has_failed ? "error" : "ok";
}

/** The running cell is over, or the host has ended. */
static void on_change(void) {
  struct host *host = python.host;
  if (host->has_ended) python.expected = nothing;
  if (python.is_running) {
    const struct cell *cell = cell_is_over(&host->cell) ? &host->cell : NULL;
    python.is_running = false;
    host->is_running = false;
    stopper_close(&python.stopper);
    reply_run(name_end(cell), cell == NULL, cell);
    cell_free(&host->cell);
    if (cell == NULL) forget_host();
  }
  go_on();
}

static void open_pipes(const struct parent_message *message) {
  struct bytes problem = {0}, text = {0};
  if (message->event != parent_ready) return explain_missing(message);
  python.host = host_open(python.parent, message, &problem);
  if (python.host != NULL) {
    python.host->on_output = on_output;
    python.host->on_change = on_change;
    python.expected = pid;
    parent_fork(python.parent);
  } else {
    bytes_print(&text, "Python could not be started: %s", bytes_text(&problem));
    reply_missing(bytes_text(&text), "Run the cell again.");
  }
  bytes_free(&problem);
  bytes_free(&text);
}

/** A program of the agent may have written the message. */
static void take_pid(const struct parent_message *message) {
  if (message->event != parent_host) return explain_missing(message);
  if (message->pid <= 1) return reply_missing("Python could not be started: its parent process reported no process", "Run the cell again.");
  timer_clear(&python.start_timer);
  python.host->pid = (pid_t)message->pid;
  python.expected = end;
  python.first->is_restart = false;
  go_on();
}

static void on_message(void) {
  struct parent_message message;
  while (python.expected != nothing && python.parent != NULL && parent_take(python.parent, &message)) {
    int expected = python.expected;
    if (expected == pipes) open_pipes(&message);
    if (expected == pid) take_pid(&message);
    if (expected == end) {
      python.expected = nothing;
      host_bury(python.host);
    }
    bytes_free(&message.text);
  }
}

static void on_start_time(void *owner) {
  (void)owner;
  parent_kill(python.parent);
}

static void start_host(void) {
  struct run *run = python.first;
  bool was_lost = python.host != NULL && !run->is_restart;
  forget_host();
  bytes_clear(&python.late);
  if (was_lost) bytes_add_text(&python.late, lost_between);
  if (python.parent != NULL && python.parent->has_ended) {
    parent_abandon(python.parent);
    python.parent = NULL;
  }
  if (python.parent == NULL) python.parent = parent_open(on_message);
  python.expected = pipes;
  timer_set(&python.start_timer, start_ms, on_start_time, NULL);
  on_message();
}

static void begin_cell(void) {
  struct run *run = python.first;
  cap_open(&python.output, run->cap_bytes);
  cap_add(&python.output, bytes_view(&python.late));
  bytes_clear(&python.late);
  python.is_running = true;
  stopper_open(&python.stopper, stop_steps, run->timeout_ms, NULL);
  host_run(python.host, bytes_view(&run->code));
}

/** Gives the next cell a host, or starts one for it. */
static void go_on(void) {
  while (python.first != NULL && !python.is_running && python.expected != pipes && python.expected != pid) {
    struct run *run = python.first;
    struct host *host = python.host;
    if (run->began_ms == 0) run->began_ms = now_ms();
    if (run->call.is_cancelled) {
      cap_open(&python.output, run->cap_bytes);
      reply_run("cancelled", false, NULL);
      continue;
    }
    if (host != NULL && !host->has_ended && (run->is_restart || host->is_dying)) {
      if (!host->is_dying) host_kill(host);
      return; // its end goes on
    }
    if (host != NULL && !host->has_ended) return begin_cell();
    start_host();
  }
}

static void on_cancel(struct call *call, bool expired) {
  (void)expired;
  if (python.is_running && call == &python.first->call) stopper_cancel(&python.stopper);
}

void python_run(const struct request *request) {
  struct run *run = make(sizeof *run);
  run->timeout_ms = param_number(request, "timeout_ms", 0);
  run->cap_bytes = param_number(request, "cap_bytes", 0);
  run->is_restart = json_is_true(json_get(request->params, "restart"));
  bytes_add(&run->code, request->body.data, request->body.length);
  call_begin(&run->call, request->id, on_cancel);
  struct run **at = &python.first;
  while (*at != NULL) at = &(*at)->next;
  *at = run;
  go_on();
}
