#include "fuzz.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "../base/utf8.h"
#include "../output/output.h"
#include "../files/paths.h"
#include "../process/process.h"
#include "../files/tar.h"
#include "../python/cell.h"
#include "../python/parent.h"
#include "../shell/bash.h"

static uint64_t state;

static size_t below(size_t most) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(state >> 33) % most;
}

/** Pieces that mean something to one of the readers. */
static const char *pieces[] = {
    "\x1b[", "\x1b]8517;abcdefghijkl;0\a", "\x1b]8517;abcdefghijkl;", "\x1b[2K", "\x1b[1K", "\x1b[K", "\x1b]0;title\a", "\x1b", "\r", "\b", "\n", "\x11", "\x13",
    "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xe2\x82", "\xf0\x9f", "\xff", "\xed\xa0\x80", "\xc2", "text", "0", ";", "\\", "\a", "~", "(B",
    "{", "}", "[", "]", "\"", ":", ",", "null", "true", "-1", "1e9", "0.5", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\"event\":\"ready\"", "\"pid\":7",
    "{\"event\":\"host\",\"pid\":2}", "{\"images\":[{\"mime\":\"image/png\",\"bytes\":3}]}", "{\"images\":[]}", "..", "/", "../", "a", "/workspace", "/usr/bin/python3",
    " { \\builtin printf '\\e]8517;abcdefghijkl;%s\\a' \"$?\"; } >/dev/tty 2>/dev/null\n", " \\builtin \\. run", "; ",
};

static void make_input(struct bytes *to) {
  bytes_clear(to);
  for (size_t count = below(40); count > 0; count -= 1) {
    if (below(8) == 0) bytes_add(to, &(char){(char)below(256)}, 1);
    else bytes_add_text(to, pieces[below(sizeof pieces / sizeof *pieces)]);
  }
  for (size_t count = below(4); count > 0 && to->length > 0; count -= 1) to->data[below(to->length)] = (char)below(256);
}

static const struct bytes *current;

static void claim(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "not true: %s, for ", what);
  for (size_t at = 0; at < current->length; at += 1) fprintf(stderr, "\\x%02x", (unsigned char)current->data[at]);
  fputs("\n", stderr);
  abort();
}

/** The text of an output under a cap, fed in chunks of any size. */
static struct bytes render(struct view input, double cap_bytes, struct kept_output *counts) {
  struct output_cap cap;
  struct bytes text = {0};
  cap_open(&cap, cap_bytes);
  for (size_t at = 0; at < input.length;) {
    size_t length = 1 + below(input.length - at);
    cap_add(&cap, (struct view){input.data + at, length});
    at += length;
  }
  struct kept_output kept = cap_end(&cap);
  *counts = kept;
  render_output(&kept, &text);
  return text;
}

static bool is_same(const struct bytes *one, const struct bytes *other) {
  return one->length == other->length && memcmp(bytes_text(one), bytes_text(other), one->length) == 0;
}

static void try_output(const struct bytes *input) {
  struct kept_output counts, again;
  double cap_bytes = (double)below(2 * input->length + 2);
  struct bytes text = render(bytes_view(input), cap_bytes, &counts), other = render(bytes_view(input), cap_bytes, &again);
  claim(is_same(&text, &other), "the text does not depend on how the stream is cut");
  claim(counts.head.length + counts.tail.length + counts.cut_bytes == counts.total_bytes && counts.total_bytes == input->length, "kept and cut bytes add up");
  claim(counts.head.length + counts.tail.length <= (size_t)cap_bytes, "no more than the cap is kept");
  claim(text.length <= 3 * (size_t)cap_bytes + 60, "the text has at most three bytes for each byte kept");
  claim(utf8_is_valid(bytes_view(&text)), "the text is UTF-8");
  for (size_t at = 0; at < text.length; at += 1) {
    unsigned char byte = (unsigned char)text.data[at];
    claim((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t', "of the control characters, only newline and tab remain");
  }
  size_t before = text.length;
  remove_typed_lines(&text, " \\builtin \\. run");
  claim(text.length <= before, "removing lines adds nothing");
  bytes_free(&text);
  bytes_free(&other);
}

static bool scan(const struct bytes *input, struct bytes *output, int *code, bool is_whole) {
  struct marker_scan scan = {0};
  struct bytes rest = {0};
  bool is_found = false;
  marker_open(&scan, "abcdefghijkl");
  for (size_t at = 0; at < input->length && !is_found;) {
    size_t length = is_whole ? input->length : 1 + below(input->length - at);
    is_found = marker_take(&scan, (struct view){input->data + at, length}, output, code, &rest);
    at += length;
  }
  if (!is_found) bytes_add(output, bytes_text(&scan.held), scan.held.length);
  claim(scan.held.length < 26, "no more than a marker is held back");
  marker_close(&scan);
  bytes_free(&rest);
  return is_found;
}

static void try_marker(const struct bytes *input) {
  struct bytes one = {0}, other = {0};
  int code = 0, again = 0;
  bool is_found = scan(input, &one, &code, true);
  claim(is_found == scan(input, &other, &again, false) && (!is_found || code == again) && is_same(&one, &other), "the marker is found wherever the stream is cut");
  claim(is_found || is_same(&one, input), "without a marker, everything is output");
  bytes_free(&one);
  bytes_free(&other);
}

static void walk(struct view value, int depth) {
  struct json_walk walk_over = {.value = value};
  struct bytes text = {0};
  double number;
  json_string(value, &text);
  json_number(value, &number);
  json_get(value, "event");
  while (depth < 40 && json_next(&walk_over)) {
    claim(json_check(walk_over.item), "the parts of a checked text are checked");
    walk(walk_over.item, depth + 1);
  }
  struct bytes written = {0};
  json_add_string(&written, bytes_view(&text));
  claim(json_check(bytes_view(&written)), "a written string can be read");
  bytes_free(&written);
  bytes_free(&text);
}

/** The input as a frame with lengths that may be wrong, cut into chunks. */
static void try_frames(const struct bytes *input) {
  struct bytes stream = {0};
  size_t head = below(input->length + 1);
  frame_render_head(&stream, (struct view){bytes_text(input), head}, input->length - head);
  bytes_add(&stream, bytes_text(input) + head, input->length - head);
  if (below(4) == 0) stream.data[below(8)] = (char)below(256);
  bytes_add(&stream, bytes_text(input), input->length);
  struct frame_reader reader = {.max_head = 200, .max_body = 300};
  struct frame frame;
  struct cell cell;
  cell_open(&cell);
  enum frame_found found = frame_none;
  for (size_t at = 0; at < stream.length && found != frame_invalid;) {
    size_t length = 1 + below(stream.length - at);
    frames_add(&reader, stream.data + at, length);
    at += length;
    while ((found = frames_next(&reader, &frame)) == frame_whole) {
      claim(frame.head.length <= 200 && frame.body.length <= 300, "no frame is over its limits");
      walk(frame.head, 0);
      if (!cell_take_frame(&cell, &frame)) break;
    }
  }
  cell_free(&cell);
  frames_free(&reader);
  bytes_free(&stream);
}

static void try_message(const struct bytes *input) {
  struct parent_message message = {0};
  if (json_check(bytes_view(input))) walk(bytes_view(input), 0);
  if (parse_message(bytes_view(input), &message)) claim(json_check(bytes_view(input)), "a message is JSON");
  bytes_free(&message.text);
}

static void try_path(const struct bytes *input) {
  struct bytes resolved = {0}, inner = {0}, header = {0};
  resolve_path(bytes_text(input), &resolved);
  struct bytes ended = {0};
  bytes_print(&ended, "%s/", resolved.data);
  claim(resolved.data[0] == '/' && strstr(ended.data, "/../") == NULL && strstr(ended.data, "/./") == NULL, "a resolved path has no dots");
  bool is_inside = inner_target("a/b/link", bytes_text(input), "/workspace", &inner);
  claim(!is_inside || inner.data[0] != '/' || strncmp(inner.data, "/usr/", 5) == 0, "a link that stays inside is relative");
  claim(!is_inside || strncmp(inner.data, "../../../", 9) != 0, "a link that stays inside goes up no more than its depth");
  tar_add_header(&header, &(struct tar_entry){.name = resolved.data, .mode = 0644, .type = '2', .size = input->length, .target = bytes_text(input)});
  claim(header.length % tar_block == 0, "headers are whole blocks");
  bytes_free(&ended);
  bytes_free(&resolved);
  bytes_free(&inner);
  bytes_free(&header);
}

void fuzz(unsigned seed, long rounds) {
  struct bytes input = {0};
  state = seed;
  setting.home = "/workspace";
  for (long round = 0; round < rounds; round += 1) {
    make_input(&input);
    current = &input;
    try_output(&input);
    try_marker(&input);
    try_frames(&input);
    try_message(&input);
    try_path(&input);
  }
  bytes_free(&input);
  printf("%ld inputs\n", rounds);
}
