/* A guest's end of the tests.
 *
 *   peer echo   makes the kernel take ESP in UDP (RFC 3948) on port 4500, and echoes what comes to port 7 by UDP and
 *               TCP, from the address to which it came; returns once it does so, and leaves a process behind
 *   peer ask    reads lines `SOURCE DESTINATION BYTES`, and writes those that another's echo has not answered */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_ENCAP
#define UDP_ENCAP 100
#endif
#ifndef UDP_ENCAP_ESPINUDP
#define UDP_ENCAP_ESPINUDP 2
#endif

enum { ENCAPSULATED = 4500, ECHO = 7, AT_ONCE = 64, LONGEST = 65536 };

static void must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static int bound(int family, int type, int port)
{
    int on = 1, bytes = 4 << 20, it = socket(family, type, 0);
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    must(it, "socket");
    must(setsockopt(it, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes), "SO_RCVBUFFORCE");
    must(setsockopt(it, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes), "SO_SNDBUFFORCE");
    must(setsockopt(it, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
    if (family == AF_INET6) {
        must(setsockopt(it, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), "IPV6_V6ONLY");
        must(setsockopt(it, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on), "IPV6_RECVPKTINFO");
        must(bind(it, (struct sockaddr *)&v6, sizeof v6), "bind");
    } else {
        must(setsockopt(it, IPPROTO_IP, IP_PKTINFO, &on, sizeof on), "IP_PKTINFO");
        must(bind(it, (struct sockaddr *)&v4, sizeof v4), "bind");
    }
    return it;
}

static int encapsulated(int family)
{
    int kind = UDP_ENCAP_ESPINUDP, it = bound(family, SOCK_DGRAM, ENCAPSULATED);
    must(setsockopt(it, IPPROTO_UDP, UDP_ENCAP, &kind, sizeof kind), "UDP_ENCAP");
    return it;
}

/* What has come, back. A packet's control message names its destination, and is that of the answer's source. */
static void echo_datagrams(int socket)
{
    static char data[AT_ONCE][LONGEST], control[AT_ONCE][256];
    static struct sockaddr_storage from[AT_ONCE];
    struct mmsghdr packets[AT_ONCE];
    struct iovec parts[AT_ONCE];
    int count, sent;

    memset(packets, 0, sizeof packets);
    for (int at = 0; at < AT_ONCE; at++) {
        struct msghdr *packet = &packets[at].msg_hdr;
        parts[at] = (struct iovec){ data[at], LONGEST };
        packet->msg_name = &from[at];
        packet->msg_namelen = sizeof from[at];
        packet->msg_iov = &parts[at];
        packet->msg_iovlen = 1;
        packet->msg_control = control[at];
        packet->msg_controllen = sizeof control[at];
    }
    count = recvmmsg(socket, packets, AT_ONCE, MSG_DONTWAIT, NULL);
    for (int at = 0; at < count; at++) {
        struct cmsghdr *to = CMSG_FIRSTHDR(&packets[at].msg_hdr);
        parts[at].iov_len = packets[at].msg_len;
        if (to && to->cmsg_level == IPPROTO_IP)
            ((struct in_pktinfo *)CMSG_DATA(to))->ipi_ifindex = 0;
        else if (to)
            ((struct in6_pktinfo *)CMSG_DATA(to))->ipi6_ifindex = 0;
    }
    for (int at = 0; at < count; at += sent > 0 ? sent : 1) {
        sent = sendmmsg(socket, &packets[at], count - at, 0);
        if (sent < 0)
            perror("echo");
    }
}

static socklen_t address(const char *text, int port, struct sockaddr_storage *address)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return sizeof *v6;
    }
    must(inet_pton(AF_INET, text, &v4->sin_addr) == 1 ? 0 : -1, text);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return sizeof *v4;
}

static int ask(void)
{
    static char data[LONGEST], answer[LONGEST];
    char from[64], to[64];
    int bytes, failed = 0;
    while (scanf("%63s %63s %d", from, to, &bytes) == 3) {
        const struct timeval limit = { 10, 0 };
        struct sockaddr_storage source, destination;
        socklen_t length = address(from, 0, &source);
        int it = socket(source.ss_family, SOCK_DGRAM, 0);
        must(it, "socket");
        must(setsockopt(it, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), "SO_RCVTIMEO");
        must(bind(it, (struct sockaddr *)&source, length), from);
        length = address(to, ECHO, &destination);
        for (int at = 0; at < bytes; at++)
            data[at] = (char)(at * 7 + bytes);
        memset(answer, 0, bytes);
        if (connect(it, (struct sockaddr *)&destination, length) < 0 || send(it, data, bytes, 0) != bytes
            || recv(it, answer, sizeof answer, 0) != bytes || memcmp(data, answer, bytes) != 0) {
            printf("%s %s %d: %s\n", from, to, bytes, strerror(errno));
            failed = 1;
        }
        close(it);
    }
    return failed;
}

static void echo_connection(int listener)
{
    static char data[1 << 17];
    int connection = accept(listener, NULL, NULL);
    if (connection < 0 || fork() != 0) {
        close(connection);
        return;
    }
    for (;;) {
        ssize_t bytes = read(connection, data, sizeof data), at = 0;
        if (bytes <= 0)
            _exit(0);
        while (at < bytes) {
            ssize_t written = write(connection, data + at, bytes - at);
            if (written <= 0)
                _exit(1);
            at += written;
        }
    }
}

static int echo(void)
{
    struct pollfd all[4];
    const int families[2] = { AF_INET, AF_INET6 };
    for (int at = 0; at < 2; at++) {
        /* The kernel takes what comes to it; it is open as long as this process. */
        encapsulated(families[at]);
        all[at] = (struct pollfd){ bound(families[at], SOCK_DGRAM, ECHO), POLLIN, 0 };
        all[2 + at] = (struct pollfd){ bound(families[at], SOCK_STREAM, ECHO), POLLIN, 0 };
        must(listen(all[2 + at].fd, 64), "listen");
    }
    signal(SIGCHLD, SIG_IGN);
    if (fork() != 0)
        return 0;
    /* A descriptor that stays open is a command that has not ended. */
    must(setsid(), "setsid");
    must(freopen("/dev/null", "r", stdin) ? 0 : -1, "stdin");
    must(freopen("/dev/console", "w", stdout) ? 0 : -1, "stdout");
    must(freopen("/dev/console", "w", stderr) ? 0 : -1, "stderr");
    for (;;) {
        must(poll(all, 4, -1), "poll");
        for (int at = 0; at < 4; at++) {
            if (all[at].revents && at < 2)
                echo_datagrams(all[at].fd);
            else if (all[at].revents)
                echo_connection(all[at].fd);
        }
    }
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "echo") == 0)
        return echo();
    if (count == 2 && strcmp(arguments[1], "ask") == 0)
        return ask();
    fprintf(stderr, "usage: peer echo | peer ask\n");
    return 2;
}
