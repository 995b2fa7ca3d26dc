#include "link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/json.h"
#include "../base/loop.h"

static struct sender out;
static struct watch in;
static struct call *calls;
static void (*take_request)(struct view method, const struct request *request);
/** The worker is trusted, and limits what it sends. */
static struct frame_reader reader = {.max_head = (size_t)1 << 31, .max_body = (size_t)1 << 31};

void call_begin(struct call *call, long id, void (*cancel)(struct call *, bool)) {
  call->id = id;
  call->cancel = cancel;
  call->next = calls;
  calls = call;
}

void call_end(struct call *call) {
  for (struct call **at = &calls; *at != NULL; at = &(*at)->next)
    if (*at == call) {
      *at = call->next;
      return;
    }
}

void call_cancel(long id, bool expired) {
  for (struct call *call = calls; call != NULL; call = call->next) {
    if (call->id != id || call->is_cancelled) continue;
    call->is_cancelled = true;
    call->cancel(call, expired);
    return;
  }
}

double param_number(const struct request *request, const char *name, double otherwise) {
  double value;
  return json_number(json_get(request->params, name), &value) ? value : otherwise;
}

bool param_text(const struct request *request, const char *name, struct bytes *to) {
  return json_string(json_get(request->params, name), to) && strlen(bytes_text(to)) == to->length;
}

void link_send(struct view head, struct view body) {
  struct bytes frame = {0};
  frame_render_head(&frame, head, body.length);
  sender_add(&out, frame.data, frame.length);
  sender_add(&out, body.data, body.length);
  bytes_free(&frame);
}

void reply_result(long id, struct view result, struct view body) {
  struct bytes head = {0};
  bytes_print(&head, "{\"id\":%ld,\"result\":", id);
  bytes_add(&head, result.data, result.length);
  bytes_add_text(&head, "}");
  link_send(bytes_view(&head), body);
  bytes_free(&head);
}

void reply_error(long id, const char *kind, int error_number, const char *format, ...) {
  char message[5000];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  struct bytes head = {0};
  bytes_print(&head, "{\"id\":%ld,\"error\":{\"kind\":\"%s\",\"message\":", id, kind);
  json_add_string(&head, view_of(message));
  if (is_used_up(error_number)) bytes_print(&head, ",\"errno\":\"%s\"", error_name(error_number));
  bytes_add_text(&head, "}}");
  link_send(bytes_view(&head), (struct view){0});
  bytes_free(&head);
}

static void take_frame(struct frame frame) {
  double id = 0;
  json_number(json_get(frame.head, "id"), &id);
  struct bytes method = {0};
  json_string(json_get(frame.head, "method"), &method);
  struct request request = {.id = (long)id, .params = json_get(frame.head, "params"), .body = frame.body};
  if (view_is(bytes_view(&method), "cancel"))
    call_cancel((long)param_number(&request, "call", 0), json_is_true(json_get(request.params, "expired")));
  else
    take_request(bytes_view(&method), &request);
  bytes_free(&method);
}

static void receive(void *owner, short events) {
  (void)owner, (void)events;
  static char chunk[1 << 16];
  ssize_t length = read(in.fd, chunk, sizeof chunk);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) exit(1); // not 0: with Apptainer, that would mean a signal
  frames_add(&reader, chunk, (size_t)length);
  struct frame frame;
  for (enum frame_found found; (found = frames_next(&reader, &frame)) != frame_none;) {
    if (found == frame_invalid) exit(1);
    take_frame(frame);
  }
}

static int connect_to(const char *folder, const char *port) {
  struct sockaddr_un path = {.sun_family = AF_UNIX};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(port == NULL ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (port == NULL) {
    snprintf(path.sun_path, sizeof path.sun_path, "%s/socket", folder);
    return connect(fd, (const struct sockaddr *)&path, sizeof path) == 0 ? fd : -1;
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  address.sin_port = htons((unsigned short)atoi(port));
  return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

size_t link_waiting(void) { return sender_waiting(&out); }

static void (*drained)(void);

void link_on_drained(void (*call)(void)) { drained = call; }

static void on_drained(void *owner) {
  (void)owner;
  if (drained != NULL) drained();
}

void link_open(const char *folder, const char *port, void (*take)(struct view, const struct request *)) {
  take_request = take;
  int fd = connect_to(folder, port);
  if (fd < 0) {
    perror("the executor cannot connect to its worker");
    exit(1);
  }
  watch_open(&in, fd, POLLIN, receive, NULL);
  sender_open(&out, dup_above(fd), on_drained, NULL);
}

void link_ready(void) {
  char head[80];
  snprintf(head, sizeof head, "{\"event\":\"ready\",\"pid\":%d,\"protocol\":1}", (int)getpid());
  link_send(view_of(head), (struct view){0});
}
