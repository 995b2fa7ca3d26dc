#include <inttypes.h>
#include <stdlib.h>

#include "../base/utf8.h"
#include "output.h"

/** The characters of a text, and the line that is being written: its cells are the last `length - line` characters of `to`. */
struct screen {
  const uint32_t *from;
  size_t from_length;
  uint32_t *to;
  size_t length;
  size_t line;
  size_t column;
};

static bool is_between(uint32_t code, uint32_t low, uint32_t high) { return code >= low && code <= high; }

static bool is_plain(struct view text) {
  for (size_t at = 0; at < text.length; at += 1) {
    unsigned char byte = (unsigned char)text.data[at];
    if (byte != '\n' && byte != '\t' && !is_between(byte, 0x20, 0x7e)) return false;
  }
  return true;
}

/** A line holds at most as many cells as characters were read for it, so there is always room in `to`. */
static void put(struct screen *screen, uint32_t code) {
  while (screen->length - screen->line < screen->column) screen->to[screen->length++] = ' ';
  size_t place = screen->line + screen->column;
  screen->to[place] = code;
  if (place == screen->length) screen->length += 1;
  screen->column += 1;
}

static void erase(struct screen *screen, uint32_t kind) {
  size_t cells = screen->length - screen->line;
  size_t before = cells < screen->column ? cells : screen->column;
  if (kind == '0') screen->length = screen->line + before;
  if (kind == '1')
    for (size_t cell = 0; cell < before; cell += 1) screen->to[screen->line + cell] = ' ';
  if (kind == '2') screen->length = screen->line;
}

static uint32_t peek(const struct screen *screen, size_t at) { return at < screen->from_length ? screen->from[at] : 0; }

/** `ESC [ parameters intermediates final`: of these, only line erasure does something. Returns 0 if it has no end. */
static size_t skip_control(struct screen *screen, size_t at) {
  size_t first = at;
  while (is_between(peek(screen, at), '0', '?')) at += 1;
  size_t parameters = at - first;
  while (is_between(peek(screen, at), ' ', '/')) at += 1;
  uint32_t final = peek(screen, at);
  if (!is_between(final, '@', '~')) return 0;
  if (final == 'K' && parameters <= 1) erase(screen, parameters == 0 ? '0' : screen->from[first]);
  return at + 1;
}

enum { longest_text = 4096 };

/** A title, a link or another text up to BEL or `ESC \`. Returns 0 if it has no end in its line. */
static size_t skip_text(const struct screen *screen, size_t at) {
  size_t end = at;
  while (end < screen->from_length && end - at < longest_text) {
    uint32_t code = screen->from[end];
    if (code == '\a' || code == 0x1b || code == '\n') break;
    end += 1;
  }
  if (peek(screen, end) == '\a') return end + 1;
  return peek(screen, end) == 0x1b && peek(screen, end + 1) == '\\' ? end + 2 : 0;
}

static bool is_text_start(uint32_t code) { return code == ']' || code == 'P' || code == 'X' || code == '^' || code == '_'; }

/** `at` is behind the escape. Of a sequence that never ends (binary output), only the introducer is removed. */
static size_t skip_escape(struct screen *screen, size_t at) {
  uint32_t kind = peek(screen, at);
  size_t end = 0;
  if (kind == '[') end = skip_control(screen, at + 1);
  if (is_text_start(kind)) end = skip_text(screen, at + 1);
  if (is_between(kind, ' ', '/')) {
    end = at;
    while (is_between(peek(screen, end), ' ', '/')) end += 1;
    end = is_between(peek(screen, end), '0', '~') ? end + 1 : at;
  }
  if (end > 0) return end;
  return is_between(kind, '0', '~') ? at + 1 : at;
}

static void draw(struct screen *screen) {
  for (size_t at = 0; at < screen->from_length;) {
    uint32_t code = screen->from[at++];
    if (code == 0x1b) {
      at = skip_escape(screen, at);
    } else if (code == '\n') {
      screen->to[screen->length++] = code;
      screen->line = screen->length;
      screen->column = 0;
    } else if (code == '\r') {
      screen->column = 0;
    } else if (code == '\b') {
      if (screen->column > 0) screen->column -= 1;
    } else if (code == '\t' || !(code < 0x20 || is_between(code, 0x7f, 0x9f))) {
      put(screen, code);
    }
  }
}

/** Flow control characters are dropped first, so that they cut no sequence. */
static uint32_t *decode(struct view text, size_t *length) {
  uint32_t *codes = make(text.length * sizeof *codes);
  *length = 0;
  for (size_t at = 0; at < text.length;) {
    uint32_t code = utf8_next(text, &at);
    if (!is_between(code, 0x11, 0x13)) codes[(*length)++] = code;
  }
  return codes;
}

void render_terminal(struct view text, struct bytes *to) {
  if (is_plain(text)) return bytes_add(to, text.data, text.length);
  size_t length;
  uint32_t *codes = decode(text, &length);
  struct screen screen = {.from = codes, .from_length = length, .to = make(length * sizeof *codes)};
  draw(&screen);
  for (size_t at = 0; at < screen.length; at += 1) utf8_add(to, screen.to[at]);
  free(codes);
  free(screen.to);
}

void render_output(struct kept_output *kept, struct bytes *to) {
  if (kept->cut_bytes == 0) {
    // Without a cut, head and tail are one stream, and a character may span both.
    bytes_add(&kept->head, bytes_text(&kept->tail), kept->tail.length);
    render_terminal(bytes_view(&kept->head), to);
  } else {
    render_terminal(bytes_view(&kept->head), to);
    bytes_print(to, "\n[... %" PRIu64 " bytes left out ...]\n", kept->cut_bytes);
    render_terminal(bytes_view(&kept->tail), to);
  }
  bytes_free(&kept->head);
  bytes_free(&kept->tail);
}
