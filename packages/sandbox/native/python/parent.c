#include "parent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../process/pipes.h"
#include "../process/process.h"

/** How long to read after the end of the parent while another process holds its files open. */
static const double drain_ms = 200;
enum { longest_line = 4096, kept_error_bytes = 2000 };

static void free_parent(struct parent *parent) {
  timer_clear(&parent->drain);
  watch_close(&parent->control);
  watch_close(&parent->errors);
  for (size_t index = 0; index < parent->queued; index += 1) bytes_free(&parent->queue[index].text);
  bytes_free(&parent->line);
  bytes_free(&parent->error_tail);
  free(parent);
}

static void finish(void *owner) {
  struct parent *parent = owner;
  if (parent->is_over) return;
  parent->is_over = true;
  timer_clear(&parent->drain);
  watch_close(&parent->control);
  watch_close(&parent->errors);
  if (parent->is_abandoned) free_parent(parent);
  else parent->on_message();
}

static void finish_if_closed(struct parent *parent) {
  if (parent->has_exited && !parent->control.is_open && !parent->errors.is_open) finish(parent);
}

static void on_exit_of(void *owner, int status) {
  (void)status;
  struct parent *parent = owner;
  parent->has_exited = true;
  parent->has_ended = true;
  timer_set(&parent->drain, drain_ms, finish, parent);
  finish_if_closed(parent);
}

static void refuse(struct parent *parent) {
  parent->is_refused = true;
  watch_close(&parent->control);
  parent_kill(parent);
}

static void take_line(struct parent *parent, struct view line) {
  struct parent_message message;
  if (!parse_message(line, &message)) return refuse(parent);
  if (parent->queued == longest_queue) {
    bytes_free(&message.text);
    return refuse(parent);
  }
  parent->queue[parent->queued++] = message;
}

static void on_control(void *owner, short events) {
  (void)events;
  struct parent *parent = owner;
  struct view chunk;
  if (!read_chunk(parent->control.fd, &chunk)) {
    watch_close(&parent->control);
    return finish_if_closed(parent);
  }
  bytes_add(&parent->line, chunk.data, chunk.length);
  for (char *end; parent->line.length > 0 && (end = memchr(parent->line.data, '\n', parent->line.length)) != NULL && !parent->is_refused;) {
    size_t length = (size_t)(end - parent->line.data);
    take_line(parent, (struct view){parent->line.data, length});
    bytes_drop(&parent->line, length + 1);
  }
  if (parent->line.length > longest_line && !parent->is_refused) refuse(parent);
  if (!parent->is_abandoned) parent->on_message();
}

static void on_errors(void *owner, short events) {
  (void)events;
  struct parent *parent = owner;
  struct view chunk;
  if (!read_chunk(parent->errors.fd, &chunk)) {
    watch_close(&parent->errors);
    return finish_if_closed(parent);
  }
  bytes_add(&parent->error_tail, chunk.data, chunk.length);
  bytes_keep_tail(&parent->error_tail, kept_error_bytes);
}

static pid_t start(int control, int errors, int *error) {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  int files[] = {nothing, nothing, errors, control};
  struct bytes script = {0}, folder = {0};
  bytes_print(&script, "%s/ipython_host.py", setting.python_folder);
  bytes_print(&folder, "%s/ipython", setting.own_folder); // its files are not part of the agent's work
  char *argv[] = {"python3", script.data, NULL};
  char **env = env_with(setting.env, view_of("IPYTHONDIR"), bytes_view(&folder));
  pid_t pid = 0;
  if (nothing < 0) *error = errno;
  else pid = launch_program(&(struct launch){.argv = argv, .env = env, .cwd = setting.home, .files = files, .file_count = 4}, error);
  env_free(env);
  bytes_free(&script);
  bytes_free(&folder);
  if (nothing >= 0) close(nothing);
  return pid;
}

struct parent *parent_open(void (*on_message)(void)) {
  struct parent *parent = make(sizeof *parent);
  parent->on_message = on_message;
  int control[2] = {-1, -1}, errors[2] = {-1, -1}, error = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 || pipe2(errors, O_CLOEXEC) < 0) error = errno;
  if (error == 0) parent->pid = start(control[1], errors[1], &error);
  if (control[1] >= 0) close(control[1]);
  if (errors[1] >= 0) close(errors[1]);
  if (error != 0) {
    if (control[0] >= 0) close(control[0]);
    if (errors[0] >= 0) close(errors[0]);
    bytes_print(&parent->error_tail, "there is no python3 in the PATH of this machine (spawn python3 %s)", error_name(error));
    parent->has_ended = parent->has_exited = parent->is_over = true;
    return parent;
  }
  child_add(&parent->child, parent->pid, on_exit_of, parent);
  watch_open(&parent->control, control[0], POLLIN, on_control, parent);
  watch_open(&parent->errors, errors[0], POLLIN, on_errors, parent);
  return parent;
}

static void add_trimmed(struct bytes *to, struct view text) {
  while (text.length > 0 && strchr(" \n\r\t", text.data[text.length - 1]) != NULL) text.length -= 1;
  while (text.length > 0 && strchr(" \n\r\t", text.data[0]) != NULL) text = (struct view){text.data + 1, text.length - 1};
  bytes_add(to, text.data, text.length);
}

bool parent_take(struct parent *parent, struct parent_message *message) {
  if (parent->queued > 0) {
    *message = parent->queue[0];
    parent->queued -= 1;
    memmove(parent->queue, parent->queue + 1, parent->queued * sizeof *parent->queue);
    return true;
  }
  if (!parent->is_over) return false;
  *message = (struct parent_message){.event = parent_end};
  add_trimmed(&message->text, bytes_view(&parent->error_tail));
  if (message->text.length == 0) bytes_add_text(&message->text, "it ended at once");
  return true;
}

void parent_fork(struct parent *parent) {
  if (!parent->control.is_open) return;
  ssize_t written = write(parent->control.fd, "go\n", 3);
  (void)written; // its end is its own event
}

void parent_kill(struct parent *parent) {
  parent->has_ended = true;
  if (!parent->has_exited) kill(parent->pid, SIGKILL);
}

void parent_abandon(struct parent *parent) {
  parent->is_abandoned = true;
  parent_kill(parent);
  if (parent->is_over) free_parent(parent);
}
