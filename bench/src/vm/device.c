/* AES-128-CBC by the kernel's crypto API (AF_ALG), with the driver of virtio-crypto, one request after the other: for
   each number of bytes, a line with that number and the microseconds of a request, those of the best of many short
   windows, since a neighbour of the guest disturbs most.
   Arguments: seconds for each, the numbers of bytes. */

#include <linux/if_alg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAX 65536
/* In seconds, for every number of bytes. */
#define WINDOW 0.002

static int must(long result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* A socket for requests to that implementation. */
static int cipher(const char *driver)
{
    struct sockaddr_alg address = { .salg_family = AF_ALG, .salg_type = "skcipher" };
    strncpy((char *)address.salg_name, driver, sizeof address.salg_name - 1);
    int listener = must(socket(AF_ALG, SOCK_SEQPACKET, 0), "socket");
    must(bind(listener, (struct sockaddr *)&address, sizeof address), driver);
    must(setsockopt(listener, SOL_ALG, ALG_SET_KEY, "0123456789abcdef", 16), "key");
    return must(accept(listener, NULL, 0), "accept");
}

static void encrypt(int socket, char *in, char *out, size_t bytes)
{
    char control[CMSG_SPACE(4) + CMSG_SPACE(sizeof(struct af_alg_iv) + 16)] = { 0 };
    struct iovec part = { in, bytes };
    struct msghdr message = {
        .msg_control = control, .msg_controllen = sizeof control, .msg_iov = &part, .msg_iovlen = 1,
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_ALG;
    header->cmsg_type = ALG_SET_OP;
    header->cmsg_len = CMSG_LEN(4);
    *(__u32 *)CMSG_DATA(header) = ALG_OP_ENCRYPT;
    header = CMSG_NXTHDR(&message, header);
    header->cmsg_level = SOL_ALG;
    header->cmsg_type = ALG_SET_IV;
    header->cmsg_len = CMSG_LEN(sizeof(struct af_alg_iv) + 16);
    ((struct af_alg_iv *)CMSG_DATA(header))->ivlen = 16;
    if (must(sendmsg(socket, &message, 0), "sendmsg") != bytes || must(read(socket, out, bytes), "read") != bytes) {
        fprintf(stderr, "not all was taken\n");
        exit(1);
    }
}

int main(int count, char **arguments)
{
    static char in[BYTES_MAX], out[BYTES_MAX], expected[BYTES_MAX];
    if (count < 3)
        return 2;
    int device = cipher("virtio_crypto_aes_cbc"), kernel = cipher("cbc(aes-generic)");
    for (int index = 2; index < count; index++) {
        size_t bytes = atol(arguments[index]);
        if (bytes > BYTES_MAX)
            return 2;
        memset(in, index, bytes);
        encrypt(kernel, in, expected, bytes);
        double begun = now(), end = begun + atof(arguments[1]), best = 1e9;
        while (begun < end) {
            double passed;
            long done = 0;
            do {
                for (int turn = 0; turn < 4; turn++)
                    encrypt(device, in, out, bytes);
                done += 4;
                passed = now() - begun;
            } while (passed < WINDOW);
            if (passed / done < best)
                best = passed / done;
            begun = now();
        }
        if (memcmp(out, expected, bytes) != 0) {
            fprintf(stderr, "%zu bytes are not encrypted as the kernel does\n", bytes);
            return 1;
        }
        printf("%zu %f\n", bytes, best * 1e6);
    }
    return 0;
}
