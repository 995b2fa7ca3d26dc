// UTF-8, decoded as browsers and Node.js do: each longest part of a character that is not complete becomes one U+FFFD.

#ifndef MILLRACE_UTF8_H
#define MILLRACE_UTF8_H

#include <stdint.h>

#include "bytes.h"

enum { utf8_replacement = 0xfffd };

/** The character at `at`, which moves behind it. `at` is inside the text. */
uint32_t utf8_next(struct view text, size_t *at);
void utf8_add(struct bytes *to, uint32_t code);
bool utf8_is_valid(struct view text);

#endif
