#include "session.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/json.h"
#include "../process/process.h"
#include "bash.h"
#include "command-file.h"
#include "stop.h"
#include "watch.h"

/** A bash that was replaced by another program may never print a marker. Two starts fit into the time that a worker waits for a reply. */
static const double start_ms = 5000;
/** A shell that has not read a command after this time never will. */
static const double patience_ms = 5000;
static const double grace_ms = 400;
/** A program that reads the terminal must be dead before we type anything, or it reads what we type. */
static const double dying_ms = 30;
/** How much output of background processes between two commands is kept for the second one. */
enum { late_bytes = 8192 };

static const char prepare[] = " set +o history +H; PS1= PS2= PROMPT_COMMAND=; exec >/dev/null 2>&1";
static const char new_shell[] = "[the shell was killed between two commands; this is a new one]\n";

/** A command of the worker. */
struct run {
  struct call call;
  struct run *next;
  struct bytes command;
  double timeout_ms;
  double cap_bytes;
  /** How many shells were started for it: the second one after all processes of the sandbox were killed. */
  int starts;
  double began_ms;
};

static struct {
  struct bash *bash;
  enum { starting, ready, running, settling, missing } state;
  struct run *first;
  struct bytes cwd;
  struct bytes late;
  struct output_cap output;
  struct stopper stopper;
  struct stopper settler;
  struct bash_watch watch;
  struct timer start_timer;
  bool is_lost;
  int exit_code;
  bool is_over;
} shell;

static void go_on(void);
static void finish_command(bool is_alive);

/** Tells bash to read the agent's command from a file. The backslashes keep aliases out. */
static const char *run_line(void) {
  static struct bytes line;
  if (line.length == 0) bytes_print(&line, " \\builtin \\. %s </dev/null >/dev/tty 2>&1", command_path());
  return line.data;
}

static void keep_late(struct view chunk) {
  bytes_add(&shell.late, chunk.data, chunk.length);
  bytes_keep_tail(&shell.late, late_bytes);
}

static void set_late(const char *text) {
  bytes_clear(&shell.late);
  bytes_add_text(&shell.late, text);
}

static void on_output(void *owner, struct view chunk, bool is_late) {
  (void)owner;
  if (shell.state == running && !is_late) cap_add(&shell.output, chunk);
  else if (shell.state != starting) keep_late(chunk);
}

static void give_up(void *owner) {
  (void)owner;
  shell.is_lost = true;
  kill_session(shell.bash->pid);
}

static void drop_bash(void) {
  if (shell.bash != NULL) bash_abandon(shell.bash);
  shell.bash = NULL;
}

static void on_end(void *owner, bool is_alive, int exit_code) {
  (void)owner;
  switch (shell.state) {
    case starting:
      timer_clear(&shell.start_timer);
      shell.state = is_alive ? ready : missing;
      if (!is_alive) drop_bash();
      return go_on();
    case running:
      shell.exit_code = exit_code;
      return finish_command(is_alive);
    case settling:
      stopper_close(&shell.settler);
      shell.state = running;
      shell.is_over = true;
      return finish_command(is_alive);
    default: return;
  }
}

static void start_bash(void) {
  drop_bash();
  if (shell.cwd.length == 0 || access(shell.cwd.data, X_OK) < 0) {
    bytes_clear(&shell.cwd);
    bytes_add_text(&shell.cwd, setting.home);
  }
  shell.is_lost = false;
  shell.state = missing;
  if (command_prepare() != 0) return;
  shell.bash = bash_open(shell.cwd.data, &(struct bash){.on_output = on_output, .on_end = on_end});
  if (shell.bash == NULL) return;
  shell.state = starting;
  timer_set(&shell.start_timer, start_ms, give_up, NULL);
  bash_type(shell.bash, prepare);
}

/** Sends a signal instead of typing ^C: the command may have put the terminal into raw mode. */
static void interrupt(void *owner) {
  (void)owner;
  struct process_stat stat;
  if (process_read(shell.bash->pid, &stat) && stat.foreground > 1) kill(-stat.foreground, SIGINT);
}

static void repeat_marker(void *owner) {
  (void)owner;
  bash_repeat_marker(shell.bash);
}

/** The foreground group may be the shell's own (a command substitution), so the shell itself is left alone. */
static void kill_foreground(void *owner) {
  (void)owner;
  struct process_stat bash, other;
  if (!process_read(shell.bash->pid, &bash)) return;
  DIR *proc = opendir("/proc");
  while (process_next(proc, &other))
    if (other.group == bash.foreground && other.pid != bash.pid) kill(other.pid, SIGKILL);
  if (proc != NULL) closedir(proc);
}

static void kill_shell(void *owner) {
  (void)owner;
  kill_session(shell.bash->pid);
}

static const struct stop_step stop_steps[] = {
    {interrupt, dying_ms}, {repeat_marker, grace_ms}, {kill_foreground, dying_ms}, {repeat_marker, grace_ms}, {kill_shell, grace_ms}, {NULL, 0},
};
/** After a command was stopped: an interrupt that came too late for it may still discard the next line. */
static const struct stop_step settle_steps[] = {{repeat_marker, grace_ms}, {kill_shell, grace_ms}, {NULL, 0}};

static void on_cancel(struct call *call, bool expired) {
  (void)expired;
  if (shell.state == running && call == &shell.first->call) stopper_cancel(&shell.stopper);
}

static void end_run(void) {
  struct run *run = shell.first;
  shell.first = run->next;
  call_end(&run->call);
  bytes_free(&run->command);
  free(run);
}

static void reply_run(const char *end, bool has_code, double ms) {
  struct kept_output kept = cap_end(&shell.output);
  struct bytes text = {0}, result = {0};
  bytes_print(&result, "{\"end\":\"%s\",\"exit_code\":", end);
  if (has_code) bytes_print(&result, "%d", shell.exit_code);
  else bytes_add_text(&result, "null");
  bytes_print(&result, ",\"total_bytes\":%llu,\"cut_bytes\":%llu,\"cwd\":", (unsigned long long)kept.total_bytes, (unsigned long long)kept.cut_bytes);
  json_add_string(&result, bytes_view(&shell.cwd));
  bytes_print(&result, ",\"ms\":%.3f}", ms);
  render_output(&kept, &text);
  remove_typed_lines(&text, run_line());
  long id = shell.first->call.id;
  end_run();
  reply_result(id, bytes_view(&result), bytes_view(&text));
  bytes_free(&text);
  bytes_free(&result);
}

static void begin_command(void) {
  struct run *run = shell.first;
  cap_open(&shell.output, run->cap_bytes);
  if (run->call.is_cancelled) return reply_run("cancelled", false, 0);
  cap_add(&shell.output, bytes_view(&shell.late));
  int error = command_write(bytes_view(&run->command));
  if (error != 0) {
    reply_error(run->call.id, kind_of(error, "bad-call"), error, "%s, write '%s'", error_name(error), command_path());
    cap_free(&shell.output);
    return end_run();
  }
  bytes_clear(&shell.late);
  shell.state = running;
  shell.is_over = false;
  shell.watch = (struct bash_watch){.pid = shell.bash->pid, .on_idle = repeat_marker, .on_broken = give_up};
  bash_watch_open(&shell.watch);
  stopper_open(&shell.stopper, stop_steps, run->timeout_ms, NULL);
  bash_type(shell.bash, run_line());
}

static const char *name_end(bool was_alive) {
  enum stop_reason reason = shell.stopper.reason;
  if (reason == stop_cancelled) return "cancelled";
  if (was_alive) return reason == stop_timeout ? "timeout" : "exited";
  return reason == stop_timeout ? "shell-killed" : "shell-exited";
}

/** Called again after bash has settled: `is_over` is then set, and the first end counts. */
static void finish_command(bool is_alive) {
  struct run *run = shell.first;
  double ms = now_ms() - run->began_ms;
  enum stop_reason reason = shell.stopper.reason;
  bash_watch_close(&shell.watch);
  stopper_close(&shell.stopper);
  bool is_unread = !shell.is_over && run->command.length > 0 && !command_was_read();
  bool is_broken = shell.is_lost || (is_unread && (reason == stop_none || ms > patience_ms));
  if (!shell.is_over && is_alive && !is_broken && reason != stop_none) {
    shell.state = settling;
    stopper_open(&shell.settler, settle_steps, dying_ms, NULL);
    return bash_type(shell.bash, " :");
  }
  bool was_alive = shell.is_over || is_alive;
  struct bytes cwd = {0};
  if (is_broken) kill_session(shell.bash->pid);
  if (is_alive && !is_broken) {
    shell.state = ready;
    if (bash_cwd(shell.bash, &cwd)) {
      bytes_free(&shell.cwd);
      shell.cwd = cwd;
    }
  } else {
    start_bash();
  }
  bool is_report = is_broken && reason != stop_cancelled;
  reply_run(is_report ? "shell-broken" : name_end(was_alive), !is_report, now_ms() - run->began_ms);
  go_on();
}

/** Gives the next command a shell, or starts one for it. */
static void go_on(void) {
  while (shell.first != NULL) {
    struct run *run = shell.first;
    if (run->began_ms == 0) run->began_ms = now_ms();
    if (shell.state == starting || shell.state == running || shell.state == settling) return;
    if (shell.state == ready && !shell.bash->has_ended) {
      if (run->starts > 0) set_late(new_shell);
      begin_command();
      continue;
    }
    run->starts += 1;
    if (run->starts == 2) kill_everything(); // the agent's processes have used up what a shell needs
    if (run->starts <= 2) {
      start_bash();
      continue;
    }
    reply_error(run->call.id, "limit", 0, "no shell can be started: this sandbox has no processes or no memory left, or its /bin/bash was replaced");
    end_run();
  }
}

void shell_open(void) { start_bash(); }

void shell_run(const struct request *request) {
  struct run *run = make(sizeof *run);
  run->timeout_ms = param_number(request, "timeout_ms", 0);
  run->cap_bytes = param_number(request, "cap_bytes", 0);
  bytes_add(&run->command, request->body.data, request->body.length);
  call_begin(&run->call, request->id, on_cancel);
  struct run **at = &shell.first;
  while (*at != NULL) at = &(*at)->next;
  *at = run;
  go_on();
}
