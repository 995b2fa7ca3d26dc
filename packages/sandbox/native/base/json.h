// JSON as the executor reads and writes it. A text is checked once; then its parts are views of it, found when they are asked for.
// Nothing is built in memory, so a message of an agent costs no more than its own bytes.

#ifndef MILLRACE_JSON_H
#define MILLRACE_JSON_H

#include "bytes.h"

/** Whether the text is one JSON value, nested at most 32 deep. All other functions take only parts of a checked text. */
bool json_check(struct view text);

/** A member of an object; without data if the value is not an object or has no such member. */
struct view json_get(struct view object, const char *key);

/** Walks over an array or an object; begins with all zeros but the value. `key` is set for objects. */
struct json_walk {
  struct view value;
  size_t at;
  struct view key;
  struct view item;
};
bool json_next(struct json_walk *walk);

/** Adds the characters of a string; false if the value is not one. */
bool json_string(struct view value, struct bytes *to);
/** False if the value is not a number. */
bool json_number(struct view value, double *to);
bool json_is_true(struct view value);

/** Adds the text as a JSON string. Invalid UTF-8 becomes U+FFFD. */
void json_add_string(struct bytes *to, struct view text);

#endif
