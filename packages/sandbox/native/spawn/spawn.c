#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/loop.h"
#include "../enter/enter.h"

enum { kept_error = 4096, kept_report = 4096, max_message = 1 << 20, report_file = 3 };

/** A file of a holder that is read to its end, of which only the end is kept. */
struct reading {
  struct watch watch;
  struct bytes text;
  size_t most;
};

struct holder {
  struct bytes id;
  struct child child;
  bool has_exited;
  int status;
  struct reading error, report;
  struct holder *next;
};

static struct holder *holders;
static struct watch input;
static struct sender output;
static struct bytes arrived;

static void add_number(struct bytes *to, long number) {
  bytes_print(to, "%ld", number);
  bytes_add_zeros(to, 1);
}

static void add_text(struct bytes *to, const char *text) { bytes_add(to, text, strlen(text) + 1); }

/** Texts of others may have zeros in them: each ends at its first. */
static void add_view(struct bytes *to, struct view text) {
  bytes_add(to, text.data, text.length > 0 ? strnlen(text.data, text.length) : 0);
  bytes_add_zeros(to, 1);
}

static void answer(struct bytes *payload) {
  uint32_t length = (uint32_t)payload->length;
  sender_add(&output, &length, sizeof length);
  sender_add(&output, payload->data, payload->length);
  bytes_free(payload);
}

static void begin(struct bytes *payload, const char *what, const struct holder *holder) {
  add_text(payload, what);
  add_view(payload, bytes_view(&holder->id));
}

/** Its helpers may hold its files for longer than it runs: it has ended when all of them have. */
static void end_if_over(struct holder *holder) {
  if (!holder->has_exited || holder->error.watch.is_open || holder->report.watch.is_open) return;
  struct bytes payload = {0};
  begin(&payload, "end", holder);
  bool is_exit = WIFEXITED(holder->status);
  add_text(&payload, is_exit ? "exit" : "signal");
  add_number(&payload, is_exit ? WEXITSTATUS(holder->status) : WTERMSIG(holder->status));
  add_view(&payload, bytes_view(&holder->error.text));
  answer(&payload);
  for (struct holder **at = &holders; *at != NULL; at = &(*at)->next)
    if (*at == holder) {
      *at = holder->next;
      break;
    }
  bytes_free(&holder->id);
  bytes_free(&holder->error.text);
  bytes_free(&holder->report.text);
  free(holder);
}

static void note_exit(void *owner, int status) {
  struct holder *holder = owner;
  holder->has_exited = true;
  holder->status = status;
  end_if_over(holder);
}

/** True when nothing more will come. */
static bool read_some(struct reading *reading) {
  char chunk[4096];
  ssize_t length;
  while ((length = read(reading->watch.fd, chunk, sizeof chunk)) > 0) {
    bytes_add(&reading->text, chunk, (size_t)length);
    bytes_keep_tail(&reading->text, reading->most);
  }
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  watch_close(&reading->watch);
  return true;
}

static void read_error(void *owner, short events) {
  (void)events;
  struct holder *holder = owner;
  if (read_some(&holder->error)) end_if_over(holder);
}

static void read_report(void *owner, short events) {
  (void)events;
  struct holder *holder = owner;
  if (!read_some(&holder->report)) return;
  struct bytes payload = {0};
  begin(&payload, "report", holder);
  add_view(&payload, bytes_view(&holder->report.text));
  answer(&payload);
  end_if_over(holder);
}

/** Runs in the new process. */
static int become_holder(char **env, char **argv, int error, int report) {
  extern char **environ;
  for (int number = 1; number < NSIG; number += 1) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid(); // a Ctrl-C in the worker's terminal must not reach the sandbox
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(error, 2) < 0) return 1;
  if (report < 0) close(report_file);
  else if (report == report_file ? fcntl(report, F_SETFD, 0) < 0 : dup2(report, report_file) < 0) return 1;
  environ = env;
  return enter_and_become(argv + 2);
}

/** Either both ends, or none. */
static bool open_pipe(bool is_wanted, int ends[2]) {
  ends[0] = ends[1] = -1;
  return !is_wanted || pipe2(ends, O_CLOEXEC) == 0;
}

static void close_end(int end) {
  if (end >= 0) close(end);
}

/** What could not be started ends as a command that a shell cannot start. */
static void refuse(struct holder *holder) {
  bytes_print(&holder->error.text, "the spawner could not start it: %s", strerror(errno));
  holder->has_exited = true;
  holder->status = 126 << 8;
  end_if_over(holder);
}

static void start(const char *id, bool keeps, char **env, char **argv) {
  struct holder *holder = make(sizeof *holder);
  bytes_add_text(&holder->id, id);
  holder->error.most = kept_error;
  holder->report.most = kept_report;
  holder->next = holders;
  holders = holder;
  int error[2], report[2] = {-1, -1};
  bool has_pipes = open_pipe(true, error) && open_pipe(keeps, report);
  pid_t pid = has_pipes ? fork() : -1;
  if (pid == 0) _exit(become_holder(env, argv, error[1], report[1]));
  int failed = errno;
  close_end(error[1]);
  close_end(report[1]);
  if (pid < 0) {
    close_end(error[0]);
    close_end(report[0]);
    errno = failed;
    return refuse(holder);
  }
  child_add(&holder->child, pid, note_exit, holder);
  watch_open(&holder->error.watch, error[0], POLLIN, read_error, holder);
  if (keeps) watch_open(&holder->report.watch, report[0], POLLIN, read_report, holder);
  struct bytes payload = {0};
  begin(&payload, "pid", holder);
  add_number(&payload, pid);
  answer(&payload);
}

static void kill_holder(const char *id) {
  for (struct holder *holder = holders; holder != NULL; holder = holder->next)
    if (view_is(bytes_view(&holder->id), id) && !holder->has_exited) kill(holder->child.pid, SIGKILL);
}

static bool write_new(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return is_written;
}

/** Never what is in a folder: that could take long, and every start would wait. */
static bool remove_one(const char *path) { return remove(path) == 0 || errno == ENOENT; }

static void change_files(char **texts, size_t count) {
  struct bytes payload = {0};
  add_text(&payload, "done");
  add_text(&payload, texts[1]);
  if (strcmp(texts[0], "write") == 0 && !write_new(texts[2], texts[3])) add_text(&payload, texts[2]);
  bool is_removal = strcmp(texts[0], "remove") == 0, has_failed = false;
  for (size_t at = 2; is_removal && at < count; at += 1) {
    has_failed = has_failed || !remove_one(texts[at]);
    if (has_failed) add_text(&payload, texts[at]);
  }
  answer(&payload);
}

/** The worker is trusted, but a message that is not one shows that this program is not the one that it speaks to. */
static void take(char **texts, size_t count) {
  if (count == 2 && strcmp(texts[0], "kill") == 0) return kill_holder(texts[1]);
  if (count == 4 && strcmp(texts[0], "write") == 0) return change_files(texts, count);
  if (count > 2 && strcmp(texts[0], "remove") == 0) return change_files(texts, count);
  size_t first = 4 + (count > 4 && strcmp(texts[0], "start") == 0 ? strtoul(texts[3], NULL, 10) : count);
  if (first + 2 >= count) exit(2);
  char **env = make((first - 4 + 1) * sizeof *env);
  memcpy(env, texts + 4, (first - 4) * sizeof *env);
  start(texts[1], strcmp(texts[2], "1") == 0, env, texts + first);
  free(env);
}

static void take_message(char *payload, size_t length) {
  size_t count = 0;
  for (size_t at = 0; at < length; at += 1) count += payload[at] == 0;
  char **texts = make((count + 1) * sizeof *texts);
  count = 0;
  for (size_t at = 0; at < length; at += strlen(payload + at) + 1) texts[count++] = payload + at;
  take(texts, count);
  free(texts);
}

static void read_input(void *owner, short events) {
  (void)owner, (void)events;
  char chunk[1 << 16];
  ssize_t length;
  while ((length = read(input.fd, chunk, sizeof chunk)) > 0) bytes_add(&arrived, chunk, (size_t)length);
  if (length == 0 || (errno != EAGAIN && errno != EINTR)) exit(0); // the worker has ended, or needs no sandboxes any more
  uint32_t size;
  while (arrived.length >= sizeof size) {
    memcpy(&size, arrived.data, sizeof size);
    if (size == 0 || size > max_message) exit(2);
    if (arrived.length < sizeof size + size) return;
    char *payload = arrived.data + sizeof size;
    if (payload[size - 1] != 0) exit(2);
    take_message(payload, size);
    bytes_drop(&arrived, sizeof size + size);
  }
}

/** Each holder has two files here. */
static void allow_files(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) < 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

void spawn_for(const char *parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != (pid_t)strtol(parent, NULL, 10)) exit(0); // the worker ended before
  allow_files();
  loop_open();
  sender_open(&output, 1, NULL, NULL);
  watch_open(&input, 0, POLLIN, read_input, NULL);
  loop_run();
  exit(0);
}
