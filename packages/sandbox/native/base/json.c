#include "json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

static const int deepest = 32;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char peek(struct view text, size_t at) { return at < text.length ? text.data[at] : 0; }

static size_t skip_space(struct view text, size_t at) {
  while (at < text.length && is_space(text.data[at])) at += 1;
  return at;
}

static int hex_of(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/** Each `skip` function returns the place behind what begins at `at`, or 0 if that is invalid. */
static size_t skip_string(struct view text, size_t at) {
  if (peek(text, at) != '"') return 0;
  for (at += 1; at < text.length; at += 1) {
    unsigned char c = (unsigned char)text.data[at];
    if (c == '"') return at + 1;
    if (c < 0x20) return 0;
    if (c != '\\') continue;
    at += 1;
    char kind = peek(text, at);
    if (kind == 'u') {
      for (int digit = 1; digit <= 4; digit += 1)
        if (hex_of(peek(text, at + (size_t)digit)) < 0) return 0;
      at += 4;
    } else if (kind == 0 || strchr("\"\\/bfnrt", kind) == NULL) {
      return 0;
    }
  }
  return 0;
}

static size_t skip_digits(struct view text, size_t at) {
  size_t from = at;
  while (is_digit(peek(text, at))) at += 1;
  return at == from ? 0 : at;
}

static size_t skip_number(struct view text, size_t at) {
  if (peek(text, at) == '-') at += 1;
  size_t whole = skip_digits(text, at);
  if (whole == 0 || (peek(text, at) == '0' && whole > at + 1)) return 0;
  at = whole;
  if (peek(text, at) == '.' && (at = skip_digits(text, at + 1)) == 0) return 0;
  if (peek(text, at) != 'e' && peek(text, at) != 'E') return at;
  at += 1;
  if (peek(text, at) == '+' || peek(text, at) == '-') at += 1;
  return skip_digits(text, at);
}

static size_t skip_word(struct view text, size_t at, const char *word) {
  struct view rest = {text.data + at, text.length - at};
  return view_starts(rest, word) ? at + strlen(word) : 0;
}

static size_t skip_value(struct view text, size_t at, int depth);

static size_t skip_items(struct view text, size_t at, int depth) {
  char close = text.data[at] == '{' ? '}' : ']';
  at = skip_space(text, at + 1);
  if (peek(text, at) == close) return at + 1;
  for (;;) {
    if (close == '}') {
      if ((at = skip_string(text, at)) == 0) return 0;
      at = skip_space(text, at);
      if (peek(text, at) != ':') return 0;
      at = skip_space(text, at + 1);
    }
    if ((at = skip_value(text, at, depth + 1)) == 0) return 0;
    at = skip_space(text, at);
    if (peek(text, at) == close) return at + 1;
    if (peek(text, at) != ',') return 0;
    at = skip_space(text, at + 1);
  }
}

static size_t skip_value(struct view text, size_t at, int depth) {
  if (at >= text.length || depth > deepest) return 0;
  switch (text.data[at]) {
    case '{':
    case '[': return skip_items(text, at, depth);
    case '"': return skip_string(text, at);
    case 't': return skip_word(text, at, "true");
    case 'f': return skip_word(text, at, "false");
    case 'n': return skip_word(text, at, "null");
    default: return skip_number(text, at);
  }
}

bool json_check(struct view text) {
  size_t end = skip_value(text, skip_space(text, 0), 0);
  return end > 0 && skip_space(text, end) == text.length;
}

bool json_next(struct json_walk *walk) {
  struct view text = walk->value;
  size_t at = skip_space(text, walk->at);
  if (at >= text.length || (walk->at == 0 && text.data[at] != '{' && text.data[at] != '[')) return false;
  bool is_object = text.data[skip_space(text, 0)] == '{';
  if (text.data[at] == '}' || text.data[at] == ']') return false;
  at = skip_space(text, at + 1); // behind the bracket or the comma
  if (peek(text, at) == '}' || peek(text, at) == ']') return false;
  if (is_object) {
    size_t end = skip_string(text, at);
    walk->key = (struct view){text.data + at, end - at};
    at = skip_space(text, skip_space(text, end) + 1); // behind the colon
  }
  size_t end = skip_value(text, at, 0);
  if (end == 0) return false;
  walk->item = (struct view){text.data + at, end - at};
  walk->at = end;
  return true;
}

struct view json_get(struct view object, const char *key) {
  struct json_walk walk = {.value = object};
  struct view found = {0};
  if (object.data == NULL || peek(object, skip_space(object, 0)) != '{') return found;
  while (json_next(&walk)) {
    struct bytes name = {0};
    json_string(walk.key, &name);
    if (view_is(bytes_view(&name), key)) found = walk.item; // as in JavaScript, the last one counts
    bytes_free(&name);
  }
  return found;
}

static uint32_t read_hex(const char *digits) {
  uint32_t value = 0;
  for (int digit = 0; digit < 4; digit += 1) value = value * 16 + (uint32_t)hex_of(digits[digit]);
  return value;
}

static void add_escaped(struct view value, size_t *at, struct bytes *to) {
  static const char names[] = "bfnrt", characters[] = "\b\f\n\r\t";
  char kind = value.data[*at];
  const char *name = strchr(names, kind);
  if (kind != 'u') {
    bytes_add(to, name == NULL ? &kind : &characters[name - names], 1);
    *at += 1;
    return;
  }
  uint32_t code = read_hex(value.data + *at + 1);
  *at += 5;
  bool is_high = code >= 0xd800 && code < 0xdc00;
  if (is_high && peek(value, *at) == '\\' && peek(value, *at + 1) == 'u') {
    uint32_t low = read_hex(value.data + *at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      *at += 6;
    }
  }
  utf8_add(to, code >= 0xd800 && code < 0xe000 ? utf8_replacement : code);
}

bool json_string(struct view value, struct bytes *to) {
  if (value.data == NULL || value.length < 2 || value.data[0] != '"') return false;
  size_t end = value.length - 1;
  for (size_t at = 1; at < end;) {
    if (value.data[at] == '\\') {
      at += 1;
      add_escaped(value, &at, to);
    } else {
      bytes_add(to, &value.data[at], 1);
      at += 1;
    }
  }
  return true;
}

bool json_number(struct view value, double *to) {
  char text[64];
  if (value.data == NULL || value.length >= sizeof text || (!is_digit(value.data[0]) && value.data[0] != '-')) return false;
  memcpy(text, value.data, value.length);
  text[value.length] = 0;
  *to = strtod(text, NULL);
  return true;
}

bool json_is_true(struct view value) { return view_is(value, "true"); }

void json_add_string(struct bytes *to, struct view text) {
  bytes_add_text(to, "\"");
  for (size_t at = 0; at < text.length;) {
    uint32_t code = utf8_next(text, &at);
    if (code == '"' || code == '\\') bytes_print(to, "\\%c", (char)code);
    else if (code < 0x20) bytes_print(to, "\\u%04x", (unsigned)code);
    else utf8_add(to, code);
  }
  bytes_add_text(to, "\"");
}
