// Random conversations over the loopback: clients that connect, write, read, end, reset and stay silent, and a worker that does the same,
// with numbers that are not open.

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/loop.h"
#include "../loopback/loopback.h"
#include "fuzz.h"

enum { clients = 12, window = 5000, most = 5 };

static uint64_t state;
static int client_fds[clients];
static unsigned short port;

static long below(long limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (long)((state >> 33) % (uint64_t)limit);
}

static void call(void (*method)(const struct request *), long connection, long bytes, size_t body) {
  static char content[window];
  struct bytes params = {0};
  bytes_print(&params, "{\"connection\":%ld,\"bytes\":%ld,\"listener\":1,\"port\":%d,\"max_connections\":%d,\"window_bytes\":%d}", connection, bytes, port, most, window);
  method(&(struct request){.id = 1, .params = bytes_view(&params), .body = {content, body}});
  bytes_free(&params);
}

/** A port of 127.0.0.1 that is free. */
static unsigned short find_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, (struct sockaddr *)&address, length) < 0 || getsockname(fd, (struct sockaddr *)&address, &length) < 0) abort();
  close(fd);
  return ntohs(address.sin_port);
}

static void act_as_client(int *fd) {
  static char chunk[20000];
  struct linger reset = {.l_onoff = 1};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  if (*fd < 0) {
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(*fd, (struct sockaddr *)&address, sizeof address);
    return;
  }
  long choice = below(8);
  if (choice < 3) send(*fd, chunk, (size_t)below(sizeof chunk), MSG_NOSIGNAL);
  else if (choice < 5) recv(*fd, chunk, (size_t)below(sizeof chunk), 0);
  else if (choice == 5) shutdown(*fd, SHUT_WR);
  else {
    if (choice == 6) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(*fd);
    *fd = -1;
  }
}

static void claim(bool holds, const char *what, long round) {
  if (holds) return;
  fprintf(stderr, "not true in round %ld: %s\n", round, what);
  abort();
}

/** Acts on one of the newest connections, which may be closed or not open yet. */
static void act_as_worker(long round) {
  struct loopback_count count = count_loopback();
  long connection = count.next_number + 1 - below(2 * most);
  long choice = below(10);
  // The worker keeps to the window; here, it writes only when everything was taken.
  if (choice < 3 && count.most_bytes == 0) call(write_connection, connection, 0, (size_t)below(window));
  else if (choice < 7) call(ack_connection, connection, below(2 * window), 0);
  else if (choice == 7) call(end_connection, connection, 0, 0);
  else if (choice == 8) call(close_connection, connection, 0, 0);
  else if (below(100) == 0) {
    call(close_listener, 0, 0, 0);
    claim(count_loopback().connections == 0, "closing a listener closes its connections", round);
    call(listen_on_loopback, 0, 0, 0);
  }
}

void fuzz_loopback(unsigned seed, long rounds) {
  state = seed;
  port = find_port();
  loop_open();
  for (int index = 0; index < clients; index += 1) client_fds[index] = -1;
  call(listen_on_loopback, 0, 0, 0);
  for (long round = 0; round < rounds; round += 1) {
    act_as_client(&client_fds[below(clients)]);
    act_as_worker(round);
    loop_turn(below(50) == 0);
    struct loopback_count count = count_loopback();
    claim(count.connections <= most, "no more connections than allowed are open", round);
    claim(count.most_bytes <= window, "no connection holds more than its window", round);
  }
  for (int index = 0; index < clients; index += 1)
    if (client_fds[index] >= 0) close(client_fds[index]);
  call(close_listener, 0, 0, 0);
  claim(count_loopback().connections == 0, "nothing is left", rounds);
  claim(count_loopback().next_number > 50, "programs have connected", rounds);
  printf("%ld rounds\n", rounds);
}
