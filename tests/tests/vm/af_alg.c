/* AES-CBC by the kernel (AF_ALG), with the driver of a virtio-crypto device and no other. The kernel does each request
 * whole: its buffers begin at pages. */
#include <linux/if_alg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST 65536

static unsigned char text[LONGEST] __attribute__((aligned(4096)));
static unsigned char out[LONGEST] __attribute__((aligned(4096)));
static unsigned char back[LONGEST] __attribute__((aligned(4096)));

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* A socket for requests with this key. Closed, it closes the sessions of the device. */
static int with_key(const unsigned char *key, size_t bytes)
{
    struct sockaddr_alg name = { .salg_family = AF_ALG, .salg_type = "skcipher", .salg_name = "virtio_crypto_aes_cbc" };
    int algorithm = socket(AF_ALG, SOCK_SEQPACKET, 0);
    if (algorithm < 0 || bind(algorithm, (struct sockaddr *)&name, sizeof name) != 0)
        fail("bind");
    if (setsockopt(algorithm, SOL_ALG, ALG_SET_KEY, key, bytes) != 0)
        fail("key");
    int requests = accept(algorithm, NULL, NULL);
    if (requests < 0)
        fail("accept");
    close(algorithm);
    return requests;
}

static void run(int requests, uint32_t operation, const unsigned char *iv, const unsigned char *from, unsigned char *to,
                size_t bytes)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4) + CMSG_SPACE(20)] = { 0 };
    struct iovec part = { (void *)from, bytes };
    struct msghdr message = { .msg_control = control, .msg_controllen = sizeof control, .msg_iov = &part, .msg_iovlen = 1 };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_ALG;
    header->cmsg_type = ALG_SET_OP;
    header->cmsg_len = CMSG_LEN(4);
    memcpy(CMSG_DATA(header), &operation, 4);
    header = CMSG_NXTHDR(&message, header);
    header->cmsg_level = SOL_ALG;
    header->cmsg_type = ALG_SET_IV;
    header->cmsg_len = CMSG_LEN(20);
    uint32_t length = 16;
    memcpy(CMSG_DATA(header), &length, 4);
    memcpy(CMSG_DATA(header) + 4, iv, 16);
    if (sendmsg(requests, &message, 0) != (ssize_t)bytes)
        fail("sendmsg");
    if (read(requests, to, bytes) != (ssize_t)bytes)
        fail("read");
}

static size_t hex(const char *digits, unsigned char *bytes)
{
    size_t count = strlen(digits) / 2;
    for (size_t at = 0; at < count; at++)
        sscanf(digits + 2 * at, "%2hhx", &bytes[at]);
    return count;
}

/* Until a file is there: texts of many lengths, there and back, with new keys now and then. It leaves the processor to
 * others in between: a machine without KVM needs all of one. */
static void load(const char *end)
{
    unsigned char key[32] = { 0 }, iv[16] = { 0 };
    unsigned long rounds = 0;
    int requests = -1;
    for (size_t at = 0; at < LONGEST; at++)
        text[at] = (unsigned char)(at * 31);
    while (access(end, F_OK) != 0) {
        if (rounds % 8 == 0) {
            if (requests >= 0) {
                close(requests);
                usleep(4000);
            }
            key[0]++;
            requests = with_key(key, 16 + 8 * (rounds / 8 % 3));
        }
        size_t bytes = 16 + rounds * 496 % 16384;
        iv[0]++;
        run(requests, ALG_OP_ENCRYPT, iv, text, out, bytes);
        run(requests, ALG_OP_DECRYPT, iv, out, back, bytes);
        if (memcmp(text, back, bytes) != 0 || memcmp(text, out, bytes) == 0) {
            fprintf(stderr, "round %lu: another text\n", rounds);
            exit(1);
        }
        rounds++;
    }
    printf("%lu\n", rounds);
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "load") == 0) {
        load(words[2]);
        return 0;
    }
    if (count != 4) {
        fputs("encrypt|decrypt KEY IV <IN >OUT, or load END\n", stderr);
        return 2;
    }
    unsigned char key[32], iv[16];
    size_t key_bytes = hex(words[2], key), bytes = 0;
    hex(words[3], iv);
    for (ssize_t got; (got = read(0, text + bytes, LONGEST - bytes)) > 0;)
        bytes += (size_t)got;
    int requests = with_key(key, key_bytes);
    run(requests, words[1][0] == 'e' ? ALG_OP_ENCRYPT : ALG_OP_DECRYPT, iv, text, out, bytes);
    return fwrite(out, 1, bytes, stdout) == bytes && fflush(stdout) == 0 ? 0 : 1;
}
