#include "cell.h"

#include "../base/json.h"

/** `maxPythonImages` and `maxPythonImageBytes` of the protocol. The host respects them; a cell that writes into its host's pipe may not. */
enum { max_images = 16, max_image_bytes = 4 << 20, max_type_bytes = 100 };

void cell_open(struct cell *cell) {
  *cell = (struct cell){0};
  nonce_make(cell->nonce);
  marker_open(&cell->scan, cell->nonce);
}

void cell_take_output(struct cell *cell, struct view chunk, struct bytes *output, struct bytes *late) {
  if (cell->has_output_end) return bytes_add(late, chunk.data, chunk.length);
  int code;
  cell->has_output_end = marker_take(&cell->scan, chunk, output, &code, late);
  if (cell->has_output_end) cell->has_failed = code != 0;
}

/** Adds one image to the list; false if no host sends it. */
static bool add_image(struct cell *cell, struct view image, size_t *total) {
  struct bytes type = {0};
  double length = -1;
  bool is_valid = json_string(json_get(image, "mime"), &type) && json_number(json_get(image, "bytes"), &length) && length >= 0 &&
                  length <= max_image_bytes && length == (double)(size_t)length;
  if (is_valid) {
    if (type.length > max_type_bytes) type.length = max_type_bytes;
    *total += (size_t)length;
    bytes_add_text(&cell->images, cell->images.length > 1 ? ",{\"mime\":" : "{\"mime\":");
    json_add_string(&cell->images, bytes_view(&type));
    bytes_print(&cell->images, ",\"bytes\":%zu}", (size_t)length);
  }
  bytes_free(&type);
  return is_valid;
}

static bool take_reply(struct cell *cell, const struct frame *frame) {
  struct json_walk walk = {.value = json_get(frame->head, "images")};
  if (walk.value.data == NULL || walk.value.data[0] != '[') return false;
  size_t total = 0, count = 0;
  bytes_clear(&cell->images);
  bytes_clear(&cell->data);
  bytes_add_text(&cell->images, "[");
  while (json_next(&walk)) {
    count += 1;
    if (count > max_images || !add_image(cell, walk.item, &total)) return false;
  }
  bytes_add_text(&cell->images, "]");
  bytes_add(&cell->data, frame->body.data, frame->body.length);
  cell->has_reply = total == frame->body.length;
  return cell->has_reply;
}

bool cell_take_frame(struct cell *cell, const struct frame *frame) {
  if (cell->has_begun) return take_reply(cell, frame);
  cell->has_begun = true;
  return true;
}

bool cell_is_over(const struct cell *cell) { return cell->has_output_end && cell->has_reply; }

void cell_free(struct cell *cell) {
  marker_close(&cell->scan);
  bytes_free(&cell->images);
  bytes_free(&cell->data);
}
