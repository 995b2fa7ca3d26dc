// The parts of the executor that read what an agent wrote, each as a filter for tests: `probe PART ARGUMENTS < bytes`. The test builds it
// with sanitizers, so a read or write outside of its memory ends it.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/json.h"
#include "../output/output.h"
#include "../files/paths.h"
#include "../process/process.h"
#include "../python/cell.h"
#include "../python/parent.h"
#include "../shell/bash.h"
#include "../shell/command-file.h"
#include "../shell/watch.h"
#include "fuzz.h"

static struct bytes read_input(void) {
  struct bytes input = {0};
  char chunk[4096];
  for (ssize_t length; (length = read(0, chunk, sizeof chunk)) > 0;) bytes_add(&input, chunk, (size_t)length);
  return input;
}

static struct view piece_of(const struct bytes *bytes, size_t at, size_t most) {
  return (struct view){bytes->data + at, bytes->length - at < most ? bytes->length - at : most};
}

/** Prints the text under a cap, fed in chunks, and its counts on standard error. */
static void render(const struct bytes *input, double cap_bytes, size_t chunk) {
  struct output_cap cap;
  struct bytes text = {0};
  cap_open(&cap, cap_bytes);
  for (size_t at = 0; at < input->length; at += chunk) cap_add(&cap, piece_of(input, at, chunk));
  struct kept_output kept = cap_end(&cap);
  fprintf(stderr, "[%zu, %zu, %llu, %llu]", kept.head.length, kept.tail.length, (unsigned long long)kept.total_bytes, (unsigned long long)kept.cut_bytes);
  render_output(&kept, &text);
  remove_typed_lines(&text, " \\builtin \\. /run/millrace/own/command </dev/null >/dev/tty 2>&1");
  fwrite(bytes_text(&text), 1, text.length, stdout);
  bytes_free(&text);
}

/** Prints output, code and rest as a JSON list; the code is null if there was no marker. */
static void scan(const struct bytes *input, const char *nonce, size_t chunk) {
  struct marker_scan scan = {0};
  struct bytes output = {0}, rest = {0}, line = {0};
  int code = 0;
  bool is_found = false;
  marker_open(&scan, nonce);
  size_t at = 0;
  for (; at < input->length && !is_found; at += chunk) is_found = marker_take(&scan, piece_of(input, at, chunk), &output, &code, &rest);
  if (at < input->length) bytes_add(&rest, input->data + at, input->length - at);
  bytes_add_text(&line, "[");
  json_add_string(&line, bytes_view(&output));
  if (is_found) bytes_print(&line, ", %d, ", code);
  else bytes_add_text(&line, ", null, ");
  json_add_string(&line, bytes_view(&rest));
  printf("%s]", line.data);
  marker_close(&scan);
  bytes_free(&output);
  bytes_free(&rest);
  bytes_free(&line);
}

/** Prints each frame's head and the length of its body; `invalid` ends the stream. */
static void read_frames(const struct bytes *input, size_t chunk) {
  struct frame_reader reader = {.max_head = 100, .max_body = 1000};
  struct frame frame;
  enum frame_found found = frame_none;
  for (size_t at = 0; at < input->length && found != frame_invalid; at += chunk) {
    struct view piece = piece_of(input, at, chunk);
    frames_add(&reader, piece.data, piece.length);
    while ((found = frames_next(&reader, &frame)) == frame_whole) printf("%.*s %zu\n", (int)frame.head.length, frame.head.data, frame.body.length);
    if (found == frame_invalid) puts("invalid");
  }
  frames_free(&reader);
}

/** Prints what the parent of Python's hosts said in each line. */
static void read_messages(const struct bytes *input) {
  for (size_t at = 0; at < input->length;) {
    const char *line = input->data + at;
    const char *end = memchr(line, '\n', input->length - at);
    size_t length = end == NULL ? input->length - at : (size_t)(end - line);
    struct parent_message message = {0};
    if (parse_message((struct view){line, length}, &message))
      printf("%d %ld %ld %ld %ld %s\n", (int)message.event, message.pid, message.requests, message.replies, message.output, bytes_text(&message.text));
    else puts("refused");
    bytes_free(&message.text);
    at += length + 1;
  }
}

/** Frames of a host, the first of which begins the cell. Prints for each whether a host would send it, and then the images. */
static void read_cell(const struct bytes *input) {
  struct frame_reader reader = {.max_head = 1 << 16, .max_body = 64 << 20};
  struct cell cell;
  struct frame frame;
  cell_open(&cell);
  frames_add(&reader, input->data, input->length);
  while (frames_next(&reader, &frame) == frame_whole) puts(cell_take_frame(&cell, &frame) ? "taken" : "refused");
  if (cell.has_reply) puts(cell.images.data);
  cell_free(&cell);
  frames_free(&reader);
}

/** Lines with a link's path and its target, in the folder /workspace. Prints the target that its copy gets, or `none`. */
static void read_links(struct bytes *input) {
  for (char *line = strtok(input->data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char *space = strchr(line, ' ');
    struct bytes inner = {0};
    *space = 0;
    puts(inner_target(line, space + 1, "/workspace", &inner) ? inner.data : "none");
    bytes_free(&inner);
  }
}

static double asked_ms;

static void on_idle(void *owner) {
  (void)owner;
  asked_ms = now_ms();
}

static void on_broken(void *owner) {
  struct bash *bash = owner;
  printf("%f\n", now_ms() - asked_ms);
  kill(bash->pid, SIGKILL);
  fflush(stdout);
  _exit(0);
}

static void ignore_output(void *owner, struct view chunk, bool is_late) { (void)owner, (void)chunk, (void)is_late; }

/** Prints how long after it was asked a bash is given up that has not received its command. */
static void watch_bash(const char *folder) {
  setting = (struct setting){.home = folder, .own_folder = folder, .env = env_copy((char *[]){"PATH=/usr/bin:/bin", NULL})};
  loop_open();
  command_prepare();
  command_write(view_of(":"));
  struct bash *bash = bash_open(folder, &(struct bash){.on_output = ignore_output});
  struct bash_watch watch = {.pid = bash->pid, .on_idle = on_idle, .on_broken = on_broken, .owner = bash};
  bash_watch_open(&watch);
  loop_run();
}

int main(int count, char **arguments) {
  const char *part = count > 1 ? arguments[1] : "", *first = count > 2 ? arguments[2] : "", *second = count > 3 ? arguments[3] : "";
  if (strcmp(part, "fuzz") == 0) return fuzz((unsigned)atol(first), atol(second)), 0;
  if (strcmp(part, "fuzz-loopback") == 0) return fuzz_loopback((unsigned)atol(first), atol(second)), 0;
  if (strcmp(part, "watch") == 0) return watch_bash(first), 1;
  struct bytes input = read_input();
  if (strcmp(part, "render") == 0) render(&input, atof(first), (size_t)atol(second));
  if (strcmp(part, "scan") == 0) scan(&input, first, (size_t)atol(second));
  if (strcmp(part, "frames") == 0) read_frames(&input, (size_t)atol(first));
  if (strcmp(part, "messages") == 0) read_messages(&input);
  if (strcmp(part, "cell") == 0) read_cell(&input);
  if (strcmp(part, "links") == 0) read_links(&input);
  bytes_free(&input);
  return 0;
}
