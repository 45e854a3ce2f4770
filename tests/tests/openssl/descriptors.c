/* Descriptors of a program with keys of cryptod: those that it closes, those that it does not have, and those that it
   takes into another root. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 16 };

static EVP_PKEY *key;

static int sign(void) {
    unsigned char signature[512];
    size_t length = sizeof(signature);
    EVP_MD_CTX *sign = EVP_MD_CTX_new();
    int done = EVP_DigestSignInit_ex(sign, NULL, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_DigestSign(sign, signature, &length, (const unsigned char *)"text", 4) == 1;
    EVP_MD_CTX_free(sign);
    return done;
}

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

/* Closes what it does not know, as daemons do when they begin, and opens files of its own. */
static int closed(void) {
    int files[FILES];
    struct stat before[FILES], now;
    if (!sign()) return fail("no signature at first");
    for (int file = 3; file < 256; file++) close(file);
    for (int at = 0; at < FILES; at++) {
        char name[32];
        snprintf(name, sizeof(name), "own-%d", at);
        files[at] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (files[at] < 0 || fstat(files[at], &before[at]) != 0) return fail("no file");
    }
    for (int times = 0; times < 3; times++)
        if (!sign()) return fail("no signature after descriptors were closed");
    for (int at = 0; at < FILES; at++) {
        if (fstat(files[at], &now) != 0) return fail("a file of the program was closed");
        if (now.st_ino != before[at].st_ino) return fail("a file of the program is another one");
        if (now.st_size != 0) return fail("a file of the program was written to");
    }
    return 0;
}

/* Has no standard streams: no descriptor of the client gets their numbers. */
static int standard(void) {
    int messages = fcntl(2, F_DUPFD_CLOEXEC, 100);
    struct stat unused;
    for (int file = 0; file < 3; file++) close(file);
    int done = sign() && sign();
    for (int file = 0; file < 3; file++) {
        if (fstat(file, &unused) == 0) {
            dprintf(messages, "descriptor %d is in use\n", file);
            return 1;
        }
    }
    if (!done) dprintf(messages, "no signature without standard streams\n");
    return !done;
}

/* Signs in an empty root, as a user without rights, and finds no way out of it. */
static int jailed(void) {
    if (mkdir("jail", 0755) != 0 && errno != EEXIST) return fail("no folder");
    if (chroot("jail") != 0 || chdir("/") != 0) return fail("no root");
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return fail("no user");
    for (int file = 0; file < 256; file++) {
        char out[256] = "";
        for (int up = 0; up < 12; up++) {
            strcat(out, "../");
            char name[300];
            snprintf(name, sizeof(name), "%setc/passwd", out);
            if (openat(file, name, O_RDONLY) >= 0) return fail("a descriptor leads out of the root");
        }
        if (fchdir(file) == 0 && open("../../../../../../etc/passwd", O_RDONLY) >= 0)
            return fail("a folder leads out of the root");
    }
    if (chdir("/") != 0) return fail("no root");
    return sign() ? 0 : fail("no signature in another root");
}

int main(int count, char **arguments) {
    FILE *file = count < 3 ? NULL : fopen(arguments[2], "r");
    if (file == NULL) return fail("no key file");
    key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    fclose(file);
    if (key == NULL) return fail("no key");
    if (strcmp(arguments[1], "closed") == 0) return closed();
    if (strcmp(arguments[1], "standard") == 0) return standard();
    if (strcmp(arguments[1], "jailed") == 0) return jailed();
    return fail("no such part");
}
