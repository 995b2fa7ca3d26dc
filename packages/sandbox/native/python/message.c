#include "../base/json.h"
#include "parent.h"

static const char *events[] = {"ready", "host", "exit", "missing", "end"};

static long number_of(struct view object, const char *name) {
  double value;
  if (!json_number(json_get(object, name), &value) || value < 0 || value > 1e9 || value != (double)(long)value) return -1;
  return (long)value;
}

bool parse_message(struct view line, struct parent_message *message) {
  if (!json_check(line)) return false;
  struct bytes event = {0};
  bool is_known = false;
  if (json_string(json_get(line, "event"), &event))
    for (int index = 0; index <= parent_end; index += 1)
      if (view_is(bytes_view(&event), events[index])) {
        is_known = true;
        message->event = (enum parent_event)index;
      }
  bytes_free(&event);
  if (!is_known) return false;
  message->pid = number_of(line, "pid");
  message->requests = number_of(line, "requests");
  message->replies = number_of(line, "replies");
  message->output = number_of(line, "output");
  message->text = (struct bytes){0};
  json_string(json_get(line, "message"), &message->text);
  return true;
}
