#include "loopback.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/loop.h"

/** Programs are not read while this much waits for the worker, so that replies to its calls never wait behind more. */
enum { full_link_bytes = 1 << 18, waiting_connects = 128, free_connects = 64 };
/** A program that connects again and again has this much time between two connections, after its first ones. */
static const double connect_every_ms = 4;
/** How long to wait when the kernel has no descriptor left. */
static const double retry_ms = 100;

struct listener {
  long number;
  struct watch watch;
  /** Set while no connection is accepted for a time. */
  struct timer rest;
  double paid_until_ms;
  size_t window;
  long max_connections;
  long connections;
  struct listener *next;
};

struct connection {
  long number;
  struct listener *listener;
  struct watch watch;
  /** Bytes of the program that the worker has not taken yet. */
  size_t untaken;
  /** Bytes of the worker that the program has not taken yet. */
  struct bytes waiting;
  bool has_program_ended;
  bool has_worker_ended;
  bool is_shut;
  struct connection *next;
};

static struct listener *listeners;
static struct connection *connections;
static long next_number = 1;
static bool is_link_full;

static void send_event(const char *event, const struct connection *connection, long listener, struct view body) {
  struct bytes head = {0};
  bytes_print(&head, "{\"event\":\"%s\",\"connection\":%ld", event, connection->number);
  if (listener >= 0) bytes_print(&head, ",\"listener\":%ld", listener);
  bytes_add_text(&head, "}");
  link_send(bytes_view(&head), body);
  bytes_free(&head);
}

static void send_ack(const struct connection *connection, size_t taken) {
  struct bytes head = {0};
  bytes_print(&head, "{\"event\":\"ack\",\"connection\":%ld,\"bytes\":%zu}", connection->number, taken);
  link_send(bytes_view(&head), (struct view){0});
  bytes_free(&head);
}

static void accept_if_room(struct listener *listener) {
  bool has_room = listener->connections < listener->max_connections && !listener->rest.is_set;
  listener->watch.events = has_room ? POLLIN : 0;
}

static void end_of_connection(struct connection *connection, const char *event) {
  struct connection **at = &connections;
  while (*at != connection) at = &(*at)->next;
  *at = connection->next;
  send_event(event, connection, -1, (struct view){0});
  watch_close(&connection->watch);
  bytes_free(&connection->waiting);
  connection->listener->connections -= 1;
  accept_if_room(connection->listener);
  free(connection);
}

/** Waits for what can happen next; ends the connection if nothing can. */
static void settle(struct connection *connection) {
  if (connection->has_program_ended && connection->is_shut) return end_of_connection(connection, "close");
  bool reads = !connection->has_program_ended && connection->untaken < connection->listener->window && !is_link_full;
  connection->watch.events = (short)((reads ? POLLIN : 0) | (connection->waiting.length > 0 ? POLLOUT : 0));
}

static void on_link_drained(void) {
  if (!is_link_full) return;
  is_link_full = false;
  for (struct connection *at = connections, *next; at != NULL; at = next) {
    next = at->next;
    settle(at);
  }
}

/** False if the connection is gone. */
static bool write_waiting(struct connection *connection) {
  size_t taken = 0;
  while (taken < connection->waiting.length) {
    ssize_t length = send(connection->watch.fd, connection->waiting.data + taken, connection->waiting.length - taken, MSG_NOSIGNAL);
    if (length > 0) taken += (size_t)length;
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) return end_of_connection(connection, "reset"), false;
  }
  if (taken > 0) {
    bytes_drop(&connection->waiting, taken);
    if (connection->waiting.length == 0) bytes_free(&connection->waiting);
    send_ack(connection, taken);
  }
  if (connection->has_worker_ended && connection->waiting.length == 0 && !connection->is_shut) {
    shutdown(connection->watch.fd, SHUT_WR);
    connection->is_shut = true;
  }
  return true;
}

/** False if the connection is gone. */
static bool read_program_bytes(struct connection *connection) {
  static char chunk[1 << 16];
  size_t room = connection->listener->window - connection->untaken;
  ssize_t length = recv(connection->watch.fd, chunk, room < sizeof chunk ? room : sizeof chunk, 0);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (length < 0) return end_of_connection(connection, "reset"), false;
  connection->untaken += (size_t)length;
  connection->has_program_ended = length == 0;
  send_event(length == 0 ? "end" : "data", connection, -1, (struct view){chunk, (size_t)length});
  is_link_full = link_waiting() >= full_link_bytes;
  return true;
}

static void on_ready(void *owner, short events) {
  struct connection *connection = owner;
  short wanted = connection->watch.events;
  if ((wanted & POLLOUT) != 0 && !write_waiting(connection)) return;
  // Another connection may have filled the link in this turn.
  bool reads = (wanted & POLLIN) != 0 && (events & (POLLIN | POLLHUP | POLLERR)) != 0 && !is_link_full;
  if (reads && !read_program_bytes(connection)) return;
  settle(connection);
}

static void on_rested(void *owner) { accept_if_room(owner); }

static void rest(struct listener *listener, double ms) {
  timer_set(&listener->rest, ms, on_rested, listener);
  accept_if_room(listener);
}

static void on_connect(void *owner, short events) {
  (void)events;
  struct listener *listener = owner;
  int fd = accept4(listener->watch.fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) rest(listener, retry_ms);
    return;
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct connection *connection = make(sizeof *connection);
  connection->number = next_number++;
  connection->listener = listener;
  connection->next = connections;
  connections = connection;
  listener->connections += 1;
  watch_open(&connection->watch, fd, POLLIN, on_ready, connection);
  send_event("open", connection, listener->number, (struct view){0});
  settle(connection);
  double now = now_ms(), first = now - free_connects * connect_every_ms;
  listener->paid_until_ms = (listener->paid_until_ms > first ? listener->paid_until_ms : first) + connect_every_ms;
  if (listener->paid_until_ms > now) rest(listener, listener->paid_until_ms - now);
  accept_if_room(listener);
}

/** Returns the port; or 0, with `errno` set. */
static unsigned open_port(int fd, double port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((unsigned short)port)};
  socklen_t length = sizeof address;
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); // a port that was closed can be opened again at once
  bool is_open = bind(fd, (const struct sockaddr *)&address, length) == 0 && listen(fd, waiting_connects) == 0 &&
                 getsockname(fd, (struct sockaddr *)&address, &length) == 0;
  return is_open ? ntohs(address.sin_port) : 0;
}

void listen_on_loopback(const struct request *request) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unsigned port = fd < 0 ? 0 : open_port(fd, param_number(request, "port", 0));
  if (port == 0) {
    int error = errno;
    reply_error(request->id, kind_of(error, "failed"), error, "listen on 127.0.0.1:%.0f: %s", param_number(request, "port", 0), error_name(error));
    if (fd >= 0) close(fd);
    return;
  }
  struct listener *listener = make(sizeof *listener);
  listener->number = (long)param_number(request, "listener", 0);
  listener->window = (size_t)param_number(request, "window_bytes", 0);
  listener->max_connections = (long)param_number(request, "max_connections", 0);
  listener->next = listeners;
  listeners = listener;
  watch_open(&listener->watch, fd, POLLIN, on_connect, listener);
  link_on_drained(on_link_drained);
  struct bytes result = {0};
  bytes_print(&result, "{\"port\":%u}", port);
  reply_result(request->id, bytes_view(&result), (struct view){0});
  bytes_free(&result);
}

/** The program then sees a reset, and not the end of a reply that is incomplete. */
static void reset(struct connection *connection) {
  struct linger now = {.l_onoff = 1, .l_linger = 0};
  if (!connection->is_shut) setsockopt(connection->watch.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  end_of_connection(connection, "close");
}

void close_listener(const struct request *request) {
  long number = (long)param_number(request, "listener", 0);
  struct listener **at = &listeners;
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  struct listener *listener = *at;
  if (listener != NULL) {
    for (struct connection *connection = connections, *next; connection != NULL; connection = next) {
      next = connection->next;
      if (connection->listener == listener) reset(connection);
    }
    *at = listener->next;
    watch_close(&listener->watch);
    timer_clear(&listener->rest);
    free(listener);
  }
  reply_result(request->id, view_of("{}"), (struct view){0});
}

static struct connection *find(const struct request *request) {
  long number = (long)param_number(request, "connection", 0);
  struct connection *at = connections;
  while (at != NULL && at->number != number) at = at->next;
  return at;
}

void write_connection(const struct request *request) {
  struct connection *connection = find(request);
  if (connection == NULL || connection->has_worker_ended) return;
  bytes_add(&connection->waiting, request->body.data, request->body.length);
  if (write_waiting(connection)) settle(connection);
}

void end_connection(const struct request *request) {
  struct connection *connection = find(request);
  if (connection == NULL) return;
  connection->has_worker_ended = true;
  if (write_waiting(connection)) settle(connection);
}

void ack_connection(const struct request *request) {
  struct connection *connection = find(request);
  if (connection == NULL) return;
  size_t bytes = (size_t)param_number(request, "bytes", 0);
  connection->untaken -= bytes < connection->untaken ? bytes : connection->untaken;
  settle(connection);
}

void close_connection(const struct request *request) {
  struct connection *connection = find(request);
  if (connection != NULL) reset(connection);
}

struct loopback_count count_loopback(void) {
  struct loopback_count count = {.next_number = next_number};
  for (struct connection *at = connections; at != NULL; at = at->next) {
    size_t bytes = at->untaken > at->waiting.length ? at->untaken : at->waiting.length;
    if (bytes > count.most_bytes) count.most_bytes = bytes;
    count.connections += 1;
  }
  return count;
}
