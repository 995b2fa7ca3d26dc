#include "bash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../process/pipes.h"
#include "../process/process.h"

/** How long to read after the exit of bash while another process holds its terminal. */
static const double drain_ms = 200;

/** It spells \e, so a terminal that echoes the line does not print a marker. */
#define end_before_nonce "{ \\builtin printf '\\e]8517;"
#define end_after_nonce ";%s\\a' \"$?\"; } >/dev/tty 2>/dev/null"

static void finish_line(struct bash *bash, bool is_alive, int exit_code) {
  if (!bash->is_running) return;
  bash->is_running = false;
  bash->on_end(bash->owner, is_alive, exit_code);
}

static void free_bash(struct bash *bash) {
  timer_clear(&bash->drain);
  watch_close(&bash->terminal);
  bytes_free(&bash->typed);
  marker_close(&bash->scan);
  free(bash);
}

void bash_abandon(struct bash *bash) {
  bash->is_abandoned = true;
  bash->is_running = false;
  if (bash->has_ended) free_bash(bash);
}

/** The last output of a bash that ends is in the terminal until all its users have closed it. */
static void finish_bash(void *owner) {
  struct bash *bash = owner;
  if (bash->has_ended) return;
  bash->has_ended = true;
  timer_clear(&bash->drain);
  watch_close(&bash->terminal);
  if (bash->is_abandoned) free_bash(bash);
  else finish_line(bash, false, bash->exit_code);
}

static void take_output(struct bash *bash, struct view chunk) {
  if (bash->is_abandoned) return;
  if (!bash->is_running) return bash->on_output(bash->owner, chunk, true);
  struct bytes output = {0}, rest = {0};
  int code;
  bool is_end = marker_take(&bash->scan, chunk, &output, &code, &rest);
  if (output.length > 0) bash->on_output(bash->owner, bytes_view(&output), false);
  if (rest.length > 0) bash->on_output(bash->owner, bytes_view(&rest), true);
  bytes_free(&output);
  bytes_free(&rest);
  if (is_end) finish_line(bash, true, code);
}

static void send_typed(struct bash *bash) {
  while (bash->typed.length > 0) {
    ssize_t taken = write(bash->terminal.fd, bash->typed.data, bash->typed.length);
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) break;
    bytes_drop(&bash->typed, (size_t)taken);
  }
  bash->terminal.events = bash->typed.length > 0 ? POLLIN | POLLOUT : POLLIN;
}

static void on_terminal(void *owner, short events) {
  struct bash *bash = owner;
  if (events & POLLOUT) send_typed(bash);
  if (!(events & (POLLIN | POLLHUP | POLLERR))) return;
  struct view chunk;
  if (read_chunk(bash->terminal.fd, &chunk)) {
    if (chunk.length > 0) take_output(bash, chunk);
    return;
  }
  watch_close(&bash->terminal); // no process has it open any more
  if (bash->has_exited) finish_bash(bash);
}

static void on_exit_of(void *owner, int status) {
  struct bash *bash = owner;
  bash->has_exited = true;
  bash->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (bash->terminal.is_open) timer_set(&bash->drain, drain_ms, finish_bash, bash);
  else finish_bash(bash);
}

/** A terminal of 200 columns as programs expect it, without echo, and without carriage returns in its output. */
static int open_terminal(int *other) {
  int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  int number, unlocked = 0;
  char path[40];
  if (fd < 0 || ioctl(fd, TIOCSPTLCK, &unlocked) < 0 || ioctl(fd, TIOCGPTN, &number) < 0) return fd;
  snprintf(path, sizeof path, "/dev/pts/%d", number);
  *other = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*other < 0) return fd;
  struct termios mode;
  tcgetattr(*other, &mode);
  mode.c_iflag |= IUTF8;
  mode.c_oflag &= ~(tcflag_t)ONLCR;
  mode.c_lflag &= ~(tcflag_t)ECHO;
  tcsetattr(*other, TCSANOW, &mode);
  struct winsize size = {.ws_row = 50, .ws_col = 200};
  ioctl(fd, TIOCSWINSZ, &size);
  return fd;
}

struct bash *bash_open(const char *cwd, const struct bash *callbacks) {
  int inner = -1, error = 0;
  int outer = open_terminal(&inner);
  char *argv[] = {"/bin/bash", "--norc", "--noprofile", "--noediting", "-i", NULL};
  int files[] = {inner, inner, inner};
  struct launch launch = {.argv = argv, .env = setting.env, .cwd = cwd, .files = files, .file_count = 3, .has_session = true, .has_terminal = true};
  pid_t pid = inner < 0 ? 0 : launch_program(&launch, &error);
  if (inner >= 0) close(inner);
  if (pid == 0) {
    if (outer >= 0) close(outer);
    return NULL;
  }
  struct bash *bash = make(sizeof *bash);
  *bash = *callbacks;
  bash->pid = pid;
  child_add(&bash->child, pid, on_exit_of, bash);
  watch_open(&bash->terminal, outer, POLLIN, on_terminal, bash);
  return bash;
}

static void type_text(struct bash *bash, const struct bytes *text) {
  if (!bash->terminal.is_open) return;
  bytes_add(&bash->typed, text->data, text->length);
  send_typed(bash);
}

void bash_type(struct bash *bash, const char *line) {
  struct bytes text = {0};
  nonce_make(bash->nonce);
  marker_open(&bash->scan, bash->nonce);
  bash->is_running = true;
  bytes_print(&text, "%s; " end_before_nonce "%s", line, bash->nonce);
  bytes_add_text(&text, end_after_nonce "\n");
  type_text(bash, &text);
  bytes_free(&text);
}

void bash_repeat_marker(struct bash *bash) {
  if (!bash->is_running) return;
  struct bytes text = {0};
  bytes_print(&text, " " end_before_nonce "%s", bash->nonce);
  bytes_add_text(&text, end_after_nonce "\n");
  type_text(bash, &text);
  bytes_free(&text);
}

bool bash_cwd(const struct bash *bash, struct bytes *to) {
  char link[40], path[PATH_MAX];
  struct stat found;
  snprintf(link, sizeof link, "/proc/%d/cwd", (int)bash->pid);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = 0;
  if (stat(path, &found) < 0 || !S_ISDIR(found.st_mode)) return false;
  bytes_add_text(to, path);
  return true;
}

/** How many bytes of a typed line's end begin here; 0 if none does. */
static size_t match_end(const char *at) {
  size_t before = strlen(end_before_nonce), after = strlen(end_after_nonce);
  if (strncmp(at, end_before_nonce, before) != 0) return 0;
  if (strspn(at + before, "abcdefghijklmnopqrstuvwxyz0123456789") != nonce_bytes) return 0;
  const char *rest = at + before + nonce_bytes;
  if (strncmp(rest, end_after_nonce, after) != 0 || rest[after] != '\n') return 0;
  return before + nonce_bytes + after + 1;
}

void remove_typed_lines(struct bytes *text, const char *run_line) {
  if (text->length == 0 || strstr(text->data, end_before_nonce) == NULL) return;
  struct bytes kept = {0};
  size_t run_length = strlen(run_line);
  for (const char *at = text->data; *at != 0;) {
    bool has_run = strncmp(at, run_line, run_length) == 0 && strncmp(at + run_length, "; ", 2) == 0;
    size_t start = has_run ? run_length + 2 : *at == ' ' ? 1 : 0;
    size_t length = start > 0 ? match_end(at + start) : 0;
    if (length == 0) bytes_add(&kept, at, 1);
    at += length == 0 ? 1 : start + length;
  }
  bytes_free(text);
  *text = kept;
}
